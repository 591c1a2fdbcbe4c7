"""Attention over few tokens, whose products are computed without oneDNN, against float64."""

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")
kernels = pytest.importorskip("tensorplug_cpu_cython.attention", reason="oneDNN is not installed")

#: Queries, keys, elements of these and of values: below, at and above whole vectors, and groups of them.
SIZES = [
    (1, 1, 1, 1), (3, 5, 4, 7), (8, 8, 16, 16), (17, 16, 15, 17), (16, 33, 32, 8), (31, 50, 24, 40),
    (40, 65, 33, 31), (64, 64, 16, 16), (65, 70, 64, 64), (5, 130, 12, 3), (130, 9, 20, 70),
]  # fmt: skip
MASKS = ["none", "causal", "allowed", "added"]


def numbers(*shape, seed):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def heads(length, size, seed, split):
    """Return (2, 3, length, size), in rows of its own or in rows that hold all heads."""
    if split:
        return numbers(2, length, 3, size, seed=seed).transpose(0, 2, 1, 3)
    return numbers(2, 3, length, size, seed=seed)


def mask_of(name, length, source):
    if name == "allowed":
        mask = np.random.default_rng(5).random((2, 1, length, source)) < 0.6
        mask[..., 0] = True
        return mask
    if name == "added":
        added = numbers(length, source, seed=6)
        added[:, 1::3] = -np.inf
        return added
    return None


def expected(q, k, v, g, mask, causal, scale):
    """Return the result, the logarithms of the divisors, and the three gradients."""
    q, k, v, g = (x.astype(np.float64) for x in (q, k, v, g))
    scores = q @ k.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    peak = scores.max(-1, keepdims=True)
    weights = np.exp(scores - peak)
    total = weights.sum(-1, keepdims=True)
    weights /= total
    g_weights = g @ v.swapaxes(-1, -2)
    g_scores = weights * (g_weights - (g_weights * weights).sum(-1, keepdims=True)) * scale
    gradients = g_scores @ k, g_scores.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ g
    return weights @ v, (peak + np.log(total))[..., 0], *gradients


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("masked", MASKS)
@pytest.mark.parametrize(("length", "source", "size", "value_size"), SIZES)
def test_few_tokens(length, source, size, value_size, masked, split):
    q, k = heads(length, size, 0, split), heads(source, size, 1, split)
    v, g = heads(source, value_size, 2, split), heads(length, value_size, 3, split)
    mask, causal, scale = mask_of(masked, length, source), masked == "causal", size**-0.5
    output, total = kernels.attention((q, k, v), mask, causal, scale)
    found = kernels.attention_backward(
        g, np.zeros_like(total), (q, k, v), mask, output, total, causal, scale
    )
    for a, b in zip(
        (output, total, *found), expected(q, k, v, g, mask, causal, scale), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("where", ["query", "key", "value"])
def test_nan_stays_where_it_is_seen(where):
    q, k, v = (heads(20, 16, seed, False) for seed in range(3))
    {"query": q, "key": k, "value": v}[where][0, 0, 10, 3] = np.nan
    output, _ = kernels.attention((q, k, v), None, True, 0.25)
    found = np.isnan(output).any(-1)
    rows = {"query": [10], "key": range(10, 20), "value": range(20)}[where]  # 0 times NaN is NaN
    assert found[0, 0].nonzero()[0].tolist() == list(rows)
    assert not found[0, 1:].any()
    assert not found[1:].any()
