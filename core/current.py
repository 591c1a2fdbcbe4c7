"""What every call of an op looks at, in one object: the compiled modules read its attributes directly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .gradient import GradientLayer
from .kinds import Kind
from .op import Op


class Current:
    """The state of the process that calls depend on.

    Attributes
    ----------
    paused, interposed : int
        How many contexts, over all threads, forbid recording (``no_grad`` blocks) or interpose on calls
        (layers, preferred backends). While they are zero, no thread-local state is looked at.
    preferences : int
        How many contexts prefer a backend; each counts as interposed too.
    verify : bool
        Whether the next kernel's result is checked in full: after a kernel's first call, or always. See
        :mod:`.contracts`.
    gradient : GradientLayer
        What records operations for differentiation.
    through_layers, gradient_off : callable
        Set by :mod:`.layers`: runs a call through this thread's layers; a context that records nothing.
    native_kernel, preferred_kernel : callable
        Set by :mod:`.resolution`: whether a plugin's kernel serves an op; the kernel that this thread
        prefers.
    """

    __slots__ = (
        "gradient", "gradient_off", "interposed", "native_kernel", "paused", "preferences",
        "preferred_kernel", "through_layers", "verify",
    )  # fmt: skip

    through_layers: Callable[[Op, tuple[Any, ...], dict[str, Any]], Any]
    gradient_off: Callable[[], Any]
    native_kernel: Callable[[Op, Kind], bool]
    preferred_kernel: Callable[[Op, Kind], Callable[..., Any]]

    def __init__(self) -> None:
        self.paused = 0
        self.interposed = 0
        self.preferences = 0
        self.verify = False
        self.gradient: GradientLayer = GradientLayer()

    def set_gradient(self, layer: GradientLayer) -> None:
        """Make `layer` the one that ops on tensors that require grad go through."""
        self.gradient = layer

    def add_paused(self, change: int) -> None:
        """Count a context that forbids recording in (1) or out (-1)."""
        self.paused += change

    def add_interposed(self, change: int) -> None:
        """Count a context that interposes on calls in (1) or out (-1)."""
        self.interposed += change

    def add_preferences(self, change: int) -> None:
        """Count a context that prefers a backend in (1) or out (-1)."""
        self.preferences += change
        self.interposed += change


#: The only one.
current = Current()
