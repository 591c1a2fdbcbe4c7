"""Ops that make sequences of numbers, and the identity matrix."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...device.device import Device
from ...device.dtypes import (
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGER,
    DType,
    Number,
    default_complex,
    float32,
    get_default_dtype,
    int64,
    scalar_type,
)
from ...device.scalars import fitting
from ...dispatch import op_registry
from ...dispatch.arguments import scalar_of
from ...dispatch.op_registry import Spec, composite, primitive
from ...dispatch.out_dtypes import resizes_silently
from ...dispatch.state import dispatch_state
from ...errors import type_name, warn
from ...tensor.base import TensorBase
from ...tensor.shapes import is_truth
from ..rules import number
from .creation import fill_new, made, options

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["arange", "arange_new", "eye", "eye_new", "linspace", "logspace", "range"]

_CAST = op_registry.handle("cast")
_CAT = op_registry.handle("cat")
_EQ = op_registry.handle("eq")
_FLIP = op_registry.handle("flip")
_POW = op_registry.handle("pow")

_INT64 = 1 << 63  # one above the largest int64


@primitive("start, step, count, dtype", method=False)
def arange_new(start: Number, step: Number, count: int, dtype: DType, device: Device) -> Spec:
    """Return the numbers ``start + i * step`` for i from 0 to ``count - 1``; what arange calls.

    Whole numbers are computed in int64, others in float64 where the device has it; the result is
    then converted to `dtype`.
    """
    return Spec((start, step, count, dtype), (count,), dtype, key=dtype, device=device)


def _bound(value: Any, name: str, argument: str) -> Number:
    read = number(value, name, argument)
    if isinstance(read, complex):
        raise RuntimeError(f"{name}(): argument '{argument}' must be real, got {read!r}")
    return read if isinstance(read, float) or -_INT64 <= read < _INT64 else float(read)


def _bounds(bounds: tuple[Any, ...], start: Any, end: Any, step: Any, name: str) -> list[Number]:
    """Return start, end and step of a call with one to three numbers, or keywords."""
    if len(bounds) > 3:
        raise TypeError(f"{name}() takes at most 3 numbers, got {len(bounds)}")
    if len(bounds) == 1 and end is None:
        bounds = (0, bounds[0])
    named = [start, end, step]
    for position, value in enumerate(bounds):
        if named[position] is not None:
            argument = ("start", "end", "step")[position]
            raise TypeError(f"{name}() got multiple values for argument '{argument}'")
        named[position] = value
    start, end, step = named
    if end is None:
        raise TypeError(f'{name}() missing 1 required argument: "end"')
    values = [0 if start is None else start, end, 1 if step is None else step]
    return [
        _bound(value, name, argument)
        for value, argument in zip(values, ("start", "end", "step"), strict=True)
    ]


def _check_counted(numbers: tuple[Number, ...], dtype: DType) -> None:
    """Check that bounds and step are in the range of what counts: int64 for ints, float32 for halves.

    Raises
    ------
    RuntimeError
        If one lies outside.
    """
    if dtype.category == INTEGER or dtype.is_half:
        for value in numbers:
            fitting(value, int64 if dtype.category == INTEGER else float32)


def _length(count: int, name: str) -> int:
    """Return how many numbers there are; an array cannot hold 2**63 of them.

    Raises
    ------
    RuntimeError
        If there are as many.
    """
    if count >= _INT64:
        raise RuntimeError(f"{name}(): invalid size, possible overflow? Got {count:.5g} numbers")
    return count


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
    if len(bounds) == 1 and start is end is step is None and type(bounds[0]) is int:
        chosen, where = options(dtype, device, int64)
        if chosen is int64 and 0 <= bounds[0] < _INT64:
            return made(arange_new(0, 1, bounds[0], chosen, where), requires_grad)
    first, last, by = _bounds(bounds, start, end, step, "arange")
    whole = all(isinstance(value, int) for value in (first, last, by))
    chosen, where = options(dtype, device, int64 if whole else None)
    if chosen.category in (BOOL, COMPLEX):
        raise NotImplementedError(f"arange(): not implemented for {chosen.name}")
    _check_counted((first, last, by), chosen)
    steps = _steps(first, last, by, "arange")
    if chosen.category == INTEGER and not whole:
        first, last, by = int(first), int(last), int(by)  # type: ignore[arg-type]
        _steps(first, last, by, "arange")
        if chosen is not int64:  # as torch, which counts before it converts, but for int64
            return made(arange_new(first, by, math.ceil(steps), chosen, where), requires_grad)
    if isinstance(first, int) and isinstance(last, int) and isinstance(by, int):
        count = -((first - last) // by)
    else:
        count = math.ceil(steps)
    return made(arange_new(first, by, _length(count, "arange"), chosen, where), requires_grad)


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
    """Return the numbers from `start` to `end`, both included, with a warning: :func:`arange` took its place.

    Examples
    --------
    >>> import tensorplug as tp
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     tp.range(1, 3)
    tensor([1., 2., 3.])
    """
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use arange, which produces values in "
        "[start, end).",
        UserWarning,
    )
    if len(bounds) == 1 and end is None:
        raise TypeError('range() missing 1 required positional arguments: "end"')
    first, last, by = _bounds(bounds, start, end, step, "range")
    chosen, where = options(dtype, device)
    if chosen.category in (BOOL, COMPLEX):
        raise NotImplementedError(f"range(): not implemented for {chosen.name}")
    _check_counted((first, last, by), chosen)
    if chosen.category == INTEGER:
        _steps(first, last, by, "range")
        first, last, by = int(first), int(last), int(by)  # type: ignore[arg-type]
    count = math.floor(_steps(first, last, by, "range")) + 1
    return made(arange_new(first, by, _length(count, "range"), chosen, where), requires_grad)


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
    first, last = _zero_dim(start, "linspace", "start"), _zero_dim(end, "linspace", "end")
    default = default_complex() if isinstance(first + last, complex) else None
    chosen, where = options(dtype, device, default)
    return made(_spaced(first, last, steps, chosen, where, "linspace"), requires_grad)


def _zero_dim(value: Any, name: str, argument: str) -> Number:
    if isinstance(value, TensorBase):
        if value._shape:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {argument} with "
                f"{len(value._shape)} dimension(s)"
            )
        if value._state:
            value = value.detach()  # type: ignore[attr-defined]
    return number(value, name, argument)


def _check_inferred(start: Number, end: Number, dtype: DType, name: str) -> None:
    if dtype.category != COMPLEX and (isinstance(start, complex) or isinstance(end, complex)):
        raise RuntimeError(
            f"torch.{name}(): inferred dtype, which is complex, can't be safely cast to passed dtype "
            f"{scalar_type(dtype)}"
        )


def _spaced(start: Number, end: Number, steps: int, dtype: DType, device: Device, name: str) -> Any:
    if is_truth(steps) or not hasattr(steps, "__index__"):
        raise TypeError(f"{name}(): argument 'steps' must be int, not {type_name(steps)}")
    count = steps.__index__()
    if count < 0:
        raise RuntimeError(f"{name}(): number of steps must be non-negative, got {count}")
    if dtype.category == BOOL:
        raise NotImplementedError(f"{name}(): not implemented for bool")
    _check_inferred(start, end, dtype, name)
    start, end = fitting(start, dtype), fitting(end, dtype)
    if count <= 1:
        return fill_new((count,), start, dtype, device)
    # Adding 0.0 makes floats of ints, which are truncated to an integer dtype at the end only.
    return linspace_new(start + 0.0, end + 0.0, count, dtype, device)


@composite(method=False)
def linspace_new(start: Any, end: Any, count: int, dtype: DType, device: Device) -> Tensor:
    """Return `count` evenly spaced numbers, at least two, from `start` to `end`; what :func:`linspace` calls.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.linspace_new(0.0, 1.0, 3, tp.float32, tp.device("cpu"))
    tensor([0.0000, 0.5000, 1.0000])
    """
    gap = (end - start) / (count - 1)
    half = count // 2
    front = arange_new(start, gap, half, dtype, device)
    back = arange_new(end, -gap, count - half, dtype, device)
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
    first, last = _zero_dim(start, "logspace", "start"), _zero_dim(end, "logspace", "end")
    default = default_complex() if isinstance(first + last, complex) else None
    chosen, where = options(dtype, device, default)
    if chosen.category == BOOL:
        raise NotImplementedError("logspace(): not implemented for bool")
    exact = chosen if chosen.category >= FLOATING else get_default_dtype()
    if exact.itemsize == 2:  # the powers of rounded exponents are far off
        exact = float32
    _check_inferred(first, last, chosen, "logspace")
    ends = [fitting(bound, chosen) for bound in (first, last)]
    if chosen.category == INTEGER:  # exponents are converted, as in torch, not the powers alone
        first, last = ends
    powers = _raised(base, _spaced(first, last, steps, exact, where, "logspace"))
    return made(powers if exact is chosen else _CAST.call(powers, chosen), requires_grad)


def _raised(base: Any, exponents: Any) -> Any:
    """Return `base` to the power of exponents, in their memory, which nobody looks at yet."""
    key = exponents._key
    write = key.writers[_POW.index]
    known = scalar_of(base, key)
    if dispatch_state.layers_active or write is None or known is None:
        return _POW.call(base, exponents)  # whose first call finds what writes
    write(known, exponents._array, out=exponents._array)
    return exponents


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
        if is_truth(size) or isinstance(size, float) or not hasattr(size, "__index__"):
            raise TypeError(f"eye(): argument '{name}' must be int, not {type_name(size)}")
        if size < 0:
            raise RuntimeError(f"eye(): {name} must be greater or equal to 0, got {size}")
    chosen, where = options(dtype, device)
    return made(eye_new(n.__index__(), columns.__index__(), chosen, where), requires_grad)


@composite(method=False)
def eye_new(rows: int, columns: int, dtype: DType, device: Device) -> Tensor:
    """Return a matrix with ones on the diagonal, else zeros; what :func:`eye` calls.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.eye_new(1, 2, tp.float32, tp.device("cpu"))
    tensor([[1., 0.]])
    """
    places = arange_new(0, 1, rows, int64, device)
    same = _EQ.call(places.view((rows, 1)), arange_new(0, 1, columns, int64, device))
    return _CAST.call(same, dtype)


for _name in ("arange", "linspace", "logspace", "range"):
    op_registry.handle(_name).fills = True
resizes_silently(linspace, logspace, eye)
