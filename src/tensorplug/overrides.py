"""How classes and modes take over calls of functions of tensors: ``__torch_function__``, as in torch.

A subclass of :class:`~tensorplug.Tensor`, or any class, defines ``__torch_function__`` as a class method, and
gets the calls in which an object of it takes part. A :class:`TorchFunctionMode` gets all calls in its block::

    class Logged(tp.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            print(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

Calls without such an object cost what they did.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from tensorplug.core import Tensor
from tensorplug.core.dispatch import overrides as _core
from tensorplug.core.dispatch.overrides import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    PushedMode,
)

__all__ = [
    "BaseTorchFunctionMode",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

F = TypeVar("F", bound=Callable[..., Any])


class TorchFunctionMode(PushedMode):
    """Gets the calls that this thread makes in a ``with`` block, those that make tensors too.

    A subclass defines ``__torch_function__``, an ordinary method here. While it runs, calls meet the modes
    further out.

    Examples
    --------
    >>> import tensorplug as tp
    >>> class Names(TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Names():
    ...     x = tp.ones(2)
    ones
    """

    def __init__(self) -> None:
        """Make a mode; entering it has it get calls."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type[Any]],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Make a call, or return NotImplemented."""
        raise NotImplementedError


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that makes each call as it is."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type[Any]],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Make the call."""
        return func(*args, **(kwargs or {}))


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return whether an argument, or a mode, takes a call over.

    Examples
    --------
    >>> import tensorplug as tp
    >>> has_torch_function((tp.ones(1), tp.nn.Parameter(tp.ones(1))))
    False
    """
    return _core.modes_active() or bool(_core.relevant(tuple(relevant_args)))


def has_torch_function_unary(obj: Any) -> bool:
    """Return :func:`has_torch_function` of one argument."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """Return :func:`has_torch_function` of the arguments."""
    return has_torch_function(relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], /, *args: Any, **kwargs: Any
) -> Any:
    """Have a call of a function made by what takes it over.

    A function that is to be overridable begins with::

        if has_torch_function((a, b)):
            return handle_torch_function(function, (a, b), a, b)

    Parameters
    ----------
    public_api : callable
        The function, as users know it.
    relevant_args : iterable
        The arguments whose ``__torch_function__`` is asked.
    *args, **kwargs
        The arguments of the call.

    Raises
    ------
    TypeError
        If all return NotImplemented.
    """
    return _core.handle(public_api, _core.relevant(tuple(relevant_args)), args, kwargs)


def wrap_torch_function(
    dispatcher: Callable[..., Iterable[Any]],
) -> Callable[[F], F]:
    """Make a function overridable; `dispatcher` returns the relevant ones of its arguments.

    Examples
    --------
    >>> import tensorplug as tp
    >>> @wrap_torch_function(lambda a: (a,))
    ... def double(a):
    ...     return a + a
    >>> double(tp.ones(1))
    tensor([2.])
    """

    def declare(function: F) -> F:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            found = dispatcher(*args, **kwargs)
            if has_torch_function(found):
                return handle_torch_function(wrapped, found, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    return declare


def is_tensor_like(inp: Any) -> bool:
    """Return whether `inp` is a tensor, or of a class with a ``__torch_function__``."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def get_default_nowrap_functions() -> set[Any]:
    """Return the functions whose results the default ``__torch_function__`` leaves as they are."""
    return _core.unwrapped()


def _facade() -> Any:
    return sys.modules["tensorplug"]


def _namespaces() -> list[tuple[str, Any]]:
    from tensorplug import fft, linalg, nn, special

    return [
        ("torch", _facade()),
        ("torch.nn.functional", nn.functional),
        ("torch.nn.init", nn.init),
        ("torch.Tensor", Tensor),
        ("torch.linalg", linalg),
        ("torch.fft", fft),
        ("torch.special", special),
    ]


#: Functions that no tensor takes part in, or that no call is handed over of.
_IGNORED = (
    "are_deterministic_algorithms_enabled", "as_tensor", "asarray", "autocast", "can_cast",
    "compile", "enable_grad", "finfo", "from_dlpack", "from_numpy", "frombuffer", "get_default_device",
    "get_default_dtype", "get_rng_state", "iinfo", "initial_seed", "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_storage", "is_tensor", "load", "manual_seed", "no_grad", "promote_types", "save", "seed",
    "set_default_device", "set_default_dtype", "set_flush_denormal", "set_grad_enabled", "set_num_threads",
    "set_printoptions", "set_rng_state", "tensor", "typename", "use_deterministic_algorithms", "vmap",
    "arange", "empty", "empty_strided", "eye", "full", "linspace", "logspace", "ones", "rand",
    "randint", "randn", "randperm", "range", "zeros",
)  # fmt: skip


@functools.cache
def get_ignored_functions() -> set[Any]:
    """Return the public functions that cannot be overridden by an argument."""
    found = {getattr(_facade(), name) for name in _IGNORED if hasattr(_facade(), name)}
    for name in ("__new__", "__hash__", "__init_subclass__", "__iter__", "as_subclass"):
        function = getattr(Tensor, name)
        found.add(getattr(function, "__func__", function))
    return found


@functools.cache
def _overridable() -> tuple[dict[Any, list[Any]], dict[Any, str]]:
    functions: dict[Any, list[Any]] = {}
    names: dict[Any, str] = {}
    ignored = get_ignored_functions()
    for path, namespace in _namespaces():
        found = functions.setdefault(namespace, [])
        for name in dir(namespace):
            private = name.startswith("_") and not (namespace is Tensor and name.startswith("__"))
            if private and name not in ("_base", "_version", "_is_view"):
                continue
            if namespace is Tensor:
                value = _core.member(Tensor, name)
                if value is None:
                    continue
                if isinstance(value, property) or hasattr(value, "__set__"):
                    value = value.__get__
            else:
                value = getattr(namespace, name, None)
                if not (isinstance(value, types.FunctionType) or hasattr(value, "op")):
                    continue
            if not callable(value) or value in ignored or isinstance(value, type):
                continue
            if value not in names:
                found.append(value)
                names[value] = f"{path}.{name}" + (
                    ".__get__" if value.__name__ == "__get__" else ""
                )
    return functions, names


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Return the functions that ``__torch_function__`` is asked for, by the namespace that has them."""
    return {namespace: list(found) for namespace, found in _overridable()[0].items()}


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Return a function of the same signature, which returns -1, for each that is overridable.

    Examples
    --------
    >>> import inspect
    >>> import tensorplug as tp
    >>> stand_in = get_testing_overrides()[tp.lerp]
    >>> list(inspect.signature(stand_in).parameters)
    ['input', 'end', 'weight']
    """
    return {function: _stand_in(function) for function in _overridable()[1]}


def _stand_in(function: Any) -> Callable[..., Any]:
    def returns(*_args: Any, **_kwargs: Any) -> int:
        return -1

    with contextlib.suppress(TypeError, ValueError):  # slots of types have none
        returns.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return returns


def resolve_name(f: Any) -> str | None:
    """Return the name under which users know a function that is handed to ``__torch_function__``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> resolve_name(tp.Tensor.add), resolve_name(tp.add)
    ('torch.Tensor.add', 'torch.add')
    """
    names = _overridable()[1]
    return names.get(f) if isinstance(f, types.MethodWrapperType) or callable(f) else None


@functools.cache
def _methods() -> set[Any]:
    return set(_overridable()[0][Tensor])


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Return whether a function is a method of Tensor, or ``__get__`` of one of its attributes.

    Examples
    --------
    >>> import tensorplug as tp
    >>> is_tensor_method_or_property(tp.Tensor.add), is_tensor_method_or_property(tp.add)
    (True, False)
    """
    return func in _methods() or getattr(func, "__name__", None) in ("__get__", "__set__")
