"""Helpers that the rules of primitives share: promotion, casting, axes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ..device.dtypes import (
    FLOATING,
    DType,
    Number,
    float32,
    get_default_dtype,
    result_dtype,
)
from ..device.scalars import held, wrapped
from ..dispatch import op_registry, registered_ops
from ..dispatch.arguments import check_number
from ..dispatch.op_registry import Delegated, Spec
from ..errors import type_name, warn
from ..tensor.base import TensorBase
from ..tensor.shapes import broadcast_shapes

P = ParamSpec("P")
R = TypeVar("R")

_SCALAR_TENSOR = op_registry.handle("scalar_tensor")
_CAST = op_registry.handle("cast")
_TO_DEVICE = op_registry.handle("to_device")


def _position(name: str, argument: str) -> str:
    """Return where an argument of an op stands, as torch says it."""
    op = registered_ops.OPS.get(name)
    names = [] if op is None else list(op.parameters)
    return f" (position {names.index(argument) + 1})" if argument in names else ""


def check_tensor(value: Any, name: str, argument: str = "input") -> None:
    """Raise TypeError unless `value` is a tensor."""
    if not isinstance(value, TensorBase):
        raise TypeError(
            f"{name}(): argument '{argument}'{_position(name, argument)} must be Tensor, not "
            f"{type_name(value)}"
        )


def that_broadcast(input: Any, other: Any) -> tuple[Any, Any]:
    """Return two operands, numbers or tensors, which have to broadcast; a composite's rule."""
    tensors = isinstance(input, TensorBase) and isinstance(other, TensorBase)
    if tensors and input._shape != other._shape:
        broadcast_shapes(input._shape, other._shape)
    return input, other


def are_alike(input: Any, other: Any) -> bool:
    """Return whether two tensors of one shape have one floating-point dtype, on one device."""
    key = input._key
    return key is other._key and key.dtype.category == FLOATING and input._shape == other._shape


def cast(tensor: Any, dtype: DType) -> Any:
    """Return `tensor` converted to `dtype`, recorded for autograd; itself if it has it already."""
    return tensor if tensor._key.dtype is dtype else _CAST.call(tensor, dtype)


def rounded_once(function: Any, dtype: DType, *values: Any, **options: Any) -> Any:
    """Return what a function of tensors of half precision computes in float32, rounded at the end."""
    wide = [cast(value, float32) if isinstance(value, TensorBase) else value for value in values]
    return cast(function(*wide, **options), dtype)


