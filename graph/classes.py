"""Classes: which objects hold what a program may look at, by where their class was written."""

from __future__ import annotations

import functools
import sys
from abc import ABC
from types import BuiltinFunctionType, MemberDescriptorType
from typing import Any, Generic, Protocol

from tensorplug.core.tensor.base import TensorBase
from tensorplug.nn import Module

__all__ = [
    "LIBRARY", "goes_in_its_own_way", "has_slots", "has_state", "is_foreign", "is_own", "is_plain",
    "is_settled", "is_standard", "module_of", "slots_of", "table_of_attributes",
]  # fmt: skip

LIBRARY = __name__.partition(".")[0] + "."
_STANDARD = sys.stdlib_module_names
#: Modules of Python's whose objects hold nothing that changes, or nothing that programs look at.
_SETTLED = frozenset(
    ("builtins", "datetime", "decimal", "enum", "fractions", "pathlib", "re", "typing", "uuid", "abc",
     "_thread", "zoneinfo", "types", "_abc", "operator", "logging", "_struct")
)  # fmt: skip
#: Parts of this library whose objects have settings that programs may read: optimizers, distributions.
_OPEN = tuple([LIBRARY + part for part in ("optim", "distributions", "nn")])
#: Bases of classes of programs that are none of theirs.
_PLAIN_BASES = frozenset((*Module.__mro__, Generic, Protocol, ABC))


def has_state(value: Any) -> bool:
    """Return whether a program may look at attributes of an object: a module, or of a class of its own."""
    if isinstance(value, Module):
        return True
    kind: Any = type(value)
    return not is_settled(kind) and (table_of_attributes(value) is not None or bool(slots_of(kind)))


def goes_in_its_own_way(value: Any) -> bool:
    """Return whether an object does something as it goes, which it would not do while it is kept."""
    return hasattr(type(value), "__del__") and not isinstance(value, Module)


def is_settled(kind: type) -> bool:
    """Return whether objects of a class hold nothing that changes, or that programs look at."""
    module = module_of(kind)
    if module == "_thread" and kind.__name__ == "_local":
        return False
    if module == "types" and kind.__name__ == "SimpleNamespace":
        return False
    if module == "builtins" and hasattr(kind, "__next__"):
        return False
    if module == "decimal" and kind.__name__ == "Context":
        return False
    if module.startswith(LIBRARY):
        return not module.startswith(_OPEN)
    return module.partition(".")[0] in _SETTLED


def module_of(value: Any) -> str:
    """Return the name of the module of a function or class."""
    module = value.__module__
    return module if isinstance(module, str) else ""


def is_standard(module: str) -> bool:
    """Return whether a module is one of Python's."""
    return module.partition(".")[0] in _STANDARD and module != "__main__"


def is_foreign(module: str) -> bool:
    """Return whether a module is of this library or of Python's, whose functions stay."""
    return module.startswith(LIBRARY) or is_standard(module)


def is_own(kind: type) -> bool:
    """Return whether a class, modules among them, is a program's, and so are its bases."""
    return all([base in _PLAIN_BASES or not is_foreign(module_of(base)) for base in kind.__mro__])


def is_plain(value: Any) -> bool:
    """Return whether an object is its class and its attributes, and nothing besides that is hidden in C."""
    kind: Any = type(value)
    if not _is_plain_class(kind) or goes_in_its_own_way(value):
        return False
    return isinstance(table_of_attributes(value), dict) or bool(slots_of(kind))


@functools.lru_cache(512)
def _is_plain_class(kind: Any) -> bool:
    if issubclass(kind, (Module, type, TensorBase)) or not is_own(kind):
        return False
    bases = kind.__mro__[:-1]
    return not any([isinstance(vars(base).get("__new__"), BuiltinFunctionType) for base in bases])


def table_of_attributes(value: Any) -> Any:
    """Return the dictionary of an object's attributes; None if it has none."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


@functools.lru_cache(512)
def slots_of(kind: Any) -> list[tuple[str, Any]]:
    """Return the slots of a class with their descriptors."""
    return [
        (name, member)
        for base in kind.__mro__
        if not is_foreign(module_of(base))
        for name, member in vars(base).items()
        if isinstance(member, MemberDescriptorType)
    ]


def has_slots(kind: type) -> bool:
    """Return whether a class that was written in Python has slots."""
    return any(["__slots__" in vars(base) for base in kind.__mro__])
