"""``flex_attention`` against plain attention in float64, and the block masks against torch's."""

import itertools
import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.nn.attention import flex_attention as flex

LENGTHS = [(5, 5), (8, 3), (4, 12)]
DOCUMENTS = [0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3]
SLOPES = [0.5, 0.25, 2.0, 0.1]


def masks(lib):
    documents = lib.tensor(DOCUMENTS)
    return {
        "none": None,
        "causal": lambda b, h, q, kv: q >= kv,
        "window": lambda b, h, q, kv: abs(q - kv) <= 1,
        "heads": lambda b, h, q, kv: (h % 2 == 0) | (kv > 0),
        "batches": lambda b, h, q, kv: kv <= q + b,
        "documents": lambda b, h, q, kv: documents[q] == documents[kv],
        "nothing": lambda b, h, q, kv: (q > 0) & (kv < 0),
    }


def scores(lib):
    slopes = lib.tensor(SLOPES, dtype=lib.float64)
    return {
        "none": None,
        "relative": lambda s, b, h, q, kv: s + 0.1 * (q - kv),
        "alibi": lambda s, b, h, q, kv: s - slopes[h] * (q - kv),
        "capped": lambda s, b, h, q, kv: 2.0 * lib.tanh(s / 2.0),
        "chosen": lambda s, b, h, q, kv: lib.where(b > 0, s, 2 * s),
    }


def plain(query, key, value, score, mask, scale):
    """Return attention computed pair by pair with NumPy, and the logarithms of the sums."""
    group = query.shape[1] // key.shape[1]
    key, value = (np.repeat(a, group, 1) for a in (key, value))
    key, value = (np.broadcast_to(a, (len(query), *a.shape[1:])) for a in (key, value))
    weights = query @ key.transpose(0, 1, 3, 2) * scale
    for b, h, q, kv in itertools.product(*map(range, weights.shape)):
        place = [tp.tensor(i) for i in (b, h, q, kv)]
        if score is not None:
            weights[b, h, q, kv] = score(tp.tensor(weights[b, h, q, kv]), *place).item()
        if mask is not None and not mask(*place).item():
            weights[b, h, q, kv] = -math.inf
    highest = np.maximum(weights.max(-1, keepdims=True), -1e300)
    parts = np.exp(weights - highest)
    sums = parts.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.log(sums)[..., 0] + highest[..., 0]
    return parts / np.where(sums == 0, 1, sums) @ value, lse


@pytest.mark.parametrize("mask", masks(tp))
@pytest.mark.parametrize("score", scores(tp))
def test_against_plain_attention(mask, score):
    random = np.random.default_rng(0)
    lengths = LENGTHS[(len(mask) + len(score)) % len(LENGTHS)]
    heads, shared, batch = random.choice([(4, 4, 2), (4, 2, 2), (4, 1, 1)])
    query = random.standard_normal((2, heads, lengths[0], 3))
    key, value = random.standard_normal((2, batch, shared, lengths[1], 3))
    score_mod, mask_mod = scores(tp)[score], masks(tp)[mask]
    given = [tp.tensor(a, requires_grad=True) for a in (query, key, value)]
    block_mask = None
    if mask_mod is not None:
        sizes = (2, heads) if mask in ("heads", "batches") else (None, None)
        block_mask = flex.create_block_mask(mask_mod, *sizes, *lengths, BLOCK_SIZE=(2, 3))
    out, aux = flex.flex_attention(
        *given,
        score_mod,
        block_mask,
        scale=0.7,
        enable_gqa=True,
        return_aux=flex.AuxRequest(lse=True),
    )
    expected, lse = plain(query, key, value, score_mod, mask_mod, 0.7)
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-12, atol=1e-12)
    if mask == "nothing":
        assert (aux.lse < -1e299).all()
        assert (out == 0).all()
    else:
        np.testing.assert_allclose(aux.lse.detach().numpy(), lse, rtol=1e-12)
        assert aux.max_scores is None
    out.sum().backward()
    assert all(t.grad.isfinite().all() for t in given)


