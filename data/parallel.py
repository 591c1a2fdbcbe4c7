"""Iteration over a loader whose batches are made by worker processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from .fetching import StreamLength
from .pinning import pin
from .pool import WorkerPool
from .workers import Begin, End, Failure, Fetch, Job


class ParallelIterator(Iterator[Any]):
    """Hands out the batches that workers make, pass by pass.

    Parameters
    ----------
    context : multiprocessing context
        How workers are started.
    job : Job
        What they do.
    prefetch : int
        How many batches each of them is asked for in advance.
    timeout : float
        Seconds to wait for a batch; 0 waits as long as it takes.
    in_order : bool
        Whether batches come in the sampler's order, or as they get ready.
    pinned : bool
        Whether to move batches to page-locked memory.
    persistent : bool
        Whether workers outlive a pass.
    length : StreamLength
        What the dataset said, if it is a stream and was asked.
    """

    def __init__(
        self,
        context: Any,
        job: Job,
        *,
        prefetch: int,
        timeout: float,
        in_order: bool,
        pinned: bool,
        persistent: bool,
        length: StreamLength,
    ) -> None:
        self._count_of_workers = job.num_workers
        self._prefetch = prefetch
        self._timeout = timeout
        self._in_order = in_order
        self._pinned = pinned
        self._persistent = persistent
        self._length = length
        self._epoch = 0
        self._pool = WorkerPool(context, job)

    @property
    def usable(self) -> bool:
        """Whether another pass can begin."""
        return not self._pool.closed

    @property
    def _workers(self) -> list[Any]:
        """The processes, under the name that they have in torch: programs watch them."""
        return self._pool.processes()

    def _shutdown_workers(self) -> None:
        """End the workers, under torch's name."""
        self._pool.close()

    def begin(self, indices: Iterable[Any]) -> None:
        """Begin a pass over the indices of a sampler; what remains of the one before is dropped."""
        self._epoch += 1
        self._indices = iter(indices)
        self._asked: deque[int] = deque()  # the numbers of the batches to come, in order
        self._count = self._given = 0
        self._answers: dict[int, tuple[int, Any]] = {}  # those that are here, and from which worker
        self._open = [True] * self._count_of_workers  # whose stream has not ended
        self._turn = 0
        for worker in range(self._count_of_workers):
            self._pool.send(worker, Begin(self._epoch))
        for _ in range(self._prefetch * self._count_of_workers):
            self._ask()

    def __next__(self) -> Any:
        if self._pool.closed:
            raise StopIteration
        self._collect(0.0)  # notices a death also where there are batches left
        while (number := self._due()) is None:
            if not self._asked:
                if not self._persistent:
                    self._pool.close()
                raise StopIteration
            if not self._collect(self._timeout or None):
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        self._asked.remove(number)
        worker, answer = self._answers.pop(number)
        self._ask(None if self._in_order else worker)
        if isinstance(answer, Failure):
            answer.reraise()
        self._given += 1
        self._length.check(self._given)
        return pin(answer) if self._pinned else answer

    def _due(self) -> int | None:
        """Return the number of the batch to hand out; None if it isn't here yet."""
        if not self._in_order:
            return next(iter(self._answers), None)
        return self._asked[0] if self._asked and self._asked[0] in self._answers else None

    def _ask(self, worker: int | None = None) -> None:
        """Ask a worker, by default the one whose turn it is, for the next batch if there is one."""
        if not any(self._open):
            return
        if worker is None or not self._open[worker]:
            while not self._open[self._turn]:
                self._turn = (self._turn + 1) % self._count_of_workers
            worker = self._turn
            self._turn = (worker + 1) % self._count_of_workers
        try:
            index = next(self._indices)
        except StopIteration:
            return
        self._asked.append(self._count)
        self._pool.send(worker, Fetch(self._epoch, self._count, index))
        self._count += 1

    def _collect(self, timeout: float | None) -> bool:
        """Take in the answers that are there; return whether there were any."""
        answers = self._pool.collect(timeout)
        for worker, (epoch, number), answer in answers:
            if epoch != self._epoch:
                continue  # of a pass that was broken off
            if not isinstance(answer, End):
                self._answers[number] = worker, answer
                continue
            self._open[worker] = False
            self._asked.remove(number)
            self._ask()
        return bool(answers)
