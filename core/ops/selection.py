"""Choice among elements: maximum, minimum, clamp, where, masked_fill, fill."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .. import operators, writing
from ..dtypes import (
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGER,
    DType,
    Number,
    iinfo,
    result_dtype,
    uint8,
)
from ..operators import Spec, composite, handle, in_place, primitive
from ..tensor_base import TensorBase
from .copying import copy
from .rules import cast, check_tensor, elementwise

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = [
    "choose",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "fill",
    "fill_",
    "fmax",
    "fmin",
    "masked_fill",
    "maximum",
    "minimum",
    "where",
    "zero_",
]

_NE = handle("ne")
_NONZERO = handle("nonzero")


@primitive("input, other", pointwise=True)
def maximum(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return the larger element of two; nan where either is nan.

    The gradient of equal elements goes half to each.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.maximum(tp.tensor([1, 5]), tp.tensor([3, 4]))
    tensor([3, 5])
    """
    return elementwise("maximum", input, other, without=(COMPLEX,))


@primitive("input, other", pointwise=True)
def minimum(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return the smaller element of two; nan where either is nan.

    The gradient of equal elements goes half to each.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.minimum(tp.tensor([1, 5]), tp.tensor([3, 4]))
    tensor([1, 4])
    """
    return elementwise("minimum", input, other, without=(COMPLEX,))


@composite()
def fmax(input: Tensor, other: Tensor) -> Tensor:
    """Return the larger element of two; where one is nan, the other.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fmax(tp.tensor([1.0, float("nan")]), tp.tensor([3.0, 4.0]))
    tensor([3., 4.])
    """
    check_tensor(input, "fmax")
    check_tensor(other, "fmax", "other")
    larger = elementwise("fmax", input, other, without=(COMPLEX,)).values
    first, second = larger
    return choose(_OR.call(_GE.call(first, second), _NE.call(second, second)), first, second)


@composite()
def fmin(input: Tensor, other: Tensor) -> Tensor:
    """Return the smaller element of two; where one is nan, the other.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fmin(tp.tensor([1.0, float("nan")]), tp.tensor([3.0, 4.0]))
    tensor([1., 4.])
    """
    check_tensor(input, "fmin")
    check_tensor(other, "fmin", "other")
    first, second = elementwise("fmin", input, other, without=(COMPLEX,)).values
    return choose(_OR.call(_LE.call(first, second), _NE.call(second, second)), first, second)


_GE = handle("ge")
_LE = handle("le")
_OR = handle("bitwise_or")


@primitive("input, min", pointwise=True, inplace=True)
def clamp_min(input: Tensor, min: Tensor | Number) -> Spec:
    """Return each element, or `min` where it is below.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.clamp_min(tp.tensor([-1.0, 2.0]), 0)
    tensor([0., 2.])
    """
    check_tensor(input, "clamp_min")
    return elementwise("clamp_min", input, min, without=(COMPLEX,))


@primitive("input, max", pointwise=True, inplace=True)
def clamp_max(input: Tensor, max: Tensor | Number) -> Spec:
    """Return each element, or `max` where it is above.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.clamp_max(tp.tensor([-1.0, 2.0]), 0)
    tensor([-1.,  0.])
    """
    check_tensor(input, "clamp_max")
    return elementwise("clamp_max", input, max, without=(COMPLEX,))


@composite(inplace=True, aliases=("clip",))
def clamp(
    input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None
) -> Tensor:
    """Return each element, or the bound that it is beyond.

    Parameters
    ----------
    input : Tensor
        Real.
    min, max : Tensor or number, optional
        The bounds; at least one. Where ``min > max`` the result is `max`. A nan bound gives nan.

    Notes
    -----
    The gradient passes where the element is within the bounds or equal to one.

    Raises
    ------
    RuntimeError
        If neither bound is given.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.clamp(tp.tensor([-2.0, 0.5, 2.0]), min=-1, max=1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    check_tensor(input, "clamp")
    if min is None:
        if max is None:
            raise RuntimeError("clamp(): At least one of 'min' or 'max' must not be None")
        return clamp_max(input, max)
    if max is None:
        return clamp_min(input, min)
    if input._kind.dtype.category != INTEGER or _fit(input._kind.dtype, min, max):
        return _clamp(input, min, max)
    return clamp_max(clamp_min(cast(input, result_dtype((input, min, max))), min), max)


_limits = functools.cache(iinfo)


def _fit(dtype: DType, min: Any, max: Any) -> bool:
    """Return whether two bounds are whole numbers that a dtype of integers has."""
    if type(min) is not int or type(max) is not int:
        return False
    limits = _limits(dtype)
    return limits.min <= min <= limits.max and limits.min <= max <= limits.max


@composite(method=False, elementwise=True)
def _clamp(input: Tensor, min: Tensor | Number, max: Tensor | Number) -> Tensor:
    """Return :func:`clamp` with both bounds."""
    # Both bounds count for the dtype before the first is applied.
    compute = result_dtype((input, min, max))
    return clamp_max(clamp_min(cast(input, compute), min), max)


@composite(method=False, elementwise=True)
def _clamp_gradient(g: Tensor, input: Tensor, min: Tensor | Number, max: Tensor | Number) -> Tensor:
    """Return `g` where the element is within the bounds, else zero."""
    return choose(_AND.call(_GE.call(input, min), _LE.call(input, max)), g, 0)


@in_place(clamp)
def _clamp_(
    input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None
) -> Tensor:
    if min is None and max is None:
        raise RuntimeError("clamp_(): At least one of 'min' or 'max' must not be None")
    if min is None:
        return writing.inplace(_CLAMP_MAX, "clamp_", input, (max,), {})
    if max is None:
        return writing.inplace(_CLAMP_MIN, "clamp_", input, (min,), {})
    if input._kind.dtype.category != INTEGER or _fit(input._kind.dtype, min, max):
        return writing.inplace(_CLAMP, "clamp_", input, (min, max), {})
    result = clamp(input, min, max)
    writing.check_out("clamp_", input, result._kind.dtype, result._kind)
    return writing.inplace(_COPY, "clamp_", input, (result,), {})


_AND = handle("bitwise_and")
_CLAMP = handle("_clamp")
_CLAMP_MAX = handle("clamp_max")
_CLAMP_MIN = handle("clamp_min")
_GE = handle("ge")
_LE = handle("le")


@primitive("condition, input, other", pointwise=True, method=False)
def choose(condition: Tensor, input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return `input` where the condition is true, else `other`; what ``where`` calls.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.choose(tp.tensor([True, False]), 1, 2)
    tensor([1, 2])
    """
    return elementwise(
        "where", input, other, condition=condition, compute=result_dtype((input, other))
    )


@composite(method=False)
def where(
    condition: Tensor, input: Tensor | Number | None = None, other: Tensor | Number | None = None
) -> Any:
    """Return `input` where the condition is true, else `other`.

    Parameters
    ----------
    condition : Tensor of bool
        Broadcast against both values.
    input, other : Tensor or number
        Promoted to one dtype. Without both the result is ``nonzero(condition, as_tuple=True)``.

    Raises
    ------
    RuntimeError
        If the condition is not of bool.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([-1.0, 2.0])
    >>> tp.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    check_tensor(condition, "where", "condition")
    if input is None and other is None:
        return _NONZERO.call(condition, as_tuple=True)
    if input is None or other is None:
        raise TypeError("where(): give both values, or none for the places of the true elements")
    if condition.dtype.category != BOOL:
        if condition.dtype is not uint8:
            raise RuntimeError(
                "where expected condition to be a boolean tensor, but got a tensor with dtype "
                f"{condition.dtype.name}; compare it with something, for example != 0"
            )
        condition = _NE.call(condition, 0)
    return choose(condition, input, other)


@composite(inplace=True)
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    """Return `input` with `value` where the mask is true, in the dtype of `input`.

    Parameters
    ----------
    input : Tensor
        Broadcast against the mask.
    mask : Tensor of bool
        Where to put the value.
    value : number or 0-d Tensor
        Converted to the dtype of `input`.

    Raises
    ------
    RuntimeError
        If the mask is not of bool, the value has dimensions, or is complex beside a real input.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.masked_fill(tp.tensor([1.0, 2.0]), tp.tensor([True, False]), 0.0)
    tensor([0., 2.])
    """
    check_tensor(input, "masked_fill")
    check_tensor(mask, "masked_fill", "mask")
    if mask.dtype.category != BOOL:
        raise RuntimeError(
            f"masked_fill(): only supports boolean masks, but got mask with dtype {mask.dtype.name}"
        )
    return choose(mask, _filling("masked_fill", input, value), input)


def _filling(name: str, input: Tensor, value: Tensor | Number) -> Tensor | Number:
    """Return a fill value fit for the dtype of `input`."""
    dtype = input._kind.dtype
    if isinstance(value, TensorBase):
        if value._shape:
            raise RuntimeError(
                f"{name}(): only supports a 0-dimensional value tensor, but got a tensor with "
                f"{len(value._shape)} dimension(s)"
            )
        return cast(value, dtype)
    if dtype.category == BOOL:
        return bool(value)
    if isinstance(value, complex) and dtype.category != COMPLEX:
        if value.imag:
            raise RuntimeError(
                f"{name}(): value {value} cannot be converted to type {dtype.name} without overflow"
            )
        value = value.real
    if isinstance(value, float) and dtype.category < FLOATING:
        return int(value)
    return value


@composite()
def fill(input: Tensor, value: Tensor | Number) -> Tensor:
    """Return a tensor like `input` whose elements are all `value`, a number or 0-d tensor.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fill(tp.tensor([1.0, 2.0]), 7)
    tensor([7., 7.])
    """
    check_tensor(input, "fill")
    return copy(input, _filling("fill", input, value))


def fill_(input: Tensor, value: Tensor | Number) -> Tensor:
    """Write `value`, a number or 0-d tensor, into every element of `input`; return `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2).fill_(7)
    tensor([7., 7.])
    """
    check_tensor(input, "fill_")
    return writing.inplace(_COPY, "fill_", input, (_filling("fill_", input, value),), {})


def zero_(input: Tensor) -> Tensor:
    """Write zero into every element of `input`; return `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ones(2).zero_()
    tensor([0., 0.])
    """
    return fill_(input, 0)


def _where_method(self: Tensor, condition: Tensor, other: Tensor | Number) -> Any:
    """Return ``where(condition, self, other)``: of the method the values come first."""
    return where(condition, self, other)


_COPY = handle("copy")
operators.add_method("fill_", fill_)
operators.add_method("zero_", zero_)
operators.add_method("where", _where_method)

clip = clamp
