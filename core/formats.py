"""Names of layouts and memory formats, for programs that pass them.

Tensors are dense, and row by row in memory unless a view says otherwise: a backend orders memory as
its kernels like it. The names are accepted where torch takes them.
"""

from __future__ import annotations

__all__ = [
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "layout",
    "memory_format",
    "preserve_format",
    "strided",
]


class _Name:
    """A constant that prints as its name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"tensorplug.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class layout(_Name):
    """The type of ``tp.strided``."""

    __slots__ = ()


class memory_format(_Name):
    """The type of ``tp.contiguous_format`` and its like."""

    __slots__ = ()


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
