"""Tensors that are divided among processes (``torch.distributed.tensor``)."""

from . import parallel as parallel
from .dtensor import DTensor, distribute_tensor
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_tensor"]
