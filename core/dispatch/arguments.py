"""Arguments of calls as ops take them: scalars of array libraries, ``numpy.int64(1)`` say, are numbers."""

from __future__ import annotations

from numbers import Real
from typing import Any

from ..device.device import Device
from ..device.dtypes import BOOL, COMPLEX, FLOATING, DType, int32, int64
from ..device.scalars import held, rounded
from ..errors import type_name
from ..tensor.base import TensorBase
from ..tensor.layout import layout, memory_format
from ..tensor.shapes import Size, is_truth
from .interception import Intercepted, intercepted
from .op import Op

#: Classes of arguments of which those that are equal are the same, so that they can be keys.
CONSTANTS = frozenset({int, bool, str, type(None), DType, Device, Size, memory_format})
# Of a class that is not here, as of a format of memory, Python makes an error for each thing that it has not.
_PLAIN = CONSTANTS | {float, complex, slice, type(...)}


class Foreign(TypeError):
    """Raised where an argument is no tensor, but of a class with a ``__torch_function__``."""


def is_scalar(value: Any) -> bool:
    """Return whether `value` is a scalar of an array library; a 0-d array, which can be set, is none.

    Its class has to say so: an object may answer whatever it is asked for.
    """
    kind = type(value)
    return (
        hasattr(kind, "dtype")
        and hasattr(kind, "item")
        and getattr(value, "shape", None) == ()
        and not hasattr(kind, "__setitem__")
    )


def plain(value: Any) -> Any:
    """Return a value with scalars of array libraries, also those in a list or tuple, as Python numbers."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, TensorBase):
        return value
    if kind is tuple or kind is list:
        for item in value:  # tensors and numbers, as a rule, of which there may be many
            known = type(item) in _PLAIN or isinstance(item, TensorBase)
            if not known and plain(item) is not item:
                return kind([plain(item) for item in value])
        return value
    if hasattr(kind, "__torch_function__"):
        raise Foreign(
            f"an argument is of type {kind.__module__}.{kind.__qualname__}, which is no tensor of this "
            "library, and its __torch_function__ is not asked here; from_dlpack() takes those of others"
        )
    if not is_scalar(value):
        return value
    item = value.item()
    if type(item) is kind:  # a number wider than any of Python's, such as NumPy's longdouble
        return float(item) if isinstance(item, Real) else complex(item)
    return item


def find_foreign(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise Foreign if an argument, also one in a list or tuple, may make the call itself."""
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, TensorBase):
            continue
        if type(value) is list or type(value) is tuple:
            for item in value:
                if item is not None and not isinstance(item, TensorBase):
                    plain(item)
        elif type(value) not in _PLAIN:
            plain(value)


