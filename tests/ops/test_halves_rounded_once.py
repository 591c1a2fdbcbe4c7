"""Pointwise functions of half precision over all 65,536 inputs: rounded once, or where torch rounds them."""

from __future__ import annotations

import contextlib
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from scipy import special

import tensorplug as tp
import tensorplug.nn.functional as F

pytestmark = pytest.mark.filterwarnings("ignore")

#: A half, and what the float32 before it may be off by.
BOUND = 0.51

KINDS = {tp.float16: (10, -14), tp.bfloat16: (7, -126)}  # bits of the fraction, least exponent
BACKENDS = ["default", "cpu_numpy"] if find_spec("tensorplug_cpu_cython") else ["default"]


def _selu(x: Any) -> Any:
    scale, alpha = 1.0507009873554804934, 1.6732632423543772848
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _gelu_by_tanh(x: Any) -> Any:
    return x * special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))


def _log_sigmoid(x: Any) -> Any:
    return -np.logaddexp(0, -x)


def _mish(x: Any) -> Any:
    return x * np.tanh(np.logaddexp(0, x))


#: Name: the function, and the same of float64.
FUNCTIONS: dict[str, tuple[Any, Any]] = {
    **{
        name: (getattr(tp, name), getattr(np, name))
        for name in (
            "abs",
            "ceil",
            "floor",
            "trunc",
            "sign",
            "sqrt",
            "square",
            "reciprocal",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "sin",
            "cos",
            "tan",
            "arcsin",
            "arccos",
            "arctan",
            "sinh",
            "cosh",
            "tanh",
            "arcsinh",
            "arccosh",
            "arctanh",
            "deg2rad",
            "rad2deg",
        )
    },
    **{
        name: (getattr(tp, name), getattr(special, name))
        for name in ("erf", "erfc", "erfinv", "logit", "i0")
    },
    "neg": (tp.neg, np.negative),
    "round": (tp.round, np.rint),
    "rsqrt": (tp.rsqrt, lambda x: 1 / np.sqrt(x)),
    "lgamma": (tp.lgamma, special.gammaln),
    "digamma": (tp.digamma, special.psi),
    "sigmoid": (tp.sigmoid, special.expit),
    **{
        f"special.{name}": (getattr(tp.special, name), getattr(special, name))
        for name in ("entr", "erfcx", "i0e", "i1", "i1e", "log_ndtr", "ndtr", "ndtri")
    },
    "special.bessel_j0": (tp.special.bessel_j0, special.j0),
    "special.bessel_j1": (tp.special.bessel_j1, special.j1),
    "special.bessel_y0": (tp.special.bessel_y0, special.y0),
    "special.bessel_y1": (tp.special.bessel_y1, special.y1),
    "special.scaled_modified_bessel_k0": (tp.special.scaled_modified_bessel_k0, special.k0e),
    "special.scaled_modified_bessel_k1": (tp.special.scaled_modified_bessel_k1, special.k1e),
    "special.xlog1py of one": (
        lambda x: tp.special.xlog1py(tp.ones_like(x), x),
        np.log1p,
    ),
    "xlogy of itself": (lambda x: tp.xlogy(x, x), lambda x: special.xlogy(x, x)),
    "relu": (tp.relu, lambda x: np.maximum(x, 0)),
    "elu": (F.elu, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "selu": (F.selu, _selu),
    "gelu": (F.gelu, lambda x: 0.5 * x * special.erfc(-x * np.sqrt(0.5))),
    "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), _gelu_by_tanh),
    "silu": (F.silu, lambda x: x * special.expit(x)),
    "mish": (F.mish, _mish),
    "softplus": (F.softplus, lambda x: np.logaddexp(0, x)),
    "softsign": (F.softsign, lambda x: x / (1 + np.abs(x))),
    "logsigmoid": (F.logsigmoid, _log_sigmoid),
    "hardswish": (F.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "hardsigmoid": (F.hardsigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "cube": (lambda x: x**3, lambda x: x**3),
    "power": (lambda x: x**2.5, lambda x: x**2.5),
}

#: What is further off, by how much of the dtypes above: in cpu_numpy float32's exponential ends before the
#: subnormal bfloat16 do; cpu_cython's gelu is exact beside 1, not far below 0; others are rounded after each
#: step, where torch rounds them.
EXCEPTIONS = {
    "gelu": (9, 930),
    "gelu by tanh": (BOUND, 256),
    "sigmoid": (BOUND, 25),
    "silu": (BOUND, 256),
    "logit": (513, 65),
    "special.entr": (1.5, 1.5),
    "special.xlog1py of one": (1.5, 1.5),
    "special.xlog1py": (1.5, 1.5),
    "xlogy of itself": (1.5, 1.5),
    "xlogy": (1.5, 1.5),
}
#: Where float32 overflows between steps.
LIMITS = {("hardswish", tp.bfloat16): 5e37, ("softsign", tp.bfloat16): 3e38}


def every_half(dtype: tp.dtype) -> tp.Tensor:
    return tp.arange(65536, dtype=tp.int32).to(tp.int16).view(dtype)


def bound(name: str, dtype: tp.dtype) -> float:
    return EXCEPTIONS.get(name, (BOUND, BOUND))[dtype is tp.bfloat16]


def errors(found: Any, exact: Any, dtype: tp.dtype) -> Any:
    """Return the distances in units in the last place of `dtype`, infinite for what is of another kind."""
    bits, least = KINDS[dtype]
    largest = tp.finfo(dtype).max
    exponents = np.maximum(np.frexp(np.where(exact == 0, 1e-300, exact))[1] - 1, least)
    unit = np.ldexp(1.0, np.where(np.isfinite(exact), exponents, 0) - bits)
    beyond = np.abs(exact) > largest  # which may be rounded to either
    distance = np.abs(found - exact) / unit
    distance[beyond & (np.abs(found) >= largest) & (np.sign(found) == np.sign(exact))] = 0
    distance[np.isnan(found) & np.isnan(exact)] = 0
    distance[found == exact] = 0
    distance[np.isnan(distance)] = np.inf
    return distance


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", KINDS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_half(name: str, dtype: tp.dtype, backend: str) -> None:
    function, reference = FUNCTIONS[name]
    x = every_half(dtype)
    wide = x.to(tp.float64).numpy()
    chosen = tp.prefer("cpu_numpy") if backend == "cpu_numpy" else contextlib.nullcontext()
    with chosen:
        result = function(x)
    assert result.dtype is dtype
    with np.errstate(all="ignore"):
        exact = np.asarray(reference(wide), np.float64)
    # Of infinities, and of numbers whose digits double has lost, SciPy has other answers than C.
    asked = np.isfinite(wide) & (np.abs(wide) < LIMITS.get((name, dtype), np.inf))
    off = np.where(asked, errors(result.to(tp.float64).numpy(), exact, dtype), 0)
    worst = int(np.argmax(off))
    assert off[worst] <= bound(name, dtype), (
        wide[worst],
        result[worst].item(),
        exact[worst],
    )


BINARY: dict[str, tuple[Any, Any]] = {
    **{
        name: (getattr(tp, name), getattr(np, name))
        for name in (
            "add", "subtract", "multiply", "divide", "hypot", "arctan2", "copysign", "maximum",
            "fmin", "fmod",
        )
    },
    "pow": (tp.pow, np.power),
    "remainder": (tp.remainder, np.remainder),
    "floor_divide": (tp.floor_divide, np.floor_divide),
    "xlogy": (tp.xlogy, special.xlogy),
    "special.xlog1py": (tp.special.xlog1py, special.xlog1py),
    "igamma": (tp.igamma, special.gammainc),
    "igammac": (tp.igammac, special.gammaincc),
}  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", KINDS, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_every_half_beside_another(name: str, dtype: tp.dtype, backend: str) -> None:
    """Beside the same in two other orders, one of which has much the same magnitude."""
    function, reference = BINARY[name]
    x = every_half(dtype)
    generator = np.random.default_rng(5)
    for order in (generator.permutation(65536), (np.arange(65536) + 77) % 65536):
        y = x[tp.tensor(order)]
        wide, other = x.to(tp.float64).numpy(), y.to(tp.float64).numpy()
        chosen = tp.prefer("cpu_numpy") if backend == "cpu_numpy" else contextlib.nullcontext()
        with chosen:
            result = function(x, y)
        with np.errstate(all="ignore"):
            exact = np.asarray(reference(wide, other), np.float64)
        asked = np.isfinite(wide) & np.isfinite(other) & (other != 0)
        off = np.where(asked, errors(result.to(tp.float64).numpy(), exact, dtype), 0)
        worst = int(np.argmax(off))
        assert off[worst] <= bound(name, dtype), (
            wide[worst],
            other[worst],
            result[worst].item(),
            exact[worst],
        )
