"""Keys of calls: what of its arguments a call's course depends on, so that equal keys mean equal courses."""

from __future__ import annotations

from typing import Any

from ..tensor.base import TensorBase


def call_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the cache key of a call: dispatch keys, shapes and plain values of its arguments."""
    parts: list[Any] = []
    for arg in args:
        if isinstance(arg, TensorBase):
            tensor = arg
            parts.append(tensor._key)
            parts.append(tensor._shape)
        else:
            parts.append(type(arg))
            if type(arg) is list and of_ints(arg):
                parts.append(tuple(arg))
                continue
            parts.append(repr(arg) if type(arg) is float and not arg else arg)  # -0.0 is 0.0
            if isinstance(arg, tuple):  # as items too, 1, 1.0 and True are equal
                parts.append(item_types(arg))
    if kwargs:
        for name, value in kwargs.items():
            if isinstance(value, TensorBase):
                tensor = value
                parts.append((name, tensor._key, tensor._shape))
                continue
            types = item_types(value) if isinstance(value, tuple) else None
            told = repr(value) if type(value) is float and not value else value
            if type(value) is list and of_ints(value):
                told = tuple(value)
            parts.append((name, type(value), told, types))
    return tuple(parts)


def any_named(kwargs: dict[str, Any], names: dict[str, str]) -> bool:
    """Return whether an argument is given by one of some names."""
    for name in kwargs:  # noqa: SIM110  in Python, a generator takes longer to make
        if name in names:
            return True
    return False


def all_given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments of a call, those in their places and behind them the tensors given by name."""
    named: list[Any] | None = None
    for value in kwargs.values():
        if isinstance(value, TensorBase):
            if named is None:
                named = []
            named.append(value)
    return args if named is None else (*args, *named)


def item_types(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the types of a tuple's items, of tuples among them those of their items."""
    return tuple([item_types(v) if isinstance(v, tuple) else type(v) for v in values])


def of_ints(values: list[Any]) -> bool:
    """Return whether all items of a list are ints, and no subclass of them."""
    for value in values:  # noqa: SIM110  in Python, a generator takes longer to make
        if type(value) is not int:
            return False
    return True


def ambiguous(values: tuple[Any, ...]) -> bool:
    """Return whether values, by :func:`call_key`, have the key of others: with zeros that are no floats."""
    for value in values:  # noqa: SIM110  in Python, a generator takes longer to make
        if type(value) is not float and zeros((value,)):
            return True
    return False


def zeros(values: tuple[Any, ...]) -> bool:
    """Return whether a value is 0.0 or -0.0, which are one as keys, or has one as a part or an item."""
    for value in values:
        if isinstance(value, (float, complex)):
            if not value.real or (not value.imag and isinstance(value, complex)):
                return True
        elif isinstance(value, (tuple, list)) and zeros(tuple(value)):
            return True
    return False


def exact_key(value: Any) -> Any:
    """Return what tells a plain value from one of its type that equals it."""
    if isinstance(value, tuple):
        return item_types(value), repr(value) if zeros(value) else None
    return repr(value) if isinstance(value, (float, complex)) and zeros((value,)) else None
