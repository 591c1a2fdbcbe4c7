"""The functions give NumPy's values, shapes and dtypes; NumPy's main namespace follows the standard."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

import tensorplug.array_api as xp

REAL = ["float32", "float64"]
FLOATS = [*REAL, "complex64", "complex128"]
INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]

FLOAT_UNARY = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log",
    "log1p", "log2", "log10", "reciprocal", "sin", "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip
NUMERIC_UNARY = [
    "abs", "conj", "imag", "isfinite", "isinf", "isnan", "logical_not", "negative", "positive",
    "real", "round", "sign", "square",
]  # fmt: skip
REAL_UNARY = ["ceil", "floor", "trunc"]
NUMERIC_BINARY = ["add", "equal", "multiply", "not_equal", "subtract"]
REAL_BINARY = [
    "floor_divide", "greater", "greater_equal", "less", "less_equal", "maximum", "minimum",
    "remainder",
]  # fmt: skip
FLOAT_BINARY = ["atan2", "copysign", "divide", "hypot", "logaddexp", "nextafter", "pow"]
INTEGER_BINARY = [
    "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
]  # fmt: skip
STATISTICS = ["all", "any", "count_nonzero", "max", "mean", "min", "prod", "std", "sum", "var"]

quiet = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of infinities and NaN


def agree(found, expected, dtype=True):
    expected = np.asarray(expected)
    assert type(found) is xp.Array
    assert tuple(found.shape) == expected.shape
    if dtype:
        assert found.dtype.name == str(expected.dtype)
    tolerance = 1e-4 if expected.dtype in (np.float32, np.complex64) else 1e-9
    np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance, atol=tolerance)


def sample(dtype, shape, low=-3, high=4, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "ui":
        return rng.integers(max(low, 0) if dtype[0] == "u" else low, high, shape).astype(dtype)
    values = rng.uniform(low, high, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.uniform(low, high, shape)
    return values.astype(dtype)


def cases(*groups):
    return [
        pytest.param(name, dtype, id=f"{name}-{dtype}")
        for names, dtypes in groups
        for name in names
        for dtype in dtypes
    ]


@quiet
@pytest.mark.parametrize(
    ("name", "dtype"),
    cases((FLOAT_UNARY, FLOATS), (NUMERIC_UNARY, FLOATS + INTEGERS), (REAL_UNARY, REAL + INTEGERS)),
)
def test_unary(name, dtype):
    x = sample(dtype, (3, 4))
    agree(getattr(xp, name)(xp.asarray(x)), getattr(np, name)(x))


@quiet
@pytest.mark.parametrize(
    ("name", "dtype"),
    cases(
        (NUMERIC_BINARY, FLOATS + INTEGERS),
        (REAL_BINARY, REAL + INTEGERS),
        (FLOAT_BINARY, REAL),
        (INTEGER_BINARY, INTEGERS),
    ),
)
def test_binary(name, dtype):
    x, y = sample(dtype, (3, 1)), sample(dtype, (4,), low=1, seed=1)
    function, reference = getattr(xp, name), getattr(np, name)
    agree(function(xp.asarray(x), xp.asarray(y)), reference(x, y))
    one = np.ones((), dtype).item()
    agree(function(xp.asarray(x), one), reference(x, one))
    agree(function(one, xp.asarray(y)), reference(one, y))


@pytest.mark.parametrize("name", STATISTICS)
@settings(max_examples=40)
@given(data=st.data())
def test_statistics(name, data):
    shape = data.draw(arrays.array_shapes(min_dims=0, max_dims=3, max_side=4))
    axes = [None, (), *range(-len(shape), len(shape))]
    axis = data.draw(st.sampled_from(axes) | arrays.valid_tuple_axes(len(shape)))
    keepdims = data.draw(st.booleans())
    floats = name in ("mean", "std", "var")
    dtype = data.draw(st.sampled_from(REAL if floats else REAL + INTEGERS))
    x = sample(dtype, shape)
    expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    found = getattr(xp, name)(xp.asarray(x), axis=axis, keepdims=keepdims)
    agree(found, expected)


def test_integers_sum_to_the_widest_of_their_sign():
    for name in INTEGERS:
        wide = xp.uint64 if name[0] == "u" else xp.int64
        x = xp.ones((2, 2), dtype=getattr(xp, name))
        assert xp.sum(x).dtype is xp.prod(x, axis=0).dtype is wide
        assert xp.cumulative_sum(x, axis=0).dtype is xp.linalg.trace(x).dtype is wide
    assert xp.sum(xp.ones(2, dtype=xp.float32)).dtype is xp.float32


@pytest.mark.parametrize("correction", [0, 1, 0.5])
def test_correction(correction):
    x = sample("float64", (4, 5))
    agree(xp.var(xp.asarray(x), axis=1, correction=correction), np.var(x, 1, ddof=correction))


@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_cumulative(name, initial):
    x = sample("float64", (2, 3))
    function, reference = getattr(xp, name), getattr(np, name)
    found = function(xp.asarray(x), axis=1, include_initial=initial)
    agree(found, reference(x, axis=1, include_initial=initial))
    agree(function(xp.asarray(x[0])), reference(x[0]))
    with pytest.raises(ValueError, match="axis is required"):
        function(xp.asarray(x))


N = sample("float64", (2, 3, 4))
MANIPULATIONS = {
    "broadcast_to": lambda m, x: m.broadcast_to(x, (5, 2, 3, 4)),
    "concat": lambda m, x: m.concat([x, x], axis=-1),
    "concat flat": lambda m, x: m.concat([x, x[0, 0]], axis=None),
    "expand_dims": lambda m, x: m.expand_dims(x, axis=(0, -1)),
    "flip": lambda m, x: m.flip(x, axis=(0, 2)),
    "flip all": lambda m, x: m.flip(x),
    "moveaxis": lambda m, x: m.moveaxis(x, (0, 1), (-1, 0)),
    "permute_dims": lambda m, x: m.permute_dims(x, (2, 0, 1)),
    "repeat": lambda m, x: m.repeat(x, 3, axis=1),
    "repeat flat": lambda m, x: m.repeat(x, 2),
    "repeat each": lambda m, x: m.repeat(x, m.asarray([1, 0, 2]), axis=1),
    "reshape": lambda m, x: m.reshape(x, (-1, 6)),
    "roll": lambda m, x: m.roll(x, (1, -2), axis=(0, 2)),
    "roll flat": lambda m, x: m.roll(x, 5),
    "roll one shift": lambda m, x: m.roll(x, 1, axis=(0, 1)),
    "squeeze": lambda m, x: m.squeeze(x[:1, :, :1], axis=(0, 2)),
    "stack": lambda m, x: m.stack([x, x], axis=2),
    "take": lambda m, x: m.take(x, m.asarray([2, -1]), axis=1),
    "take_along_axis": lambda m, x: m.take_along_axis(x, m.argsort(x, axis=1), axis=1),
    "tile": lambda m, x: m.tile(x, (2, 1)),
    "tril": lambda m, x: m.tril(x, k=-1),
    "triu": lambda m, x: m.triu(x, k=1),
    "unstack": lambda m, x: m.unstack(x, axis=1)[2],
    "where": lambda m, x: m.where(x > 0, x, 0),
    "clip": lambda m, x: m.clip(x, -1, m.asarray(1.0, dtype=m.float64)),
    "diff": lambda m, x: m.diff(x, axis=1, n=2),
    "diff joined": lambda m, x: m.diff(x, prepend=x[..., :1], append=x[..., :1]),
    "argmax": lambda m, x: m.argmax(x, axis=1, keepdims=True),
    "argmax of all": lambda m, x: m.argmax(x, keepdims=True),
    "argmin": lambda m, x: m.argmin(x),
    "sort": lambda m, x: m.sort(x, axis=0),
    "nonzero": lambda m, x: m.nonzero(x > 1)[2],
    "searchsorted": lambda m, x: m.searchsorted(m.sort(x[0, 0]), x[1], side="right"),
    "sorter": lambda m, x: m.searchsorted(x[0, 0], x[1, 0], sorter=m.argsort(x[0, 0])),
    "isin": lambda m, x: m.isin(m.round(x), m.asarray([1.0, 2.0]), invert=True),
    "meshgrid": lambda m, x: m.meshgrid(x[0, 0], x[0, :, 0])[1],
    "meshgrid ij": lambda m, x: m.meshgrid(x[0, 0], x[0, :, 0], indexing="ij")[1],
    "linspace": lambda m, x: m.linspace(1, 2, 7, endpoint=False, dtype=m.float64),
    "arange": lambda m, x: m.arange(7, 1, -2),
    "arange empty": lambda m, x: m.arange(3, 1),
    "eye": lambda m, x: m.eye(3, 4, k=-1, dtype=m.float64),
    "full": lambda m, x: m.full(3, True),
    "full_like": lambda m, x: m.full_like(x, 2),
    "asarray": lambda m, x: m.asarray([[1, 2], [3, 4]], dtype=m.uint16),
    "tensordot": lambda m, x: m.tensordot(x, x, axes=((0, 1), (0, 1))),
    "vecdot": lambda m, x: m.vecdot(x + 1j, x[0] - 2j, axis=-1),
    "matmul": lambda m, x: m.matmul(x, x.mT),
    "matrix_transpose": lambda m, x: m.matrix_transpose(x),
    "cross": lambda m, x: m.linalg.cross(x[..., :3], x[0, 0, :3]),
    "det": lambda m, x: m.linalg.det(x[..., :3]),
    "diagonal": lambda m, x: m.linalg.diagonal(x, offset=1),
    "eigvalsh": lambda m, x: m.linalg.eigvalsh(x @ x.mT),
    "inv": lambda m, x: m.linalg.inv(x[..., :3]),
    "cholesky": lambda m, x: m.linalg.cholesky(x @ x.mT, upper=True),
    "matrix_norm": lambda m, x: m.linalg.matrix_norm(x, ord="nuc", keepdims=True),
    "matrix_power": lambda m, x: m.linalg.matrix_power(x[..., :3], -2),
    "matrix_rank": lambda m, x: m.linalg.matrix_rank(x),
    "outer": lambda m, x: m.linalg.outer(x[0, 0], x[0, 1]),
    "pinv": lambda m, x: m.linalg.pinv(x, rtol=0.3),
    "slogdet": lambda m, x: m.linalg.slogdet(x[..., :3]).logabsdet,
    "solve": lambda m, x: m.linalg.solve(x[..., :3], x),
    "solve vector": lambda m, x: m.linalg.solve(x[..., :3], x[0, :, 0]),
    "solve one matrix": lambda m, x: m.linalg.solve(x[:, :2, :2], x[0, :2, :]),
    "svdvals": lambda m, x: m.linalg.svdvals(x),
    "trace": lambda m, x: m.linalg.trace(x, offset=-1),
    "vector_norm": lambda m, x: m.linalg.vector_norm(x, axis=(0, 2), ord=3),
    "vector_norm of all": lambda m, x: m.linalg.vector_norm(x, keepdims=True),
    "fft": lambda m, x: m.fft.fft(x, n=5, axis=1, norm="ortho"),
    "irfft": lambda m, x: m.fft.irfft(x, n=5),
    "rfftn": lambda m, x: m.fft.rfftn(x, s=(2, 6), axes=(0, 2)),
    "ifftn": lambda m, x: m.fft.ifftn(x),
    "hfft": lambda m, x: m.fft.hfft(x),
    "ihfft": lambda m, x: m.fft.ihfft(x),
    "fftshift": lambda m, x: m.fft.fftshift(x, axes=1),
    "astype": lambda m, x: m.astype(x, m.int32),
}


@pytest.mark.parametrize("name", MANIPULATIONS)
def test_as_numpy(name):
    case = MANIPULATIONS[name]
    agree(case(xp, xp.asarray(N)), case(np, N))


@pytest.mark.parametrize("descending", [False, True])
def test_order_is_stable(descending):
    x = np.array([3, 1, 2, 1, 3, 2, 1])
    order = sorted(range(7), key=lambda i: -x[i] if descending else x[i])
    assert xp.argsort(xp.asarray(x), descending=descending).tolist() == order
    assert xp.sort(xp.asarray(x), descending=descending).tolist() == x[order].tolist()


@pytest.mark.parametrize("dtype", ["float64", "complex128", "int32", "bool"])
def test_unique(dtype):
    x = np.array([[3, 1, 0], [3, 0, 0]]).astype(dtype)
    found, expected = xp.unique_all(xp.asarray(x)), np.unique_all(x)
    for name, part in zip(found._fields, found, strict=True):
        np.testing.assert_array_equal(part.numpy(), getattr(expected, name))
    assert xp.unique_counts(xp.asarray(x)).counts.tolist() == expected.counts.tolist()
    assert xp.unique_values(xp.asarray(x)).tolist() == expected.values.tolist()
    inverse = xp.unique_inverse(xp.asarray(x)).inverse_indices
    assert inverse.tolist() == expected.inverse_indices.tolist()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_nans_are_distinct(dtype):
    values = xp.unique_values(
        xp.asarray([float("nan"), 1.0, float("nan")], dtype=getattr(xp, dtype))
    )
    assert values.shape == (3,)


def test_sign_of_nan():
    assert xp.isnan(xp.sign(xp.asarray(float("nan"))))


def test_limits():
    for name in FLOATS:
        found, expected = xp.finfo(getattr(xp, name)), np.finfo(name)
        for limit in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(found, limit) == pytest.approx(float(getattr(expected, limit)))
        assert found.dtype.name == str(expected.dtype)
    for name in INTEGERS:
        found, expected = xp.iinfo(xp.ones(1, dtype=getattr(xp, name))), np.iinfo(name)
        assert (found.bits, found.min, found.max) == (expected.bits, expected.min, expected.max)
        assert found.dtype is getattr(xp, name)


def test_can_cast_and_isdtype():
    assert xp.can_cast(xp.uint8, xp.int16)
    assert not xp.can_cast(xp.uint64, xp.int64)
    assert xp.can_cast(xp.ones(1, dtype=xp.float32), xp.complex128)
    assert xp.isdtype(xp.uint8, ("unsigned integer", "bool"))
    assert not xp.isdtype(xp.uint8, "signed integer")
    assert xp.isdtype(xp.int8, xp.int8)
    with pytest.raises(ValueError, match="unknown kind"):
        xp.isdtype(xp.int8, "float")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: xp.astype(xp.ones(1, dtype=xp.complex64), xp.float32), TypeError),
        (lambda: xp.squeeze(xp.ones((2, 1)), axis=0), ValueError),
        (lambda: xp.take(xp.ones((2, 1)), xp.asarray([0])), ValueError),
        (lambda: xp.nonzero(xp.asarray(1)), ValueError),
        (lambda: xp.reshape(xp.ones((2, 3)).mT, (6,), copy=False), ValueError),
        (lambda: xp.broadcast_shapes((2,), (3,)), ValueError),
        (lambda: xp.expand_dims(xp.ones(1), axis=(0, 0)), ValueError),
        (lambda: xp.vecdot(xp.ones((2, 1)), xp.ones((2, 3))), ValueError),
        (lambda: xp.result_type(1, 2.0), ValueError),
    ],
)
def test_bad_input(call, error):
    with pytest.raises(error):
        call()


def test_full_keeps_the_sign_of_zero():
    assert xp.signbit(xp.full(2, -0.0)).tolist() == [True, True]


@pytest.mark.parametrize("axis", [(), None, 1])
def test_vector_norm_without_axes(axis):
    x = sample("float64", (2, 3))
    found = xp.linalg.vector_norm(xp.asarray(x), axis=axis)
    agree(found, np.abs(x) if axis == () else np.linalg.norm(x, axis=axis))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("expm1", complex(-0.0, 0.0), 0j),
        ("expm1", complex(math.inf, 0.0), complex(math.inf, 0.0)),
        ("expm1", complex(-math.inf, math.nan), -1 + 0j),
        ("expm1", complex(math.inf, math.nan), complex(math.inf, math.nan)),
        ("expm1", complex(math.nan, 0.0), complex(math.nan, 0.0)),
        ("tanh", complex(math.inf, 2.0), 1 + 0j),
        ("tanh", complex(math.inf, -2.0), complex(1, -0.0)),
    ],
)
def test_complex_special_cases(name, value, expected):
    found = complex(getattr(xp, name)(xp.asarray(value, dtype=xp.complex128)))
    assert str(found) == str(expected)


def test_scalars_promote_a_result_type():
    assert xp.result_type(xp.float32, 1j) is xp.complex64
    assert xp.result_type(xp.int8, 1) is xp.int8


def test_numbers_of_uint64():
    assert xp.asarray([2**64 - 1], dtype=xp.uint64).tolist() == [2**64 - 1]


def test_from_dlpack():
    x = np.arange(3.0)
    y = xp.from_dlpack(x)
    x[0] = 5
    assert y.tolist() == [5, 1, 2]
    assert np.from_dlpack(y).tolist() == [5, 1, 2]
