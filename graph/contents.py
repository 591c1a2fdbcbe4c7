"""Contents: what an object holds, as a list that can be compared with what it holds later."""

from __future__ import annotations

import gc
import logging
import sys
from collections import defaultdict
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

from .classes import table_of_attributes
from .comparing import MISSING, attributes_of

__all__ = [
    "decimal_settings",
    "halves",
    "items_of",
    "of_cache",
    "of_cell",
    "of_context",
    "of_factory",
    "of_function",
    "of_logger",
    "of_mapping",
    "of_setting",
    "of_slots",
    "of_tensor",
    "of_used",
    "of_view",
    "referent",
]  # fmt: skip


def items_of(value: Any) -> list[Any]:
    """Return the items of a sequence or set."""
    return [*iter(value)]  # not by way of its length, which a subclass may refuse to tell


def of_mapping(mapping: Any) -> list[Any]:
    """Return the keys of a mapping, and then its values."""
    return [*mapping, *mapping.values()]


def of_used(table: dict[Any, Any], used: frozenset[Any]) -> list[Any]:
    """Return the names of attributes, and then the values of those that are used."""
    return [*table, *[value if name in used else MISSING for name, value in table.items()]]


def of_cache(function: Any) -> list[Any]:
    """Return what a cached function keeps, in an order that does not tell of its last calls."""
    found = gc.get_referents(function)
    found += [item for table in found if type(table) is dict for item in table.values()]
    return sorted(found, key=id)


def halves(held: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the keys and the values of what a mapping held."""
    half = len(held) // 2
    return held[:half], held[half:]


def of_setting(read: Callable[[], Any]) -> list[Any]:
    """Return a setting, which a function without arguments tells."""
    return [read()]


def of_tensor(tensor: Any) -> tuple[Any, int, Any]:
    """Return a tensor's array, whether it requires grad, and what programs may ask of its memory."""
    array = tensor._array
    return array, tensor._state, (tensor._key, tensor._shape, tensor._key.runtime.strides(array))


def of_view(tensor: Any) -> list[Any]:
    """Return whether a view requires grad, which its base may come to do."""
    return [tensor.requires_grad]


def of_logger(logger: logging.Logger) -> list[Any]:
    """Return what decides whether a message goes anywhere, and where."""
    level = [logger.level, logger.getEffectiveLevel(), logger.disabled, logger.manager.disable]
    return [*level, logger.propagate, *logger.handlers, *logger.filters]


def referent(proxy: Any) -> list[Any]:
    """Return the object behind a weak proxy."""
    try:
        return [proxy.__repr__.__self__]
    except ReferenceError:
        return [MISSING]


def of_function(function: Any) -> list[Any]:
    """Return what a function runs, its defaults and its attributes."""
    return [
        function.__code__,
        function.__defaults__,
        function.__kwdefaults__,
        attributes_of(function),
    ]


def of_cell(cell: Any) -> list[Any]:
    """Return what a variable of a closure stands for."""
    try:
        return [cell.cell_contents]
    except ValueError:  # empty
        return [MISSING]


def of_table(value: Any) -> list[Any]:
    """Return the dictionary of an object's attributes, which may be another one."""
    return [table_of_attributes(value)]


def of_slots(value: Any, slots: list[tuple[str, Any]]) -> list[Any]:
    """Return the class of an object and the values of its slots."""
    held: list[Any] = [type(value)]
    for _, member in slots:
        try:
            held.append(member.__get__(value))
        except AttributeError:
            held.append(MISSING)
    return held


def of_factory(mapping: defaultdict[Any, Any]) -> list[Any]:
    """Return what makes the missing values of a mapping."""
    return [mapping.default_factory]


def of_context(context: Context | None = None) -> list[Any]:
    """Return the context variables of this thread and what they stand for, among them NumPy's settings."""
    if context is None:
        context = copy_context()
    return [item for pair in sorted(context.items(), key=lambda pair: id(pair[0])) for item in pair]


def decimal_settings() -> list[Any]:
    """Return the settings by which decimal numbers are computed."""
    context = sys.modules["decimal"].getcontext()
    rounded = [
        context.prec,
        context.rounding,
        context.Emin,
        context.Emax,
        context.capitals,
        context.clamp,
    ]
    return [*rounded, *context.traps.values()]
