"""Random numbers in captured graphs: how far the generators went on between the replays.

What a kernel is told when it is captured, it is told at each replay. So the kernels also read from the
device how many blocks of four words have been taken since, which a graph writes there before it is queued.
"""

from __future__ import annotations

import threading
from typing import Any


class Shift:
    """The blocks of words that one graph draws, and where its kernels read how far to go on.

    Parameters
    ----------
    array : array
        Two unsigned numbers of 64 bits on the device: the blocks to go on, and the bits of the seed to turn.
    """

    def __init__(self, array: Any) -> None:
        self.array = array
        self.blocks = 0


_capturing = threading.local()


def begin(shift: Shift) -> None:
    """Note what this thread draws from now on."""
    _capturing.shift = shift


def end() -> None:
    """Note it no longer."""
    _capturing.shift = None


def shift_of(words: int) -> Any | None:
    """Return what a kernel that draws so many words has to read; None outside of a capture."""
    shift: Shift | None = getattr(_capturing, "shift", None)
    if shift is None:
        return None
    shift.blocks += -(-words // 4)
    return shift.array
