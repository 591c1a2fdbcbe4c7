"""Batching: tensors with a hidden dimension, and the rules of ops for them: ``vmap``."""

from __future__ import annotations

from . import calls as calls
from .batched_tensor import BatchedTensor as BatchedTensor, BatchLevel as BatchLevel
from .vmap import vmap as vmap

__all__ = ["BatchLevel", "BatchedTensor", "vmap"]
