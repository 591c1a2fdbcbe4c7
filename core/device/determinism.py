"""Whether kernels have to give the same result each time, and what those do that cannot."""

from __future__ import annotations

import math
from typing import Any

from ..errors import warn
from .dtypes import BOOL, INTEGER, DType, iinfo

#: Whether it is wanted, and whether kernels that cannot only warn. ``use_deterministic_algorithms`` sets it.
wanted: list[bool] = [False, False]

#: Whether memory that is asked for without contents is filled while determinism is wanted.
#: ``utils.deterministic.fill_uninitialized_memory`` sets it.
filling: list[bool] = [True]

#: Whether it is filled now: what functions that make memory look at.
fills_memory: list[bool] = [False]


def want(mode: bool, warn_only: bool) -> None:
    """Say whether kernels have to give the same result each time, and whether others only warn."""
    wanted[:] = [mode, warn_only]
    fills_memory[0] = mode and filling[0]


def fill_if_wanted(fill: bool) -> None:
    """Say whether memory is filled while determinism is wanted."""
    filling[0] = fill
    fills_memory[0] = fill and wanted[0]


def filler(dtype: DType) -> Any:
    """Return what memory of a dtype is filled with: NaN, the largest integer, or True."""
    if dtype.category == BOOL:
        return True
    return iinfo(dtype).max if dtype.category == INTEGER else math.nan


def deterministic_wanted() -> bool:
    """Return whether kernels have to give the same result each time, on the same device."""
    return wanted[0]


def alert_not_deterministic(name: str) -> None:
    """Raise or warn, as ``use_deterministic_algorithms`` said, of a kernel that cannot.

    Parameters
    ----------
    name : str
        What the message calls the kernel.

    Raises
    ------
    RuntimeError
        If determinism is wanted, and not by warnings only.

    Examples
    --------
    >>> from tensorplug.plugin import alert_not_deterministic
    >>> alert_not_deterministic("my_kernel")  # nobody asked for determinism
    """
    if not wanted[0]:
        return
    options = "True, warn_only=True" if wanted[1] else "True"
    text = (
        f"{name} does not have a deterministic implementation, but you set "
        f"'use_deterministic_algorithms({options})'."
    )
    if wanted[1]:
        warn(text, UserWarning)
        return
    raise RuntimeError(
        f"{text} You can turn off determinism just for this operation, or you can use the 'warn_only=True' "
        "option, if that's acceptable for your application."
    )
