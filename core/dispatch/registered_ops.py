"""The registry of ops, and the methods that they bring."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, cast

from ..errors import RegistrationError
from . import keys
from .op import Op
from .state import dispatch_state

OPS: dict[str, Op] = {}
#: Ops by their aliases, and by the names of functions that are not ops themselves: see ``defined_by``.
DEFINED: dict[str, Op] = {}
_HANDLES: dict[str, Op] = {}


class Unregistered:
    """The index of an op that no plugin has handed over yet: using it has that plugin loaded."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __index__(self) -> int:
        # Whoever imports an extension's package may call its ops before anything else loads it.
        reason = dispatch_state.find_missing(self.name)
        op = OPS.get(self.name)
        if op is not None and type(op.index) is int:
            return op.index
        raise RegistrationError(
            f"op {self.name!r} is declared but not registered; return it from the "
            f"tensorplug_ops hook of a plugin, and register that plugin{reason}"
        )


def handle(name: str) -> Op:
    """Return the op that core declares under `name`, which may happen later."""
    op = OPS.get(name) or _HANDLES.get(name)
    if op is None:
        op = _HANDLES[name] = Op(name, Unregistered(name))
    return op


def claim(name: str) -> Op:
    """Return the op that a declaration under `name` fills in: a new one, or the handle asked for before."""
    op = _HANDLES.get(name)
    if op is None or op.declared:
        op = Op(name, Unregistered(name))
        _HANDLES.setdefault(name, op)  # for handles asked for between declaration and registration
    return op


def register_op(op: Op, owner: str) -> None:
    """Put a declared op into the registry and give every kernel table a slot for it.

    Raises
    ------
    RegistrationError
        If the name of the op, or of a method it brings, is taken; the message names both owners.
    """
    with keys.lock:
        known = OPS.get(op.name)
        if known is not None:
            raise RegistrationError(
                f"{owner}: op {op.name!r} is already registered by {known.owner}"
            )
        if not op.declared:
            raise RegistrationError(f"{owner}: op {op.name!r} has no declaration")
        _add_methods(op, owner)
        op.owner = owner
        keys.ops.append(op)
        for key in keys.all_keys():
            keys.extend_tables(key)
        op.index = len(keys.ops) - 1  # from here on it can be called
        op.overridden = op.derivative is not None
        OPS[op.name] = op
        for alias in op.aliases:
            DEFINED.setdefault(alias, op)


# The methods that each op brought; those of core that are written by hand in Tensor are not among them.
_METHODS: dict[str, dict[str, Callable[..., Any]]] = {}


def _add_methods(op: Op, owner: str) -> None:
    wanted: dict[str, Callable[..., Any]] = {}
    if op.method is not None:
        wanted = {name: _as_method(op, name) for name in (op.method, *op.aliases)}
    if op.inplace is not None:
        for base in (op.inplace[:-1], *op.aliases):
            wanted[f"{base}_"] = dispatch_state.build_inplace(op, f"{base}_")
    added = _METHODS[op.name] = {}
    for name, function in wanted.items():
        if dispatch_state.add_method(name, function):
            added[name] = function
        elif owner != "tensorplug":
            _remove_methods(op)
            brought = next((other for other, own in _METHODS.items() if name in own), None)
            whose = "" if brought is None else f", brought by {brought!r} of {OPS[brought].owner}"
            raise RegistrationError(
                f"{owner}: op {op.name!r} brings the method Tensor.{name}, which exists already{whose}; "
                "declare the op with method=False, or under another name"
            )


def _as_method(op: Op, name: str) -> Callable[..., Any]:
    """Return an op's function once more, as the method: what takes calls over can tell the two apart."""
    function: Any = op.call
    method: Any
    if isinstance(function, FunctionType):
        method = FunctionType(
            function.__code__,
            function.__globals__,
            name,
            function.__defaults__,
            function.__closure__,
        )
        method.__kwdefaults__ = function.__kwdefaults__
    else:  # compiled
        method = dispatch_state.build_call(op)
        method.__name__ = name
    for attribute in functools.WRAPPER_ASSIGNMENTS:
        # Compiled functions have no __type_params__, which Python 3.12 names there.
        if attribute != "__name__" and hasattr(function, attribute):
            setattr(method, attribute, getattr(function, attribute))
    method.__dict__.update(function.__dict__)
    return method


def _remove_methods(op: Op) -> None:
    for name, function in _METHODS.pop(op.name, {}).items():
        dispatch_state.remove_method(name, function)


def unregister_op(op: Op) -> None:
    """Take an op out of the registry; its slot in the tables stays unused."""
    with keys.lock:
        OPS.pop(op.name, None)
        for alias in op.aliases:
            if DEFINED.get(alias) is op:
                del DEFINED[alias]
        _remove_methods(op)
        op.index = cast(int, Unregistered(op.name))


def has_op(name: str) -> bool:
    """Return whether an op of that name is registered now; loads nothing."""
    return name in OPS


def all_ops() -> Iterator[Op]:
    """Yield every registered op, in the order of registration."""
    return iter([op for op in keys.ops if OPS.get(op.name) is op])


def op_at(index: int) -> Op:
    """Return the op with this index in the kernel tables."""
    return keys.ops[index]
