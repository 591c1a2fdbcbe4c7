"""Checkpoints that several processes write and read together (``torch.distributed.checkpoint``).

Each process writes the parts that it has, to a file of its own; a file of metadata says which part is where.
So a checkpoint is read by any number of processes, however they divide it.
"""

from . import state_dict as state_dict
from .saving import Stateful, load, save
from .storage import CheckpointError, FileSystemReader, FileSystemWriter

__all__ = [
    "CheckpointError",
    "FileSystemReader",
    "FileSystemWriter",
    "Stateful",
    "load",
    "save",
]
