"""The state of a thread that contexts set (``no_grad``, ``autocast``, ``device`` …), and how they end.

CPython raises KeyboardInterrupt, as all that signal handlers raise, between instructions of Python
functions: at the beginning of one, after a call, at the end of a loop's round. An ``__exit__`` written in
Python may therefore end before its first line, and what it should have put back stays. So ``__enter__``
changes the state in one instruction, the last but its return, and ``__exit__`` is C all through:
:data:`leave` is the method of a file, which takes what a ``with`` statement passes and calls ``close()``,
and that is ``dict.update`` with what was there before. An interrupt comes before either or after it.
"""

from __future__ import annotations

import io
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ContextDecorator
from functools import partial
from operator import attrgetter, call
from typing import TYPE_CHECKING, Any, Self

#: What ends the innermost context where none is open.
NOTHING = dict[str, Any]().clear


class ThreadState(threading.local):
    """What contexts set in a thread.

    Attributes
    ----------
    enabled, inference : bool
        Whether the thread records for differentiation, and whether it makes inference tensors.
    stack : tuple of Layer
        The active layers, lowest order first.
    entered : tuple of Layer
        Those that the innermost call goes through.
    preferred : tuple of str
        The plugins whose kernels are preferred.
    close : callable
        Puts back what the innermost context changed.
    layered : bool
        Whether a context is open that has layers, or preferences, see calls.
    counted : Counted, optional
        The counts of the process that the thread has gone into; see :mod:`.dispatch.counts`.
    """

    enabled: bool = True
    inference: bool = False
    stack: tuple[Any, ...] = ()
    entered: tuple[Any, ...] = ()
    preferred: tuple[str, ...] = ()
    close: Callable[[], None] = NOTHING
    layered: bool = False
    counted: Any = None

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


#: The state of the running thread.
thread = ThreadState()


def declare(**defaults: Any) -> None:
    """Add attributes to the state of all threads."""
    for name, value in defaults.items():
        setattr(ThreadState, name, value)


class _Leaver(io.IOBase):
    thread = thread
    closed: Any = True  # pyright: ignore[reportIncompatibleMethodOverride]  nothing to do at its end
    close: Any = property(attrgetter("thread.close"))


leave: Callable[..., None] = _Leaver().__exit__


class Context:
    """Base class of context managers that set attributes of :data:`thread`.

    One object may be entered several times, also within itself. ``__exit__`` ends the innermost context.
    """

    __slots__ = ()

    def _changes(self) -> dict[str, Any]:
        """Return the attributes to set; counts are gone into here."""
        raise NotImplementedError

    def _before(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Return what the same attributes are to be after the block."""
        return {name: getattr(thread, name) for name in changes}

    def __enter__(self) -> Any:
        changes = self._changes()
        table = thread.__dict__
        before = self._before(changes)
        before["close"] = thread.close
        changes["close"] = partial(table.update, before)
        table |= changes

    if TYPE_CHECKING:

        def __exit__(self, *exc: object) -> None: ...

    else:
        __exit__ = staticmethod(leave)


class Mode(Context):
    """Base class of modes, which get what a thread does within a ``with`` block and have methods for it."""

    __slots__ = ()

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """Return a new mode."""
        return cls(*args, **kwargs)


# --- contexts that change other things than the thread's attributes ---------------------------

#: Functions written in C, with their arguments.
Steps = Iterable[Callable[[], object]]
#: Calls them, one after another, as its result is gone through.
_called: Callable[[Steps], Iterator[object]] = partial(map, call)


def steps_of(context: Context) -> tuple[Steps, Steps]:
    """Return what a context of a thread calls at its beginning and end, for another one to call."""
    changes = context._changes()
    table = thread.__dict__
    before = context._before(changes)
    before["close"] = thread.close
    end = partial(table.update, before)
    return [partial(table.update, changes, close=end)], [end]


class _OwnLeaver(io.IOBase):
    closed: Any = True  # pyright: ignore[reportIncompatibleMethodOverride]  nothing to do at its end
    close: Any = NOTHING


class _OwnExit:
    """The ``__exit__`` of an :class:`OwnContext`: that of its leaver."""

    def __get__(self, context: Any, kind: Any = None) -> Callable[..., None]:
        return _exit if context is None else _closing(context).__exit__


def _exit(context: Any, *exc: Any) -> None:
    """End a context for who asks its class, as ExitStack does."""
    _closing(context).__exit__(*exc)


def _closing(context: Any) -> Any:
    """Return what ends a context; a ``with`` statement asks before it enters."""
    if context._leaver is None:
        context._leaver = _OwnLeaver()
    return context._leaver


class OwnContext:
    """Base class of contexts that call functions at their beginning and end, and may end in any order.

    The functions are written in C, so that all of them are called in one instruction, or none is. At the end
    others may follow that can be done without. One object may be entered several times.
    """

    _leaver: Any = None

    def _steps(self) -> tuple[Steps, Steps]:
        """Return what to call at the beginning, and at the end."""
        raise NotImplementedError

    def _target(self) -> Any:
        """Return what ``with`` gives a name to."""
        return self

    def __enter__(self) -> Any:
        target = self._target()
        beginning, ending = self._steps()
        closing = _closing(self)
        table = vars(closing)
        before = partial(table.update, close=closing.close)
        end: Callable[[], object] = partial(deque, _called((before, *ending)), 0)
        calls = _called((*beginning, partial(table.update, close=end)))
        results: deque[Any] = deque(maxlen=0)
        results += calls
        return target

    if TYPE_CHECKING:

        def __exit__(self, *exc: object) -> None: ...

    else:
        __exit__ = _OwnExit()


class Block(OwnContext, ContextDecorator):
    """A block, or decorated function, at whose beginning and end is called what a function returns."""

    def __init__(self, steps: Callable[[], tuple[Steps, Steps]]) -> None:
        self._steps = steps  # type: ignore[method-assign]
