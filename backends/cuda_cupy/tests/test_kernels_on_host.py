"""The kernels' arithmetic, compiled for the host, gives what the CPU's kernels give.

This shows that the CUDA C++ and the Python around it compute the right numbers. It shows nothing about a GPU.
"""

import ml_dtypes
import numpy as np
import pytest

import tensorplug as tp
from tensorplug_cuda_cupy.kernels import (
    activations,
    convolution,
    losses,
    networks,
    optimizers,
    pooling,
    positions,
    random,
    softmaxes,
)

pytestmark = [
    pytest.mark.usefixtures("on_host"),
    pytest.mark.xdist_group("cuda sources on the host"),  # one worker compiles them
]

NATIVE = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}
FLOATS = pytest.mark.parametrize("dtype", list(NATIVE))


def randoms(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(NATIVE[dtype])


def as_tensor(array):
    if array.dtype == ml_dtypes.bfloat16:
        return tp.from_numpy(array.astype(np.float32)).to(tp.bfloat16)
    return tp.from_numpy(np.ascontiguousarray(array))


def check(found, expected):
    """Compare with a tensor, as closely as the dtype is compared everywhere."""
    assert found.dtype == NATIVE.get(expected.dtype.name, found.dtype)
    tp.testing.assert_close(as_tensor(found), expected)


# --- random bits --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "seed", "offset"),
    [
        ((4,), 0, 0),
        ((7, 5), 1234567890123456789, 3),
        ((0, 3), 1, 1),
        ((), 5, 9),
        ((40,), 2**64 - 1, 2**64 - 2),  # the lower half of the counter wraps around
        ((9,), 42, 2**128 - 1),
        ((1000,), 7, 1 << 70),
    ],
)
def test_philox_gives_the_bits_of_the_cpu(shape, seed, offset):
    expected = tp.ops.philox_bits(shape, seed, offset, tp.device("cpu"))
    assert random.philox_bits(shape, seed, offset).tolist() == expected.tolist()


# --- rows ---------------------------------------------------------------------------------------


@FLOATS
@pytest.mark.parametrize(
    ("shape", "dim"), [((3, 37), 1), ((5, 7, 3), 1), ((300,), 0), ((), 0), ((0, 3), 1)]
)
def test_softmax(dtype, shape, dim):
    x = randoms(shape, dtype)
    x = np.asarray(x)
    check(np.asarray(softmaxes.softmax(x, dim)), as_tensor(x).softmax(dim))
    check(np.asarray(softmaxes.log_softmax(x, dim)), as_tensor(x).log_softmax(dim))


@FLOATS
@pytest.mark.parametrize(("shape", "dim"), [((3, 37), 1), ((5, 7, 3), 1), ((), 0), ((0, 3), 1)])
def test_gradients_of_softmax(dtype, shape, dim):
    g, result = np.asarray(randoms(shape, dtype)), np.asarray(randoms(shape, dtype, 1))
    for name in ("softmax_gradient", "log_softmax_gradient"):
        found = getattr(softmaxes, name)(g, result, dim)
        wide = [as_tensor(array).to(tp.float64) for array in (g, result)]
        expected = getattr(tp.ops, f"_{name}")(*wide, dim)
        check(np.asarray(found), expected.to(as_tensor(g).dtype))


def test_softmax_of_rows_that_are_infinite_or_not_contiguous():
    x = randoms((6, 5))
    x[0] = -np.inf
    x[1, 2] = np.inf
    x[2, 1] = np.nan
    x[3, :4] = -np.inf
    for array, dim in ((x, 1), (x, 0), (x.T, 1), (x[:, ::2], 1)):
        expected = as_tensor(array.copy()).softmax(dim)
        tp.testing.assert_close(as_tensor(softmaxes.softmax(array, dim)), expected, equal_nan=True)


@FLOATS
@pytest.mark.parametrize(
    ("shape", "dim"),
    [
        ((4, 50), (1,)),
        ((3, 4, 5, 6), (0, 2, 3)),
        ((2, 3, 4, 5), (1, 3)),
        ((3, 4), (0, 1)),
        ((2, 6, 3), (2,)),
    ],
)
def test_standardize_and_its_gradient(dtype, shape, dim):
    x = randoms(shape, dtype)
    expected = tp.ops.standardize(as_tensor(x), dim, 1e-5)
    found = networks.standardize(x, dim, 1e-5)
    for one, other in zip(found, expected, strict=True):
        check(one, other)
    gradients = [randoms(array.shape, dtype, n) for n, array in enumerate(found)]
    arguments = (*gradients, found[0], found[2])
    check(
        networks.standardize_gradient(*arguments, dim),
        tp.ops.standardize_gradient(*map(as_tensor, arguments), dim),
    )


# --- pointwise and losses -----------------------------------------------------------------------


