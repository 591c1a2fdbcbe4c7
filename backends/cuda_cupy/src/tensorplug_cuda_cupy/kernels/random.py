"""Random bits: the same numbers as on the CPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape

from .. import sources
from .._cupy import cp
from ..runtime import generator_state

_WORD = (1 << 64) - 1


def build(table: KernelTable) -> None:
    """Add the kernel of core's op to `table`, above the shared one."""
    table.add("philox_bits", philox_bits, priority=1)


def stream_arguments(words: int, seed: int, offset: int) -> tuple[Any, ...]:
    """Return the arguments that say where in a generator's stream a kernel begins."""
    return (
        np.uint64(seed & _WORD),
        np.uint64(offset & _WORD),
        np.uint64(offset >> 64 & _WORD),
        generator_state.shift_of(words),
    )


def philox_bits(shape: Shape, seed: int, offset: int) -> Any:
    """Return random 32-bit words as int64, by counter."""
    output = cp.empty(shape, np.int64)
    count = math.prod(shape)
    if count:
        blocks = sources.blocks_for(-(-count // 4))
        arguments = (output, np.int64(count), *stream_arguments(count, seed, offset))
        sources.launch("random", "philox_bits", "", blocks, arguments)
    return output