def widened(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what a function computes: of half precision in float32, its result or results rounded once."""
    values = (*args, *kwargs.values())
    dtype = next(filter(None, map(_floating_dtype, values)), None)
    if dtype is None or not dtype.is_half:
        return function(*args, **kwargs)
    found = result_dtype(filter(_is_inexact, values))
    if found.category != FLOATING or not found.is_half:
        return function(*args, **kwargs)  # beside wider operands the function's ops promote
    more = {name: _widened(value) for name, value in kwargs.items()}
    result = function(*[_widened(value) for value in args], **more)
    if isinstance(result, tuple):
        return tuple([cast(each, dtype) for each in result])
    return cast(result, dtype)


def in_float32(function: Callable[P, R]) -> Callable[P, R]:
    """Declare the body of a composite that is :func:`widened`."""

    @functools.wraps(function)
    def body(*args: P.args, **kwargs: P.kwargs) -> R:
        result: R = widened(function, *args, **kwargs)
        return result

    return body


def _floating_dtype(value: Any) -> DType | None:
    dtype: DType | None = value._key.dtype if isinstance(value, TensorBase) else None
    return dtype if dtype is not None and dtype.category == FLOATING else None


def _is_inexact(value: Any) -> bool:
    return isinstance(value, TensorBase) and value._key.dtype.category >= FLOATING


def _widened(value: Any) -> Any:
    is_half = isinstance(value, TensorBase) and value._key.dtype.is_half
    return cast(value, float32) if is_half else value


def to_floating(dtype: DType) -> DType:
    """Return `dtype`, or the default dtype for bool and the integers."""
    return dtype if dtype.category >= FLOATING else get_default_dtype()


def elementwise(
    name: str,
    *operands: Any,
    compute: DType | None = None,
    floating: bool = False,
    result: DType | None = None,
    without: tuple[int, ...] = (),
    condition: Any = None,
    numbers: bool = False,
    exact: bool = False,
    scaling: Callable[..., Any] | None = None,
) -> Spec:
    """Return the spec of a pointwise op: operands promoted to one dtype and broadcast.

    Parameters
    ----------
    name : str
        The op, for messages.
    *operands : Tensor or number
        At least one tensor, but for `numbers`. A 0-d tensor on the CPU goes along with tensors of
        another device.
    compute : DType, optional
        The dtype of the computation; by default torch's promotion decides.
    floating : bool
        Whether integers and bool are computed in the default dtype.
    result : DType, optional
        The result's dtype; by default that of the computation.
    without : tuple of int
        The categories of dtype that the op does not take; checked on the promoted dtype.
    condition : Tensor, optional
        A first operand that is broadcast, but neither promoted nor converted.
    exact : bool
        Whether numbers have to be in the range of the dtype; else they wrap around, as operands do.
    scaling : callable, optional
        The op itself, if it multiplies or divides. Half precision is then computed in float32 where a number,
        or a 0-d tensor of another dtype as the second operand, would be rounded before.

    Raises
    ------
    NotImplementedError
        If the promoted dtype is of a category in `without`.
    """
    device = None
    zero_dim_device = None
    placed = operands if condition is None else (condition, *operands)
    for position, operand in enumerate(placed):
        if isinstance(operand, TensorBase):
            if operand._shape and device is None:
                device = operand._key.device
            elif zero_dim_device is None or zero_dim_device.type == "cpu":
                zero_dim_device = operand._key.device
        elif not isinstance(operand, (bool, int, float, complex)):
            raise TypeError(
                f"{name}(): argument {position + 1} must be Tensor or Number, not "
                f"{type(operand).__name__}"
            )
    device = device or zero_dim_device
    if compute is None:
        compute = result_dtype(operands)
    if device is None:
        if not numbers:
            raise TypeError(f"{name}(): at least one argument must be Tensor, got {operands!r}")
        first = _SCALAR_TENSOR.call(operands[0], dtype=compute)
        placed = (first, *operands[1:])
        device = first._key.device
    if compute.category in without:
        raise NotImplementedError(
            f"{name}() is not implemented for dtype {compute.name}; convert with .to() first"
        )
    if floating:
        compute = to_floating(compute)
    if scaling is not None and compute.is_half and _is_rounded(operands, compute):
        return Delegated.to(rounded_once, scaling, compute, *operands)
    values = []
    shapes = []
    for position, operand in enumerate(placed):
        if isinstance(operand, TensorBase):
            key = operand._key
            if key.device is not device and not operand._shape and key.device.type == "cpu":
                operand = _TO_DEVICE.call(operand, device)
            if key.dtype is not compute and (position or condition is None):
                operand = _CAST.call(operand, compute)
            shapes.append(operand._shape)
        elif not exact:
            operand = wrapped(operand, compute)
        values.append(operand)
    shape = shapes[0] if len(shapes) == 1 else broadcast_shapes(*shapes)
    return Spec(tuple(values), shape, result or compute, key=compute, device=device)


def _is_rounded(operands: tuple[Any, ...], half: DType) -> bool:
    """Return whether a factor or divisor of elements of half precision has to be rounded to it."""
    input, other = operands
    if not isinstance(other, TensorBase):
        return not held(other, half)
    if not isinstance(input, TensorBase):
        return not held(input, half)
    return not other._shape and other._key.dtype is not half


def number(value: Any, name: str, argument: str) -> Number:
    """Return `value` as a Python number; a 0-d tensor or NumPy scalar is read."""
    if isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, TensorBase):
        if not value._shape:
            if value._state:
                check_number(value, name, argument)
            return value.item()  # type: ignore[attr-defined]
    elif getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{name}(): argument '{argument}' must be a number, not {type_name(value)}")


def with_former_order(
    rearrange: Callable[..., tuple[tuple[Any, ...], dict[str, Any]]],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a rule take the deprecated calls that have numbers between the tensors.

    Parameters
    ----------
    rearrange : callable
        ``rearrange(*args)`` returns (args, keyword arguments) of the present form.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        kinds = [known.kind for known in inspect.signature(function).parameters.values()]
        most = kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)
        name = getattr(function, "__name__", "")

        def present(
            args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> tuple[tuple[Any, ...], dict[str, Any]]:
            if len(args) > most:
                args, given = rearrange(*args)
                kwargs = {**kwargs, **given}
                warn(
                    f"This overload of {name} is deprecated: numbers before tensors; name them",
                    UserWarning,
                )
            return args, kwargs

        @functools.wraps(function)
        def rule(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = present(args, kwargs)
            return function(*args, **kwargs)

        decorated: Any = rule
        decorated.present = present
        return decorated

    return decorate
