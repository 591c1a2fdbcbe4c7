"""The ops of torchaudio's compiled library against SciPy, loops and all paths, without torchaudio."""

import itertools

import numpy as np
import pytest
from registering import as_before, registered
from scipy.signal import lfilter

import tensorplug as tp
from tensorplug.compat import libraries
from tensorplug.compat.torchaudio import filters, plugin


@pytest.fixture(scope="module")
def ops():
    with registered(plugin):
        yield tp.ops.torchaudio


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64])
@pytest.mark.parametrize(("batch", "channels", "time"), [(1, 1, 1), (2, 3, 40), (3, 1, 0)])
@pytest.mark.parametrize("order", [1, 2, 5])
def test_recursive_filters(ops, batch, channels, time, order, dtype):
    rng = np.random.default_rng(order)
    x = rng.standard_normal((batch, channels, time))
    a = np.concatenate([np.ones((channels, 1)), rng.standard_normal((channels, order)) / 9], 1)
    padded = tp.zeros(batch, channels, order + time, dtype=dtype)
    ops._lfilter_core_loop(tp.tensor(x, dtype=dtype), tp.tensor(a, dtype=dtype).flip(1), padded)
    wanted = np.stack([lfilter([1.0], a[c], x[:, c], axis=-1) for c in range(channels)], 1)
    tolerance = 1e-5 if dtype is tp.float32 else 1e-12
    np.testing.assert_allclose(padded[:, :, order:].numpy(), wanted, tolerance, tolerance)
    assert not padded[:, :, :order].any()
    body = filters.recursive.op.function(tp.tensor(x, dtype=dtype), tp.tensor(a, dtype=dtype))
    np.testing.assert_allclose(body.numpy(), wanted, tolerance, tolerance)


def test_filters_refuse_what_does_not_fit(ops):
    x, a = tp.zeros(1, 2, 5), tp.ones(2, 3)
    for wrong in ((x, tp.ones(1, 3), tp.zeros(1, 2, 7)), (x, a, tp.zeros(1, 2, 6))):
        with pytest.raises(RuntimeError, match="_lfilter_core_loop"):
            ops._lfilter_core_loop(*wrong)


@pytest.mark.parametrize("time", [0, 1, 30])
def test_overdrive(ops, time):
    rng = np.random.default_rng(time)
    signal, distorted = rng.standard_normal((2, 3, time))
    before, after = rng.standard_normal((2, 3))
    made = tp.zeros(3, time, dtype=tp.float64)
    ops._overdrive_core_loop(*map(tp.tensor, (signal, distorted, before, after)), made)
    for t in range(time):
        after = distorted[:, t] - before + 0.995 * after
        before = distorted[:, t]
        np.testing.assert_allclose(
            made[:, t].numpy(), signal[:, t] / 2 + after * 0.75, 1e-12, 1e-12
        )


def spelled(path, blank):
    """What a path spells: without repetitions, and then without blanks."""
    return [label for label, _ in itertools.groupby(path) if label != blank]


@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("labels", [[], [1], [1, 1], [1, 3], [3, 1, 3], [1, 1, 1]])
@pytest.mark.parametrize("dtype", [tp.int32, tp.int64])
def test_alignment_is_the_best_of_all_paths(ops, labels, blank, dtype):
    time, classes = 6, 4
    scores = np.random.default_rng(len(labels)).standard_normal((time, classes))
    targets = tp.tensor([labels], dtype=dtype).reshape(1, -1)
    lengths = tp.tensor([time]), tp.tensor([len(labels)])
    paths, given = ops.forced_align(tp.tensor(scores)[None], targets, *lengths, blank)
    assert paths.dtype is dtype
    assert tp.equal(given, tp.tensor(scores)[None])
    paths_of = (
        p for p in itertools.product(range(classes), repeat=time) if spelled(p, blank) == labels
    )
    best = max(paths_of, key=lambda path: sum(scores[t, label] for t, label in enumerate(path)))
    assert paths.tolist() == [list(best)]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"log_probs": tp.zeros(2, 5, 4)}, "one sequence"),
        ({"targets": tp.tensor([[1.0, 2.0]])}, "int32 or int64"),
        ({"blank": 4}, "blank must be within"),
        (
            {"targets": tp.tensor([[1, 1, 1, 1]]), "target_lengths": tp.tensor([4])},
            "too long for CTC",
        ),
    ],
)
def test_alignment_refuses(ops, change, text):
    given = {
        "log_probs": tp.zeros(1, 5, 4), "targets": tp.tensor([[1, 2]]), "input_lengths": tp.tensor([5]),
        "target_lengths": tp.tensor([2]), "blank": 0,
    }  # fmt: skip
    with pytest.raises(RuntimeError, match=text):
        ops.forced_align(**given | change)


