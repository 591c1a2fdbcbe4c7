"""Records of arithmetic of elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import (
    ALL_DTYPES,
    COMPLEXES,
    FLOATS,
    INTEGRAL,
    DType,
    bool_,
    float64,
    int64,
)

from ..records import ErrorSample, OpRecord, Sample
from ._steps import stepwise, tensors_of


def _float_power_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    low = 0.5 if dtype.is_floating_point else 1
    yield from binary(low, 4, 0, 3, numbers=(2, 0.5), reflected=True)(make, dtype)


def _float_power(a: Any, b: Any) -> Any:
    kind = np.result_type(a, b).kind
    return np.float_power(np.asarray(a, np.complex128 if kind == "c" else np.float64), b)


NUMBERS = tuple(dtype for dtype in ALL_DTYPES if dtype is not bool_)
ORDERED = tuple(dtype for dtype in ALL_DTYPES if not dtype.is_complex)
REAL = (*INTEGRAL, *FLOATS)
INEXACT = (*FLOATS, *COMPLEXES)
Samples = Callable[[Any, DType], Iterator[Sample]]
Errors = Callable[[Any], Iterator[ErrorSample]]


def unary(low: float | None = None, high: float | None = None) -> Samples:
    """Return samples of one tensor of several shapes, with elements between `low` and `high`."""

    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for shape in ((5,), (), (0, 3), (2, 3)):
            yield Sample(make(*shape, low=low, high=high))

    return samples


def binary(
    low: float | None = None,
    high: float | None = None,
    other_low: float | None = None,
    other_high: float | None = None,
    *,
    nonzero: bool = False,
    numbers: tuple[Any, ...] = (),
    reflected: bool = False,
    **options: Any,
) -> Samples:
    """Return samples of two tensors that broadcast, and of a tensor with each of `numbers`.

    Parameters
    ----------
    nonzero : bool
        Whether the second tensor has no zeros.
    reflected : bool
        Whether each number also comes first.
    **options
        Keyword arguments of every call.
    """
    pairs = (((5,), (5,)), ((3, 1), (4,)), ((), (3,)), ((2, 3), ()), ((2, 0), (1,)), ((), ()))

    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        def second(*shape: int) -> Any:
            return make(*shape, low=other_low, high=other_high, exclude_zero=nonzero)

        for one, other in pairs:
            yield Sample(make(*one, low=low, high=high), second(*other), **options)
        for number in numbers:
            yield Sample(make(4, low=low, high=high), number, **options)
            if reflected:
                yield Sample(number, second(4), **options)

    return samples


def floating(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a NumPy function that computes integers and bool in float64."""

    def reference(*args: Any) -> Any:
        return function(*[_wide(arg) for arg in args])

    return reference


def _wide(value: Any) -> Any:
    kind = getattr(value, "dtype", np.dtype(float)).kind
    return value.astype(np.float64) if kind in "biu" else value


def refuses(*dtypes: DType, match: str = "not implemented for dtype", arity: int = 1) -> Errors:
    """Return error samples: a tensor of each of these dtypes is refused."""

    def errors(make: Any) -> Iterator[ErrorSample]:
        for dtype in dtypes:
            tensors = [make(3, dtype=dtype) for _ in range(arity)]
            yield ErrorSample(Sample(*tensors), RuntimeError, match)

    return errors


def mismatched(make: Any) -> Iterator[ErrorSample]:
    """Yield shapes that do not broadcast, and an argument that is no tensor."""
    yield ErrorSample(Sample(make(3), make(4)), RuntimeError, "must match")
    yield ErrorSample(Sample(make(3), "text"), TypeError, "must be Tensor or Number")


# --- arithmetic -------------------------------------------------------------------------------
def _scaled_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from binary(numbers=(2,))(make, dtype)
    if dtype is not bool_:
        yield Sample(make(3), make(3), alpha=2)
    if dtype.category >= float64.category:
        yield Sample(make(3), make(3), alpha=0.5)
        yield Sample(make(3), 2, alpha=0.5)


def _times(alpha: Any, value: Any) -> Any:
    return value if alpha == 1 else alpha * value


