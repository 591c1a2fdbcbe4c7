"""Ops that copy or convert: cast, to_device, clone, copy.

Kernels make copies row by row. A copy in another order is one of the dimensions in the order of memory, shown
in the strides that belong to it (:func:`clone_strided`).
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from ..device.device import CPU, Device
from ..device.dtypes import DType
from ..dispatch import op_registry
from ..dispatch.execution import show
from ..dispatch.keys import DispatchKey, dispatch_key
from ..dispatch.op_registry import Spec, composite, defined_by, primitive
from ..dispatch.overrides import taken_over
from ..dispatch.state import dispatch_state
from ..errors import type_name
from ..tensor.base import TensorBase, new_tensor
from ..tensor.creation import show_memory
from ..tensor.layout import (
    check_format,
    contiguous_format,
    in_format,
    strides_like,
    strides_of,
)
from ..tensor.shapes import Shape, broadcast_shapes
from .rules import check_tensor

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = ["cast", "clone", "clone_strided", "contiguous", "copy", "to_device"]

_PERMUTE = op_registry.handle("permute")
_VIEW = op_registry.handle("view")


@primitive("input, dtype", elementwise=True, method=False)
def cast(input: Tensor, dtype: DType) -> Spec:
    """Return a copy of `input` with its elements converted to `dtype`.

    A complex number becomes real by dropping the imaginary part, a real one integer by truncation.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor([1.5, -1.5]).to(tp.int64)
    tensor([ 1, -1])
    """
    input._key.with_dtype(dtype)  # raises for a dtype that the device does not have
    return Spec((input, dtype), input._shape, dtype)


@primitive("input", name="clone", method=False)
def copied(input: Tensor) -> Spec:
    """Return a copy of `input`, row by row in memory; what :func:`clone` calls.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ones(2, 3).t().clone(memory_format=tp.contiguous_format).stride()
    (2, 1)
    """
    return Spec((input,), input._shape, input.dtype)


@composite(reads_layout=True, method=False)
def clone_strided(input: Tensor, stride: Shape) -> Tensor:
    """Return a copy of `input` in given strides that leave no gaps; what :func:`clone` calls.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ones(2, 3).t().clone().stride()
    (1, 3)
    """
    return laid_out(copied(show_in_order(input, stride)), input._shape, stride)


def show_in_order(input: Any, stride: Shape) -> Any:
    """Return a view with the dimensions in the order that strides put them into."""
    order = _order(stride)
    shape = input._shape
    return show(_PERMUTE, input, (order,), tuple([shape[dim] for dim in order]))


@functools.lru_cache(maxsize=1024)
def _order(stride: Shape) -> Shape:
    return tuple(sorted(range(len(stride)), key=lambda dim: (-stride[dim], dim)))


def laid_out(rows: Any, shape: Shape, stride: Shape) -> Any:
    """Return the memory of a new tensor, whose elements lie row by row, in a shape and strides."""
    count = math.prod(shape)
    flat = show(_VIEW, rows, ((count,),), (count,))
    return show_memory(flat, shape, stride, 0)


@defined_by(copied)
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """Return a copy of `input`.

    Parameters
    ----------
    input : Tensor
        Any shape and dtype.
    memory_format : memory_format, optional
        In which order the elements of the copy lie. By default ``tp.preserve_format``, the order that they
        have in `input`; where those have gaps or overlap, the order of the dimensions is kept.

    Raises
    ------
    RuntimeError
        If the format is for tensors of another rank.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a = tp.zeros(2)
    >>> b = a.clone()
    >>> b[0] = 1.0
    >>> a
    tensor([0., 0.])
    """
    given: Any = input
    if not isinstance(given, TensorBase):
        options = {} if memory_format is None else {"memory_format": memory_format}
        made = taken_over(clone, (input,), options)
        if made is not None:
            return made[0]
        check_tensor(input, "clone")
    stride = strides_like(input, memory_format, "clone")
    return copied(input) if stride is None else clone_strided(input, stride)


@primitive("input, src", pointwise=True, returns_argument=True, inplace=True, method=False)
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
        if src._key.device is not input._key.device:
            # What goes to the host is read there at once, so it is waited for; see `queued_copies`.
            src = to_device(src, input._key.device, non_blocking and input._key.device is not CPU)
        if src._key.dtype is not input._key.dtype:
            src = cast(src, input._key.dtype)
        if broadcast_shapes(input._shape, src._shape) != input._shape:
            raise RuntimeError(
                f"copy_(): output with shape {list(input._shape)} doesn't match the broadcast shape "
                f"{list(broadcast_shapes(input._shape, src._shape))}: that of the source is "
                f"{list(src._shape)}"
            )
    elif not isinstance(src, (bool, int, float, complex)):
        raise TypeError(f"copy_(): argument 'src' must be Tensor or Number, not {type_name(src)}")
    return Spec((input, src), input._shape, input.dtype)


def in_place_of(result: Tensor, *sources: Any) -> Tensor:
    """Return `result`, which depends on no element of `sources`, with zeros for gradients and tangents."""
    for source in sources:
        if not isinstance(source, TensorBase):  # a number
            continue
        # What is neither tracked nor a view asks for no gradient, unless it is a layer's tensor.
        tensor: Any = source
        asks = tensor._state or dispatch_state.layers_active
        if (asks and tensor.requires_grad) or tensor._tangents is not None:
            result = copy(cast(tensor, result.dtype).expand(result._shape), result)
    return result


@composite(reads_layout=True, method=False)
def to_device(input: Tensor, device: Device, non_blocking: bool = False) -> Tensor:
    """Return a copy of `input` on another device.

    No kernel does this: the runtimes of both devices take part, see ``DeviceRuntime.copy_from``,
    ``to_host`` and ``from_host``; with `non_blocking`, ``queue_from_host`` and ``queue_to_host``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2).to("meta").device
    device(type='meta')
    """
    key = input._key
    target = dispatch_key(device, key.dtype)
    transfer = dispatch_state.transfer_timer or across
    stride = strides_like(input, None, "to")
    if stride is None or "views" not in target.runtime.capabilities:
        return new_tensor(transfer(input._array, key, target, non_blocking), target, input._shape)
    rows = show_in_order(input, stride)
    moved = new_tensor(transfer(rows._array, key, target, non_blocking), target, rows._shape)
    return laid_out(moved, input._shape, stride)


def across(array: Any, source: DispatchKey, target: DispatchKey, non_blocking: bool = False) -> Any:
    """Return a copy of an array of one device on another."""
    index = target.device.index or 0
    copy = target.runtime.copy_from(array, source.runtime, index)
    if copy is None and non_blocking:
        copy = _queued(array, source, target)
    if copy is None:
        copy = target.runtime.from_host(source.runtime.to_host(array), source.dtype, index)
    return copy


def _queued(array: Any, source: DispatchKey, target: DispatchKey) -> Any | None:
    """Return a copy between the host and a device that may be under way; None to copy as always."""
    if source.device is CPU:
        host = source.runtime.to_host(array)
        return target.runtime.queue_from_host(host, source.dtype, target.device.index or 0)
    if target.device is CPU:
        host = source.runtime.queue_to_host(array)
        return None if host is None else target.runtime.wrap_host(host)
    return None


@composite(view=True, layout=True, reads_layout=True, method=False)
def contiguous(input: Tensor, memory_format: Any = contiguous_format) -> Tensor:
    """Return `input` if its elements lie in the order of a memory format, else a copy that does.

    Parameters
    ----------
    input : Tensor
        Any shape and dtype.
    memory_format : memory_format
        By default ``tp.contiguous_format``, row by row; ``tp.channels_last`` for (N, C, H, W),
        ``tp.channels_last_3d`` for (N, C, D, H, W).

    Raises
    ------
    RuntimeError
        If the format is for tensors of another rank, or ``tp.preserve_format``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ones(2, 3).t().contiguous().stride()
    (2, 1)
    >>> tp.ones(2, 3, 4, 5).contiguous(memory_format=tp.channels_last).stride()
    (60, 1, 15, 3)
    """
    check_format(memory_format, "contiguous")
    runtime = input._key.runtime
    if memory_format is contiguous_format:
        return input if runtime.is_contiguous(input._array) else copied(input)
    if in_format(input._shape, runtime.strides(input._array), memory_format):
        return input
    stride = strides_of(input._shape, memory_format, input._key, "contiguous")
    return copied(input) if stride is None else clone_strided(input, stride)


dispatch_state.add_method("clone", clone)
