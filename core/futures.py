"""Values that come later: ``concurrent.futures`` with torch's methods."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(concurrent.futures.Future[T], Generic[T]):
    """A value that somebody sets later.

    Parameters
    ----------
    devices : sequence, optional
        Devices whose work torch would wait for; a value is set when it is there.

    Examples
    --------
    >>> import tensorplug as tp
    >>> future = tp.futures.Future()
    >>> doubled = future.then(lambda done: 2 * done.value())
    >>> future.set_result(4)
    >>> doubled.wait()
    8
    """

    def __init__(self, *, devices: Any = None) -> None:
        super().__init__()

    def set_result(self, result: T) -> None:
        """Set the value, once.

        Raises
        ------
        RuntimeError
            If it is set already.
        """
        try:
            super().set_result(result)
        except concurrent.futures.InvalidStateError:
            raise RuntimeError(
                "Future can only be marked completed once: this one has its value already"
            ) from None

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Raise RuntimeError: what is to come cannot be pickled."""
        raise RuntimeError(
            "Can not pickle torch.futures.Future, nor this one; pickle what wait() returns"
        )

    def wait(self) -> T:
        """Return the value once it is there; raise what was set as the exception."""
        return self.result()

    def value(self) -> T:
        """Return the value of a future that is done.

        Raises
        ------
        RuntimeError
            If it is not done.
        """
        if not self.done():
            raise RuntimeError("Future.value(): this future is not done yet; wait() waits for it")
        return self.result()

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """Return a future of what `callback` returns for this one, called when it is done.

        If it raises, whoever waits for that future gets a RuntimeError, whose cause is what it raised.
        """
        following: Future[S] = Future()

        def go_on(done: Any) -> None:
            try:
                following.set_result(callback(done))
            except Exception as error:  # it belongs to who waits
                wrapped = RuntimeError(
                    "Got the following error when running the callback: "
                    f"{type(error).__name__}: {error}"
                )
                wrapped.__cause__ = error
                following.set_exception(wrapped)
            except BaseException as error:
                following.set_exception(error)

        self.add_done_callback(go_on)
        return following


def collect_all(futures: Iterable[Future[Any]]) -> Future[list[Future[Any]]]:
    """Return a future of the list of all of `futures`, done when they all are.

    Examples
    --------
    >>> import tensorplug as tp
    >>> futures = [tp.futures.Future() for _ in range(2)]
    >>> both = tp.futures.collect_all(futures)
    >>> for number, future in enumerate(futures):
    ...     future.set_result(number)
    >>> [future.value() for future in both.wait()]
    [0, 1]
    """
    waited = _all_of(futures)
    collected: Future[list[Future[Any]]] = Future()
    open_ones = set(map(id, waited))

    def note(done: Any) -> None:
        open_ones.discard(id(done))
        if not open_ones and not collected.done():
            collected.set_result(waited)

    for future in waited:
        future.add_done_callback(note)
    if not waited:
        collected.set_result(waited)
    return collected


def wait_all(futures: Iterable[Future[T]]) -> list[T]:
    """Return the values of all of `futures`, once they are there."""
    return [future.wait() for future in _all_of(futures)]


def _all_of(futures: Iterable[Any]) -> list[Any]:
    found = list(futures)
    if any(future is None for future in found):
        raise RuntimeError("Future can't be None: give futures alone")
    return found
