"""Linear combinations: lerp, addcmul, addcdiv."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...device.dtypes import BOOL, FLOATING, Number, result_dtype
from ...device.scalars import coefficient
from ...dispatch.op_registry import composite
from ...errors import warn
from ...tensor.base import TensorBase
from ..comparison import lt
from ..masking import where
from ..rules import cast, check_tensor, rounded_once
from .division import div
from .pointwise import abs, add, mul, sub

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = [
    "addcdiv",
    "addcmul",
    "lerp",
]


def _canonical_lerp(input: Any, end: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Return the arguments with a weight of the dtype of `input`, if it is a tensor."""
    check_tensor(input, "lerp")
    check_tensor(end, "lerp", "end")
    key = input._key
    if (
        end._key is key
        and key.dtype.category == FLOATING
        and (
            (type(weight) is float and -60000 < weight < 60000)
            or (isinstance(weight, TensorBase) and weight._key is key)
        )
    ):
        return input, end, weight
    if not isinstance(weight, (TensorBase, int, float, complex)):
        raise TypeError(f"lerp(): weight must be a number or a tensor, got {weight!r}")
    if end.dtype is not input.dtype:
        raise RuntimeError(
            f"lerp(): expected dtype {input.dtype.name} for `end` but got dtype {end.dtype.name}"
        )
    if input.dtype.category < FLOATING:
        raise NotImplementedError(f"lerp() is not implemented for dtype {input.dtype.name}")
    if isinstance(weight, TensorBase):
        if weight._key.dtype is not input.dtype:
            if weight._shape:
                raise RuntimeError(
                    f"lerp(): expected dtype {input.dtype.name} for `weight` but got dtype "
                    f"{weight._key.dtype.name}"
                )
            weight = cast(weight, input.dtype)
    else:
        weight = coefficient(weight, input.dtype)
    return input, end, weight


@composite(rule=_canonical_lerp, elementwise=True, inplace=True)
def lerp(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """Return the linear interpolation ``input + weight * (end - input)``.

    Parameters
    ----------
    input, end : Tensor
        Of one floating-point or complex dtype.
    weight : Tensor or number
        0 gives `input` and 1 gives `end`, exactly.

    Raises
    ------
    RuntimeError
        If the dtypes differ.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.lerp(tp.tensor([0.0, 10.0]), tp.tensor([1.0, 20.0]), 0.5)
    tensor([ 0.5000, 15.0000])
    """
    if input._key.dtype.itemsize == 2:  # rounded once, as kernels do it
        return rounded_once(lerp, input.dtype, input, end, weight)
    difference = sub(end, input)
    # Measured from the nearer end, so that both ends are met exactly.
    if not isinstance(weight, TensorBase):
        if -0.5 < weight.real < 0.5:
            return add(input, mul(difference, weight))
        return sub(end, mul(difference, 1 - weight))
    near = lt(abs(weight), 0.5)
    reach = where(near, weight, sub(weight, 1))
    return add(where(near, input, end), mul(difference, reach))


def _value_for(name: str, value: Number, *tensors: Tensor) -> Number:
    """Return a factor that fits the dtype which the tensors come to."""
    compute = result_dtype(tensors)
    if compute.category == BOOL:
        raise NotImplementedError(f"{name}() is not implemented for dtype bool")
    return coefficient(value, compute)


def _in_order(name: str, tensor1: Any, tensor2: Any, value: Any) -> tuple[Any, Any, Any]:
    """Return the tensors and the value; in calls of a deprecated form that one comes first."""
    if isinstance(tensor1, TensorBase):
        check_tensor(tensor2, name, "tensor2")
        return tensor1, tensor2, value
    check_tensor(value, name, "tensor2")
    warn(f"This overload of {name} is deprecated: numbers before tensors; name them", UserWarning)
    return tensor2, value, tensor1


def _canonical_addcmul(
    input: Any, tensor1: Any, tensor2: Any, value: Number = 1
) -> tuple[Any, Any, Any, Number]:
    tensor1, tensor2, value = _in_order("addcmul", tensor1, tensor2, value)
    return input, tensor1, tensor2, _value_for("addcmul", value, input, tensor1, tensor2)


@composite(rule=_canonical_addcmul, elementwise=True, inplace=True)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """Return ``input + value * tensor1 * tensor2``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.addcmul(tp.tensor([1.0]), tp.tensor([2.0]), tp.tensor([3.0]), value=0.5)
    tensor([4.])
    """
    dtype = result_dtype((input, tensor1, tensor2))
    if dtype.itemsize == 2 and dtype.category == FLOATING:
        return rounded_once(addcmul, dtype, input, tensor1, tensor2, value=value)
    return add(input, mul(_times(value, input, tensor1, tensor2), tensor2))


def _canonical_addcdiv(
    input: Any, tensor1: Any, tensor2: Any, value: Number = 1
) -> tuple[Any, Any, Any, Number]:
    tensor1, tensor2, value = _in_order("addcdiv", tensor1, tensor2, value)
    _refuse_integers(tensor1, tensor2)
    return input, tensor1, tensor2, _value_for("addcdiv", value, input, tensor1, tensor2)


@composite(rule=_canonical_addcdiv, elementwise=True, inplace=True)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """Return ``input + value * tensor1 / tensor2``.

    Raises
    ------
    RuntimeError
        If `tensor1` and `tensor2` are both of integers: choose with ``div(rounding_mode=...)`` what
        is meant.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.addcdiv(tp.tensor([1.0]), tp.tensor([2.0]), tp.tensor([4.0]), value=3)
    tensor([2.5000])
    """
    dtype = result_dtype((input, tensor1, tensor2))
    if dtype.itemsize == 2 and dtype.category == FLOATING:
        return rounded_once(addcdiv, dtype, input, tensor1, tensor2, value=value)
    return add(input, div(_times(value, input, tensor1, tensor2), tensor2))


def _times(value: Number, input: Tensor, tensor1: Tensor, tensor2: Tensor) -> Tensor:
    """Return the first factor times `value`, in the dtype that all three come to."""
    if value == 1:
        return tensor1
    return mul(cast(tensor1, result_dtype((input, tensor1, tensor2))), value)


def _refuse_integers(tensor1: Any, tensor2: Any) -> None:
    if isinstance(tensor1, TensorBase) and tensor1._key.dtype.category == FLOATING:
        return
    if result_dtype((tensor1, tensor2)).category < FLOATING:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported; use "
            "(input + value * tp.div(tensor1, tensor2, rounding_mode='trunc')), or convert one "
            "tensor to a floating-point dtype for true division"
        )
