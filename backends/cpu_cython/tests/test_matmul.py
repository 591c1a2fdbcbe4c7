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
