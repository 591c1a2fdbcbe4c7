"""Layers whose weights are divided among processes (``torch.distributed.tensor.parallel``)."""

from .styles import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module

__all__ = ["ColwiseParallel", "ParallelStyle", "RowwiseParallel", "parallelize_module"]
