"""What takes calls over by ``__torch_function__``: subclasses of Tensor, other classes, and modes.

Nothing looks for them while there is none. A tensor of a class that takes calls over counts as an active
layer as long as it lives, and so does a mode in its block: calls of ops then ask :func:`_takes_over`.
Methods, attributes and operators of such a tensor go through its class, which :func:`prepare` gives what it
takes. What is no tensor is found where a call looks at unusual arguments: :class:`.arguments.Foreign`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator, nullcontext
from functools import partial
from typing import Any, TypeVar

from ..contexts import Context, Mode, declare, thread
from ..tensor import base
from .counts import count_layers, settle
from .op import Op
from .op_names import PUBLIC
from .state import dispatch_state

T = TypeVar("T")

#: What a thread leaves to overrides: nothing, modes alone, or all.
NOTHING, MODES, ALL = 0, 1, 2
# Tensor, put here by its module, which needs this one.
tensor_class: Any = base.TensorBase

# `tracing`: whether proxies may be among the arguments, which are no tensors. `dispatching`: whether classes
# are asked for their ``__torch_dispatch__``. `in_formula`: whether a formula of a derivative runs.
declare(modes=(), overrides=ALL, tracing=False, dispatching=True, in_formula=False)

_LEAVES = frozenset({int, float, bool, complex, str, type(None)})


class DisableTorchFunctionSubclass(Context, ContextDecorator):
    """Has calls in a ``with`` block ignore ``__torch_function__`` of classes; modes go on.

    Examples
    --------
    >>> import tensorplug as tp
    >>> class Own(tp.Tensor):
    ...     pass
    >>> x = tp.ones(2).as_subclass(Own)
    >>> with tp.overrides.DisableTorchFunctionSubclass():
    ...     type(x + 1).__name__
    'Tensor'
    """

    __slots__ = ()

    def _changes(self) -> dict[str, Any]:
        return {"overrides": min(thread.overrides, MODES)}


class DisableTorchFunction(Context, ContextDecorator):
    """Has calls in a ``with`` block ignore ``__torch_function__`` of classes and of modes."""

    __slots__ = ()

    def _changes(self) -> dict[str, Any]:
        return {"overrides": NOTHING}


class _InFormula(Context):
    """Has calls go on as those of a formula, in the dtypes that the call had which it differentiates."""

    __slots__ = ()

    def _changes(self) -> dict[str, Any]:
        return {"overrides": NOTHING, "in_formula": True}


_NO_CONTEXT = nullcontext()


def in_formula() -> Any:
    """Return a context in which formulas run: what they call is no call of the user's."""
    return _InFormula() if dispatch_state.layers_active else _NO_CONTEXT


class PushedMode(Mode):
    """Base of modes: has one see the calls of this thread."""

    __slots__ = ()

    def _changes(self) -> dict[str, Any]:
        return count_layers() | {"modes": (*thread.modes, self)}


class _Below(Context):
    """Has calls meet these modes only."""

    __slots__ = ("modes",)

    def __init__(self, modes: tuple[Any, ...]) -> None:
        self.modes = modes

    def _changes(self) -> dict[str, Any]:
        return {"modes": self.modes}


class DisableTorchDispatch(Context, ContextDecorator):
    """Has calls in a ``with`` block ignore ``__torch_dispatch__`` of classes."""

    __slots__ = ()

    def _changes(self) -> dict[str, Any]:
        return {"dispatching": False}


