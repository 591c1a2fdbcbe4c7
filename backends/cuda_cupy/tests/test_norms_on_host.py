"""The kernels of norms, compiled for the host, give what the ops' bodies give."""

import numpy as np
import pytest
from test_kernels_on_host import FLOATS, NATIVE, as_tensor, randoms
from test_networks_on_host import HALVES, close, to_last

import tensorplug as tp
from tensorplug_cuda_cupy.kernels import batchnorm, rownorm, unit_vectors

pytestmark = [
    pytest.mark.usefixtures("on_host"),
    pytest.mark.xdist_group("cuda sources on the host"),  # one worker compiles them
]


# Of many float32 numbers in different orders.
SUMS = {dtype: {"atol": 1e-4, "rtol": 1e-4} if dtype == "float32" else {} for dtype in NATIVE}
IMAGES = pytest.mark.parametrize("shape", [(6, 9), (3, 5, 7), (4, 3, 6, 5), (2, 70, 3, 3)])


@FLOATS
@IMAGES
@pytest.mark.parametrize("last", [False, True])
def test_batch_normalize(dtype, shape, last, monkeypatch):
    monkeypatch.setattr(batchnorm, "_LANES", 4)
    monkeypatch.setattr(batchnorm, "_LEAST", 16)
    monkeypatch.setattr(batchnorm, "_BLOCKS", 60)
    x = randoms(shape, dtype) + NATIVE[dtype](3)
    weight, bias = randoms(shape[1:2], dtype, 1), randoms(shape[1:2], dtype, 2)
    shown = to_last(x) if last and x.ndim > 2 else x
    inputs = [as_tensor(a).to(tp.float64) for a in (x, weight, bias)]
    expected = tp.ops.batch_normalize(inputs, 1e-3)
    found = batchnorm.batch_normalize([shown, weight, bias], 1e-3)
    for one, other in zip(found, expected, strict=True):
        close(one, other.to(as_tensor(one).dtype), dtype)
    gradients = [randoms(array.shape, dtype, 3 + i) for i, array in enumerate(found)]
    arguments = (*gradients, x, weight, *found[1:])
    back = tp.ops.batch_normalize_gradient(*[as_tensor(a).to(tp.float64) for a in arguments])
    results = batchnorm.batch_normalize_gradient(*gradients, shown, weight, *found[1:])
    for one, other in zip(results, back, strict=True):
        close(one, other.to(as_tensor(one).dtype), dtype, **SUMS[dtype])


def test_batch_normalize_far_from_zero():
    x = (randoms((64, 3, 5, 5)) + 1000).astype(np.float32)
    one = np.ones(3, np.float32)
    _, mean, rstd = batchnorm.batch_normalize([x, one, one], 0.0)
    wide = x.astype(np.float64).transpose(1, 0, 2, 3).reshape(3, -1)
    assert mean == pytest.approx(wide.mean(1), rel=1e-6)
    assert 1 / rstd == pytest.approx(wide.std(1), rel=1e-4)


@HALVES
def test_batch_normalize_with_float32_weights(dtype):
    x = randoms((4, 3, 5, 5), dtype)
    weight, bias = randoms((3,)), randoms((3,), seed=1)
    expected = tp.ops.batch_normalize_mixed([as_tensor(a) for a in (x, weight, bias)], 1e-3)
    found = batchnorm.batch_normalize([x, weight, bias], 1e-3)
    close(found[0], expected[0], dtype)
    for one, other in zip(found[1:], expected[1:], strict=True):
        assert one.dtype == np.float32
        close(one, other)
    g = randoms(x.shape, dtype, 2)
    zeros = np.zeros(3, np.float32)
    arguments = (g, zeros, zeros, x, weight, *found[1:])
    back = tp.ops.batch_normalize_mixed_gradient(*map(as_tensor, arguments))
    for one, other in zip(batchnorm.batch_normalize_gradient(*arguments), back, strict=True):
        assert one.dtype == (x.dtype if one.ndim == 4 else np.float32)
        close(one, other, dtype if one.ndim == 4 else "float32", atol=1e-4, rtol=1e-4)


@FLOATS
@IMAGES
@pytest.mark.parametrize("affine", [False, True])
def test_channel_norm(dtype, shape, affine):
    x, *numbers = [randoms(shape if n == 0 else shape[1:2], dtype, n) for n in range(5)]
    numbers[1] = np.abs(numbers[1]) + NATIVE[dtype](0.5)
    inputs = [x, *numbers[: 4 if affine else 2]]
    expected = tp.ops.channel_norm([as_tensor(a).to(tp.float64) for a in inputs], 1e-3)
    for shown in (x, to_last(x)):
        found = batchnorm.channel_norm([shown, *inputs[1:]], 1e-3)
        close(found, expected.to(as_tensor(x).dtype), dtype)


