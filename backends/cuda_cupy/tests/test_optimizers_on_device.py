"""The steps of optimizers and of the scaler give what the CPU gives, which takes halves as float32."""

import pytest
from on_device import EXACT, FLOATS, each, needs_device, randoms

import tensorplug as tp
import tensorplug.amp
import tensorplug.optim

pytestmark = [
    needs_device,
    pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name),
]
optim = tp.ops.optim

SHAPES = [(40000,), (3, 4), (0,), (7, 1000), ()]  # the first one's elements need several blocks
MANY = [(5,)] * 90  # more than one kernel takes
STEPS = [1.0, 2.0, 3.0, 9.0, 30.0]
RATES = [0.1, 0.2, 0.3, 0.05, 0.4]
MOVES = [1.0, 0.5, 1.0, 0.1, 0.3]
PRODUCTS = [0.9, 0.8, 0.5, 0.6, 0.7]

# By the op: how many lists of states are given and taken in all, and what else is given.
CASES = [
    ("sgd_step", 0, 1, (0.1, 0, 0, 0.01, False, False, False)),
    ("sgd_step", 1, 1, (0.1, 0.9, 0.1, 0, True, True, False)),
    ("sgd_step", 1, 1, (0.1, 0.9, 0.1, 0.01, False, False, True)),
    ("adam_step", 3, 3, (STEPS, 0.1, 0.9, 0.99, 0.1, 1e-8, True, False, True)),
    ("adam_step", 3, 3, (STEPS, 0.1, 0.9, 0.99, 0.1, 1e-8, True, True, False)),
    ("adam_step", 2, 3, (STEPS, 0.1, 0.9, 0.99, 0, 1e-8, False, False, False)),
    ("adagrad_step", 1, 1, (STEPS, 0.1, 0.01, 0.1, 1e-8, True)),
    ("rmsprop_step", 3, 3, (0.01, 0.9, 1e-8, 0.1, 0.9, True, False)),
    ("rmsprop_step", 1, 3, (0.01, 0.9, 1e-8, 0, 0, False, True)),
    ("adadelta_step", 2, 2, (0.1, 0.9, 1e-6, 0.1, True)),
    ("adamax_step", 2, 2, (STEPS, 0.1, 0.9, 0.99, 0.1, 1e-8, False)),
    ("asgd_step", 1, 1, (RATES, MOVES, 0.01, 0.1, False)),
    ("nadam_step", 2, 2, (PRODUCTS, STEPS, 0.1, 0.9, 0.99, 0.1, 4e-3, 1e-8, True, True)),
    ("radam_step", 2, 2, (STEPS, 0.1, 0.9, 0.99, 0.1, 1e-8, False, False)),
    ("rprop_step", 2, 2, (0.5, 1.2, 1e-6, 50.0, True)),
]


def lists(shapes, count, dtype):
    """Return parameters, gradients and positive states, as the dtype holds them."""
    made = []
    for n in range(count + 2):
        tensors = [randoms(*shape, seed=100 * n + i) for i, shape in enumerate(shapes)]
        made.append([(t if n < 2 else t.abs() + 1).to(dtype) for t in tensors])
    return made


def agree(op, given, options, dtype, widest=tp.float32):
    """Compare what a step leaves in its tensors with what the CPU's does."""
    wide = tp.float64 if dtype == tp.float64 else widest
    there = each(lambda t: t.clone().to("cuda"), given)
    here = each(lambda t: t.to(wide) if t.dtype == dtype else t.clone(), given)
    op(*there, *each(lambda t: t.to("cuda"), options))
    op(*here, *options)
    for found, expected in zip(there, here, strict=True):
        for one, other in zip(found, expected, strict=True):
            close = {"rtol": EXACT[dtype], "atol": EXACT[dtype]}
            tp.testing.assert_close(one.cpu().to(other.dtype), other, **close)


@pytest.mark.parametrize("shapes", [SHAPES, MANY], ids=["few", "many"])
@pytest.mark.parametrize("case", CASES, ids=[f"{i}_{case[0]}" for i, case in enumerate(CASES)])
def test_steps(case, shapes, dtype):
    name, count, taken, options = case
    given = lists(shapes, count, dtype)
    if name == "rmsprop_step" and count == 3:  # means whose squares are within the mean of squares
        given[3] = [mean / 100 for mean in given[3]]
    given += [[] for _ in range(taken - count)]
    per_tensor = [(o * 18)[: len(shapes)] if isinstance(o, list) else o for o in options]
    agree(getattr(optim, name), given, per_tensor, dtype)


