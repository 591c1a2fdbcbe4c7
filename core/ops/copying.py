"""Ops that copy or convert: cast, to_device, clone, copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..devices import Device
from ..dtypes import DType
from ..kinds import Kind, kind_of
from ..operators import Spec, composite, primitive
from ..shapes import broadcast_shapes
from ..tensor_base import TensorBase, new_tensor
from .rules import check_tensor

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["cast", "clone", "contiguous", "copy", "to_device"]


@primitive("input, dtype", method=False)
def cast(input: Tensor, dtype: DType) -> Spec:
    """Return a copy of `input` with its elements converted to `dtype`.

    A complex number becomes real by dropping the imaginary part, a real one integer by truncation.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor([1.5, -1.5]).to(tp.int64)
    tensor([ 1, -1])
    """
    input._kind.with_dtype(dtype)  # raises for a dtype that the device does not have
    return Spec((input, dtype), input._shape, dtype)


@primitive("input")
def clone(input: Tensor, *, memory_format: Any = None) -> Spec:
    """Return a copy of `input`, contiguous in memory.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a = tp.zeros(2)
    >>> b = a.clone()
    >>> b[0] = 1.0
    >>> a
    tensor([0., 0.])
    """
    check_tensor(input, "clone")
    return Spec((input,), input._shape, input.dtype)


@primitive("input, src", pointwise=True, inplace=True, method=False)
def copy(input: Tensor, src: Tensor | complex, non_blocking: bool = False) -> Spec:
    """Return `src` broadcast to the shape, and converted to the dtype and device, of `input`.

    ``input.copy_(src)`` writes it into `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3, dtype=tp.int64).copy_(tp.tensor([1.0, 2.0, 3.0]))
    tensor([[1, 2, 3],
            [1, 2, 3]])
    """
    check_tensor(input, "copy_")
    if isinstance(src, TensorBase):
        if src._kind.device is not input._kind.device:
            src = to_device(src, input._kind.device)
        if src._kind.dtype is not input._kind.dtype:
            src = cast(src, input._kind.dtype)
        if broadcast_shapes(input._shape, src._shape) != input._shape:
            raise RuntimeError(
                f"copy_(): a source of shape {list(src._shape)} does not broadcast to the shape "
                f"{list(input._shape)} that is written to"
            )
    elif not isinstance(src, (bool, int, float, complex)):
        raise TypeError(
            f"copy_(): argument 'src' must be Tensor or Number, not {type(src).__name__}"
        )
    return Spec((input, src), input._shape, input.dtype)


@composite(method=False)
def to_device(input: Tensor, device: Device) -> Tensor:
    """Return a copy of `input` on another device.

    No kernel does this: the runtimes of both devices take part, see ``DeviceRuntime.copy_from``,
    ``to_host`` and ``from_host``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2).to("meta").device
    device(type='meta')
    """
    kind = input._kind
    target = kind_of(device, kind.dtype)
    return new_tensor(transfer(input._array, kind, target), target, input._shape)


def across(array: Any, source: Kind, target: Kind) -> Any:
    """Return a copy of an array of one device on another."""
    index = target.device.index or 0
    copy = target.runtime.copy_from(array, source.runtime, index)
    if copy is None:
        copy = target.runtime.from_host(source.runtime.to_host(array), source.dtype, index)
    return copy


#: What ``to_device`` calls; a profiler puts a timer around it.
transfer = across


@composite()
def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """Return `input` if its elements lie row by row in memory, else a copy that does.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ones(2, 3).t().contiguous().stride()
    (2, 1)
    """
    return input if input.is_contiguous() else clone(input)
