"""The larger or smaller of two, and bounds: maximum, minimum, fmax, fmin, clamp."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..device.dtypes import COMPLEX, FLOATING, INTEGER, DType, Number, iinfo, result_dtype
from ..device.scalars import held_bound
from ..dispatch.op_registry import Delegated, Spec, composite, handle, in_place, primitive
from ..dispatch.out_dtypes import exact_out
from ..dispatch.writes import inplace
from ..tensor.base import TensorBase
from .masking import where
from .rules import cast, check_tensor, elementwise

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = ["clamp", "clamp_max", "clamp_min", "clip", "fmax", "fmin", "maximum", "minimum"]

_NE = handle("ne")


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
    first, second = elementwise("fmax", input, other, without=(COMPLEX,)).values
    if first._key.dtype.category != FLOATING:
        return maximum(first, second)
    return where(_OR.call(_GE.call(first, second), _NE.call(second, second)), first, second)


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
    if first._key.dtype.category != FLOATING:
        return minimum(first, second)
    return where(_OR.call(_LE.call(first, second), _NE.call(second, second)), first, second)


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
    return elementwise("clamp_min", input, min, without=(COMPLEX,), exact=True)


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
    return elementwise("clamp_max", input, max, without=(COMPLEX,), exact=True)


def _canonical_clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    check_tensor(input, "clamp")
    if min is None:
        if max is None:
            raise RuntimeError("clamp(): At least one of 'min' or 'max' must not be None")
        return Delegated.to(clamp_max, input, max)
    if max is None:
        return Delegated.to(clamp_min, input, min)
    dtype = input._key.dtype
    if dtype.category == FLOATING:
        min, max = held_bound(min, dtype), held_bound(max, dtype)
    if dtype.category != INTEGER or _fit(dtype, min, max):
        return input, min, max
    return Delegated.to(_clamp_steps, input, min, max)


def _clamp_steps(input: Any, min: Any, max: Any) -> Any:
    # Both bounds count for the dtype before the first is applied.
    return clamp_max(clamp_min(cast(input, result_dtype((input, min, max))), min), max)


@composite(
    rule=_canonical_clamp,
    elementwise=True,
    inplace=True,
    delegates="clamp_min and clamp_max those with one bound",
    aliases=("clip",),
)
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
    return _clamp_steps(input, min, max)


_limits = functools.cache(iinfo)


def _fit(dtype: DType, min: Any, max: Any) -> bool:
    """Return whether two bounds are whole numbers that a dtype of integers has."""
    if type(min) is not int or type(max) is not int:
        return False
    limits = _limits(dtype)
    return limits.min <= min <= limits.max and limits.min <= max <= limits.max


@composite(method=False, elementwise=True)
def clamp_backward(g: Tensor, input: Tensor, min: Tensor | Number, max: Tensor | Number) -> Tensor:
    """Return `g` where the element is within the bounds, else zero."""
    return where(_AND.call(_GE.call(input, min), _LE.call(input, max)), g, 0)


def _between_numbers(given: dict[str, Any]) -> bool:
    """Return whether no bound is a tensor."""
    return not any([isinstance(given.get(bound), TensorBase) for bound in ("min", "max")])


exact_out(clamp, where=_between_numbers)


@in_place(clamp)
def _clamp_(
    input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None
) -> Any:
    if min is None and max is None:
        raise RuntimeError("clamp_(): At least one of 'min' or 'max' must not be None")
    if min is None:
        return inplace(_CLAMP_MAX, "clamp_", input, (max,), {})
    if max is None:
        return inplace(_CLAMP_MIN, "clamp_", input, (min,), {})
    return NotImplemented


_AND = handle("bitwise_and")


_CLAMP_MAX = handle("clamp_max")


_CLAMP_MIN = handle("clamp_min")


_GE = handle("ge")


_LE = handle("le")


clip = clamp