@HALVES
def test_channel_norm_by_float32_numbers(dtype):
    x = randoms((2, 3, 4), dtype)
    numbers = [np.abs(randoms((3,), seed=n)) for n in range(1, 5)]
    expected = tp.ops.channel_norm_mixed([as_tensor(a) for a in (x, *numbers)], 1e-3)
    close(batchnorm.channel_norm([x, *numbers], 1e-3), expected, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_update_statistics(dtype):
    arrays = [np.abs(randoms((7,), dtype, n)) + NATIVE[dtype](0.5) for n in range(4)]
    tensors = [tp.from_numpy(a.copy()) for a in arrays]
    batchnorm.update_statistics(*arrays, 0.1, 1e-3, 1.25)
    tp.ops.update_statistics(*tensors, 0.1, 1e-3, 1.25)
    for one, other in zip(arrays, tensors, strict=True):
        tp.testing.assert_close(tp.from_numpy(one), other)


@FLOATS
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(
    ("shape", "length", "weights", "repeat"),
    [
        ((5, 37), 37, (37,), 1),  # layer norm
        ((2, 3, 4, 6), 24, (4, 6), 1),
        ((9,), 9, (9,), 1),
        ((3, 6, 5, 2), 20, (6,), 10),  # group norm
        ((3, 4, 7), 7, (4,), 7),  # instance norm
    ],
)
def test_norms_of_rows(dtype, centred, shape, length, weights, repeat, monkeypatch):
    monkeypatch.setattr(rownorm, "_LANES", 4)
    x, g = randoms(shape, dtype) + NATIVE[dtype](1), randoms(shape, dtype, 1)
    weight, bias = randoms(weights, dtype, 2), randoms(weights, dtype, 3)
    wide = [as_tensor(a).to(tp.float64) for a in (x, weight, bias)]
    kind, g_wide = as_tensor(x).dtype, as_tensor(g).to(tp.float64)
    options, all_options = (length, 1e-3, centred), (length, repeat, 1e-3, centred)
    close(rownorm.row_norm(x, *options), tp.ops.row_norm(wide[0], *options).to(kind), dtype)
    back = tp.ops.row_norm_gradient(g_wide, wide[0], *options)
    close(rownorm.row_norm_gradient(g, x, *options), back.to(kind), dtype)
    for count in (2, 3):
        expected = tp.ops.affine_row_norm(wide[:count], *all_options)
        found = rownorm.affine_row_norm([x, weight, bias][:count], *all_options)
        close(found, expected.to(kind), dtype)
    back = tp.ops.affine_row_norm_gradient(g_wide, *wide[:2], *all_options)
    found = rownorm.affine_row_norm_gradient(g, x, weight, *all_options)
    for one, other in zip(found, back, strict=True):
        close(one, other.to(kind), dtype)


@FLOATS
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((5, 37), 1), ((5, 37), 0), ((2, 3, 4), 1), ((9,), 0), ((0, 3), 1), ((3, 0), 1), ((), 0)],
)
@pytest.mark.parametrize("eps", [1e-12, 3.0])
def test_unit_vectors(dtype, shape, dim, eps):
    x, g = np.asarray(randoms(shape, dtype)), np.asarray(randoms(shape, dtype, 1))
    wide = [as_tensor(a).to(tp.float64).reshape(shape) for a in (x, g)]
    kind = as_tensor(x).dtype
    if shape:
        expected = tp.ops.unit_vectors(wide[0], dim, eps)
        back = tp.ops.unit_vectors_gradient(wide[1], wide[0], dim, eps)
    else:
        expected = wide[0] / wide[0].abs().clamp_min(eps)
        back = wide[1] / eps if abs(float(x)) < eps else wide[1] * 0
    close(unit_vectors.unit_vectors(x, dim, eps), expected.to(kind), dtype)
    close(unit_vectors.unit_vectors_gradient(g, x, dim, eps), back.to(kind), dtype)


def test_unit_vectors_of_what_is_no_number():
    x = randoms((4, 3))
    x[1, 2], x[2, 0] = np.nan, np.inf
    x[3] = 0
    expected = tp.ops.unit_vectors(as_tensor(x), 1, 1e-12)
    for found in (
        unit_vectors.unit_vectors(x, 1, 1e-12),
        unit_vectors.unit_vectors(x.T, 0, 1e-12).T,
    ):
        tp.testing.assert_close(as_tensor(np.ascontiguousarray(found)), expected, equal_nan=True)