@FLOATS
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(dtype, approximate):
    x = randoms((3, 41), dtype) * NATIVE[dtype](3)
    check(activations.gelu(x, approximate), tp.ops.gelu(as_tensor(x), approximate))
    check(activations.gelu(x.T, approximate), tp.ops.gelu(as_tensor(x).t(), approximate))


@FLOATS
def test_gradients_of_activations(dtype):
    x, g = randoms((3, 41), dtype) * NATIVE[dtype](3), randoms((3, 41), dtype, 1)
    wide = [as_tensor(array).to(tp.float64) for array in (g, x)]
    for approximate in ("none", "tanh"):
        expected = tp.ops.gelu_gradient(*wide, approximate).to(as_tensor(g).dtype)
        check(activations.gelu_gradient(g, x, approximate), expected)
    check(activations.silu_gradient(g, x), tp.ops.silu_gradient(*wide).to(as_tensor(g).dtype))


@FLOATS
def test_silu(dtype):
    x = randoms((3, 41), dtype) * NATIVE[dtype](3)
    check(activations.silu(x), tp.ops.silu(as_tensor(x)))


@FLOATS
@pytest.mark.parametrize("shape", [(5, 4), (2, 4, 3, 3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_negative_log_likelihood(dtype, shape, weighted):
    x = randoms(shape, dtype)
    target = np.random.default_rng(1).integers(0, 4, (shape[0], *shape[2:]))
    target.flat[1] = -100
    weight = randoms(4, dtype) if weighted else None
    expected = tp.ops.negative_log_likelihood(
        as_tensor(x), tp.from_numpy(target), None if weight is None else as_tensor(weight), -100
    )
    found = losses.negative_log_likelihood(x, target, weight, -100)
    for one, other in zip(found, expected, strict=True):
        check(one, other)


def test_a_target_that_is_no_class_is_nan():
    lost, _ = losses.negative_log_likelihood(randoms((3, 4)), np.array([0, 4, -1]), None, -100)
    assert np.isnan(lost).tolist() == [False, True, True]


def test_max_pool_gradient():
    x = tp.from_numpy(randoms((2, 3, 7, 7)))
    values, indices = tp.ops.max_pool(x, (3, 3), (2, 2), (1, 1), (1, 1), False)
    g = randoms(tuple(values.shape))
    expected = tp.ops.max_pool_gradient(tp.from_numpy(g), indices, (2, 3, 7, 7))
    check(pooling.max_pool_gradient(g, indices.numpy(), (2, 3, 7, 7)), expected)


# --- positions ----------------------------------------------------------------------------------

ALL = ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def numbers(shape, dtype, seed=0):
    array = np.random.default_rng(seed).integers(1, 5, shape)
    return array.astype(NATIVE.get(dtype) or dtype)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("way", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("own", [True, False])
def test_scatter_reduce(dtype, way, own):
    input, src = numbers((4, 6), dtype), numbers((3, 5), dtype, 1)
    index = np.random.default_rng(2).integers(0, 4, (3, 5))
    found = positions.scatter_reduce(input, 0, index, src, way, own)
    expected = as_tensor(input).scatter_reduce(
        0, tp.from_numpy(index), as_tensor(src), way, include_self=own
    )
    check(found, expected)


@pytest.mark.parametrize("dtype", [*ALL, "bool", "complex64", "complex128"])
def test_index_put_accumulates(dtype):
    input, rows = numbers((5, 3), dtype), np.array([1, 4, 1, -1])
    values = numbers((4, 3), dtype, 1)
    columns = np.array([[0], [2], [0], [1]])
    for indices, given in (
        ([rows], values),
        ([rows[:, None], columns], values[:, :1]),
        ([None, columns[:, 0]], values[:, :1].T),
    ):
        found = positions.index_put(input, indices, given, True)
        expected = as_tensor(input).index_put(
            [None if i is None else tp.from_numpy(i) for i in indices],
            as_tensor(given.copy()),
            accumulate=True,
        )
        check(found, expected)


def test_writes_go_into_strided_memory():
    memory = np.zeros((4, 6), np.float32)
    out = memory[:, ::2]
    positions.index_put(out, [np.array([1, 1])], np.ones((2, 3), np.float32), True, out)
    assert memory[1].tolist() == [2, 0, 2, 0, 2, 0]
    positions.scatter_add(out, 1, np.array([[0, 0]]), np.ones((1, 2), np.float32), out)
    assert memory[0].tolist() == [2, 0, 0, 0, 0, 0]


def test_positions_that_are_not_there_are_left_out():
    zeros = np.zeros((3, 2), np.float32)
    found = positions.index_put(zeros, [np.array([3, -4, 0])], np.ones((3, 2), np.float32), True)
    assert found.tolist() == [[1, 1], [0, 0], [0, 0]]


# --- optimizers ---------------------------------------------------------------------------------


def parameters(dtype, count=3):
    shapes = [(40000,), (3, 4), (0,), (7, 1000), ()][:count] if count <= 5 else [(5,)] * count
    return shapes, lambda seed: [
        np.asarray(randoms(shape, dtype, seed + i)) for i, shape in enumerate(shapes)
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [5, 90])
@pytest.mark.parametrize(
    ("name", "lists", "options"),
    [
        ("sgd_step", 0, (0.1, 0, 0, 0.01, False, False, False)),
        ("sgd_step", 1, (0.1, 0.9, 0.1, 0, True, True, False)),
        ("sgd_step", 1, (0.1, 0.9, 0.1, 0.01, False, False, True)),
        ("adam_step", 3, (0.1, 0.9, 0.99, 0.1, 1e-8, True, False, True)),
        ("adam_step", 3, (0.1, 0.9, 0.99, 0.1, 1e-8, True, True, False)),
        ("adam_step", 2, (0.1, 0.9, 0.99, 0, 1e-8, False, False, False)),
        ("adagrad_step", 1, (0.1, 0.01, 0.1, 1e-8, True)),
        ("rmsprop_step", 3, (0.01, 0.9, 1e-8, 0.1, 0.9, True, False)),
        ("rmsprop_step", 1, (0.01, 0.9, 1e-8, 0, 0, False, True)),
    ],
)
def test_steps_of_optimizers(dtype, count, name, lists, options):
    import tensorplug.optim  # noqa: F401  registers the ops

    _, make = parameters(dtype, count)
    arrays = [make(0), make(100)]
    arrays += [
        [np.asarray(np.abs(state) + 1) for state in make(200 * n)] for n in range(1, lists + 1)
    ]
    if name == "rmsprop_step" and lists == 3:  # a mean whose square is within the mean of squares
        arrays[3] = [np.zeros_like(mean) for mean in arrays[3]]
    given = [[array.copy() for array in arrays_] for arrays_ in arrays]
    most = {"sgd_step": 3, "adam_step": 5, "adagrad_step": 3, "rmsprop_step": 5}[name]
    given += [[] for _ in range(most - len(given))]
    steps = (
        [[float(i + 1) for i in range(len(arrays[0]))]]
        if name in ("adam_step", "adagrad_step")
        else []
    )
    expected = [[tp.from_numpy(array.copy()) for array in arrays_] for arrays_ in given]
    getattr(optimizers, name)(*given, *steps, *options)
    getattr(tp.ops.optim, name)(*expected, *steps, *options)
    for found, right in zip(given, expected, strict=True):
        for one, other in zip(found, right, strict=True):
            tp.testing.assert_close(tp.from_numpy(one), other)


def test_a_step_writes_into_strided_memory():
    memory = np.ones((4, 6), np.float32)
    parameter = memory[:, ::2]
    optimizers.sgd_step(
        [parameter], [np.ones((4, 3), np.float32)], [], 0.5, 0, 0, 0, False, False, False
    )
    assert memory[0].tolist() == [0.5, 1, 0.5, 1, 0.5, 1]


# --- convolution without cuDNN ------------------------------------------------------------------


@FLOATS
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "dilation", "groups"),
    [
        ((9,), (3,), (2,), (1,), (2,), 1),
        ((8, 7), (3, 2), (1, 2), (1, 0), (1, 1), 2),
        ((5, 6), (1, 1), (1, 1), (0, 0), (1, 1), 1),
        ((4, 5, 4), (2, 2, 3), (1, 1, 1), (0, 1, 1), (1, 2, 1), 4),
    ],
)
def test_convolution_by_products(dtype, size, kernel, stride, padding, dilation, groups):
    x = randoms((2, 4, *size), dtype)
    weight = randoms((8, 4 // groups, *kernel), dtype, 1)
    bias = randoms((8,), dtype, 2)
    options = (stride, padding, dilation, groups)
    expected = tp.ops.convolution(*map(as_tensor, (x, weight, bias)), *options)
    loose = {"float16": 2e-2, "bfloat16": 1e-1}.get(dtype)
    tolerance = {} if loose is None else {"atol": loose, "rtol": loose}

    def compare(found, other):
        tp.testing.assert_close(as_tensor(found), other, **tolerance)

    compare(convolution.convolution(x, weight, bias, *options), expected)
    g = randoms(tuple(expected.shape), dtype, 3)
    compare(
        convolution.convolution_input(g, weight, size, *options),
        tp.ops.convolution_input(as_tensor(g), as_tensor(weight), size, *options),
    )
    compare(
        convolution.convolution_weight(x, g, kernel, *options),
        tp.ops.convolution_weight(as_tensor(x), as_tensor(g), kernel, *options),
    )


def test_convolution_keeps_channels_last():
    x = np.moveaxis(randoms((2, 5, 5, 3)), -1, 1)
    found = convolution.convolution(x, randoms((4, 3, 3, 3)), None, (1, 1), (1, 1), (1, 1), 1)
    assert np.moveaxis(found, 1, -1).flags.c_contiguous
