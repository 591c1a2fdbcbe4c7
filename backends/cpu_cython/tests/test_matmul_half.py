"""Products of bfloat16 arrays: each is summed in float32 and rounded once."""

import ml_dtypes
import numpy as np
import pytest

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
matmul = pytest.importorskip("tensorplug_cpu_cython.matmul", reason="oneDNN is not installed")

pytestmark = pytest.mark.usefixtures("threads")


def half(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(ml_dtypes.bfloat16)


def close(found, expected):
    """Compare with a float64 result: one rounding to eight bits, and the order of a float32 sum."""
    assert found.dtype == ml_dtypes.bfloat16
    scale = np.abs(expected).max(initial=1)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=2**-8, atol=1e-5 * scale)


SHAPES = [
    ((3, 4), (4, 5)),
    ((130, 300), (300, 70)),
    ((2, 5, 40), (40, 30)),
    ((6, 20, 33), (6, 33, 17)),
    ((3, 1, 4, 5), (2, 5, 6)),
    ((7,), (7,)),
    ((0, 4), (4, 3)),
    ((3, 0), (0, 2)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize("turned", [False, True])
def test_matmul(left, right, turned):
    a, b = half(*left), half(*right, seed=1)
    if turned:
        a = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2) if a.ndim > 1 else a[::-1]
        b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2) if b.ndim > 1 else b
    close(np.asarray(matmul.half_matmul(a, b)), a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("shape", [(40,), (9, 40), (2, 9, 40), (0, 40)])
@pytest.mark.parametrize("bias", [None, (), (30,)])
def test_linear(shape, bias):
    a, weight = half(*shape), half(30, 40, seed=1)
    b = None if bias is None else half(*bias, seed=2)
    expected = a.astype(np.float64) @ weight.astype(np.float64).T
    if b is not None:
        expected = expected + b.astype(np.float64)
    close(np.asarray(matmul.half_linear(a, weight, b)), expected)


@pytest.mark.skipif(not matmul.onednn.has_bf16, reason="this processor has no products of bfloat16")
@pytest.mark.parametrize("shape", [(9, 40), (2, 9, 40)])
@pytest.mark.parametrize("bias", [None, (), (1,), (30,)])
def test_a_layer_is_not_computed_in_float32(shape, bias, monkeypatch):
    def cast(*arguments):
        raise AssertionError("converted to float32")

    monkeypatch.setattr(matmul.pointwise, "cast", cast)
    b = None if bias is None else half(*bias, seed=2)
    assert matmul.half_linear(half(*shape), half(30, 40, seed=1), b).shape == (*shape[:-1], 30)
