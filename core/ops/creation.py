"""Ops that make tensors from sizes and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import operators
from ..devices import Device
from ..dtypes import (
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGER,
    DType,
    Number,
    as_dtype,
    default_complex,
    finfo,
    get_default_dtype,
    iinfo,
    int64,
    scalar_dtype,
)
from ..kinds import Kind, default_device, kind_of
from ..operators import Spec, composite, primitive
from ..shapes import Shape, as_shape, check_sizes
from ..tensor_base import new_tensor as wrap_array
from .copying import laid_out, strides_like, strides_of
from .rules import check_tensor, number

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = [
    "arange",
    "arange_new",
    "empty",
    "empty_like",
    "empty_strided",
    "eye",
    "fill_new",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "new_empty",
    "new_empty_strided",
    "new_full",
    "new_ones",
    "new_tensor",
    "new_zeros",
    "ones",
    "ones_like",
    "range",
    "scalar_tensor",
    "zeros",
    "zeros_like",
]

_CAST = operators.handle("cast")
_CAT = operators.handle("cat")
_EQ = operators.handle("eq")
_FLIP = operators.handle("flip")
_POW = operators.handle("pow")


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


@primitive("start, step, count, dtype", method=False)
def arange_new(start: Number, step: Number, count: int, dtype: DType, device: Device) -> Spec:
    """Return the numbers ``start + i * step`` for i from 0 to ``count - 1``; what arange calls.

    Whole numbers are computed in int64, others in float64 where the device has it; the result is
    then converted to `dtype`.
    """
    return Spec((start, step, count, dtype), (count,), dtype, key=dtype, device=device)


def options(dtype: Any, device: Any, default: DType | None = None) -> tuple[DType, Device]:
    """Return the dtype and device of a creation op's keyword arguments."""
    chosen = (default or get_default_dtype()) if dtype is None else as_dtype(dtype)
    return chosen, default_device() if device is None else Device(device)


def fitting(value: Number, dtype: DType) -> Number:
    """Return `value` as a number that `dtype` holds, converted as C does.

    Raises
    ------
    RuntimeError
        If it is out of range. A negative integer wraps around in an unsigned dtype.
    """
    if isinstance(value, complex) and dtype.category != COMPLEX:
        if value.imag and dtype.category != BOOL:
            raise _overflow(value, dtype)
        value = value.real or value.imag
    if dtype.category == BOOL:
        return bool(value)
    if dtype.category == INTEGER:
        if isinstance(value, float) and not math.isfinite(value):
            raise _overflow(value, dtype)
        whole = int(value)  # type: ignore[arg-type]
        limits = iinfo(dtype)
        lowest = limits.min if dtype.is_signed else -limits.max
        if not lowest <= whole <= limits.max:
            raise _overflow(value, dtype)
        return whole % (limits.max + 1) if not dtype.is_signed else whole
    if dtype.category == FLOATING:
        real = float(value)  # type: ignore[arg-type]
        if math.isfinite(real) and dtype.itemsize == 4 and abs(real) > finfo(dtype).max:
            raise _overflow(value, dtype)
        return real
    return value


def _overflow(value: Number, dtype: DType) -> RuntimeError:
    return RuntimeError(
        f"full(): value cannot be converted to type {dtype.name} without overflow, got {value!r}"
    )


def sizes_of(sizes: tuple[Any, ...], size: Any, name: str) -> Shape:
    """Return the sizes given one by one, or as one sequence by position or keyword."""
    if size is not None:
        sizes = (size,)
    elif not sizes:
        raise TypeError(f'{name}() missing 1 required positional argument: "size"')
    return check_sizes(as_shape(sizes, name), name)


def made(result: Any, requires_grad: bool) -> Tensor:
    """Return a new tensor, made to require grad if that is asked for."""
    if requires_grad:
        result.requires_grad_()
    return result


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
    layout, pin_memory
        Accepted for compatibility: tensors are dense, and memory is not pinned.

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
    return made(fill_new(sizes_of(sizes, size, "zeros"), 0, chosen, where), requires_grad)


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
    return made(fill_new(sizes_of(sizes, size, "ones"), 1, chosen, where), requires_grad)


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
        return made(_empty(shape, chosen, where), requires_grad)
    kind = kind_of(where, chosen)
    stride = strides_of(shape, memory_format, kind, "empty")
    memory = in_strides(shape, stride, kind, lambda size: _empty(size, chosen, where))
    return made(memory, requires_grad)


def _empty(shape: Shape, dtype: DType, device: Device) -> Any:
    kind = kind_of(device, dtype)
    return wrap_array(kind.runtime.empty(shape, dtype, kind.device.index or 0), kind, shape)


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
            f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}"
        )
    value = number(fill_value, "full", "fill_value")
    chosen, where = options(dtype, device, scalar_dtype(value))
    return made(fill_new(sizes_of((), size, "full"), value, chosen, where), requires_grad)


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
    memory = _empty((reach if math.prod(shape) else 0,), chosen, where)
    from ..creation import show_memory

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
    return made(fill_new((), number(s, "scalar_tensor", "s"), chosen, where), requires_grad)