def test_a_step_writes_into_strided_memory(dtype):
    memory = tp.ones(4, 6, device="cuda", dtype=dtype)
    gradient = tp.ones(4, 3, device="cuda", dtype=dtype)
    optim.sgd_step([memory[:, ::2]], [gradient], [], 0.5, 0, 0, 0, False, False, False)
    assert memory[0].tolist() == [0.5, 1, 0.5, 1, 0.5, 1]


MATRICES = [(3, 4), (40, 70), (2, 3, 5, 4), (1, 1), (0, 3), (300, 2)]


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("clip", [1.0, 1e-3])
@pytest.mark.parametrize("flat", [False, True])
def test_adafactor(dtype, maximize, clip, flat):
    shapes = SHAPES if flat else MATRICES
    given = lists(shapes, 1, dtype)
    if flat:
        given[2:2] = [[], []]
    else:
        rows = [randoms(*s[:-1], 1, seed=7).abs().to(dtype) for s in shapes]
        columns = [randoms(*s[:-2], 1, s[-1], seed=8).abs().to(dtype) for s in shapes]
        given[2:] = [rows, columns, []]
    # A first step would make variances of single elements that float16 cannot hold.
    steps = [2.0 if dtype == tp.float16 else 1.0, 2.0, 3.0, 9.0, 30.0, 4.0][: len(shapes)]
    options = (steps, 0.1, -0.8, 1e-7, 1e-3, clip, 0.1, maximize)
    agree(optim.adafactor_step, given, options, dtype)


def test_adafactor_of_what_is_not_in_rows(dtype):
    options = ([2.0], 0.1, -0.8, 1e-7, 1e-3, 1.0, 0.0, False)
    numbers = [
        randoms(*s, seed=n).to(dtype) for n, s in enumerate([(4, 3), (3, 4), (6, 1), (1, 4)])
    ]
    results = []
    for device in ("cuda", "cpu"):
        wide = dtype if device == "cuda" or dtype == tp.float64 else tp.float32
        x, g, rows, columns = [n.to(device).to(wide) for n in numbers]
        given = [[x.t()], [g], [rows.abs()[::2]], [columns.abs()], []]
        optim.adafactor_step(*given, *options)
        results.append([lists[0].cpu().to(tp.float64) for lists in given[:4]])
    for one, other in zip(*results, strict=True):
        tp.testing.assert_close(one, other, rtol=EXACT[dtype], atol=EXACT[dtype])


@pytest.mark.parametrize("found", [None, 0.0, 1.0])
@pytest.mark.parametrize("rate", [None, 0.25])
def test_steps_on_the_device(dtype, found, rate):
    told = [None if n is None else tp.tensor(n) for n in (rate, found)]
    given = lists(SHAPES, 3, dtype)
    counts = [tp.tensor(n, dtype=tp.float32) for n in (0, 1, 2, 9, 5)]
    options = (*told, 0.1, 0.9, 0.99, 0.1, 1e-8, True, False, True)
    agree(optim.adam_step_on_device, [*given, counts], options, dtype)
    agree(
        optim.sgd_step_on_device, given[:3], (*told, 0.1, 0.9, 0.1, 0.1, False, True, False), dtype
    )


@pytest.mark.parametrize("bad", [None, float("inf"), float("nan")])
def test_unscale(dtype, bad):
    grads = [randoms(*shape, seed=i).to(dtype) for i, shape in enumerate(SHAPES)]
    if bad is not None:
        grads[3][2, 5] = bad
    found, there = tp.zeros((), device="cuda"), each(lambda t: t.to("cuda"), grads)
    tp.ops.amp.unscale(there, found, tp.tensor(0.25, device="cuda"))
    assert found.item() == (bad is not None)
    for one, other in zip(there, grads, strict=True):
        assert one.dtype == dtype
        close = {"rtol": EXACT[dtype], "atol": EXACT[dtype]}
        tp.testing.assert_close(one.cpu(), other * 0.25, equal_nan=True, **close)
