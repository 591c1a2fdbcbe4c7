"""Collectives and messages that are under way, and what happens when they take too long."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tensorplug.core.dispatch import profiling
from tensorplug.core.futures import Future
from tensorplug.core.plugins.process_groups import Communicator, Request

from .errors import DistBackendError

if TYPE_CHECKING:
    from .groups import ProcessGroup

__all__ = ["Work"]

# A wait asks without a pause for as long as the transfer may take by itself, for asking is what moves it on,
# and lets others who want the processor have it between. Then whoever is waited for is late: the pauses
# become longer and longer. A wait longer than _SLOW tells the others where it is.
_SPINS = 50
_LATENCY = 2e-4
_PER_BYTE = 1e-9
_LONGEST_PAUSE = 0.001
_SLOW = 1.0
# Where a profile shows what is under way: in no thread of this process.
_UNDER_WAY = 0


class Work:
    """A collective or message that is under way: what ``async_op=True`` returns.

    The tensors given may neither be read nor written before :meth:`wait` has returned, or
    :meth:`is_completed` has been True.
    """

    def __init__(
        self,
        group: ProcessGroup,
        what: str,
        request: Request,
        communicator: Communicator,
        finish: Callable[[], None] | None = None,
        result: Sequence[Any] = (),
        number: int = 0,
    ) -> None:
        self._group = group
        self._what = what
        self._request = request
        self._communicator = communicator
        self._finish = finish
        self._result = list(result)
        self._number = number  # of the group's collective, 0 of a message
        self._done = False
        self._error: BaseException | None = None
        self._future: _WorkFuture | None = None
        self._begun = perf_counter_ns() if profiling.current() is not None else 0

    def __repr__(self) -> str:
        state = "failed" if self._error is not None else "completed" if self._done else "pending"
        return f"Work({self._what}, {state})"

    def is_completed(self) -> bool:
        """Return whether it is complete, without waiting; asking also moves it on.

        Nothing else does between the calls of this process, unless the backend's library has a thread for it.
        """
        if self._done:
            return True
        try:
            if not self._request.test():
                return False
            if self._finish is not None:
                self._finish()
        except RuntimeError as error:
            failure = DistBackendError(f"{self._what} of {self._group.name()!r} failed: {error}")
            self._fail(failure)
            raise failure from error
        self._end()
        return True

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Wait until it is complete, and return True.

        Parameters
        ----------
        timeout : timedelta or float, optional
            How long to wait, in seconds if a number; by default as long as the group does.

        Raises
        ------
        DistBackendError
            If that was not long enough. The message names the collective, the ranks that arrived at it and
            those that did not, as far as the backend can tell.
        """
        if self._error is not None:
            raise self._error
        if self._begun and not self._done:
            begin = perf_counter_ns()
            done = self._wait(timeout)
            if (recording := profiling.current()) is not None:
                recording.add("range", f"wait for {self._what}", max(begin, recording.begin))
            return done
        return self._wait(timeout)

    def _wait(self, timeout: timedelta | float | None) -> bool:
        for _ in range(_SPINS):
            if self.is_completed():
                return True
        started = time.monotonic()
        brief = _LATENCY + _PER_BYTE * sum([t.numel() * t.element_size() for t in self._result])
        while time.monotonic() - started < brief:
            if self.is_completed():
                return True
            _yield()
        limit = _seconds(timeout, self._group)
        slow = min(_SLOW, limit / 4)
        pause, told = 1e-5, False
        while not self.is_completed():
            waited = time.monotonic() - started
            if waited > slow and not told:
                self._communicator.announce(f"{self._number} {self._what}")
                told = True
            # Whoever arrived in time has announced it a little later.
            if waited > limit + slow:
                error = DistBackendError(self._missing(limit))
                self._fail(error)
                raise error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return True

    def _missing(self, limit: float) -> str:
        """Return the message of a time-out."""
        group = self._group
        where = f"{self._what} of {group.name()!r} on rank {group._to_global(group.rank())}"
        text = f"{where} timed out after {limit:g} s"
        if self._number == 0:
            return text
        told = self._communicator.announced()
        if told is None:
            return f"{text}; the backend cannot tell which ranks arrived"
        arrived, missing, elsewhere = [group._to_global(group.rank())], [], []
        for member in range(group.size()):
            if member == group.rank():
                continue
            number, _, what = told.get(member, "0 ").partition(" ")
            rank = group._to_global(member)
            if int(number) < self._number:
                missing.append(rank)
            elif what != self._what and int(number) == self._number:
                elsewhere.append(f"rank {rank} is in {what} instead")
            else:
                arrived.append(rank)
        parts = [f"{text} (collective {self._number} of the group)"]
        parts.append(f"ranks that arrived: {_listed(sorted(arrived))}")
        parts.append(f"ranks that did not arrive: {_listed(missing)}")
        return "; ".join(parts + elsewhere)

    def _fail(self, error: BaseException) -> None:
        self._error = error
        self._group._broken = True
        if self._future is not None and not self._future.done():
            self._future.set_exception(error)

    def _end(self) -> None:
        self._done = True
        self._finish = None
        self._group._pending.discard(self)
        if self._begun:
            self._note()
        if self._future is not None and not self._future.done():
            self._future.set_result(self._result)

    def _note(self) -> None:
        """Tell a profile how long it was under way, as far as this process knows."""
        recording = profiling.current()
        if recording is not None:
            name = f"{self._group.name()}:{self._what}"
            recording.entries.append(
                profiling.Entry(
                    "collective", name, max(self._begun, recording.begin), perf_counter_ns(), _UNDER_WAY,
                    profiling.local.ranges, profiling.local.backward,
                )
            )  # fmt: skip

    def is_success(self) -> bool:
        """Return whether it is complete and did not fail."""
        return self._done and self._error is None

    def exception(self) -> BaseException | None:
        """Return what it failed with, or None."""
        return self._error

    def synchronize(self) -> None:
        """Wait, as :meth:`wait` does."""
        self.wait()

    def result(self) -> list[Any]:
        """Return the tensors that hold the result, once it is complete."""
        self.wait()
        return list(self._result)

    def source_rank(self) -> int:
        """Return the rank that a message came from.

        Raises
        ------
        RuntimeError
            If it is not complete, or no message that was received.
        """
        if not self._done or self._request.source < 0:
            raise RuntimeError("Work.source_rank(): only of a message that was received")
        return self._group._to_global(self._request.source)

    def get_future(self) -> Future[list[Any]]:
        """Return a future of :meth:`result`; waiting for it, or for what follows it, waits for this.

        Examples
        --------
        ::

            averaged = (
                dist.all_reduce(t, async_op=True).get_future().then(lambda f: f.value()[0] / n)
            )
            averaged.wait()
        """
        if self._future is None:
            self._future = _WorkFuture(self)
            if self._error is not None:
                self._future.set_exception(self._error)
            elif self._done:
                self._future.set_result(self._result)
        return self._future

    def block_current_stream(self) -> None:
        """Wait, as :meth:`wait` does."""
        self.wait()


class _WorkFuture(Future[Any]):
    """The future of a piece of work: nobody else moves that on, so waiting and asking do."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def wait(self) -> Any:
        if not super().done():
            self._work.wait()
        return super().wait()

    def done(self) -> bool:
        if not super().done() and self._work._error is None:
            self._work.is_completed()
        return super().done()

    def then(self, callback: Callable[[Future[Any]], Any]) -> Future[Any]:
        following = _Following(self)

        def go_on(_: Any) -> None:
            try:
                value = callback(self)
            except BaseException as error:  # it belongs to who waits
                following.set_exception(error)
            else:
                following.set_result(value)

        self.add_done_callback(go_on)
        return following


class _Following(_WorkFuture):
    """What a callback makes of a future of work."""

    def __init__(self, before: _WorkFuture) -> None:
        super().__init__(before._work)


def _yield() -> None:
    """Let another process have this processor, if one wants it."""
    if sys.platform == "win32":
        time.sleep(0)
    else:
        os.sched_yield()


def _seconds(timeout: timedelta | float | None, group: ProcessGroup) -> float:
    if timeout is None:
        timeout = group._timeout
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks)) or "none"
