"""Ops that make tensors from sizes and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...device.determinism import filler, fills_memory
from ...device.device import Device
from ...device.dtypes import (
    DType,
    Number,
    as_dtype,
    complex32,
    complex64,
    get_default_dtype,
    scalar_dtype,
)
from ...device.scalars import fitting, loosely
from ...dispatch.execution import kernel_of
from ...dispatch.keys import DispatchKey, default_device, dispatch_key
from ...dispatch.op_registry import Spec, composite, primitive
from ...dispatch.out_dtypes import resizes_silently
from ...dispatch.state import dispatch_state
from ...errors import type_name
from ...tensor.base import new_tensor as wrap_array
from ...tensor.creation import AS_STRIDED, leaf, show_memory
from ...tensor.layout import strides_of
from ...tensor.shapes import Shape, as_shape, check_sizes
from ..rules import number

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["empty", "empty_strided", "fill_new", "full", "ones", "scalar_tensor", "zeros"]


@primitive("shape, value, dtype", method=False)
def fill_new(shape: Shape, value: Number, dtype: DType, device: Device) -> Spec:
    """Return a tensor whose elements are all `value`; what full, zeros and ones call.

    Parameters
    ----------
    shape : tuple of int
        The sizes.
    value : number
        Converted to `dtype`.
    dtype, device : DType, Device
        Of the result.

    Raises
    ------
    RuntimeError
        If `dtype` cannot hold `value`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.full((2,), 3)
    tensor([3, 3])
    """
    return Spec((shape, fitting(value, dtype), dtype), shape, dtype, key=dtype, device=device)


def options(dtype: Any, device: Any, default: DType | None = None) -> tuple[DType, Device]:
    """Return the dtype and device of a creation op's keyword arguments."""
    chosen = (default or get_default_dtype()) if dtype is None else as_dtype(dtype)
    if device is None:
        return chosen, default_device()
    return chosen, device if type(device) is Device else Device(device)


def sizes_of(sizes: tuple[Any, ...], size: Any, name: str) -> Shape:
    """Return the sizes given one by one, or as one sequence by position or keyword."""
    if size is not None:
        if sizes:
            raise TypeError(f"{name}() got multiple values for argument 'size'")
        sizes = (size,)
    elif not sizes:
        raise TypeError(f'{name}() missing 1 required positional argument: "size"')
    return check_sizes(as_shape(sizes, name), name)


def made(result: Any, requires_grad: bool, pin_memory: bool = False) -> Tensor:
    """Return a new tensor, in locked memory and made to require grad if that is asked for."""
    if pin_memory:
        result = result.pin_memory()
    return leaf(result) if requires_grad else result


