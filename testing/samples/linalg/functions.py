"""Records of norms, determinants, powers and products of vectors."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg

from tensorplug.core.device.dtypes import (
    ALL_DTYPES,
    COMPLEXES,
    FLOATS,
    DType,
    bool_,
    complex64,
    float32,
    float64,
    int64,
)
from tensorplug.core.errors import LinAlgError

from ...records import ErrorSample, OpRecord, Sample
from ._matrices import (
    DIGITS,
    MATRICES,
    definite,
    dense,
    matrix_errors,
    of_squares,
    regular,
    square_errors,
)

INEXACT = (*FLOATS, *COMPLEXES)
NUMBERS = tuple(dtype for dtype in ALL_DTYPES if dtype is not bool_)

# Sums of products up to 81 cancel: their error is one of the terms; half precision rounds each op.
SUMS = {"float32": 5e-4, "complex64": 5e-4, "float16": 1.0, "bfloat16": 8.0}

# Half precision is computed in single and rounded once; roots and powers lose a digit more.
ROUNDED_ONCE = {"float16": 2e-2, "bfloat16": 2e-1, "float32": 2e-5, "complex64": 2e-5}

_ROUNDED: dict[str, Any] = {"dtypes": MATRICES, "rtol": DIGITS, "atol": DIGITS}
_NORM: dict[str, Any] = {"rtol": ROUNDED_ONCE, "atol": ROUNDED_ONCE}


# --- norms ------------------------------------------------------------------------------------
def _vector_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4))
    yield Sample(make())
    for ord in (1, 2, 3, 1.5, math.inf, -math.inf, 0):
        yield Sample(make(3, 2, exclude_zero=True), ord, -1, True)
    yield Sample(make(2, 3, 2), 2, (0, 2))
    yield Sample(make(2, 0), 2, 1)


def _vector_norm(
    a: Any, ord: float = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    size = np.abs(a)
    if ord == 0:
        return (size != 0).sum(axis=dim, keepdims=keepdim).astype(np.float64)
    if math.isinf(ord):
        return (np.max if ord > 0 else np.min)(size, axis=dim, keepdims=keepdim)
    return (size**ord).sum(axis=dim, keepdims=keepdim) ** (1 / ord)


def _vector_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3, dtype=int64)), RuntimeError, "floating point or complex")
    yield ErrorSample(Sample(make(0), math.inf), RuntimeError, "identity")
    yield ErrorSample(Sample(make(3), "fro"), TypeError, "must be Number, not str")
    yield ErrorSample(Sample(make(3), dtype=complex64), RuntimeError, "real for real")
    yield ErrorSample(Sample(make(3), 2, 1), IndexError, "out of range")


def _matrix_norm_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    orders: list[Any] = ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf]
    for ord in orders:
        if dtype.itemsize == 2 and (ord == "nuc" or (ord != "fro" and abs(ord) == 2)):
            continue
        yield Sample(dense(make, 3, 2), ord)
        yield Sample(dense(make, 2, 2, 3), ord, (2, 0), keepdim=True)
        yield Sample(dense(make, 0, 3, 2), ord)
    yield Sample(dense(make, 0, 2))


def _matrix_norm(
    A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, dtype: Any = None
) -> Any:
    return np.linalg.norm(A, ord, dim, keepdim)


def _matrix_norm_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3)), RuntimeError, "at least 2 dim")
    yield ErrorSample(Sample(make(2, 2), "x"), RuntimeError, "Order x not supported")
    yield ErrorSample(Sample(make(2, 2), 3), RuntimeError, "Order 3 not supported")
    yield ErrorSample(Sample(make(2, 2), "fro", (0,)), RuntimeError, "2-tuple")
    yield ErrorSample(Sample(make(2, 2), "fro", (0, 0)), RuntimeError, "must be different")


def _norm_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3, 2))
    yield Sample(dense(make, 3, 2), 1)
    yield Sample(make(4), 3)
    yield Sample(make(2, 3), dim=1, keepdim=True)
    yield Sample(dense(make, 2, 3, 2), math.inf, (0, 2))
    yield Sample(make(0))
    yield Sample(make(0, 3), dim=1)
    yield Sample(make())


def _norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    return np.linalg.norm(A, ord, dim, keepdim)


def _norm_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 2, 2), 2), RuntimeError, "1D or 2D")
    yield ErrorSample(Sample(make(2, 2, 2), 2, (0, 1, 2)), RuntimeError, "length 1 or 2")
    yield ErrorSample(Sample(make(2, 2), "fro", 0), RuntimeError, "2-tuple")


def _cond_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for p in (None, 2, -2, 1, -1, "fro", "nuc", math.inf, -math.inf):
        yield Sample(regular(make), p)
        yield Sample(regular(make, 0), p)
    yield Sample(dense(make, 3, 2))
    yield Sample(regular(make, 2))
    yield Sample(dense(make, 2, 2) * 0, 1, label="singular")


def _cond(A: Any, p: Any = None) -> Any:
    if A.size and not A.any():
        return np.full((), np.inf)
    return np.real(np.linalg.cond(A, p))  # NumPy before 2.4 gives complex numbers some norms


# --- determinants, powers ---------------------------------------------------------------------
def _slogdet(A: Any) -> Any:
    return tuple(np.linalg.slogdet(A))


def _logdet(A: Any) -> Any:
    sign, logarithm = np.linalg.slogdet(A)
    if A.dtype.kind == "c":
        return np.log(sign) + logarithm
    return np.where(sign < 0, np.nan, logarithm)


def _exp(A: Any) -> Any:
    return scipy.linalg.expm(A) if A.size else A


def _exp_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(dense(make, 3, 3))
    yield Sample(dense(make, 2, 2, 2))
    yield Sample(dense(make, 1, 1))
    yield Sample(dense(make, 0, 0))


def _exp_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3)), RuntimeError, "2 by 3")
    yield ErrorSample(Sample(make(2, 2, dtype=int64)), RuntimeError, "floating point or complex")


def _powers(make: Any, dtype: DType) -> Iterator[Sample]:
    for n in (0, 1, 2, 3, 5, -1, -2):
        yield Sample(regular(make), n)
    yield Sample(regular(make, 2), 2)
    yield Sample(regular(make, n=0), 3)
    yield Sample(regular(make, 0), -1)


def _power_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), 2), RuntimeError, "2 by 3")
    yield ErrorSample(Sample(make(2, 2), 0.5), TypeError, "must be int")
    yield ErrorSample(Sample(make(2, 2) * 0, -1), LinAlgError, "singular")


_EXPONENTIAL: dict[str, Any] = {
    "dtypes": INEXACT,
    "rtol": {**DIGITS, "float16": 2e-3, "bfloat16": 2e-2},
    "atol": {**DIGITS, "float16": 2e-3, "bfloat16": 2e-2},
}


# --- sums and products of vectors -------------------------------------------------------------
def _traces(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in ((3, 3), (2, 4), (0, 2)):
        yield Sample(make(*shape))


def _trace(A: Any) -> Any:
    return np.trace(A, dtype=np.int64 if A.dtype.kind in "iub" else None)


def _trace_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2)), RuntimeError, "expected a matrix")


def _multi_dots(make: Any, dtype: DType) -> Iterator[Sample]:
    low = {"low": -3, "high": 3}
    yield Sample([make(2, 3, **low), make(3, 2, **low)])
    yield Sample([make(2, 3, **low), make(3, 1, **low), make(1, 2, **low)])
    yield Sample([make(3, **low), make(3, 2, **low), make(2, **low)])
    yield Sample([make(3, **low), make(3, **low)])
    yield Sample([make(2, 0), make(0, 3)])
    yield Sample([make(0, 3), make(3, 1), make(1, 2)])


def _multi_dot(tensors: list[Any]) -> Any:
    return functools.reduce(np.matmul, tensors)


def _multi_dot_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample([make(2, 2)]), RuntimeError, "at least 2")
    yield ErrorSample(Sample([make(2, 2), make(2), make(2, 2)]), RuntimeError, "must be 2D")
    yield ErrorSample(Sample([make(2, 3), make(2, 3)]), RuntimeError, "cannot be multiplied")


def _crosses(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3), make(2, 3))
    yield Sample(make(3, 2), make(3, 1), dim=0)
    yield Sample(make(3), make(3))
    yield Sample(make(0, 3), make(0, 3))


def _old_crosses(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from _crosses(make, dtype)
    yield Sample(make(3, 2), make(3, 2))


def _cross(a: Any, b: Any, dim: Any = -1) -> Any:
    if dim is None:
        dim = a.shape.index(3)
    a, b = np.broadcast_arrays(a, b)
    with np.errstate(all="ignore"):
        a, b = np.moveaxis(a, dim, 0), np.moveaxis(b, dim, 0)
        parts = [a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)]
    return np.moveaxis(np.stack(parts), 0, dim)


def _cross_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2), make(2), dim=0), RuntimeError, "length 3")
    yield ErrorSample(Sample(make(3), make(2, 3), dim=0), RuntimeError, "same number of dim")


def _vecdots(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3), make(2, 3))
    yield Sample(make(2, 1, 3), make(2, 3))
    yield Sample(make(3, 2), make(3, 2), dim=0)
    yield Sample(make(0, 3), make(0, 3))
    yield Sample(make(2, 0), make(2, 0))


def _vecdot_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2), make(2, dtype=float32)), RuntimeError, "same dtype")
    yield ErrorSample(Sample(make(2), make(3)), RuntimeError, "match|broadcast")


def _vanders(make: Any, dtype: DType) -> Iterator[Sample]:
    for N in (None, 1, 3):
        yield Sample(dense(make, 2, 3), N)
    yield Sample(dense(make, 0, 3))
    yield Sample(dense(make, 2, 0), 3)


def _vander(x: Any, N: int | None = None) -> Any:
    powers = [x**0]
    for _ in range(1, x.shape[-1] if N is None else N):
        powers.append(powers[-1] * x)
    return np.stack(powers, -1)


def _vander_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2), 0), RuntimeError, "greater than 1")


def _diagonals(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 3))
    yield Sample(make(2, 3, 4), offset=1)
    yield Sample(make(2, 3, 4), offset=-1, dim1=0, dim2=1)
    yield Sample(make(0, 3))


def _diagonal(A: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    return np.diagonal(A, offset, dim1, dim2)


RECORDS = [
    OpRecord(
        "linalg_vector_norm",
        _vector_samples,
        _vector_norm,
        INEXACT,
        errors=_vector_errors,
        torch="linalg.vector_norm",
        **_NORM,
    ),
    OpRecord(
        "linalg_matrix_norm",
        _matrix_norm_samples,
        _matrix_norm,
        INEXACT,
        errors=_matrix_norm_errors,
        torch="linalg.matrix_norm",
        **_NORM,
    ),
    OpRecord(
        "linalg_norm",
        _norm_samples,
        _norm,
        INEXACT,
        errors=_norm_errors,
        torch="linalg.norm",
        **_NORM,
    ),
    OpRecord(
        "linalg_cond",
        _cond_samples,
        _cond,
        errors=matrix_errors,
        gradient=False,  # infinite for a singular matrix; composed of ops that are differentiable
        torch="linalg.cond",
        **_ROUNDED,
    ),
    OpRecord(
        "linalg_det",
        of_squares(regular),
        np.linalg.det,
        errors=square_errors,
        torch="linalg.det",
        **_ROUNDED,
    ),
    OpRecord("det", of_squares(regular), np.linalg.det, errors=square_errors, **_ROUNDED),
    OpRecord(
        "linalg_slogdet",
        of_squares(regular),
        _slogdet,
        errors=square_errors,
        torch="linalg.slogdet",
        **_ROUNDED,
    ),
    OpRecord("slogdet", of_squares(regular), _slogdet, errors=square_errors, **_ROUNDED),
    OpRecord("logdet", of_squares(definite), _logdet, errors=square_errors, **_ROUNDED),
    OpRecord("matrix_exp", _exp_samples, _exp, errors=_exp_errors, **_EXPONENTIAL),
    OpRecord(
        "matrix_power",
        _powers,
        np.linalg.matrix_power,
        errors=_power_errors,
        **_ROUNDED,
    ),
    OpRecord("trace", _traces, _trace, NUMBERS, errors=_trace_errors, **_NORM),
    OpRecord(
        "linalg_multi_dot",
        _multi_dots,
        _multi_dot,
        NUMBERS,
        errors=_multi_dot_errors,
        atol=SUMS,
        torch="linalg.multi_dot",
    ),
    OpRecord(
        "linalg_cross",
        _crosses,
        _cross,
        NUMBERS,
        errors=_cross_errors,
        atol=SUMS,
        torch="linalg.cross",
    ),
    OpRecord(
        "cross",
        _old_crosses,
        lambda a, b, dim=None: _cross(a, b, dim),
        NUMBERS,
        errors=_cross_errors,
        atol=SUMS,
    ),
    OpRecord(
        "linalg_vecdot",
        _vecdots,
        lambda x, y, dim=-1: (x.conj() * y).sum(dim, dtype=x.dtype),
        NUMBERS,
        errors=_vecdot_errors,
        atol=SUMS,
        torch="linalg.vecdot",
    ),
    OpRecord(
        "linalg_vander",
        _vanders,
        _vander,
        (int64, float32, float64, *COMPLEXES),
        errors=_vander_errors,
        atol=SUMS,
        torch="linalg.vander",
    ),
    OpRecord("linalg_diagonal", _diagonals, _diagonal, torch="linalg.diagonal"),
]
