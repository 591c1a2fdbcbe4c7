"""What a file may name besides tensors with ``weights_only=False``.

Values of Python's library and of NumPy, made by functions that check what they are given; and the
classes that the program itself has imported, whose objects are made without ``__init__``, as pickle
does. No function that a file names is called; those of torch are known as values only, as the
activation of a layer is one.
"""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import pickle
import re
import sys
import types
from collections.abc import Callable
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.device import Device
from tensorplug.core.device.generator import Generator
from tensorplug.core.tensor.base import TensorBase

from . import numpy_values, torch_names

Maker = Callable[..., Any]

_HEAP_TYPE = 1 << 9  # of a class's flags: made by a class statement
_BUILTINS = {
    "Ellipsis": Ellipsis, "NotImplemented": NotImplemented, "bool": bool, "bytearray": bytearray,
    "bytes": bytes, "complex": complex, "dict": dict,
    "float": float, "frozenset": frozenset, "int": int, "list": list, "object": object, "set": set,
    "slice": slice, "str": str, "tuple": tuple,
}  # fmt: skip
#: What makes a bare object of a class that derives from it.
_NEW = tuple(cls.__new__ for cls in (object, dict, list, tuple, set, frozenset, BaseException))
_NEW_OF_VALUES = tuple(cls.__new__ for cls in (int, float, str))


def _of_values(cls: Any) -> Maker:
    """Return what makes a value of plain ones, and of values of the same module."""

    def make(*args: Any) -> Any:
        for arg in args:
            plain = isinstance(arg, (int, float, str, bytes, type(None)))
            if not plain and type(arg).__module__.partition(".")[0] not in ("datetime", "zoneinfo"):
                raise pickle.UnpicklingError(f"a {cls.__name__} of a {type(arg).__name__}")
        return cls(*args)

    return make


def _path(*parts: Any) -> Any:
    """Return a path of this system: that of another cannot be made."""
    import pathlib

    return pathlib.Path(*[str(part) for part in parts if isinstance(part, str)])


def _pure_path(name: str) -> Maker:
    def make(*parts: Any) -> Any:
        import pathlib

        return getattr(pathlib, name)(*[part for part in parts if isinstance(part, str)])

    return make


def _fraction(*parts: Any) -> Any:
    from fractions import Fraction

    # "1e999999999" would be computed
    texts = all([isinstance(p, str) and re.fullmatch(r"-?\d+(/\d+)?", p) for p in parts])
    if not texts and not all([isinstance(part, int) for part in parts]):
        raise pickle.UnpicklingError("a Fraction that Python does not write")
    return Fraction(*parts)


def _default_dict(factory: Any = None) -> Any:
    from collections import defaultdict

    return defaultdict(factory if callable(factory) else None)


def _deque(items: Any = (), maxlen: Any = None) -> Any:
    from collections import deque

    if not (isinstance(items, (tuple, list)) and isinstance(maxlen, int | None)):
        raise pickle.UnpicklingError("a deque that Python does not write")
    return deque(items, maxlen)


def _partial(function: Any, *nothing: Any) -> Any:
    return functools.partial(function)


def _none_type(value: Any) -> Any:
    if value not in (None, Ellipsis, NotImplemented):
        raise pickle.UnpicklingError("the type of a value")
    return type(value)


_METHODS = (types.FunctionType, type(_none_type))  # the second one is a compiled function's


def _member(owner: Any, name: Any) -> Any:
    """Return a member of an enum, a class within a class, an object's method, or a function of torch's."""
    if owner is _Functions and isinstance(name, str):
        found = torch_names.find("torch", name)
        if torch_names.is_op(found):
            return found
    elif isinstance(owner, type) and isinstance(name, str) and may_hold(owner):
        if issubclass(owner, enum.Enum) and name in owner.__members__:
            return owner[name]
        inner = owner.__dict__.get(name)
        if isinstance(inner, type) and may_hold(inner):
            return inner
    elif isinstance(name, str) and may_hold(type(owner)):
        # No file calls it: it is a value, such as what modules hold whose `forward` was replaced.
        method = inspect.getattr_static(type(owner), name, None)
        if isinstance(method, _METHODS):
            return types.MethodType(method, owner)
    kind = owner if isinstance(owner, type) else type(owner)
    raise pickle.UnpicklingError(f"the attribute {name!r} of {kind.__name__:.80}")


class _Functions:
    """Stands for the class whose attributes torch's functions are in pickles."""


def _bare(cls: Any) -> Maker:
    return lambda *nothing: cls.__new__(cls)


# What makes each; by module, then by name. Imported when a file has one.
_MAKERS: dict[str, dict[str, Callable[[Any], Maker]]] = {
    "datetime": dict.fromkeys(("date", "datetime", "time", "timedelta", "timezone"), _of_values),
    "decimal": {"Decimal": _of_values},
    "fractions": {"Fraction": lambda cls: _fraction},
    "builtins": {
        "range": lambda cls: _of_values(range),
        "type": lambda cls: _none_type,
        "getattr": lambda cls: _member,
    },
    "collections": {"defaultdict": lambda cls: _default_dict, "deque": lambda cls: _deque},
    "functools": {"partial": lambda cls: _partial},
    "types": {"SimpleNamespace": _bare},
    "argparse": {"Namespace": _bare},
    "uuid": {"UUID": _bare},
    "random": {"Random": _bare},
    **{
        f"pathlib{private}": {
            **dict.fromkeys(("Path", "PosixPath", "WindowsPath"), lambda cls: _path),
            **{
                name: lambda cls, name=name: _pure_path(name)  # type: ignore[misc]
                for name in ("PurePath", "PurePosixPath", "PureWindowsPath")
            },
        }
        for private in ("", "._local")
    },
}


