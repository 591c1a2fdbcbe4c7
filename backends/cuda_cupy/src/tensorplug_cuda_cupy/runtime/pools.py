"""Pools of memory apart from the common one: ``tp.cuda.MemPool``."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from .._cupy import cp
from . import captures
from .memory import allocator_of
from .streams import _index


class MemPool:
    """Memory from which allocations are made within :func:`use_mem_pool`, and to which they return.

    The pool's memory is given back when it and all its tensors are gone. It counts neither in the memory
    statistics nor towards the limit of this process's memory.

    Parameters
    ----------
    allocator : optional
        CuPy's allocator that brings new memory, such as ``cupy.cuda.malloc_managed``; by default CUDA's.
    use_on_oom, no_split
        Only False.

    Raises
    ------
    RuntimeError
        If another behaviour is asked for.
    """

    def __init__(
        self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False
    ) -> None:
        if use_on_oom or no_split:
            raise RuntimeError("MemPool(): use_on_oom and no_split are not supported, only False")
        self._pool = captures.pool(allocator)

    @property
    def id(self) -> Any:
        """What a graph takes as its ``pool``."""
        return self._pool

    @property
    def allocator(self) -> Any:
        """The function that allocates from the pool."""
        return allocator_of(self._pool)


@contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Generator[None]:
    """Return a context in which this thread allocates from a pool.

    Parameters
    ----------
    pool : MemPool
        The pool.
    device : device, str or int, optional
        The GPU that is current within; by default it stays.

    Raises
    ------
    TypeError
        If it is no pool.
    """
    if not isinstance(pool, MemPool):
        raise TypeError(f"use_mem_pool(): expects a tp.cuda.MemPool, got {type(pool).__name__}")
    with cp.cuda.Device(_index(device)), cp.cuda.using_allocator(pool.allocator):
        yield
