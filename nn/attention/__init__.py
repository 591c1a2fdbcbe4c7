"""The choice among implementations of attention, under torch's names."""

from __future__ import annotations

import enum
import importlib
from collections.abc import Iterable
from contextlib import ContextDecorator
from typing import TYPE_CHECKING, Any

from tensorplug.core.contexts import Context, declare, thread

if TYPE_CHECKING:
    from . import flex_attention as flex_attention

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """The implementations that torch knows of scaled dot-product attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


declare(sdpa_backends=None)


class sdpa_kernel(Context, ContextDecorator):
    """Note which implementations of attention a program allows within a ``with`` block.

    Which kernel runs is settled by the plugins' priorities, and all of them compute the same; a plugin with
    several may ask :func:`chosen_backends`.

    Parameters
    ----------
    backends : SDPBackend or iterable of SDPBackend
        Those that are allowed.
    set_priority : bool
        Whether their order matters.

    Raises
    ------
    TypeError
        If there is something else among them.

    Examples
    --------
    >>> import tensorplug as tp
    >>> q = tp.ones(1, 2, 4)
    >>> with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
    ...     output = tp.nn.functional.scaled_dot_product_attention(q, q, q)
    >>> output.shape
    Size([1, 2, 4])
    """

    def __init__(
        self,
        backends: SDPBackend | Iterable[SDPBackend],
        set_priority: bool = False,
    ) -> None:
        chosen = (backends,) if isinstance(backends, SDPBackend) else tuple(backends)
        for backend in chosen:
            if not isinstance(backend, SDPBackend):
                raise TypeError(
                    f"sdpa_kernel() takes one SDPBackend or several, got {type(backend).__name__}"
                )
        self._chosen = chosen

    def _changes(self) -> dict[str, Any]:
        return {"sdpa_backends": self._chosen}


def chosen_backends() -> tuple[SDPBackend, ...] | None:
    """Return what the innermost :func:`sdpa_kernel` of this thread allows; None outside of any."""
    chosen: tuple[SDPBackend, ...] | None = thread.sdpa_backends
    return chosen


def __getattr__(name: str) -> Any:
    if name == "flex_attention":  # on first use: saves import time
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
