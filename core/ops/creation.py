"""Ops that make tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..devices import Device
from ..dtypes import DType, Number, as_dtype, get_default_dtype
from ..kinds import default_device
from ..operators import Spec, composite, primitive
from ..shapes import Shape, as_shape, check_sizes

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["fill_new", "zeros"]


@primitive("shape, value, dtype", method=False, name="fill_new")
def fill_new(shape: Shape, value: Number, dtype: DType, device: Device) -> Spec:
    """Return a new tensor of `shape` whose elements are all `value`; what full, zeros and ones call."""
    return Spec((shape, value, dtype), shape, dtype, key=dtype, device=device)


def options(dtype: DType | None, device: Any, default: DType | None = None) -> tuple[DType, Device]:
    """Return the dtype and device of a creation op's keyword arguments."""
    chosen = (default or get_default_dtype()) if dtype is None else as_dtype(dtype)
    return chosen, default_device() if device is None else Device(device)


@composite(method=False)
def zeros(
    *size: Any,
    dtype: DType | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of zeros.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    shape = check_sizes(as_shape(size, "zeros"), "zeros")
    chosen, where = options(dtype, device)
    result = fill_new(shape, 0, chosen, where)
    return result.requires_grad_() if requires_grad else result