def test_gradients():
    bias = tp.randn(4, 4, dtype=tp.float64, requires_grad=True)
    given = [tp.randn(1, 2, 4, 3, dtype=tp.float64, requires_grad=True) for _ in range(3)]
    causal = flex.create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 4, 4)

    def attend(q, k, v, bias):
        return flex.flex_attention(q, k, v, lambda s, b, h, i, j: s + bias[i, j], causal)

    assert tp.autograd.gradcheck(attend, (*given, bias))


@pytest.mark.parametrize("mask", [name for name in masks(tp) if name != "none"])
@pytest.mark.parametrize("size", [2, 3, (4, 2)])
@pytest.mark.parametrize("separate", [True, False])
def test_block_masks_as_torch(mask, size, separate):
    torch = pytest.importorskip("torch", reason="torch has the answers")
    theirs = pytest.importorskip("torch.nn.attention.flex_attention")
    for lengths in LENGTHS:
        made = [
            module.create_block_mask(
                masks(lib)[mask],
                2,
                4,
                *lengths,
                "cpu",
                BLOCK_SIZE=size,
                separate_full_blocks=separate,
            )
            for module, lib in ((flex, tp), (theirs, torch))
        ]
        for ours, expected in [made, [m[0] for m in made], [m[:, 1:3] for m in made]]:
            assert ours.shape == expected.shape
            assert ours.sparsity() == pytest.approx(expected.sparsity(), abs=1e-4)
            assert ours.to_dense().tolist() == expected.to_dense().tolist()
            for name in ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"):
                a, b = getattr(ours, name), getattr(expected, name)
                assert (a is None) == (b is None)
                assert a is None or a.tolist() == b.tolist(), name


def test_blocks_that_are_listed():
    """Full blocks take part as a whole, partial ones as far as the function allows."""
    mask = flex.BlockMask.from_kv_blocks(
        tp.tensor([[[1, 1]]]), tp.tensor([[[[0, 1], [1, 0]]]]),
        tp.tensor([[[0, 1]]]), tp.tensor([[[[0, 1], [0, 1]]]]),
        BLOCK_SIZE=2, mask_mod=lambda b, h, q, kv: q >= kv,
    )  # fmt: skip
    expected = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert mask.allowed(1, 1)[0, 0].int().tolist() == expected
    assert mask._adjust(3, 3).allowed(1, 1)[0, 0].int().tolist() == [
        row[:3] for row in expected[:3]
    ]
    assert flex.create_mask(flex.noop_mask, 1, 1, 2, 2).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda q, k, v: (q[0], k, v), "4 dimensional"),
        (lambda q, k, v: (q, k.double(), v), "same dtype"),
        (lambda q, k, v: (q, k[..., :2], v), "same embedding"),
        (lambda q, k, v: (q, k[:, :1], v[:, :1]), "enable_gqa"),
        (lambda q, k, v: (q[:, :, :3], k, v), "create one for these lengths"),
    ],
)
def test_what_does_not_go_together_is_refused(change, message):
    q, k, v = tp.randn(3, 2, 4, 6, 3)
    mask = flex.create_block_mask(flex.noop_mask, None, None, 6, 6)
    with pytest.raises(ValueError, match=message):
        flex.flex_attention(*change(q, k, v), block_mask=mask)


def test_masks_put_together():
    causal, window = masks(tp)["causal"], masks(tp)["window"]
    both = flex.create_mask(flex.and_masks(causal, window), None, None, 5, 5)
    either = flex.create_mask(flex.or_masks(causal, window), None, None, 5, 5)
    first, second = (flex.create_mask(m, None, None, 5, 5) for m in (causal, window))
    assert tp.equal(both, first & second)
    assert tp.equal(either, first | second)
    by_scores = flex.create_mask(
        lambda s, b, h, q, kv: tp.where(q >= kv, s, -math.inf), None, None, 5, 5
    )
    assert tp.equal(by_scores, first)
