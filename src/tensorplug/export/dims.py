"""Sizes of exported programs that may differ from run to run."""

from __future__ import annotations

import enum
from typing import Final


class DimHint(enum.Enum):
    """What may become of a size that has no :class:`Dim`."""

    AUTO = "may differ, if the program allows it"
    DYNAMIC = "has to be one that may differ"
    STATIC = "stays as it is"


class Dim:
    """A size that may differ from run to run.

    Parameters
    ----------
    name : str
        What it is called. Sizes of one name are equal.
    min, max : int, optional
        Between which it lies.

    Attributes
    ----------
    AUTO, DYNAMIC, STATIC : DimHint
        In place of a ``Dim``: whether the size may differ is found out; it has to be one that may; it stays.
        Such sizes are equal where the program needs them to be, and were so.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.export.Dim("batch", min=1, max=64)
    Dim('batch', min=1, max=64)
    """

    AUTO: Final = DimHint.AUTO
    DYNAMIC: Final = DimHint.DYNAMIC
    STATIC: Final = DimHint.STATIC

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not name.isidentifier():
            raise ValueError(f"Dim(): a name is an identifier, got {name!r}")
        self.name, self.min, self.max = name, 0 if min is None else min, max

    def __repr__(self) -> str:
        bounds = f", min={self.min}" if self.min else ""
        return f"Dim({self.name!r}{bounds}{'' if self.max is None else f', max={self.max}'})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(self.name)