def _alpha_errors(make: Any) -> Iterator[ErrorSample]:
    yield from mismatched(make)
    yield ErrorSample(
        Sample(make(2, dtype=int64), make(2, dtype=int64), alpha=1.5), RuntimeError, "alpha"
    )
    yield ErrorSample(Sample(make(2), make(2), alpha=True), RuntimeError, "Boolean alpha")


def _sub_errors(make: Any) -> Iterator[ErrorSample]:
    yield from _alpha_errors(make)
    yield ErrorSample(Sample(make(2, dtype=bool_), 1), RuntimeError, "bool tensor")


def _div_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from binary(nonzero=True, numbers=(2,), reflected=True)(make, dtype)
    if dtype in REAL:
        yield from binary(nonzero=True, numbers=(3,), rounding_mode="floor")(make, dtype)
        yield from binary(nonzero=True, numbers=(3,), rounding_mode="trunc")(make, dtype)


def _div(a: Any, b: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode is None:
        return floating(np.divide)(a, b)
    if rounding_mode == "floor":
        return np.floor_divide(a, b)
    quotient = np.trunc(floating(np.divide)(a, b))
    kind = np.result_type(a, b).kind
    return quotient.astype(np.result_type(a, b)) if kind in "iu" else quotient


def _div_errors(make: Any) -> Iterator[ErrorSample]:
    yield from mismatched(make)
    wrong = Sample(make(3), 2, rounding_mode="up")
    yield ErrorSample(wrong, RuntimeError, "rounding_mode to be one of")


def _zero_errors(make: Any) -> Iterator[ErrorSample]:
    yield from mismatched(make)
    whole = make(3, dtype=int64)
    yield ErrorSample(Sample(whole, 0), RuntimeError, "ZeroDivisionError")
    yield ErrorSample(Sample(whole, whole * 0), RuntimeError, "ZeroDivisionError")
    yield from refuses(COMPLEXES[1], bool_, arity=2)(make)


def _power_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    low = 0.5 if dtype.is_floating_point else 0
    exact = dtype.category < float64.category
    yield from binary(low, 3, 0 if exact else -2, 3, numbers=(2, 3), reflected=True)(make, dtype)
    if not exact:
        for exponent in (0, 0.5, 1, -1, -1.5, 2.0):
            yield Sample(make(3, low=0.5, high=3), exponent)
        yield Sample(0.5, make(3, low=-2, high=3))


def _pow_errors(make: Any) -> Iterator[ErrorSample]:
    yield from mismatched(make)
    yield ErrorSample(Sample(make(3, dtype=int64), -1), RuntimeError, "negative integer powers")


def _square(a: Any) -> Any:
    return np.square(a.astype(np.int64) if a.dtype.kind == "b" else a)


def _sign(a: Any) -> Any:
    return a if a.dtype.kind == "b" else np.sign(a)


def _conj(a: Any) -> Any:
    return a if a.dtype.kind == "b" else np.conj(a)


def _lerp_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for weight in (0.25, 0.75, 1, -2.5):
        yield Sample(make(4), make(4), weight)
    yield Sample(make(3, 1), make(4), make(3, 4, low=0, high=1))
    yield Sample(make(), make(3), make())
    yield Sample(make(0), make(0), 0.5)


def _lerp_errors(make: Any) -> Iterator[ErrorSample]:
    whole = make(3, dtype=int64)
    yield ErrorSample(Sample(make(3), whole, 0.5), RuntimeError, "for `end`")
    yield ErrorSample(Sample(whole, whole, 0.5), NotImplementedError, "not implemented")


def _product_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    def last(*shape: int) -> Any:
        return make(*shape, low=1, high=4, exclude_zero=True)

    yield Sample(make(4), make(4), last(4))
    yield Sample(make(3, 1), make(4), last(), value=2)
    yield Sample(make(0), make(0), last(0))
    if dtype.category >= float64.category:
        yield Sample(make(2, 3), make(3), last(2, 1), value=-0.5)


def _addcdiv_errors(make: Any) -> Iterator[ErrorSample]:
    whole = make(3, dtype=int64)
    yield ErrorSample(Sample(whole, whole, whole), RuntimeError, "Integer division")


# A composite rounds each of its steps in half precision.
_STEPS = {"float16": 4e-3, "bfloat16": 3e-2}
_STEPS_ABSOLUTE = {"float16": 5e-2, "bfloat16": 5e-1, "float32": 2e-5, "complex64": 5e-5}


RECORDS = [
    stepwise("trunc_divide", tensors_of(2, low=-9, high=9), lambda a, b: np.trunc(a / b)),
    stepwise("add_scaled", tensors_of(2, -0.75), lambda a, b, alpha: a + alpha * b),
    OpRecord("float_power", _float_power_samples, _float_power, torch="float_power"),
    OpRecord("abs", unary(), np.abs, dtypes=NUMBERS, errors=refuses(bool_)),
    OpRecord(
        "add",
        _scaled_samples,
        lambda a, b, alpha=1: a + _times(alpha, b),
        dtypes=NUMBERS,
        errors=_alpha_errors,
        atol=_STEPS_ABSOLUTE,
    ),
    OpRecord(
        "addcdiv",
        _product_samples,
        lambda a, b, c, value=1: a + value * b / c,
        dtypes=INEXACT,
        errors=_addcdiv_errors,
        rtol=_STEPS,
        atol=_STEPS_ABSOLUTE,
    ),
    OpRecord(
        "addcmul",
        _product_samples,
        lambda a, b, c, value=1: a + np.multiply(b, value) * c,
        dtypes=NUMBERS,
        rtol=_STEPS,
        atol=_STEPS_ABSOLUTE,
    ),
    OpRecord("conj", unary(), _conj, skips={"out": "a real tensor is returned as it is"}),
    OpRecord("conj_physical", unary(), _conj),
    OpRecord("div", _div_samples, _div, errors=_div_errors),
    OpRecord(
        "floor_divide",
        binary(nonzero=True, numbers=(3,), reflected=True),
        np.floor_divide,
        dtypes=REAL,
        errors=_zero_errors,
    ),
    OpRecord(
        "fmod",
        binary(nonzero=True, numbers=(3,), reflected=True),
        np.fmod,
        dtypes=REAL,
        errors=_zero_errors,
    ),
    OpRecord(
        "lerp",
        _lerp_samples,
        lambda a, b, w: a + w * (b - a),
        dtypes=INEXACT,
        errors=_lerp_errors,
        rtol=_STEPS,
        atol=_STEPS_ABSOLUTE,
    ),
    OpRecord("mul", binary(numbers=(3,), reflected=True), np.multiply, errors=mismatched),
    OpRecord(
        "neg", unary(), np.negative, dtypes=NUMBERS, errors=refuses(bool_, match="bool tensor")
    ),
    OpRecord(
        "positive",
        unary(),
        np.positive,
        dtypes=NUMBERS,
        errors=refuses(bool_, match="bool tensor"),
        skips={"out": "the input is returned as it is"},
    ),
    OpRecord("pow", _power_samples, np.power, dtypes=NUMBERS, errors=_pow_errors),
    OpRecord("reciprocal", unary(0.5, 5), floating(lambda a: 1 / a)),
    OpRecord(
        "remainder",
        binary(nonzero=True, numbers=(3,), reflected=True),
        np.remainder,
        dtypes=REAL,
        errors=_zero_errors,
    ),
    OpRecord(
        "rsub",
        _scaled_samples,
        lambda a, b, alpha=1: b - _times(alpha, a),
        dtypes=NUMBERS,
        errors=_sub_errors,
        atol=_STEPS_ABSOLUTE,
    ),
    OpRecord("sgn", unary(), _sign),
    OpRecord("sign", unary(), _sign, dtypes=ORDERED, errors=refuses(COMPLEXES[1], match="sgn")),
    OpRecord("square", unary(), _square),
    OpRecord(
        "sub",
        _scaled_samples,
        lambda a, b, alpha=1: a - _times(alpha, b),
        dtypes=NUMBERS,
        errors=_sub_errors,
        atol=_STEPS_ABSOLUTE,
    ),
]
