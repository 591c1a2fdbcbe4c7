"""From what a sampler says to a batch; the same in the main process and in a worker."""

from __future__ import annotations

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