def disabled_torch_dispatch_impl(
    func: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """Make a call as if there were no ``__torch_dispatch__``; as that of a class, it has none."""
    with DisableTorchDispatch():
        return func(*args, **(kwargs or {}))


def disabled_torch_function_impl(
    func: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """Make a call as if there were no override; as ``__torch_function__`` of a class, it has none."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def overrides(cls: type[Any]) -> bool:
    """Return whether a class takes calls over."""
    method = getattr(cls, "__torch_function__", None)
    return (
        method is not None
        and method is not disabled_torch_function_impl
        and cls is not tensor_class
        and not of_another_library(cls)
    )


def of_another_library(cls: type[Any]) -> bool:
    """Return whether a class is another library's Tensor: what takes calls over for it makes them again."""
    function = getattr(getattr(cls, "__torch_function__", None), "__func__", None)
    if getattr(function, "__qualname__", "") != "Tensor.__torch_function__":
        return False
    return function is not tensor_class.__torch_function__.__func__


#: Whether there is a class with ``__torch_dispatch__``.
classes_dispatch = False


def dispatches(cls: type[Any]) -> bool:
    """Return whether a class takes calls over by ``__torch_dispatch__``."""
    method = getattr(cls, "__torch_dispatch__", None)
    return (
        method is not None
        and method is not disabled_torch_dispatch_impl
        and not of_another_library(cls)
    )


def overriding(values: Iterable[Any], takes: Callable[[type[Any]], bool] = overrides) -> list[Any]:
    """Return those values, also in lists and tuples, whose classes take calls over.

    One of each class, a subclass before what it is a subclass of, in order otherwise.
    """
    found: list[Any] = []
    _collect(values, found, 0, takes)
    return found


def _collect(
    values: Iterable[Any], found: list[Any], depth: int, takes: Callable[[type[Any]], bool]
) -> None:
    for value in values:
        kind = type(value)
        if kind is tensor_class or kind in _LEAVES:
            continue
        if kind is tuple or kind is list:
            if depth < 2:
                _collect(value, found, depth + 1, takes)
        elif takes(kind) and not any([type(other) is kind for other in found]):
            for position, other in enumerate(found):
                if issubclass(kind, type(other)):
                    found.insert(position, value)
                    break
            else:
                found.append(value)


def relevant(args: Iterable[Any], kwargs: dict[str, Any] | None = None) -> list[Any]:
    """Return what may take over a call with these arguments in this thread, modes aside."""
    if thread.overrides < ALL:
        return []
    return overriding((*args, *kwargs.values()) if kwargs else args)


def modes_active() -> bool:
    """Return whether a mode sees this thread's calls."""
    return bool(thread.modes) and thread.overrides != NOTHING


def handle(func: Any, found: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Offer a call to the innermost mode, and then to these arguments, until one makes it.

    Raises
    ------
    TypeError
        If all return NotImplemented.
    """
    types = tuple([type(value) for value in found])
    if modes_active():
        mode = thread.modes[-1]
        with _Below(thread.modes[:-1]):
            result = mode.__torch_function__(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for value in found:
        result = value.__torch_function__(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    asked = [f"  - mode object {thread.modes[-1]}"] if modes_active() else []
    asked += [f"  - tensor subclass {kind}" for kind in types]
    raise TypeError(
        f"Multiple dispatch failed for '{getattr(func, '__name__', func)}'; all __torch_function__ handlers "
        "returned NotImplemented:\n\n" + "\n".join(asked)
    )


def default(
    cls: Any,
    func: Any,
    types: Iterable[type[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
) -> Any:
    """Do what ``Tensor.__torch_function__`` does: make the call, and have its tensors be of the class."""
    if not all([issubclass(cls, kind) for kind in types]) or overriding(args, of_another_library):
        return NotImplemented
    if cls is tensor_class and thread.overrides < ALL:
        # Another library's function, which would be made again below.
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
        if cls is tensor_class or func in unwrapped():
            return result
        return _converted(result, cls)


def _converted(result: Any, cls: type[Any]) -> Any:
    if isinstance(result, base.TensorBase):
        return result if isinstance(result, cls) else result.as_subclass(cls)  # type: ignore[attr-defined]
    if isinstance(result, (tuple, list)):
        items = [_converted(item, cls) for item in result]
        if hasattr(result, "_fields"):
            return type(result)(*items)
        return type(result)(items)
    return result


def unwrapped() -> set[Any]:
    """Return the functions whose results keep their class."""
    tensor: Any = tensor_class
    return {tensor._base.__get__, tensor.grad.__get__, tensor.__reduce_ex__}


# --- calls of ops ---


def _takes_over(args: Iterable[Any], kwargs: dict[str, Any] | None) -> bool:
    """Return whether a layer, a preference or an override of this thread is about a call."""
    if thread.stack or thread.preferred:
        return True
    if thread.overrides and (
        thread.modes or ((_alive or thread.tracing) and relevant(args, kwargs))
    ):
        return True
    if (
        classes_dispatch
        and thread.dispatching
        and overriding((*args, *(kwargs or {}).values()), dispatches)
    ):
        return True
    settle()
    return False


def taken_over(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
) -> tuple[Any] | None:
    """Return the result, in a tuple, of a call of a function or an op that an override makes; else None."""
    if not thread.overrides:
        return None
    found = relevant(args, kwargs)
    if not found and not thread.modes:
        return None
    if isinstance(func, Op):
        func = public(func, args, kwargs)
    return (handle(func, found, args, kwargs or {}),)


def public(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """Return what users make a call of an op by: its function, or the method that writes in place."""
    if op.inplace_of is not None:
        return getattr(tensor_class, op.name, op.call)  # some are functions alone
    if op.name == "basic_index":
        return tensor_class.__getitem__
    function, names = PUBLIC.get(op, (None, ()))
    if function is None or len(args) > len(names) or not {*names}.issuperset(kwargs or ()):
        return op.call
    return function


dispatch_state.takes_over = _takes_over


# --- tensors of classes that take calls over ---

_alive: set[weakref.ref[Any]] = set()

#: Whether a call of a tensor without memory was recorded, and such tensors live: backward works on tensors.
recorded = False


def note(tensor: T) -> T:
    """Have calls look for overrides until a tensor is gone; return it."""
    if overrides(type(tensor)) or dispatches(type(tensor)):
        if not _alive:
            dispatch_state.count_layers(1)
        _alive.add(weakref.ref(tensor, _gone))
    return tensor


def notes_of(tensor: Any) -> list[weakref.ref[Any]]:
    """Return those references to a tensor that :func:`note` made."""
    return [known for known in weakref.getweakrefs(tensor) if known.__callback__ is _gone]


def note_anew(tensor: Any) -> None:
    """Do what :func:`note` does with a tensor whose class has changed."""
    for reference in notes_of(tensor):
        _gone(reference)
    note(tensor)


def _gone(reference: weakref.ref[Any]) -> None:
    global recorded
    _alive.discard(reference)
    if not _alive:
        recorded = False
        dispatch_state.count_layers(-1)


#: Operators, and the methods as which overrides meet them, as in torch; the others go by their own names.
_AS_METHODS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "mod": "remainder", "pow": "pow",
    "matmul": "matmul", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "ne": "ne",
}  # fmt: skip
_REFLECTED = {
    "add": "add",
    "mul": "mul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
_IN_PLACE = {
    "add": "add_", "sub": "sub_", "mul": "mul_", "truediv": "div_", "floordiv": "floor_divide_",
    "mod": "remainder_", "pow": "pow_",
}  # fmt: skip
_BOTH_WAYS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift",
    "rshift",
)  # fmt: skip
_ONE_WAY = ("lt", "le", "gt", "ge", "eq", "ne")
_UNARY = {"neg": "neg", "pos": "positive", "abs": "abs"}
_OTHERS = (
    "invert", "getitem", "setitem", "len", "bool", "int", "float", "complex", "index", "contains",
    "repr", "format",
)  # fmt: skip


def prepare(cls: Any) -> None:
    """Have a subclass of Tensor take over what is done with its tensors, if it overrides and does not yet."""
    global classes_dispatch
    tensor: Any = tensor_class
    if dispatches(cls):
        classes_dispatch = True
        function = getattr(cls.__torch_function__, "__func__", None)
        if function is tensor.__torch_function__.__func__:
            cls.__torch_function__ = disabled_torch_function_impl  # as in torch: it is asked below
    if not overrides(cls) or getattr(cls, "__getattribute__", None) is _getattribute:
        return
    for name, function in _special_methods().items():
        if getattr(cls, name) is getattr(tensor, name):
            setattr(cls, name, function)
    for name, hook in (
        ("__getattribute__", _getattribute),
        ("__setattr__", _setattr),
        ("__delattr__", _delattr),
    ):
        if getattr(cls, name) is getattr(object, name):
            setattr(cls, name, hook)


def _special_methods() -> dict[str, Callable[..., Any]]:
    if not _specials:
        for name in (*_BOTH_WAYS, *_ONE_WAY):
            forward = _AS_METHODS.get(name, f"__{name}__")
            _specials[f"__{name}__"] = _binary(f"__{name}__", forward)
            if name in _BOTH_WAYS:
                special = f"__r{name}__"
                _specials[special] = _reflected(special, forward, _REFLECTED.get(name, special))
                if name != "matmul":
                    special = f"__i{name}__"
                    _specials[special] = _binary(special, _IN_PLACE.get(name, special))
        for name in (*_UNARY, *_OTHERS):
            special = f"__{name}__"
            _specials[special] = _special(special, _UNARY.get(name, special))
    return _specials


_specials: dict[str, Callable[..., Any]] = {}


def _method(name: str) -> Any:
    return getattr(tensor_class, name)


def _call(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a method of Tensor, or have it taken over."""
    found = relevant(args, kwargs)
    if found or modes_active():
        return handle(func, found, args, kwargs)
    return func(*args, **kwargs)


def _is_operand(value: Any) -> bool:
    return isinstance(value, (base.TensorBase, int, float, complex)) or overrides(type(value))


def _binary(special: str, name: str) -> Callable[..., Any]:
    def operator(self: Any, other: Any) -> Any:
        if not _is_operand(other):
            return _method(special)(self, other)
        return _call(_method(name), self, other)

    operator.__name__ = special
    return operator


def _reflected(special: str, forward: str, name: str) -> Callable[..., Any]:
    def operator(self: Any, other: Any) -> Any:
        if not _is_operand(other):
            return _method(special)(self, other)
        if isinstance(other, base.TensorBase):  # Python asks the subclass first
            return _call(_method(forward), other, self)
        return _call(_method(name), self, other)

    operator.__name__ = special
    return operator


def _special(special: str, name: str) -> Callable[..., Any]:
    def operator(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _call(_method(name), self, *args, **kwargs)

    operator.__name__ = special
    return operator


#: What is never taken over.
_OWN = frozenset(
    {
        "as_subclass",
        "__class__",
        "__dict__",
        "__doc__",
        "__hash__",
        "__init_subclass__",
        "__iter__",
        "__module__",
        "__new__",
        "__reduce__",
        "__torch_function__",
        "__weakref__",
    }
)
_PRIVATE = frozenset({"_base", "_version", "_is_view"})


def member(cls: type[Any], name: str) -> Any:
    """Return what Tensor itself has under a name, if overrides of a class meet it; else None."""
    if name[0] == "_" and not (name[:2] == "__" or name in _PRIVATE):
        return None
    for base_class in cls.__mro__:
        if name in base_class.__dict__:
            if base_class is object or name in _OWN or base_class not in tensor_class.__mro__:
                return None
            found = base_class.__dict__[name]
            return found if hasattr(found, "__get__") else None
    return None


def _getattribute(self: Any, name: str) -> Any:
    if thread.overrides == ALL or modes_active():
        found = member(type(self), name)
        if found is not None:
            if hasattr(found, "__set__"):
                return _call(found.__get__, self)
            # As with any method, an attribute of the tensor itself comes first.
            own = name in getattr(self, "__dict__", ())
            if not own and not isinstance(found, (classmethod, staticmethod)):
                return partial(_call, _method(name), self)
    return object.__getattribute__(self, name)


def _setattr(self: Any, name: str, value: Any) -> None:
    found: Any = member(type(self), name) if thread.overrides == ALL or modes_active() else None
    if hasattr(found, "__set__"):
        _call(found.__set__, self, value)
    else:
        object.__setattr__(self, name, value)


def _delattr(self: Any, name: str) -> None:
    found: Any = member(type(self), name) if thread.overrides == ALL or modes_active() else None
    if hasattr(found, "__delete__"):
        _call(found.__delete__, self)
    else:
        object.__delattr__(self, name)
