"""Products of float32 arrays, by oneDNN's general product and by primitives for large linear layers."""

import numpy as np
import pytest

import tensorplug as tp

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
matmul = pytest.importorskip("tensorplug_cpu_cython.matmul", reason="oneDNN is not installed")
from tensorplug_cpu_cython import onednn  # noqa: E402


@pytest.fixture(params=[1, 2], autouse=True)
def threads(request):
    before = cpu_features.get_num_threads()
    cpu_features.set_num_threads(request.param)
    yield request.param
    cpu_features.set_num_threads(before)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def exact(x, weight, bias):
    result = x.astype(np.float64) @ weight.astype(np.float64).T
    return result if bias is None else result + bias


LAYERS = [((300, 1000), 400), ((2, 60, 1000), 1000), ((32, 4096), 800), ((31, 4096), 800)]


@pytest.mark.parametrize(("shape", "features"), LAYERS)
@pytest.mark.parametrize("bias", [False, True])
def test_large_layers(shape, features, bias):
    x, weight = numbers(*shape), numbers(features, shape[-1], seed=1)
    b = numbers(features, seed=2) if bias else None
    found = matmul.linear(x, weight, b)
    assert found.shape == (*shape[:-1], features)
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, exact(x, weight, b), rtol=1e-4, atol=1e-3)


def test_large_layers_of_any_strides():
    x, weight = numbers(300, 2000), numbers(1001, 400, seed=1)
    b = numbers(800, seed=2)
    for a, w, c in (
        (x[:, ::2], weight[1:].T, b[::2]),
        (x[::-1, :1000], numbers(400, 1000), b[:400]),
        (x[:, 500:1500], numbers(400, 1200)[:, 100:1100], b[:1]),
        (np.broadcast_to(x[:1, :1000], (300, 1000)), numbers(400, 1000), b[:400]),
    ):
        np.testing.assert_allclose(matmul.linear(a, w, c), exact(a, w, c), rtol=1e-4, atol=1e-3)


def test_large_layers_take_a_primitive():
    before = len(onednn.implementations())
    matmul.linear(numbers(333, 1000), numbers(401, 1000), None)
    assert len(onednn.implementations()) == before + 1


#: Few rows, on both sides of where weights are read as they lie, of where the product is computed as its
#: transposed, and of the parts of both.
FEW_ROWS = [
    (rows, inner, columns)
    for rows in (1, 7, 8, 12, 13, 16, 17, 32, 33)
    for inner, columns in ((255, 100), (256, 64), (300, 63), (768, 1000), (800, 129))
] + [
    (rows, inner, columns)
    for rows in (2, 3, 4, 5, 6, 9, 10, 11, 12)
    for inner, columns in (
        (63, 40),
        (64, 32),
        (71, 31),
        (127, 500),
        (128, 384),
        (151, 401),
        (1700, 31),
    )
]


@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [*FEW_ROWS, (8, 2048, 1040), (9, 1024, 2049)]
)
def test_layers_of_few_rows(rows, inner, columns):
    wide, weights = numbers(2 * rows, inner + 3), numbers(columns + 1, 2 * inner, seed=1)
    bias = numbers(2 * columns, seed=2)
    for x in (wide[:rows, :inner].copy(), wide[::2, 1 : inner + 1], wide[rows - 1 :: -1, :inner]):
        for weight in (weights[:-1, :inner].copy(), weights[1:, inner:], weights[:-1, ::2]):
            for b in (None, bias[:columns], bias[::2]):
                found = matmul.linear(x, weight, b)
                assert found.flags.c_contiguous
                np.testing.assert_allclose(found, exact(x, weight, b), rtol=1e-4, atol=1e-3)
            np.testing.assert_allclose(
                matmul.matmul(x, weight.T), exact(x, weight, None), rtol=1e-4, atol=1e-3
            )


@pytest.mark.parametrize("rows", [4, 9, 16])
def test_layers_of_few_rows_with_nan_and_infinity(rows):
    x, weight, bias = numbers(rows, 512), numbers(200, 512, seed=1), numbers(200, seed=2)
    x[3, 5], weight[7, 9], weight[8, :] = np.nan, np.inf, 0
    bias[8] = -np.inf
    with np.errstate(invalid="ignore"):
        expected = exact(x, weight, bias)
    np.testing.assert_allclose(matmul.linear(x, weight, bias), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [tp.float32, tp.bfloat16, tp.float64])
@pytest.mark.parametrize("name", ["relu", "tanh", "sigmoid", "gelu", "gelu_tanh", "silu"])
def test_activations_are_those_of_two_ops(name, dtype):
    """To the last digit, and for NaN and infinities as well."""
    x, weight = tp.randn(40, 30).to(dtype), tp.randn(50, 30).to(dtype)
    bias = tp.randn(50).to(dtype)
    bias[:3] = tp.tensor([float("nan"), float("inf"), -float("inf")]).to(dtype)
    plain = tp.ops.linear(x, weight, bias)
    approximate = "tanh" if name.endswith("_tanh") else "none"
    expected = tp.ops.gelu(plain, approximate) if "gelu" in name else getattr(tp.ops, name)(plain)
    found = tp.ops.linear_activation(x, weight, bias, name)
    assert tp.equal(found.isnan(), expected.isnan())
    assert tp.equal(found.nan_to_num(), expected.nan_to_num())


def laid(shape, layout, seed):
    """Return numbers in rows, in columns, or with gaps."""
    if layout == "columns":
        return np.swapaxes(numbers(*shape[:-2], shape[-1], shape[-2], seed=seed), -1, -2)
    if layout == "gaps":
        return numbers(*[2 * n for n in shape], seed=seed)[
            tuple(slice(None, None, 2) for _ in shape)
        ]
    return numbers(*shape, seed=seed)


NARROW = [
    ((1, 5000), (5000, 1)),
    ((1, 1, 5000), (1, 5000, 1)),
    ((300, 3), (3, 1)),
    ((300, 2), (2, 1)),
    ((300, 70), (70, 1)),
    ((300, 0), (0, 1)),
    ((5000, 1), (1, 1)),
    ((5000, 1), (1, 3)),
    ((4, 1), (1, 5000)),
    ((300, 16, 1), (300, 1, 32)),
    ((2, 1, 3000, 1), (3, 1, 5)),
    ((4096, 1), (1, 0)),
]


@pytest.mark.parametrize("layouts", ["rows rows", "columns gaps", "gaps columns", "columns rows"])
@pytest.mark.parametrize(("left", "right"), NARROW)
def test_long_rows_and_single_columns(left, right, layouts):
    """What is a sum, a product with a vector, or elementwise, is not left to the general product."""
    first, second = layouts.split()
    a, b = laid(left, first, 0), laid(right, second, 1)
    found = matmul.matmul(a, b)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert found.shape == expected.shape
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("inner", [1, 3, 64, 65])
def test_a_layer_of_many_rows_on_a_vector(inner, bias):
    x, weight = numbers(inner), numbers(400, inner, seed=1)
    b = numbers(400, seed=2) if bias else None
    found = matmul.linear(x, weight, b)
    assert found.shape == (400,)
    np.testing.assert_allclose(found, exact(x, weight, b), rtol=1e-4, atol=1e-4)
