"""Checkpoints that several processes write and read together (``torch.distributed.checkpoint``).

Each process writes the parts that it has, to a file of its own; a file of metadata says which part is where.
So a checkpoint is read by any number of processes, however they divide it.
"""

from . import state_dict as state_dict
from .loading import load
from .saving import async_save, save
from .stateful import Stateful
from .storage import CheckpointError, FileSystemReader, FileSystemWriter

__all__ = [
    "CheckpointError",
    "FileSystemReader",
    "FileSystemWriter",
    "Stateful",
    "async_save",
    "load",
    "save",
]