def cost_by_all_paths(scores, targets, time, count, blank):
    """The negative logarithm of the summed likelihoods of all ways through the lattice."""
    total = 0.0
    for emitting in itertools.combinations(range(time - 1 + count), count):
        t = u = 0
        value = 0.0
        for step in range(time - 1 + count):
            if step in emitting:
                value += scores[t, u, targets[u]]
                u += 1
            else:
                value += scores[t, u, blank]
                t += 1
        total += np.exp(value + scores[t, u, blank])
    return -np.log(total)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("blank", [0, 3])
def test_transducers(ops, blank, fused):
    rng = np.random.default_rng(blank)
    times, counts = [4, 3, 1, 4], [3, 1, 2, 0]
    logits = rng.standard_normal((4, 4, 4, 5))
    targets = rng.choice([c for c in range(5) if c != blank], (4, 3))

    def costs(values):
        scores = values - np.log(np.exp(values).sum(-1, keepdims=True)) if fused else values
        every = zip(scores, targets, times, counts, strict=True)
        return np.array([cost_by_all_paths(*given, blank) for given in every])

    lengths = tp.tensor(times).int(), tp.tensor(counts).int()
    made, gradients = ops.rnnt_loss_forward(
        tp.tensor(logits), tp.tensor(targets).int(), *lengths, blank, -1.0, fused
    )
    np.testing.assert_allclose(made.numpy(), costs(logits), 1e-10)
    for _ in range(12):
        direction = rng.standard_normal(logits.shape)
        slope = (costs(logits + 1e-6 * direction) - costs(logits - 1e-6 * direction)) / 2e-6
        along = (gradients.numpy() * direction).sum((1, 2, 3))
        np.testing.assert_allclose(along, slope, 1e-6, 1e-7)
    _, held = ops.rnnt_loss_forward(
        tp.tensor(logits), tp.tensor(targets).int(), *lengths, blank, 0.1, fused
    )
    assert tp.equal(held, gradients.clamp(-0.1, 0.1))


def test_transducers_refuse_what_does_not_fit(ops):
    lengths = tp.tensor([3]), tp.tensor([2])
    with pytest.raises(RuntimeError, match="rnnt_loss"):
        ops.rnnt_loss_forward(tp.zeros(1, 3, 2, 4), tp.zeros(1, 2).long(), *lengths, 0, -1.0, True)


@pytest.mark.parametrize(
    "path",
    ["/x/torchaudio/lib/_torchaudio.so", "C:/y/torchaudio/lib/libtorchaudio.cp311-win_amd64.pyd"],
)
def test_its_libraries_are_answered_for(path):
    with as_before(plugin):
        libraries.load(path)
        assert tp.ops._torchaudio.is_align_available() is True
        assert tp.ops._torchaudio.cuda_version() is None


@pytest.mark.parametrize(
    "path", ["/x/torchaudio/_torchaudio.so", "/x/torchaudio/lib/torchaudio_prefixctc.so"]
)
def test_other_libraries_are_not(path):
    with pytest.raises(OSError, match="compiled against torch"):
        libraries.load(path)
