"""Torch's names of what passes over a ``DataLoader``, which libraries with loaders of their own call."""

from __future__ import annotations

import enum
from typing import Any

from tensorplug.data import DataLoader
from tensorplug.data.fetching import StreamLength
from tensorplug.data.loader import SerialIterator
from tensorplug.data.parallel import ParallelIterator


class DatasetKind(enum.IntEnum):
    """Whether a dataset is read by index or as a stream."""

    Map = 0
    Iterable = 1


class _Given(DataLoader[Any]):
    """A loader whose attributes are those that torch's has, on another object."""

    def __init__(self, given: Any) -> None:
        # Not by DataLoader's: what it makes of its arguments is there already.
        self.__dict__.update(
            _given=given,
            _iterator=None,
            _length=StreamLength(given.num_workers),
            _streams=given._dataset_kind == DatasetKind.Iterable,
            in_order=getattr(given, "in_order", True),
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_given"], name)

    @property
    def _auto_collation(self) -> bool:
        return bool(self._given._auto_collation)

    @property
    def _index_sampler(self) -> Any:
        return self._given._index_sampler


class _Pass(type):
    """Makes a pass over a loader; what iterates over loaders is an instance."""

    kinds: tuple[type, ...]

    def __call__(cls, loader: Any) -> Any:
        return iter(loader if isinstance(loader, DataLoader) else _Given(loader))

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.kinds)


class BasePass(metaclass=_Pass):
    """A pass over a loader, in whichever processes."""

    kinds: tuple[type, ...] = (SerialIterator, ParallelIterator)


class SerialPass(BasePass):
    """A pass over a loader in this process."""

    kinds = (SerialIterator,)


class ParallelPass(BasePass):
    """A pass over a loader by workers."""

    kinds = (ParallelIterator,)
