"""Records of special functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import special

from tensorplug.core.device.dtypes import COMPLEXES, DType, float32, float64, int64

from ..records import ErrorSample, OpRecord, Sample
from ._steps import stepwise, tensors_of
from .arithmetic import ORDERED, binary, floating, refuses, unary


def _logit_slope_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for eps in (None, 0.125):
        yield Sample(make(6), make(6, low=0.05, high=0.95), eps)
    yield Sample(make(0), make(0), None)


def _logit_slope(g: Any, x: Any, eps: float | None) -> Any:
    inside = True if eps is None else (x >= eps) & (x <= 1 - eps)
    return np.where(inside, g / (x * (1 - x)), 0)


_ANY: Any = special  # type checkers do not find all of its functions

# SciPy's own error in single precision, and where several rounded steps are multiplied.
_SINGLE = {"float32": 5e-5, "float16": 4e-3, "bfloat16": 3e-2}
_SINGLE_ABSOLUTE = {"float32": 5e-5, "float16": 4e-3, "bfloat16": 3e-2}

# The kernels by recurrence are alike for all dtypes: these three tell integers and precision apart.
_DIGITS = (float32, float64, int64)


def _record(
    op: str,
    function: Callable[..., Any],
    low: float | None = None,
    high: float | None = None,
    **options: Any,
) -> OpRecord:
    options.setdefault("errors", refuses(COMPLEXES[1]))
    options.setdefault("dtypes", ORDERED)
    if op.startswith("special_"):
        options.setdefault("torch", op.replace("_", ".", 1))
    return OpRecord(
        op,
        unary(low, high),
        floating(function),
        rtol=_SINGLE,
        atol=_SINGLE_ABSOLUTE,
        **options,
    )


def _logit_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from unary(0.1, 0.9)(make, dtype)
    yield Sample(make(4, low=0, high=1), 0.125)


def _logit(a: Any, eps: float | None = None) -> Any:
    a = a.astype(np.float64)
    return special.logit(a if eps is None else np.clip(a, eps, 1 - eps))


def _polygamma_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for n in range(4):
        yield Sample(n, make(4, low=1, high=6))
    yield Sample(1, make(3, low=0.1, high=0.9) if dtype.is_floating_point else make(3, low=1))
    yield Sample(2, make(0))
    yield Sample(1, make(low=1, high=3))


def _polygamma_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(-1, make(3)), RuntimeError, "negative n")


def _mvlgamma_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for p in (1, 2, 4):
        yield Sample(make(4, low=3, high=9), p)
    yield Sample(make(low=3, high=9), 2)
    yield Sample(make(0), 2)


def _mvlgamma_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3), 0), RuntimeError, "greater than or equal to 1")


def _polynomial(op: str, function: Callable[..., Any], shifted: bool = False) -> OpRecord:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        low = 0 if shifted else -1
        for n in (0, 1, 2, 5):
            yield Sample(make(4, low=low, high=1), n)
        yield Sample(make(3, 1, low=low, high=1), make(4, low=0, high=6, dtype=int64))
        yield Sample(make(0), 3)
        yield Sample(make(low=low, high=1), 2)
        yield Sample(0.5, make(3, low=0, high=4, dtype=int64))

    def reference(x: Any, n: Any) -> Any:
        x = np.asarray(x, np.float64)
        return function(np.asarray(n, np.int64), x)

    return OpRecord(
        f"special_{op}",
        samples,
        reference,
        dtypes=_DIGITS,
        gradient=False,
        rtol=_SINGLE,
        atol=_SINGLE_ABSOLUTE,
        torch=f"special.{op}",
    )


def _chebyshev_v(n: Any, x: Any) -> Any:
    angle = np.arccos(x)
    half = np.cos(angle / 2)
    # At x = -1 the quotient is its limit.
    limit = (-1.0) ** n * (2 * n + 1)
    return np.where(half < 1e-12, limit, np.cos((n + 0.5) * angle) / np.where(half == 0, 1, half))


def _chebyshev_w(n: Any, x: Any) -> Any:
    return (-1.0) ** n * _chebyshev_v(n, -x)


def _at_shifted(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda n, x: function(n, 2 * x - 1)


_CHEBYSHEV = {
    "t": special.eval_chebyt,
    "u": special.eval_chebyu,
    "v": _chebyshev_v,
    "w": _chebyshev_w,
}


def _bessel_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for function in ("j1", "airy_ai_prime", "i1e"):
        yield Sample(make(4, low=0.5, high=6), function)
        yield Sample(make(0, 3), function)
        yield Sample(make(low=0.5, high=6), function)


def _bessel(a: Any, function: str) -> Any:
    return {"j1": special.j1, "i1e": special.i1e}.get(function, lambda x: special.airy(x)[1])(
        a.astype(np.float64)
    )


def _orthogonal_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4, low=-1, high=1), 3, "legendre_p")
    yield Sample(make(low=-1, high=1), 2, "legendre_p")
    yield Sample(make(0), 3, "legendre_p")


RECORDS = [
    stepwise("trigamma", tensors_of(1), lambda a: special.zeta(2, a)),
    stepwise("logit_backward", _logit_slope_samples, _logit_slope, dtypes=(float32, float64)),
    OpRecord("bessel", _bessel_samples, _bessel, dtypes=(float32, float64), torch="", rtol=_SINGLE),
    _record("digamma", special.digamma, 1, 9),
    _record("erf", special.erf),
    _record("erfc", special.erfc, -2, 2),
    _record("erfinv", special.erfinv, -0.9, 0.9),
    _record("i0", special.i0, -5, 5),
    OpRecord(
        "igamma",
        binary(1, 5, 0.3, 5, nonzero=True),
        floating(special.gammainc),
        dtypes=ORDERED,
        gradient=False,
        rtol=_SINGLE,
        atol=_SINGLE_ABSOLUTE,
        errors=refuses(COMPLEXES[1], arity=2),
    ),
    OpRecord(
        "igammac",
        binary(1, 5, 0.3, 5, nonzero=True),
        floating(special.gammaincc),
        dtypes=ORDERED,
        gradient=False,
        rtol=_SINGLE,
        atol=_SINGLE_ABSOLUTE,
        errors=refuses(COMPLEXES[1], arity=2),
    ),
    _record("lgamma", special.gammaln, 1, 9),
    OpRecord(
        "logit",
        _logit_samples,
        _logit,
        dtypes=(float32, float64),
        rtol=_SINGLE,
        atol=_SINGLE_ABSOLUTE,
        errors=refuses(COMPLEXES[1]),
    ),
    OpRecord(
        "mvlgamma",
        _mvlgamma_samples,
        floating(lambda a, p: _ANY.multigammaln(a, int(p))),
        dtypes=(float32, float64, int64),
        rtol=_SINGLE,
        atol=_SINGLE_ABSOLUTE,
        errors=_mvlgamma_errors,
    ),
    OpRecord(
        "orthogonal_polynomial",
        _orthogonal_samples,
        lambda x, n, family: special.eval_legendre(n, x.astype(np.float64)),
        dtypes=_DIGITS,
        gradient=False,
        torch="",
        rtol=_SINGLE,
        atol=_SINGLE_ABSOLUTE,
    ),
    OpRecord(
        "polygamma",
        _polygamma_samples,
        lambda n, a: special.polygamma(n, a.astype(np.float64)),
        dtypes=(float32, float64, int64),
        rtol=_SINGLE,
        atol=_SINGLE_ABSOLUTE,
        errors=_polygamma_errors,
    ),
    _record("special_airy_ai", lambda a: special.airy(a)[0], -4, 4),
    _record("special_bessel_j0", special.j0),
    _record("special_bessel_j1", special.j1),
    _record("special_bessel_y0", special.y0, 1, 9),
    _record("special_bessel_y1", special.y1, 1, 9),
    _record("special_entr", special.entr, 0.1, 3),
    _record("special_erfcx", special.erfcx, -1, 4),
    _record("special_i0e", special.i0e),
    _record("special_i1", special.i1, -5, 5),
    _record("special_i1e", special.i1e),
    _record("special_log_ndtr", special.log_ndtr),
    _record("special_modified_bessel_i0", special.i0, -5, 5),
    _record("special_modified_bessel_i1", special.i1, -5, 5),
    _record("special_modified_bessel_k0", special.k0, 1, 9),
    _record("special_modified_bessel_k1", special.k1, 1, 9),
    _record("special_ndtr", special.ndtr, -3, 3),
    _record("special_ndtri", special.ndtri, 0.1, 0.9),
    _record("special_scaled_modified_bessel_k0", special.k0e, 1, 9),
    _record("special_scaled_modified_bessel_k1", special.k1e, 1, 9),
    _record("special_spherical_bessel_j0", lambda a: special.spherical_jn(0, a)),
    OpRecord(
        "special_xlog1py",
        binary(None, None, 0.2, 9, numbers=(2,), reflected=True),
        floating(special.xlog1py),
        dtypes=ORDERED,
        rtol=_SINGLE,
        atol=_SINGLE_ABSOLUTE,
        torch="special.xlog1py",
    ),
    OpRecord(
        "special_zeta",
        binary(2, 5, 1, 5, numbers=(2,), reflected=True),
        floating(special.zeta),
        dtypes=ORDERED,
        gradient=False,
        rtol=_SINGLE,
        atol=_SINGLE_ABSOLUTE,
        torch="special.zeta",
        errors=refuses(COMPLEXES[1], arity=2),
    ),
    *[_polynomial(f"chebyshev_polynomial_{k}", f) for k, f in _CHEBYSHEV.items()],
    *[
        _polynomial(f"shifted_chebyshev_polynomial_{k}", _at_shifted(f), shifted=True)
        for k, f in _CHEBYSHEV.items()
    ],
    _polynomial("hermite_polynomial_h", special.eval_hermite),
    _polynomial("hermite_polynomial_he", special.eval_hermitenorm),
    _polynomial("laguerre_polynomial_l", special.eval_laguerre),
    _polynomial("legendre_polynomial_p", special.eval_legendre),
]
