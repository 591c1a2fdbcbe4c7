"""Samplers: in which order a loader asks for the samples of a dataset."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import float64, int64
from tensorplug.core.device.generator import Generator
from tensorplug.core.ops import multinomial, randint, randperm
from tensorplug.core.tensor.creation import as_tensor

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """Base of samplers; a subclass defines ``__iter__`` and, where known, ``__len__``."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")


class SequentialSampler(Sampler[int]):
    """The indices in order.

    Examples
    --------
    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def draw_seed(generator: Generator | None = None) -> int:
    """Return a seed from a generator, by default from the default one."""
    return int(randint(0, 2**62, (), dtype=int64, generator=generator).item())


def _own_generator() -> Generator:
    """Return a generator seeded from the default one, so that ``manual_seed`` fixes the order."""
    generator = Generator()
    generator.manual_seed(draw_seed())
    return generator


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value!r}")


def _check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} should be a boolean value, but got {name}={value!r}")


class RandomSampler(Sampler[int]):
    """The indices in random order, or drawn with replacement.

    Parameters
    ----------
    data_source : sized
        The dataset.
    replacement : bool
        Draw each index anew instead of permuting them.
    num_samples : int, optional
        How many indices; by default as many as samples. Without replacement, more than that start
        another permutation.
    generator : Generator, optional
        Where the randomness comes from; by default a new one for each pass, seeded from the
        default.

    Examples
    --------
    >>> sorted(RandomSampler("abc"))
    [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        _check_flag("replacement", replacement)
        _check_count("num_samples", len(data_source) if num_samples is None else num_samples)
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator

    @property
    def num_samples(self) -> int:
        """How many indices one pass yields; follows a dataset whose size changes."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size = len(self.data_source)
        generator = _own_generator() if self.generator is None else self.generator
        remaining = self.num_samples
        if remaining > 0 and not size:
            raise RuntimeError(
                f"RandomSampler: there are no samples to draw num_samples={remaining} from"
            )
        while remaining > 0:
            if self.replacement:
                # In blocks, so that a long epoch doesn't hold all its indices at once.
                block = randint(0, size, (min(remaining, 32),), generator=generator).tolist()
            else:
                block = randperm(size, generator=generator).tolist()[:remaining]
            yield from block
            remaining -= len(block)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order.

    Parameters
    ----------
    indices : sequence of int
        Which samples.
    generator : Generator, optional
        Where the randomness comes from.

    Examples
    --------
    >>> sorted(SubsetRandomSampler([5, 3]))
    [3, 5]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for position in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[position]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with the given weights.

    Parameters
    ----------
    weights : sequence of float
        One weight per sample; they need not add up to 1.
    num_samples : int
        How many to draw.
    replacement : bool
        Whether an index may come twice.
    generator : Generator, optional
        Where the randomness comes from.

    Examples
    --------
    >>> list(WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    weights: Tensor

    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _check_count("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement!r}"
            )
        tensor = as_tensor(weights, dtype=float64)
        if tensor.dim() != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{tuple(tensor.shape)}"
            )
        self.weights = tensor
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of another sampler, gathered into lists.

    Parameters
    ----------
    sampler : iterable of int
        The indices.
    batch_size : int
        How many go into one list.
    drop_last : bool
        Leave a last, shorter list out.

    Examples
    --------
    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check_count("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(
                f"drop_last should be a boolean value, but got drop_last={drop_last!r}"
            )
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
