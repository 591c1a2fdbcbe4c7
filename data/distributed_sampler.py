"""The sampler that gives each process of a group its share of a dataset."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from typing import Any

from tensorplug.core.device.generator import Generator
from tensorplug.core.ops import randperm

from .samplers import Sampler


class DistributedSampler(Sampler[int]):
    """The indices that one of several processes handles; all shares have the same length.

    Parameters
    ----------
    dataset : sized
        The dataset, the same in every process.
    num_replicas, rank : int, optional
        The number of processes and this one's number; by default those of the process group.
    shuffle : bool
        Permute the indices, anew for each epoch; call :meth:`set_epoch` before each.
    seed : int
        Seed of the permutation, the same in every process.
    drop_last : bool
        Leave out the samples that don't divide evenly, instead of repeating some.

    Examples
    --------
    >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = int(_process_group().get_world_size())
        if rank is None:
            rank = int(_process_group().get_rank())
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        count = len(dataset)
        if drop_last and count % num_replicas:
            count = max(count - num_replicas, 0)
        self.num_samples = math.ceil(count / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        if self.shuffle:
            generator = Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = randperm(count, generator=generator).tolist()
        else:
            indices = list(range(count))
        if indices and len(indices) < self.total_size:
            indices *= math.ceil(self.total_size / len(indices))
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Make the next pass use another permutation: the one of this epoch."""
        self.epoch = epoch


def _process_group() -> Any:
    """Return the module that knows the process group."""
    if importlib.util.find_spec("tensorplug.distributed") is None:
        raise RuntimeError(
            "DistributedSampler requires a process group to find the number of processes and this "
            "one's rank; pass num_replicas and rank"
        )
    return importlib.import_module("tensorplug.distributed")
