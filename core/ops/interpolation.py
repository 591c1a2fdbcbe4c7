"""Linear combinations: lerp, addcmul, addcdiv."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import COMPLEX, FLOATING, INTEGER, DType, Number, result_dtype
from ..operators import composite
from ..tensor_base import TensorBase
from .comparison import lt
from .division import true_divide
from .pointwise import abs, add, mul, sub
from .rules import cast, check_tensor
from .selection import choose

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = [
    "addcdiv",
    "addcmul",
    "lerp",
]


@composite(inplace=True)
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
    check_tensor(input, "lerp")
    check_tensor(end, "lerp", "end")
    if not isinstance(weight, (TensorBase, int, float, complex)):
        raise TypeError(f"lerp(): weight must be a number or a tensor, got {weight!r}")
    if end.dtype is not input.dtype:
        raise RuntimeError(
            f"lerp(): expected dtype {input.dtype.name} for `end` but got dtype {end.dtype.name}"
        )
    if input.dtype.category < FLOATING:
        raise NotImplementedError(f"lerp() is not implemented for dtype {input.dtype.name}")
    difference = sub(end, input)
    if not isinstance(weight, TensorBase):
        if -0.5 < weight.real < 0.5:
            return add(input, mul(difference, weight))
        return sub(end, mul(difference, 1 - weight))
    if weight.dtype is not input.dtype:
        if weight._shape:
            raise RuntimeError(
                f"lerp(): expected dtype {input.dtype.name} for `weight` but got dtype "
                f"{weight.dtype.name}"
            )
        weight = cast(weight, input.dtype)
    # Measured from the nearer end, so that both ends are met exactly.
    near = lt(abs(weight), 0.5)  # type: ignore[arg-type]
    reach = choose(near, weight, sub(weight, 1))
    return add(choose(near, input, end), mul(difference, reach))


def _value_for(name: str, value: Number, compute: DType) -> Number:
    if compute.category <= INTEGER and not isinstance(value, int):
        return int(value.real)
    if isinstance(value, complex) and compute.category != COMPLEX:
        raise RuntimeError(
            f"{name}(): value cannot be converted to type {compute.name} without overflow: {value}"
        )
    return value


@composite(inplace=True)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """Return ``input + value * tensor1 * tensor2``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.addcmul(tp.tensor([1.0]), tp.tensor([2.0]), tp.tensor([3.0]), value=0.5)
    tensor([4.])
    """
    compute = result_dtype((input, tensor1, tensor2))
    if value != 1:
        tensor1 = mul(cast(tensor1, compute), _value_for("addcmul", value, compute))
    return add(input, mul(tensor1, tensor2))


@composite(inplace=True)
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
    if result_dtype((tensor1, tensor2)).category < FLOATING:
        raise RuntimeError(
            "addcdiv(): Integer division with addcdiv is not supported; use "
            "(input + value * tp.div(tensor1, tensor2, rounding_mode='trunc')), or convert one "
            "tensor to a floating-point dtype for true division"
        )
    if value != 1:
        compute = result_dtype((input, tensor1, tensor2))
        tensor1 = mul(cast(tensor1, compute), _value_for("addcdiv", value, compute))
    return add(input, true_divide(tensor1, tensor2))
