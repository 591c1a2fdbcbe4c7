"""The loader: an iterable of batches over a dataset."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

from tensorplug.core.device.generator import Generator
from tensorplug.core.processors import available_processors

from .collate import default_collate, default_convert
from .datasets import Dataset, IterableDataset
from .fetching import EndOfStream, StreamLength, make_fetcher
from .parallel import ParallelIterator
from .pinning import pin
from .samplers import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed
from .workers import Job

T_co = TypeVar("T_co", covariant=True)


_FIXED = frozenset(
    {"batch_sampler", "batch_size", "dataset", "drop_last", "persistent_workers", "sampler"}
)


class _EndlessSampler(Sampler[None]):
    """Stands in where a stream decides itself what comes next."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class SerialIterator(Iterator[Any]):
    """One pass over a loader's batches in this process; goes on after an error of the dataset."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.timeout:
            raise AssertionError(
                f"DataLoader: timeout={loader.timeout} needs workers, which it waits for; set num_workers"
            )
        self._loader = loader
        self._given = 0
        self._indices = iter(loader._index_sampler)
        self._fetcher = make_fetcher(
            loader.dataset,
            loader._streams,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
        )

    def __len__(self) -> int:
        return len(self._loader)

    def __next__(self) -> Any:
        index = next(self._indices)
        try:
            batch = self._fetcher.fetch(index)
        except EndOfStream:
            raise StopIteration from None
        self._given += 1
        self._loader._length.check(self._given)
        return pin(batch) if self._loader.pin_memory else batch


class DataLoader(Generic[T_co]):
    """Batches of a dataset, in an order that a sampler decides.

    Parameters
    ----------
    dataset : Dataset
        Read by index, or an :class:`~tensorplug.data.IterableDataset`.
    batch_size : int, optional
        Samples per batch; None hands single samples out as they are.
    shuffle : bool, optional
        Read in random order.
    sampler : iterable of int, optional
        The order; excludes `shuffle`.
    batch_sampler : iterable of list of int, optional
        The indices of each batch; excludes `batch_size`, `shuffle`, `sampler` and `drop_last`.
    num_workers : int
        Worker processes that load in parallel; 0 loads in this process.
    collate_fn : callable, optional
        Makes a batch from a list of samples; by default :func:`~tensorplug.data.default_collate`.
    pin_memory : bool
        Copy each batch into page-locked memory, where a loaded device offers it.
    drop_last : bool
        Leave out a last, shorter batch.
    timeout : float
        Seconds to wait for a batch of a worker; 0 waits as long as it takes.
    worker_init_fn : callable, optional
        Called with its number in each worker, after the worker was seeded.
    multiprocessing_context : str or context, optional
        How workers are started: "fork", "spawn" or "forkserver"; by default as Python does.
    generator : Generator, optional
        Where the random order and the seeds of the workers come from.
    prefetch_factor : int, optional
        Batches that each worker prepares in advance; by default 2.
    persistent_workers : bool
        Keep workers, and their copies of the dataset, between passes.
    pin_memory_device : str
        Deprecated in torch; ignored.
    in_order : bool
        Whether batches come in the sampler's order when workers race.

    Raises
    ------
    ValueError
        If options exclude each other or are out of range.

    Notes
    -----
    A worker's exception is raised here, with its traceback in the message. A worker that is killed
    raises RuntimeError at once.

    Examples
    --------
    >>> for batch in DataLoader([1, 2, 3], batch_size=2):
    ...     print(batch)
    tensor([1, 2])
    tensor([3])
    """

    dataset: Any
    batch_size: int | None
    sampler: Any
    batch_sampler: Any

    def __init__(
        self,
        dataset: Dataset[T_co] | Sequence[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Sequence[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if num_workers and prefetch_factor is None:
            prefetch_factor = 2
        self._streams = isinstance(dataset, IterableDataset)
        if self._streams:
            _check_stream_options(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                    "and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None:
            sampler = self._default_sampler(dataset, bool(shuffle), generator)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)

        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self._iterator: ParallelIterator | None = None  # with the workers that persist
        self._length = StreamLength(num_workers)
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn

    def __setattr__(self, name: str, value: Any) -> None:
        # Samplers are built from these, so a later change would be ignored in part.
        if name in _FIXED and "collate_fn" in self.__dict__:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        if name == "multiprocessing_context":
            value = _as_context(value, self.num_workers)
        super().__setattr__(name, value)

    def _default_sampler(
        self, dataset: Any, shuffle: bool, generator: Generator | None
    ) -> Iterable[Any]:
        if self._streams:
            return _EndlessSampler()
        if shuffle:
            return RandomSampler(dataset, generator=generator)
        return SequentialSampler(dataset)

    @property
    def _auto_collation(self) -> bool:
        """Whether samples are gathered into batches."""
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Any]:
        # Drawn in any case, so that the number of workers doesn't change the order of the samples.
        base_seed = draw_seed(self.generator)
        if not self.num_workers:
            return SerialIterator(self)
        iterator = self._iterator
        if iterator is None or not iterator.usable:
            iterator = self._start(base_seed)
            self._iterator = iterator if self.persistent_workers else None
        iterator.begin(self._index_sampler)
        return iterator

    def _start(self, base_seed: int) -> ParallelIterator:
        """Return an iterator with new workers."""
        job = Job(
            self.dataset,
            self._streams,
            self._auto_collation,
            self.collate_fn,
            self.drop_last,
            self.worker_init_fn,
            base_seed,
            self.num_workers,
        )
        return ParallelIterator(
            self.multiprocessing_context or multiprocessing.get_context(),
            job,
            prefetch=self.prefetch_factor or 1,
            timeout=self.timeout,
            in_order=self.in_order,
            pinned=self.pin_memory,
            persistent=self.persistent_workers,
            length=self._length,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_iterator": None}

    def __len__(self) -> int:
        if not self._streams:
            return len(self._index_sampler)
        length = self._length.reported = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


def _check_workers(
    num_workers: int,
    timeout: float,
    prefetch_factor: int | None,
    persistent_workers: bool,
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            f"multiprocessing, got {num_workers}"
        )
    if timeout < 0:
        raise ValueError(f"timeout option should be non-negative, got {timeout}")
    if num_workers > 0:
        available = available_processors()
        if num_workers > available:
            warnings.warn(
                f"This DataLoader will create {num_workers} worker processes in total. Our suggested max "
                f"number of worker in current system is {available}, which is smaller than what this "
                "DataLoader is going to create. Please be aware that excessive worker creation might get "
                "DataLoader running slow or even freeze, lower the worker number to avoid potential "
                "slowness/freeze if necessary.",
                UserWarning,
                stacklevel=3,
            )
        if prefetch_factor is not None and prefetch_factor < 1:
            raise ValueError(f"prefetch_factor option should be positive, got {prefetch_factor}")
        return
    if prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if persistent_workers:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _as_context(given: Any, num_workers: int) -> Any:
    """Return the multiprocessing context that is meant, or None for the default."""
    if given is not None and not num_workers:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but "
            "got num_workers=0"
        )
    if isinstance(given, str):
        known = multiprocessing.get_all_start_methods()
        if given not in known:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{known}, but got multiprocessing_context={given!r}"
            )
        return multiprocessing.get_context(given)
    if given is not None and not isinstance(given, BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={given!r}"
        )
    return given


def _check_stream_options(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                f"{name}={value!r}; the stream decides the order itself"
            )