@composite(method=False)
def zeros(
    *sizes: Any,
    size: Any = None,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor of zeros.

    Parameters
    ----------
    *sizes : int
        The sizes, one by one or as one sequence; also by the keyword `size`.
    dtype : DType, optional
        By default the default dtype.
    device : Device or str, optional
        By default the default device.
    requires_grad : bool
        Whether operations on the result are recorded.
    layout : layout, optional
        ``tp.sparse_coo``, ``tp.sparse_csr`` or ``tp.sparse_csc`` for a sparse tensor of which nothing is
        stored. Functions whose elements are not all zero refuse them.
    pin_memory : bool
        Whether the result is in host memory that is locked for fast copies to a device, where a loaded
        device offers that; see :meth:`Tensor.pin_memory`.

    Raises
    ------
    RuntimeError
        If a size is negative.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    chosen, where = options(dtype, device)
    return made(
        fill_new(sizes_of(sizes, size, "zeros"), 0, chosen, where), requires_grad, pin_memory
    )


@composite(method=False)
def ones(
    *sizes: Any,
    size: Any = None,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor of ones; see :func:`zeros` for the parameters.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ones(2, dtype=tp.int64)
    tensor([1, 1])
    """
    chosen, where = options(dtype, device)
    return made(
        fill_new(sizes_of(sizes, size, "ones"), 1, chosen, where), requires_grad, pin_memory
    )


@composite(method=False)
def empty(
    *sizes: Any,
    size: Any = None,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return a tensor whose elements may hold anything; see :func:`zeros` for the parameters.

    `memory_format` says in which order they lie, by default ``tp.contiguous_format``, row by row.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.empty(2, 3).shape
    Size([2, 3])
    """
    chosen, where = options(dtype, device)
    shape = sizes_of(sizes, size, "empty")
    if memory_format is None:
        return made(memory_of(shape, chosen, where), requires_grad, pin_memory)
    key = dispatch_key(where, chosen)
    stride = strides_of(shape, memory_format, key, "empty")
    memory = in_strides(shape, stride, key, lambda size: memory_of(size, chosen, where))
    return made(memory, requires_grad, pin_memory)


def memory_of(shape: Shape, dtype: DType, device: Device) -> Any:
    if fills_memory[0]:
        return fill_new(shape, filler(dtype), dtype, device)
    key = dispatch_key(device, dtype)
    memory = wrap_array(key.runtime.empty(shape, dtype, key.device.index or 0), key, shape)
    if dispatch_state.inference:
        dispatch_state.gradient.mark_if_inference(memory)
    return memory


@composite(method=False)
def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor whose elements are all `fill_value`.

    Parameters
    ----------
    size : sequence of int
        The sizes.
    fill_value : number
        The value; a 0-d tensor is read.
    dtype : DType, optional
        By default bool, int64, the default dtype or its complex one, as the number is.
    layout, device, requires_grad, pin_memory
        As for :func:`zeros`.

    Raises
    ------
    RuntimeError
        If `dtype` cannot hold the value.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.full((2, 2), 1.5)
    tensor([[1.5000, 1.5000],
            [1.5000, 1.5000]])
    """
    if not isinstance(size, (tuple, list)):
        raise TypeError(
            f"full(): argument 'size' (position 1) must be tuple of ints, not {type_name(size)}"
        )
    value = number(fill_value, "full", "fill_value")
    inferred = scalar_dtype(value)
    if inferred is complex32:  # torch's too is in single precision at least
        inferred = complex64
    chosen, where = options(dtype, device, inferred)
    return made(
        fill_new(sizes_of((), size, "full"), value, chosen, where), requires_grad, pin_memory
    )


@composite(method=False)
def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor of given strides (in elements) whose elements may hold anything.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    chosen, where = options(dtype, device)
    shape = check_sizes(as_shape((size,), "empty_strided"), "empty_strided")
    strides = as_shape((stride,), "empty_strided")
    if len(shape) != len(strides):
        raise RuntimeError(
            f"empty_strided(): dimensionality of sizes ({len(shape)}) must match dimensionality of "
            f"strides ({len(strides)})"
        )
    if min(strides, default=0) < 0:
        raise RuntimeError(f"empty_strided(): a stride cannot be negative, got {list(strides)}")
    reach = 1 + sum([(n - 1) * step for n, step in zip(shape, strides, strict=True)])
    memory = memory_of((reach if math.prod(shape) else 0,), chosen, where)
    return made(show_memory(memory, shape, strides, 0), requires_grad)


@composite(method=False)
def scalar_tensor(
    s: Number,
    *,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a 0-d tensor of a number, of the default dtype unless another is named.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.scalar_tensor(3)
    tensor(3.)
    """
    chosen, where = options(dtype, device)
    value = loosely(number(s, "scalar_tensor", "s"), chosen)
    return made(fill_new((), value, chosen, where), requires_grad)


def in_strides(
    shape: Shape, stride: Shape | None, key: DispatchKey, make: Callable[[Shape], Any]
) -> Any:
    """Return what `make` makes of a shape, in given strides where the device has any; None is by rows.

    The strides leave no gaps.
    """
    if stride is None or "views" not in key.runtime.capabilities:
        return make(shape)
    memory = make((math.prod(shape),))
    if key.is_meta or dispatch_state.layers_active or dispatch_state.inference:
        return show_memory(memory, shape, stride, 0)
    # Strides without gaps fit, and nothing else shows the memory.
    array = kernel_of(AS_STRIDED, key)(memory._array, shape, stride, 0)
    return wrap_array(array, key, shape)


resizes_silently(zeros, ones, empty, full)
