"""What runs in a worker process of a loader."""

from __future__ import annotations

import os
import pickle
import queue
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from tensorplug.core.device.generator import manual_seed
from tensorplug.core.plugins.threads import limit_threads
from tensorplug.core.tensor.host import numpy_state, seed_numpy

from .fetching import EndOfStream, IndexFetcher, StreamFetcher, make_fetcher
from .shared import pack, send


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker process knows of itself."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return facts about the worker process that this is, or None in the main process.

    Examples
    --------
    >>> get_worker_info() is None
    True
    """
    return _info


@dataclass(frozen=True)
class Job:
    """What all workers of a loader do."""

    dataset: Any
    streams: bool
    batched: bool
    collate: Callable[[Any], Any]
    drop_last: bool
    init: Callable[[int], None] | None
    base_seed: int
    num_workers: int


class Fetch(NamedTuple):
    """Asks a worker for the batch of an index; each is answered exactly once, unless out of date."""

    epoch: int
    number: int
    index: Any


class Begin(NamedTuple):
    """Tells a worker that a pass over the dataset begins."""

    epoch: int


class End(NamedTuple):
    """A worker's answer when its stream has ended."""


class Failure(NamedTuple):
    """A worker's answer when it could not make the batch."""

    type: type[BaseException] | None
    text: str

    @classmethod
    def of(cls, error: BaseException, worker: int) -> Failure:
        """Describe an exception that is being handled, for the main process."""
        kind: type[BaseException] | None = type(error)
        try:
            pickle.dumps(kind)
        except Exception:
            kind = None  # a class that other processes cannot find
        trace = "".join(traceback.format_exception(error))
        name = type(error).__name__
        text = f"Caught {name} in DataLoader worker process {worker}.\nOriginal {trace}"
        return cls(kind, text)

    def reraise(self) -> None:
        """Raise the exception again, of the same type if it can be made from a message."""
        text: str = self.text
        if self.type is None or issubclass(self.type, (StopIteration, StopAsyncIteration)):
            raise RuntimeError(text)  # the latter would end the loop in silence
        if issubclass(self.type, KeyError):
            text = _Plain(text)
        try:
            error = self.type(text)
        except Exception:
            error = RuntimeError(text)
        raise error


class _Plain(str):
    """A text that KeyError, which shows the repr of its argument, prints with its line breaks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


# How often a worker looks whether the main process still lives, where no closed pipe tells it so:
# another child of the main process may hold the pipe's other end open.
_PARENT_SECONDS = 2.0


class _Inbox:
    """The tasks of a worker, read by a thread, so that the main process never waits to send one."""

    def __init__(self, connection: Connection) -> None:
        self.epoch = 0  # the pass that is under way: tasks of an earlier one need no answer
        self._connection = connection
        self._tasks: queue.SimpleQueue[Fetch | Begin | None] = queue.SimpleQueue()
        self._parent = os.getppid()
        threading.Thread(target=self._listen, name="tensorplug-tasks", daemon=True).start()

    def next(self) -> Fetch | Begin | None:
        """Return the next task; None when the main process wants no more."""
        while True:
            task = self._tasks.get()
            if not isinstance(task, Fetch) or task.epoch == self.epoch:
                return task

    def _listen(self) -> None:
        try:
            while True:
                while not self._connection.poll(_PARENT_SECONDS):
                    self._end_with_parent()
                task = self._connection.recv()
                if isinstance(task, Begin):
                    self.epoch = task.epoch
                self._tasks.put(task)
        except (EOFError, OSError):
            pass  # closed: the main process has what it needs, or is gone
        self._tasks.put(None)
        while True:  # the dataset may be at work for long, and nobody would wait for it
            time.sleep(_PARENT_SECONDS)
            self._end_with_parent()

    def _end_with_parent(self) -> None:
        if os.getppid() != self._parent:
            os._exit(1)


def run(job: Job, worker: int, tasks: Connection, results: Connection) -> None:
    """Answer tasks until there are no more; the main function of a worker process.

    Parameters
    ----------
    job : Job
        What to do.
    worker : int
        Its number.
    tasks, results : Connection
        From and to the main process.
    """
    global _info
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the main process to handle
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    inbox = _Inbox(tasks)
    fetcher: IndexFetcher | StreamFetcher | None = None
    broken: Failure | None = None
    try:
        seed = job.base_seed + worker
        _info = WorkerInfo(worker, job.num_workers, seed, job.dataset)
        _prepare(seed, numpy_state(job.base_seed, worker))
        if job.init is not None:
            job.init(worker)
    except Exception as error:
        broken = Failure.of(error, worker)
    try:
        while (task := inbox.next()) is not None:
            if isinstance(task, Begin):
                fetcher = None
                continue
            answer: Any = broken
            if broken is None:
                try:
                    if fetcher is None:
                        fetcher = make_fetcher(
                            job.dataset, job.streams, job.batched, job.collate, job.drop_last
                        )
                    answer = fetcher.fetch(task.index)
                except EndOfStream:
                    answer = End()
                except Exception as error:
                    answer = Failure.of(error, worker)
            _answer(results, task, answer, worker)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the main process stopped listening


def _prepare(seed: int, state: list[int]) -> None:
    """Seed every generator that a dataset may draw from, and leave the other CPUs to the others."""
    random.seed(seed)
    manual_seed(seed)
    seed_numpy(state)
    limit_threads(1)


def _answer(results: Connection, task: Fetch, answer: Any, worker: int) -> None:
    head = (task.epoch, task.number)
    try:
        message = pack(head, answer)
    except Exception as error:
        message = pack(head, Failure.of(error, worker))
    send(results, message)