# --- like another tensor ----------------------------------------------------------------------


def in_strides(shape: Shape, stride: Shape | None, kind: Kind, make: Callable[[Shape], Any]) -> Any:
    """Return what `make` makes of a shape, in given strides where the device has any; None is by rows."""
    if stride is None or "views" not in kind.runtime.capabilities:
        return make(shape)
    return laid_out(make((math.prod(shape),)), shape, stride)


def made_like(
    input: Any,
    options: tuple[Any, Any, Any, bool],
    name: str,
    make: Callable[[Shape, DType, Device], Any],
) -> Any:
    """Return what `make` makes of the shape of `input`, with its dtype, device and order of memory.

    `options` are the arguments `dtype`, `device`, `memory_format` and `requires_grad`.
    """
    dtype, device, memory_format, requires_grad = options
    chosen, where = like(input, dtype, device, name)
    stride = strides_like(input, memory_format, name)
    if stride is None:
        return made(make(input._shape, chosen, where), requires_grad)
    result = in_strides(
        input._shape, stride, kind_of(where, chosen), lambda size: make(size, chosen, where)
    )
    return made(result, requires_grad)


def like(input: Any, dtype: Any, device: Any, name: str) -> tuple[DType, Device]:
    """Return the dtype and device of an op that makes a tensor like `input`."""
    check_tensor(input, name)
    kind = input._kind
    return (
        kind.dtype if dtype is None else as_dtype(dtype),
        kind.device if device is None else Device(device),
    )


