"""From what a sampler says to a batch; the same in the main process and in a worker."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any


class EndOfStream(Exception):
    """The stream has no further sample."""


class IndexFetcher:
    """Reads a dataset by index.

    Parameters
    ----------
    dataset : Dataset
        With ``__getitem__``, perhaps with ``__getitems__``.
    batched : bool
        Whether the sampler gives lists of indices.
    collate : callable
        Makes the batch.
    """

    def __init__(self, dataset: Any, batched: bool, collate: Callable[[Any], Any]) -> None:
        self.dataset = dataset
        self.batched = batched
        self.collate = collate

    def fetch(self, index: Any) -> Any:
        """Return the batch, or the single sample, of an index."""
        if not self.batched:
            return self.collate(self.dataset[index])
        fetch_all = getattr(self.dataset, "__getitems__", None)
        if callable(fetch_all):
            return self.collate(fetch_all(index))
        return self.collate([self.dataset[i] for i in index])


class StreamFetcher:
    """Reads on in a stream, which it opens.

    Parameters
    ----------
    dataset : IterableDataset
        The stream.
    batched : bool
        Whether to gather as many samples as the sampler's list is long.
    collate : callable
        Makes the batch.
    drop_last : bool
        Leave a last, shorter batch out.
    """

    def __init__(
        self, dataset: Any, batched: bool, collate: Callable[[Any], Any], drop_last: bool
    ) -> None:
        self.stream = iter(dataset)
        self.batched = batched
        self.collate = collate
        self.drop_last = drop_last
        self.ended = False

    def fetch(self, index: Any) -> Any:
        """Return the next batch, or the next sample.

        Raises
        ------
        EndOfStream
            If there is none.
        """
        if self.ended:
            raise EndOfStream
        wanted = len(index) if self.batched else 1
        samples = [sample for _, sample in zip(range(wanted), self.stream, strict=False)]
        if len(samples) < wanted:
            self.ended = True
            if not samples or self.drop_last:
                raise EndOfStream
        return self.collate(samples if self.batched else samples[0])


def make_fetcher(
    dataset: Any, streams: bool, batched: bool, collate: Callable[[Any], Any], drop_last: bool
) -> IndexFetcher | StreamFetcher:
    """Return what reads a dataset of either sort."""
    if streams:
        return StreamFetcher(dataset, batched, collate, drop_last)
    return IndexFetcher(dataset, batched, collate)


class StreamLength:
    """What a stream said of its length when the loader was asked for its own, if it was.

    Parameters
    ----------
    workers : int
        How many processes read the stream, each of them from the beginning unless it knows better.
    """

    def __init__(self, workers: int) -> None:
        self.reported: int | None = None
        self._workers = workers

    def check(self, count: int) -> None:
        """Warn if more has come than was said; a batch counts as one."""
        if self.reported is None or count <= self.reported:
            return
        many = (
            " For multiprocessing data-loading, this could be caused by not properly configuring the "
            "IterableDataset replica at each worker: see get_worker_info()."
        )
        warnings.warn(
            f"Length of IterableDataset was reported to be {self.reported} (when accessing len(dataloader)), "
            f"but {count} samples have been fetched.{many if self._workers else ''}",
            UserWarning,
            stacklevel=3,
        )
