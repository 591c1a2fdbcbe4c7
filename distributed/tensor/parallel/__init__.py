"""Layers whose weights are divided among processes (``torch.distributed.tensor.parallel``)."""

from .loss import loss_parallel
from .preparation import (
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    SequenceParallel,
)
from .styles import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "loss_parallel",
    "parallelize_module",
]