def _namespace(target: Any, state: Any) -> None:
    if not (isinstance(state, dict) and all([isinstance(name, str) for name in state])):
        raise pickle.UnpicklingError("the state of a namespace")
    vars(target).update(state)


def _set_uuid(target: Any, state: Any) -> None:
    if not (isinstance(state, dict) and isinstance(state.get("int"), int)):
        raise pickle.UnpicklingError("the state of a UUID")
    target.__setstate__(state)


def _set_random(target: Any, state: Any) -> None:
    target.setstate(state)


def _set_partial(target: Any, state: Any) -> None:
    target.__setstate__(state)


def _set_rng(target: Generator, state: Any) -> None:
    """Give a generator its state; of torch's, whose numbers are others, the seed."""
    match state:
        case (int(seed), _, Tensor() as kept):
            target.manual_seed(seed)
            if kept.numel() == target.get_state().numel():
                target.set_state(kept)
        case _:
            raise pickle.UnpicklingError("the state of a generator")


def _generator(device: Any = "cpu") -> Generator:
    if not isinstance(device, (Device, str)):
        raise pickle.UnpicklingError("a generator of no device")
    return Generator(device)


def may_hold(cls: Any) -> bool:
    """Return whether a file may hold objects of a class: one that the program has imported.

    Not one of Python's own library, of which the known ones are listed, nor one that does something
    when an object goes away.
    """
    module = cls.__module__ if isinstance(getattr(cls, "__module__", None), str) else ""
    root = module.partition(".")[0]
    if (root in sys.stdlib_module_names and root != "__main__") or root == "numpy":
        return False
    if not cls.__flags__ & _HEAP_TYPE or hasattr(cls, "__del__") or issubclass(cls, type):
        return False
    return not issubclass(cls, TensorBase)


def may_make(cls: Any) -> bool:
    """Return whether an object of a class may be made bare, by its ``__new__``."""
    made = getattr(cls, "__new__", None)
    return (
        isinstance(cls, type)
        and may_hold(cls)
        and (isinstance(made, types.FunctionType) or made in _NEW or made in _NEW_OF_VALUES)
    )


def make(cls: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return a bare object of a class that :func:`may_make` allows."""
    if cls.__new__ in _NEW_OF_VALUES and not all(
        [isinstance(arg, (int, float, str)) for arg in arguments]
    ):
        raise pickle.UnpicklingError(f"a {cls.__name__} of no plain value")
    return cls.__new__(cls, *arguments, **keywords)


def _imported(module: str, name: str) -> Any:
    """Return a class of a module that has been imported, or a function of the program itself."""
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    if isinstance(value, type) and (may_hold(value) or issubclass(value, Tensor)):
        return value
    own = isinstance(value, types.FunctionType) and module == value.__module__ == "__main__"
    return value if own or torch_names.is_op(value) else None


class KnownValues:
    """The names of one file and what was found for them."""

    def __init__(self) -> None:
        self._makers: dict[int, tuple[Any, Maker]] = {}

    def find(self, module: str, name: str, container: Maker | None = None) -> Any:
        """Return what a name stands for; None if a file may not name it.

        `container` is what makes it, if it is a plain container.
        """
        value, maker = self._find("builtins" if module == "__builtin__" else module, name)
        maker = maker or container
        if maker is not None:
            self._makers[id(value)] = value, maker
        return value

    def maker(self, function: Any) -> Maker | None:
        """Return what is to be called instead of a function or class of a file."""
        _, maker = self._makers.get(id(function), (None, None))
        if maker is None and isinstance(function, type) and issubclass(function, enum.Enum):
            return function if may_hold(function) else None
        return maker

    def setter(self, target: Any) -> Callable[[Any, Any], None] | None:
        """Return what gives an object its state; None if a file may not."""
        for cls in type(target).__mro__:
            if cls in numpy_values.SETTERS:
                return numpy_values.SETTERS[cls]
            if cls is functools.partial:
                return _set_partial
            if cls is Generator:
                return _set_rng
            known = {
                ("types", "SimpleNamespace"): _namespace,
                ("argparse", "Namespace"): _namespace,
                ("uuid", "UUID"): _set_uuid,
                ("random", "Random"): _set_random,
            }.get((cls.__module__, cls.__name__))
            if known is not None:
                return known
        return None

    def _find(self, module: str, name: str) -> tuple[Any, Maker | None]:
        if module == "builtins" and name in _BUILTINS:
            return _BUILTINS[name], None
        if module == "collections" and name in ("OrderedDict", "Counter"):
            return getattr(importlib.import_module(module), name), None
        if name in _MAKERS.get(module, ()):
            value = getattr(importlib.import_module(module.partition(".")[0]), name)
            return value, _MAKERS[module][name](value)
        if module.partition(".")[0] == "numpy":
            return numpy_values.find(module, name) or (None, None)
        if (module, name) == ("torch._C", "_VariableFunctionsClass"):
            return _Functions, None
        if module.partition(".")[0] != "torch":
            return _imported(module, name), None
        value = torch_names.find(module, name)
        if value is Generator:
            return value, _generator
        if isinstance(value, type):
            return (
                (value, None) if issubclass(value, TensorBase) or may_hold(value) else (None, None)
            )
        return (value, None) if torch_names.is_op(value) else (None, None)
