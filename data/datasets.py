"""Datasets: where samples come from, by index or as a stream."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, cast

from tensorplug.core import Tensor
from tensorplug.core.device.generator import Generator
from tensorplug.core.ops import randperm

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """A collection of samples that is read by index.

    A subclass defines ``__getitem__`` and, for most samplers, ``__len__``. If it also defines
    ``__getitems__(indices)``, the loader fetches a whole batch with one call.

    Examples
    --------
    >>> class Squares(Dataset[int]):
    ...     def __len__(self):
    ...         return 4
    ...
    ...     def __getitem__(self, index):
    ...         return index**2
    >>> Squares()[3]
    9
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """A stream of samples; a subclass defines ``__iter__``.

    Examples
    --------
    >>> class Count(IterableDataset[int]):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(Count() + Count())
    [0, 1, 2, 0, 1, 2]
    """

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Rows of tensors: sample `i` is the tuple of each tensor's `i`-th row.

    Parameters
    ----------
    *tensors : Tensor
        Tensors whose first dimension has the same size.

    Raises
    ------
    AssertionError
        If the sizes differ.

    Examples
    --------
    >>> import tensorplug as tp
    >>> data = TensorDataset(tp.tensor([1, 2]), tp.tensor([3.0, 4.0]))
    >>> data[1]
    (tensor(2), tensor(4.))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        sizes = [tensor.size(0) for tensor in tensors]
        if len(set(sizes)) > 1:
            raise AssertionError(
                f"Size mismatch between tensors: their first dimensions are {sizes}"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return cast(int, self.tensors[0].size(0))


class StackDataset(Dataset[Any]):
    """Several datasets side by side: a sample is a tuple, or a dict, of their samples.

    Parameters
    ----------
    *args : Dataset
        Datasets of equal length; samples become tuples.
    **kwargs : Dataset
        The same by name; samples become dicts.

    Raises
    ------
    ValueError
        If the lengths differ, both forms are mixed, or nothing is given.

    Examples
    --------
    >>> StackDataset(image="ab", label=[0, 1])[1]
    {'image': 'b', 'label': 1}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either datasets by position (samples become tuples) or by name (samples become "
                "dicts), but both are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        lengths = [len(dataset) for dataset in (args or kwargs.values())]
        if len(set(lengths)) > 1:
            raise ValueError(f"Size mismatch between datasets: their lengths are {lengths}")
        self._length = lengths[0]
        self.datasets = args or kwargs

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Return the samples of a batch, each dataset asked once where it offers that."""
        if isinstance(self.datasets, dict):
            columns = [_fetch_all(dataset, indices) for dataset in self.datasets.values()]
            names = list(self.datasets)
            return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        columns = [_fetch_all(dataset, indices) for dataset in self.datasets]
        return list(zip(*columns, strict=True))

    def __len__(self) -> int:
        return self._length


def _fetch_all(dataset: Any, indices: Sequence[int]) -> Sequence[Any]:
    fetch = getattr(dataset, "__getitems__", None)
    if not callable(fetch):
        return [dataset[index] for index in indices]
    items = cast("Sequence[Any]", fetch(indices))
    if len(items) != len(indices):
        raise ValueError(
            f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}: "
            f"{type(dataset).__name__}.__getitems__"
        )
    return items


class ConcatDataset(Dataset[T_co]):
    """Datasets one after the other.

    Parameters
    ----------
    datasets : iterable of Dataset
        Datasets with a length.

    Raises
    ------
    AssertionError
        If there is none, or one is an :class:`IterableDataset`.

    Examples
    --------
    >>> both = ConcatDataset(["ab", "cde"])
    >>> len(both), both[2], both[-1]
    (5, 'c', 'e')
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Any]) -> None:
        super().__init__()
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        for dataset in self.datasets:
            if isinstance(dataset, IterableDataset):
                raise AssertionError(
                    "ConcatDataset does not support IterableDataset; use ChainDataset"
                )
        self.cumulative_sizes = list(itertools.accumulate(map(len, self.datasets)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        length = len(self)
        if index < 0:
            if -index > length:
                raise ValueError(
                    f"absolute value of index should not exceed dataset length: index {index}, "
                    f"length {length}"
                )
            index += length
        elif index >= length:
            raise IndexError(f"index {index} is out of range for a dataset of length {length}")
        which = bisect_right(self.cumulative_sizes, index)
        start = self.cumulative_sizes[which - 1] if which else 0
        return cast(T_co, self.datasets[which][index - start])


class ChainDataset(IterableDataset[Any]):
    """Streams one after the other; the next one is opened when the one before has ended.

    Parameters
    ----------
    datasets : iterable of IterableDataset
        The streams.
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        super().__init__()
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            yield from self._checked(dataset)

    def __len__(self) -> int:
        return sum(len(cast(Any, self._checked(dataset))) for dataset in self.datasets)

    @staticmethod
    def _checked(dataset: Any) -> IterableDataset[Any]:
        if not isinstance(dataset, IterableDataset):
            raise AssertionError(
                f"ChainDataset only supports IterableDataset, got {type(dataset).__name__}"
            )
        return dataset


class Subset(Dataset[T_co]):
    """The samples of a dataset at given indices.

    Parameters
    ----------
    dataset : Dataset
        The whole.
    indices : sequence of int
        Which samples, in which order.

    Examples
    --------
    >>> list(Subset("abcdef", [4, 0]))
    ['e', 'a']
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return cast(T_co, self.dataset[[self.indices[i] for i in index]])
        return cast(T_co, self.dataset[self.indices[index]])

    def __getitems__(self, indices: Sequence[int]) -> list[T_co]:
        """Return the samples of a batch, the dataset asked once where it offers that."""
        return list(_fetch_all(self.dataset, [self.indices[index] for index in indices]))

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any, lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[Any]]:
    """Split a dataset into disjoint random subsets.

    Parameters
    ----------
    dataset : Dataset
        A dataset with a length.
    lengths : sequence of int or float
        Lengths that add up to the dataset's, or fractions that add up to 1. What rounding the
        fractions down leaves over goes to the subsets in turn, one sample each.
    generator : Generator, optional
        Where the permutation comes from.

    Raises
    ------
    ValueError
        If the lengths do not add up, or a fraction is not between 0 and 1.

    Examples
    --------
    >>> [len(part) for part in random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    total = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        sizes = []
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1: {fraction}")
            sizes.append(math.floor(total * fraction))
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
        _warn_of_empty(sizes)
    else:
        sizes = cast("list[int]", list(lengths))
    if sum(sizes) != total:
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! "
            f"{list(lengths)} for {total} samples"
        )
    order = randperm(total, generator=generator).tolist()
    ends = itertools.accumulate(sizes)
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


def _warn_of_empty(sizes: list[int]) -> None:
    import warnings

    for i, size in enumerate(sizes):
        if size == 0:
            warnings.warn(
                f"Length of split at index {i} is 0. This might result in an empty dataset.",
                UserWarning,
                stacklevel=3,
            )
