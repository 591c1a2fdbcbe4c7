"""The loader: an iterable of batches over a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tensorplug.core.generator import Generator

from .collate import default_collate, default_convert
from .datasets import IterableDataset
from .samplers import BatchSampler, RandomSampler, Sampler, SequentialSampler

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker process knows of itself."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


def get_worker_info() -> WorkerInfo | None:
    """Return facts about the worker process that this is, or None in the main process.

    Examples
    --------
    >>> get_worker_info() is None
    True
    """
    return None


_FIXED = frozenset(
    {"batch_sampler", "batch_size", "dataset", "drop_last", "persistent_workers", "sampler"}
)


class _EndlessSampler(Sampler[None]):
    """Stands in where a stream decides itself what comes next."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


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
        Worker processes. Only 0, loading in this process, is there yet.
    collate_fn : callable, optional
        Makes a batch from a list of samples; by default :func:`~tensorplug.data.default_collate`.
    pin_memory : bool
        Copy each batch into page-locked memory. Accepted and ignored until a device runtime offers
        it.
    drop_last : bool
        Leave out a last, shorter batch.
    timeout : float
        Seconds to wait for a worker.
    worker_init_fn : callable, optional
        Called with its number in each worker.
    multiprocessing_context : optional
        How workers are started.
    generator : Generator, optional
        Where the random order comes from.
    prefetch_factor : int, optional
        Batches that each worker keeps ready.
    persistent_workers : bool
        Keep workers between passes.
    pin_memory_device : str
        Deprecated in torch; ignored.
    in_order : bool
        Whether batches come in the sampler's order when workers race.

    Raises
    ------
    ValueError
        If options exclude each other or are out of range.
    NotImplementedError
        If `num_workers` is above 0.

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
        dataset: Any,
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
        _check_workers(
            num_workers, timeout, multiprocessing_context, prefetch_factor, persistent_workers
        )
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
        if collate_fn is None:
            collate_fn = default_collate if self._batches else default_convert
        self.collate_fn = collate_fn

    def __setattr__(self, name: str, value: Any) -> None:
        # Samplers are built from these, so a later change would be ignored in part.
        if name in _FIXED and "collate_fn" in self.__dict__:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
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
    def _batches(self) -> bool:
        """Whether samples are gathered into batches."""
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._batches else self.sampler

    def __iter__(self) -> Iterator[Any]:
        return self._from_stream() if self._streams else self._from_indices()

    def _from_indices(self) -> Iterator[Any]:
        dataset = self.dataset
        fetch = getattr(dataset, "__getitems__", None)
        for index in self._index_sampler:
            if not self._batches:
                samples = dataset[index]
            elif callable(fetch):
                samples = fetch(index)
            else:
                samples = [dataset[i] for i in index]
            yield self.collate_fn(samples)

    def _from_stream(self) -> Iterator[Any]:
        stream = iter(self.dataset)
        if not self._batches:
            for sample in stream:
                yield self.collate_fn(sample)
            return
        for index in self._index_sampler:
            samples = [sample for _, sample in zip(index, stream, strict=False)]
            if not samples or (self.drop_last and len(samples) < len(index)):
                return
            yield self.collate_fn(samples)

    def __len__(self) -> int:
        if not self._streams:
            return len(self._index_sampler)
        length = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


def _check_workers(
    num_workers: int,
    timeout: float,
    multiprocessing_context: Any,
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
        raise NotImplementedError(
            f"DataLoader: num_workers={num_workers} asks for worker processes, which are not "
            "implemented yet; use num_workers=0, which loads in this process"
        )
    if prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing: it needs "
            "num_workers > 0"
        )
    if persistent_workers:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if multiprocessing_context is not None:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0)"
        )


def _check_stream_options(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                f"{name}={value!r}; the stream decides the order itself"
            )