def plain_arguments(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with such scalars as numbers, and ints and floats where declared.

    A 0-d tensor in the place of a number is read: what the call comes to is not to be had from a cache then.

    Raises
    ------
    TypeError
        If an argument that has to be an int is none.
    Intercepted
        If a tensor among them computes its ops itself, or a layout makes its tensors itself.
    """
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, TensorBase):
            tensor = value
            if tensor._key.intercepts:
                raise intercepted(op, tensor)
            continue
        if type(value) in _PLAIN:
            continue
        if type(value) is list or type(value) is tuple:
            for item in value:
                if isinstance(item, TensorBase):
                    tensor = item
                    if tensor._key.intercepts:
                        raise intercepted(op, tensor)
        elif isinstance(value, layout) and value.intercepts:
            raise Intercepted(f"{op.name}(): tensors of layout {value} are made by it")
        if plain(value) is not value:
            args = tuple([plain(arg) for arg in args])
            kwargs = {name: plain(value) for name, value in kwargs.items()}
            break
    for position, name in op.integers:
        value = args[position] if position < len(args) else kwargs.get(name)
        if value is None:
            _check_none(op, args, kwargs, position, name, "int")
        elif type(value) is not int:
            args, kwargs = _replaced(args, kwargs, position, name, _index(op, name, value))
    for position, name in op.numbers:
        value = args[position] if position < len(args) else kwargs.get(name)
        if value is None:
            _check_none(op, args, kwargs, position, name, "Number")
        elif isinstance(value, TensorBase):
            tensor = value
            if tensor._state:
                check_number(tensor, op.name, name)
            if tensor._shape:
                kind = "float" if (position, name) in op.floats else "Number"
                raise _wrong(op, name, kind, value)
            if not (tensor._key.is_meta or getattr(tensor, "_batched", False)):
                number = value.item()  # type: ignore[attr-defined]
                args, kwargs = _replaced(args, kwargs, position, name, number)
    for position, name in op.floats:
        value = args[position] if position < len(args) else kwargs.get(name)
        if isinstance(value, int):
            args, kwargs = _replaced(args, kwargs, position, name, float(value))
        elif type(value) in _NO_FLOATS:
            raise _wrong(op, name, "float", value)
    for position, name in op.flags:
        value = args[position] if position < len(args) else kwargs.get(name)
        if value is None:
            _check_none(op, args, kwargs, position, name, "bool")
        elif type(value) is not bool:
            raise _wrong(op, name, "bool", value)
    for position, name in op.sequences:
        value = args[position] if position < len(args) else kwargs.get(name)
        if type(value) in _NO_SEQUENCES:
            raise _wrong(op, name, "tuple of ints", value)
    for position, name in op.layouts:
        value = args[position] if position < len(args) else kwargs.get(name)
        if value is not None and not isinstance(value, layout):
            raise _wrong(op, name, "layout", value)
    for position, name in op.strings:
        value = args[position] if position < len(args) else kwargs.get(name)
        if value is None:
            _check_none(op, args, kwargs, position, name, "str")
        elif not isinstance(value, str):
            raise _wrong(op, name, "str", value)
    return args, kwargs


def _check_none(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], position: int, name: str, kind: str
) -> None:
    """Raise TypeError for a None that a call gives for a parameter that None does not stand for."""
    if name in op.needed and (position < len(args) or name in kwargs):
        raise _wrong(op, name, kind, None)


_SIGNED = frozenset({int32, int64})  # that hold the factor, with either sign
_NO_SEQUENCES = frozenset({int, float, bool, complex, str, bytes, dict})
_NO_FLOATS = frozenset({complex, str, tuple, list, bytes, dict, type, DType})


def _wrong(op: Op, name: str, kind: str, value: Any) -> TypeError:
    more = "; several dimensions are given as a tuple" if name == "keepdim" else ""
    return TypeError(f"{op.name}(): argument '{name}' must be {kind}, not {type_name(value)}{more}")


def has_number(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a tensor stands where an op takes a number."""
    for position, name in op.numbers:
        value = args[position] if position < len(args) else kwargs.get(name)
        if isinstance(value, TensorBase):
            return True
    return False


def check_number(value: Any, name: str, argument: str) -> None:
    """Refuse to take the number of a tensor, which is not differentiated, where a gradient is asked for."""
    if value.requires_grad:
        raise TypeError(
            f"{name.rpartition('.')[2]}(): argument '{argument}' must be Number, not Tensor that requires "
            "grad: no gradient reaches it; detach() it"
        )


def _replaced(
    args: tuple[Any, ...], kwargs: dict[str, Any], position: int, name: str, value: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with another value for a parameter that was given."""
    if position < len(args):
        return (*args[:position], value, *args[position + 1 :]), kwargs
    return args, {**kwargs, name: value}


def reads_tensor(
    given: tuple[Any, ...], named: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """Return whether :func:`plain_arguments` read a tensor: what the call comes to depends on its value."""
    if given is args and named is kwargs:
        return False
    for before, after in zip(given, args, strict=True):
        if isinstance(before, TensorBase) and before is not after:
            return True
    return any(
        [
            isinstance(value, TensorBase) and value is not kwargs[name]
            for name, value in named.items()
        ]
    )


def _index(op: Op, name: str, value: Any) -> Any:
    """Return an argument that has to be an int; a 0-d tensor of integers is read."""
    if is_truth(value):
        raise _wrong(op, name, "int", value)
    if isinstance(value, int) or getattr(value, "_batched", False):
        return value
    if hasattr(value, "__index__"):
        return value.__index__()
    raise _wrong(op, name, "int", value)


def fits(value: Any, dtype: DType) -> bool:
    """Return whether a Python number beside a tensor leaves its dtype as it is, and is held by it."""
    type_ = type(value)
    if type_ is float:
        return dtype.takes_floats or (dtype.is_half and held(value, dtype))
    if type_ is int:
        return dtype.takes_integers or (dtype.is_half and held(value, dtype))
    if type_ is bool:
        return dtype.category == BOOL  # a rule may mind, as that of sub does
    return type_ is complex and dtype.category == COMPLEX


def scalar_of(value: Any, key: Any) -> Any:
    """Return a number as an array of `key`; None where an op's rule has to say what becomes of it."""
    if not fits(value, key.dtype):
        return None
    try:
        return key.scalar(value)
    except (RuntimeError, OverflowError):  # beyond what the dtype holds
        return None


def fits_rounded(value: Any, dtype: DType) -> bool:
    """Return whether a Python number is one that half precision has to round."""
    return dtype.is_half and (type(value) is float or type(value) is int)


def factor_of(op: Op, input: Any, other: Any, options: dict[str, Any]) -> float | None:
    """Return the factor of `other` in a sum or difference that takes neither conversion nor checks."""
    alpha: Any = options.get("alpha")
    if len(options) != 1 or type(alpha) not in (int, float) or not -60000 < alpha < 60000:
        return None
    if not isinstance(input, TensorBase) or not isinstance(other, TensorBase):
        return None
    key = input._key
    if other._key is not key or input._shape != other._shape:
        return None
    if key.dtype.category != FLOATING and (key.dtype not in _SIGNED or type(alpha) is not int):
        return None
    # Half precision takes it rounded, as torch's does.
    return op.scaled_sign * (rounded(alpha, key.dtype) if key.dtype.is_half else alpha)
