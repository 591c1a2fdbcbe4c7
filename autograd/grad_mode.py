"""Modes of a thread: whether it records, and whether it makes inference tensors."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast

from tensorplug.core.contexts import Context
from tensorplug.core.dispatch.counts import count_grad_disabled, count_inference
from tensorplug.core.dispatch.layers import recording
from tensorplug.core.errors import check_flag

P = ParamSpec("P")
R = TypeVar("R")


class _Mode(Context):
    """A context manager that decorates functions too, and generator functions."""

    enabled = True
    inference: bool | None = None  # as it is

    def _changes(self) -> dict[str, Any]:
        count_grad_disabled()
        changes: dict[str, Any] = {"enabled": self.enabled}
        if self.inference is not None:
            if self.inference:
                count_inference()
            changes["inference"] = self.inference
        return changes

    def _again(self) -> _Mode:
        """Return a fresh instance, for one call of a decorated function."""
        return type(self)()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        given: object = function
        if not callable(given):
            raise TypeError(f"{type(self).__name__} decorates functions, got {function!r}")
        if isinstance(given, type):
            warnings.warn(
                "Decorating classes is deprecated: only what makes an instance runs in the mode. Decorate "
                "__init__, or the methods that are meant.",
                FutureWarning,
                stacklevel=2,
            )
        if inspect.isgeneratorfunction(function):
            wrapped: Callable[P, R] = self._wrap_generator(function)
            return wrapped

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._again():
                return function(*args, **kwargs)

        return call

    def _wrap_generator(self, function: Callable[..., Generator[Any, Any, Any]]) -> Any:
        """Return the generator function with the mode on while it runs, not while its consumer does."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            with self._again():
                generator = function(*args, **kwargs)
            step: Callable[[], Any] = functools.partial(next, generator)
            while True:
                try:
                    with self._again():
                        value = step()
                except StopIteration as stop:
                    return stop.value
                try:
                    sent = yield value
                except GeneratorExit:
                    with self._again():
                        generator.close()
                    raise
                except BaseException as error:
                    step = functools.partial(generator.throw, error)
                else:
                    step = functools.partial(generator.send, sent)

        return call


class no_grad(_Mode):
    """Record nothing in this thread, within a ``with`` block or a decorated function.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.ones(1, requires_grad=True)
    >>> with tp.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    enabled = False

    def __new__(cls, orig_func: Any = None) -> Self:
        """Decorate at once where used without parentheses."""
        mode = object.__new__(cls)
        return mode if orig_func is None else cast(Self, mode(orig_func))

    if TYPE_CHECKING:

        def __init__(self, orig_func: Any = None) -> None: ...


class enable_grad(_Mode):
    """Record again within a :class:`no_grad` block; in :class:`inference_mode` nothing is, even so.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.ones(1, requires_grad=True)
    >>> with tp.no_grad(), tp.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    def __new__(cls, orig_func: Any = None) -> Self:
        """Decorate at once where used without parentheses."""
        mode = object.__new__(cls)
        return mode if orig_func is None else cast(Self, mode(orig_func))

    if TYPE_CHECKING:

        def __init__(self, orig_func: Any = None) -> None: ...


class set_grad_enabled(_Mode):
    """Record or not: as a call until further notice, as a context within its block.

    Examples
    --------
    >>> import tensorplug as tp
    >>> with tp.set_grad_enabled(False):
    ...     tp.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        check_flag(mode, "set_grad_enabled", "enabled")
        self.enabled = mode
        self.previous = recording.enabled
        # The call alone may leave a thread that does not record: look at it from now on.
        count_grad_disabled()
        recording.enabled = self.enabled

    def _before(self, changes: dict[str, Any]) -> dict[str, Any]:
        return {"enabled": self.previous}  # the mode is on since the construction

    def _again(self) -> _Mode:
        return _Fixed(self.enabled)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return `function` with the mode on during each call."""
        # Used as a decorator, the construction itself must not have changed the mode.
        recording.enabled = self.previous
        return super().__call__(function)


class _Fixed(_Mode):
    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled


class set_multithreading_enabled:
    """Accepted as in torch: a backward pass runs in the thread that calls it in any case."""

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None: ...


class inference_mode(_Mode):
    """Record nothing and make tensors that never take part in recording.

    Examples
    --------
    >>> import tensorplug as tp
    >>> with tp.inference_mode():
    ...     x = tp.ones(2) + 1
    >>> x.is_inference()
    True
    """

    def __new__(cls, mode: Any = True) -> Self:
        """Decorate at once where used without parentheses."""
        made = object.__new__(cls)
        if callable(mode):
            made.enabled, made.inference = False, True
            return cast(Self, made(mode))
        return made

    def __init__(self, mode: bool = True) -> None:
        self.mode = bool(mode)
        self.enabled = not self.mode
        self.inference = self.mode

    def _again(self) -> _Mode:
        return inference_mode(getattr(self, "mode", True))


def is_grad_enabled() -> bool:
    """Return whether this thread records."""
    return recording.enabled


def is_inference_mode_enabled() -> bool:
    """Return whether this thread makes inference tensors."""
    return recording.inference
