"""Ops that make tensors like another one: of its shape, dtype, device and order of memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ...device.device import Device
from ...device.dtypes import DType, as_dtype
from ...dispatch.keys import dispatch_key
from ...dispatch.op_registry import composite
from ...tensor.creation import tensor
from ...tensor.layout import strides_like
from ...tensor.shapes import Shape
from ..rules import check_tensor, number
from .creation import empty_strided, fill_new, in_strides, made, memory_of, sizes_of

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = [
    "empty_like",
    "full_like",
    "new_empty",
    "new_empty_strided",
    "new_full",
    "new_ones",
    "new_tensor",
    "new_zeros",
    "ones_like",
    "zeros_like",
]


Maker = Callable[[Shape, DType, Device], Any]


def called(function: Any, like: Callable[..., Any]) -> Any:
    """Return a function under the name, and with the docstring, of another one."""
    function.__name__, function.__qualname__ = like.__name__, like.__qualname__
    function.__module__, function.__doc__ = like.__module__, like.__doc__
    return function


def made_like(
    input: Any,
    options: tuple[Any, Any, Any, bool],
    name: str,
    make: Maker,
) -> Any:
    """Return what `make` makes of the shape of `input`, with its dtype, device and order of memory.

    `options` are the arguments `dtype`, `device`, `memory_format` and `requires_grad`.
    """
    dtype, device, memory_format, requires_grad = options
    chosen, where = like(input, dtype, device, name)
    stride = strides_like(input, memory_format, name)
    if stride is None:
        return made(make(input._shape, chosen, where), requires_grad)
    key = dispatch_key(where, chosen)
    result = in_strides(input._shape, stride, key, _of_size(make, chosen, where))
    return made(result, requires_grad)


def _of_size(make: Maker, dtype: DType, device: Device) -> Callable[[Shape], Any]:
    return lambda size: make(size, dtype, device)


def like(input: Any, dtype: Any, device: Any, name: str) -> tuple[DType, Device]:
    """Return the dtype and device of an op that makes a tensor like `input`."""
    check_tensor(input, name)
    key = input._key
    return (
        key.dtype if dtype is None else as_dtype(dtype),
        key.device if device is None else device if type(device) is Device else Device(device),
    )


class LikeOp(Protocol):
    """The signature of :func:`zeros_like` and its kind."""

    def __call__(
        self,
        input: Tensor,
        *,
        dtype: DType | type | None = None,
        layout: Any = None,
        device: Device | str | None = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        """Return a tensor like `input`."""
        ...


def _like(make: Maker) -> LikeOp:
    """Declare the op that makes what `make` does of the shape, dtype and device of a tensor."""
    name = make.__name__

    def made_so(
        input: Tensor,
        *,
        dtype: DType | type | None = None,
        layout: Any = None,
        device: Device | str | None = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        return made_like(input, (dtype, device, memory_format, requires_grad), name, make)

    return composite(method=False)(called(made_so, make))


@_like
def zeros_like(shape: Shape, dtype: DType, device: Device) -> Any:
    """Return zeros of the shape, and by default the dtype and device, of `input`.

    Parameters
    ----------
    input : Tensor
        The example.
    memory_format : memory_format, optional
        In which order the elements lie; by default as in `input`, see :func:`clone`.
    dtype, layout, device, requires_grad, pin_memory
        As for :func:`zeros`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros_like(tp.tensor([1, 2]))
    tensor([0, 0])
    """
    return fill_new(shape, 0, dtype, device)


@_like
def ones_like(shape: Shape, dtype: DType, device: Device) -> Any:
    """Return ones of the shape of `input`; see :func:`zeros_like` for the parameters.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ones_like(tp.tensor([1.5, 2.5]))
    tensor([1., 1.])
    """
    return fill_new(shape, 1, dtype, device)


@_like
def empty_like(shape: Shape, dtype: DType, device: Device) -> Any:
    """Return memory of the shape of `input`; see :func:`zeros_like` for the parameters.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.empty_like(tp.zeros(2, 3)).shape
    Size([2, 3])
    """
    return memory_of(shape, dtype, device)


@composite(method=False)
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return `fill_value` in the shape of `input`; see :func:`zeros_like` for the parameters.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.full_like(tp.zeros(2), 7)
    tensor([7., 7.])
    """
    value = number(fill_value, "full_like", "fill_value")
    options = (dtype, device, memory_format, requires_grad)
    return made_like(input, options, "full_like", lambda *new: fill_new(new[0], value, *new[1:]))


@composite()
def new_tensor(
    input: Tensor,
    data: Any,
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return a new tensor of `data` with, by default, the dtype and device of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(1).new_tensor([1, 2])
    tensor([1., 2.])
    """
    chosen, where = like(input, dtype, device, "new_tensor")
    return tensor(data, dtype=chosen, device=where, requires_grad=requires_grad)


@composite()
def new_zeros(
    input: Tensor,
    *sizes: Any,
    size: Any = None,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return zeros of a size with, by default, the dtype and device of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor([1]).new_zeros(2)
    tensor([0, 0])
    """
    chosen, where = like(input, dtype, device, "new_zeros")
    return made(fill_new(sizes_of(sizes, size, "new_zeros"), 0, chosen, where), requires_grad)


@composite()
def new_ones(
    input: Tensor,
    *sizes: Any,
    size: Any = None,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return ones of a size with, by default, the dtype and device of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor([True]).new_ones(2)
    tensor([True, True])
    """
    chosen, where = like(input, dtype, device, "new_ones")
    return made(fill_new(sizes_of(sizes, size, "new_ones"), 1, chosen, where), requires_grad)


@composite()
def new_full(
    input: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return `fill_value` in a size with, by default, the dtype and device of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor([1]).new_full((2,), 3)
    tensor([3, 3])
    """
    chosen, where = like(input, dtype, device, "new_full")
    value = number(fill_value, "new_full", "fill_value")
    return made(fill_new(sizes_of((), size, "new_full"), value, chosen, where), requires_grad)


@composite()
def new_empty(
    input: Tensor,
    *sizes: Any,
    size: Any = None,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return memory of a size with, by default, the dtype and device of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor([1]).new_empty(2, 3).dtype
    tensorplug.int64
    """
    chosen, where = like(input, dtype, device, "new_empty")
    return made(memory_of(sizes_of(sizes, size, "new_empty"), chosen, where), requires_grad)


@composite()
def new_empty_strided(
    input: Tensor,
    size: Any,
    stride: Any,
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return memory of given strides with, by default, the dtype and device of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor([1]).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    chosen, where = like(input, dtype, device, "new_empty_strided")
    return empty_strided(size, stride, dtype=chosen, device=where, requires_grad=requires_grad)