@composite(method=False)
def zeros_like(
    input: Tensor,
    *,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
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
    options = (dtype, device, memory_format, requires_grad)
    return made_like(input, options, "zeros_like", lambda *new: fill_new(new[0], 0, *new[1:]))


@composite(method=False)
def ones_like(
    input: Tensor,
    *,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return ones of the shape of `input`; see :func:`zeros_like` for the parameters.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ones_like(tp.tensor([1.5, 2.5]))
    tensor([1., 1.])
    """
    options = (dtype, device, memory_format, requires_grad)
    return made_like(input, options, "ones_like", lambda *new: fill_new(new[0], 1, *new[1:]))


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


@composite(method=False)
def empty_like(
    input: Tensor,
    *,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return memory of the shape of `input`; see :func:`zeros_like` for the parameters.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.empty_like(tp.zeros(2, 3)).shape
    Size([2, 3])
    """
    options = (dtype, device, memory_format, requires_grad)
    return made_like(input, options, "empty_like", _empty)


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
    from ..creation import tensor

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
    return made(_empty(sizes_of(sizes, size, "new_empty"), chosen, where), requires_grad)


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


# --- sequences of numbers ---------------------------------------------------------------------


def _bound(value: Any, name: str, argument: str) -> Number:
    read = number(value, name, argument)
    if isinstance(read, complex):
        raise RuntimeError(f"{name}(): argument '{argument}' must be real, got {read!r}")
    return read


def _bounds(bounds: tuple[Any, ...], start: Any, end: Any, step: Any, name: str) -> list[Number]:
    """Return start, end and step of a call with one to three numbers, or keywords."""
    if len(bounds) > 3:
        raise TypeError(f"{name}() takes at most 3 numbers, got {len(bounds)}")
    if len(bounds) == 1 and end is None:
        bounds = (start if start is not None else 0, bounds[0])
    named = [start, end, step]
    for position, value in enumerate(bounds):
        named[position] = value
    start, end, step = named
    if end is None:
        raise TypeError(f'{name}() missing 1 required argument: "end"')
    values = [0 if start is None else start, end, 1 if step is None else step]
    return [
        _bound(value, name, argument)
        for value, argument in zip(values, ("start", "end", "step"), strict=True)
    ]


def _steps(start: Any, end: Any, step: Any, name: str) -> float:
    """Return how many steps lie between two bounds, as a fraction."""
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"{name}(): unsupported range: {start} -> {end}")
    if not step or not math.isfinite(step):
        raise RuntimeError(f"{name}(): step must be nonzero and finite, got {step}")
    if (end - start) * step < 0:
        raise RuntimeError(
            f"{name}(): upper bound and lower bound inconsistent with step sign: from {start} to "
            f"{end} "
            f"by {step}"
        )
    return (end - start) / step


@composite(method=False)
def arange(
    *bounds: Any,
    start: Any = None,
    end: Any = None,
    step: Any = None,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return the numbers from `start` up to, but without, `end` in steps of `step`.

    Parameters
    ----------
    *bounds : number
        ``end``, or ``start, end``, or ``start, end, step``; also by keyword. Start is 0 and step 1
        if left out.
    dtype : DType, optional
        By default int64 if all numbers are ints, else the default dtype.
    layout, device, requires_grad, pin_memory
        As for :func:`zeros`.

    Raises
    ------
    RuntimeError
        If the step is zero or leads away from `end`, or a bound is not finite.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    first, last, by = _bounds(bounds, start, end, step, "arange")
    whole = all(isinstance(value, int) for value in (first, last, by))
    chosen, where = options(dtype, device, int64 if whole else None)
    if chosen.category in (BOOL, COMPLEX):
        raise NotImplementedError(f"arange(): not implemented for {chosen.name}")
    steps = _steps(first, last, by, "arange")
    if chosen.category == INTEGER and not whole:
        first, last, by = int(first), int(last), int(by)  # type: ignore[arg-type]
        _steps(first, last, by, "arange")
    if isinstance(first, int) and isinstance(last, int) and isinstance(by, int):
        count = -((first - last) // by)
    else:
        count = math.ceil(steps)
    return made(arange_new(first, by, count, chosen, where), requires_grad)


@composite(method=False)
def range(
    *bounds: Any,
    start: Any = None,
    end: Any = None,
    step: Any = None,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the numbers from `start` to `end`, both included; use :func:`arange` in new code.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.range(1, 3)
    tensor([1., 2., 3.])
    """
    if len(bounds) == 1 and end is None:
        bounds = (0, *bounds)
    first, last, by = _bounds(bounds, start, end, step, "range")
    chosen, where = options(dtype, device)
    count = math.floor(_steps(first, last, by, "range")) + 1
    return made(arange_new(first, by, count, chosen, where), requires_grad)


@composite(method=False)
def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return `steps` evenly spaced numbers from `start` to `end`, both included.

    Parameters
    ----------
    start, end : number
        The bounds; 0-d tensors are read.
    steps : int
        How many numbers.
    dtype : DType, optional
        By default the default dtype, or its complex one if a bound is complex.
    layout, device, requires_grad, pin_memory
        As for :func:`zeros`.

    Raises
    ------
    RuntimeError
        If `steps` is negative.

    Notes
    -----
    The second half is counted back from `end`, so that both bounds come out exactly.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    first, last = number(start, "linspace", "start"), number(end, "linspace", "end")
    default = default_complex() if isinstance(first + last, complex) else None
    chosen, where = options(dtype, device, default)
    return made(_spaced(first, last, steps, chosen, where, "linspace"), requires_grad)


def _spaced(start: Number, end: Number, steps: int, dtype: DType, device: Device, name: str) -> Any:
    if isinstance(steps, bool) or not hasattr(steps, "__index__"):
        raise TypeError(f"{name}(): argument 'steps' must be int, not {type(steps).__name__}")
    count = steps.__index__()
    if count < 0:
        raise RuntimeError(f"{name}(): number of steps must be non-negative, got {count}")
    if dtype.category < COMPLEX and isinstance(start + end, complex):
        raise RuntimeError(f"{name}(): a complex range does not fit into {dtype.name}")
    if count <= 1:
        return fill_new((count,), start, dtype, device)
    if dtype.category == INTEGER:
        start, end = int(start), int(end)  # type: ignore[arg-type]
    gap = (end - start) / (count - 1)
    half = count // 2
    # Adding 0.0 makes floats of ints, which are truncated to an integer dtype at the end only.
    front = arange_new(start + 0.0, gap, half, dtype, device)
    back = arange_new(end + 0.0, -gap, count - half, dtype, device)
    return _CAT.call((front, _FLIP.call(back, (0,))))


@composite(method=False)
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return `base` to the powers that :func:`linspace` gives.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    first, last = number(start, "logspace", "start"), number(end, "logspace", "end")
    default = default_complex() if isinstance(first + last, complex) else None
    chosen, where = options(dtype, device, default)
    exact = chosen if chosen.category >= FLOATING else get_default_dtype()
    powers = _POW.call(base, _spaced(first, last, steps, exact, where, "logspace"))
    return made(powers if exact is chosen else _CAST.call(powers, chosen), requires_grad)


@composite(method=False)
def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return an *n* by *m* (by default square) matrix with ones on the diagonal, else zeros.

    Raises
    ------
    RuntimeError
        If a size is negative.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    columns = n if m is None else m
    for size, name in ((n, "n"), (columns, "m")):
        if isinstance(size, (bool, float)) or not hasattr(size, "__index__"):
            raise TypeError(f"eye(): argument '{name}' must be int, not {type(size).__name__}")
        if size < 0:
            raise RuntimeError(f"eye(): {name} must be greater or equal to 0, got {size}")
    chosen, where = options(dtype, device)
    rows = arange_new(0, 1, n, int64, where)
    same = _EQ.call(rows.view((n, 1)), arange_new(0, 1, columns, int64, where))
    return made(_CAST.call(same, chosen), requires_grad)
