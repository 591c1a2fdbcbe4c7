"""Rounding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.autograd import forward_ad


def test_rounding_goes_to_even() -> None:
    halves = tp.tensor([0.5, 1.5, 2.5, -0.5, -1.5])
    assert tp.round(halves).tolist() == [0.0, 2.0, 2.0, -0.0, -2.0]
    assert tp.round(tp.tensor([15.0, 25.0]), decimals=-1).tolist() == [20.0, 20.0]
    with pytest.raises(NotImplementedError):
        tp.round(tp.tensor([15]), decimals=-1)


@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 3])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_rounding_to_decimals(dtype: str, decimals: int) -> None:
    """Scaled by the power of ten and back in the dtype, in float32 of half precision."""
    numbers = np.random.default_rng(0).uniform(-9000, 9000, 1000)
    numbers[:6] = [math.inf, -math.inf, math.nan, 0.0, -0.0, 25.0]
    x = tp.tensor(numbers.tolist(), dtype=getattr(tp, dtype))
    wide: Any = x.double().numpy() if dtype == "float64" else x.float().numpy()
    scale = wide.dtype.type(10.0 ** abs(decimals))
    scaled = np.rint(wide * scale) / scale if decimals > 0 else np.rint(wide / scale) * scale
    expected = tp.from_numpy(scaled).to(x.dtype).double().numpy()
    for given, of in ((x, slice(None)), (x[::3], slice(None, None, 3))):
        np.testing.assert_array_equal(
            tp.round(given, decimals=decimals).double().numpy(), expected[of]
        )
        written = given.clone().round_(decimals=decimals)
        np.testing.assert_array_equal(written.double().numpy(), expected[of])


def test_derivatives_of_rounding_to_decimals_are_zero() -> None:
    x = tp.tensor([1.26, -3.14, 250.0], requires_grad=True)
    for decimals in (0, 1, -2):

        def function(x: Any, decimals: int = decimals) -> Any:
            return tp.round(x, decimals=decimals)

        (slope,) = tp.autograd.grad(function(x).sum(), x, create_graph=True)
        assert slope.tolist() == [0.0, 0.0, 0.0]
        (second,) = tp.autograd.grad((slope * x).sum(), x)
        assert second.tolist() == [0.0, 0.0, 0.0]
        batched = tp.func.vmap(function)(x.detach().reshape(3, 1))
        assert batched[:, 0].equal(function(x.detach()))
        assert tp.func.vmap(tp.func.grad(function))(x.detach()).tolist() == [0.0, 0.0, 0.0]
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x.detach(), tp.ones(3))
            tangent = forward_ad.unpack_dual(function(dual)).tangent
            assert tangent is None or tangent.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("decimals", [308, 309, 400, -308, -309, -400])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_decimals_beyond_powers_of_ten(decimals, dtype) -> None:
    torch = pytest.importorskip("torch")
    values = [1.5, 0.0, -2e10, float("inf")]
    found = tp.round(tp.tensor(values, dtype=getattr(tp, dtype)), decimals=decimals)
    expected = torch.round(torch.tensor(values, dtype=getattr(torch, dtype)), decimals=decimals)
    np.testing.assert_array_equal(found.tolist(), expected.tolist())


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_powers_of_two_to_complex_numbers(dtype: str) -> None:
    """As exp(x ln 2); parts that are infinite leave the other part what it is, as in torch."""
    generator = np.random.default_rng(0)
    numbers = (generator.normal(size=200) + 1j * generator.normal(size=200)) * 4
    x = tp.from_numpy(numbers).to(getattr(tp, dtype))
    expected = np.exp(np.asarray(x.numpy(), np.complex128) * math.log(2))
    near = 1e-6 if dtype == "complex64" else 1e-14
    for found in (tp.exp2(x), x.clone().exp2_(), tp.exp2(x[::2])):
        assert found.dtype is x.dtype
        values = expected if len(found) == 200 else expected[::2]
        assert (np.abs(found.numpy() - values) <= near * np.abs(values)).all()
    edges = [complex(math.inf, 0.0), complex(-math.inf, 1.0), complex(1.0, math.inf)]
    infinite, zero, lost = tp.exp2(tp.tensor(edges, dtype=x.dtype)).tolist()
    assert infinite == complex(math.inf, 0.0)
    assert zero == 0
    assert math.isnan(lost.real)
    assert math.isnan(lost.imag)
