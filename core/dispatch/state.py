"""The dispatch state: what every call of an op reads, in one object that compiled modules read directly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .gradient_layer import GradientLayer
from .keys import DispatchKey
from .op import Op


class DispatchState:
    """The state of the process that calls depend on.

    Attributes
    ----------
    grad_disabled, layers_active : int
        How many contexts, over all threads, disable recording (``no_grad`` and ``inference_mode`` blocks) or
        see calls (layers, preferred backends). While they are zero, no thread-local state is looked at.
    preferences : int
        How many contexts prefer a backend; each counts as an active layer too.
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
        "grad_disabled",
        "gradient",
        "gradient_off",
        "layers_active",
        "native_kernel",
        "preferences",
        "preferred_kernel",
        "through_layers",
        "verify",
    )  # fmt: skip

    through_layers: Callable[[Op, tuple[Any, ...], dict[str, Any]], Any]
    gradient_off: Callable[[], Any]
    native_kernel: Callable[[Op, DispatchKey], bool]
    preferred_kernel: Callable[[Op, DispatchKey], Callable[..., Any]]

    def __init__(self) -> None:
        self.grad_disabled = 0
        self.layers_active = 0
        self.preferences = 0
        self.verify = False
        self.gradient: GradientLayer = GradientLayer()

    def set_gradient(self, layer: GradientLayer) -> None:
        """Make `layer` the one that ops on tensors that require grad go through."""
        self.gradient = layer

    def count_grad_disabled(self, change: int) -> None:
        """Count a context that forbids recording in (1) or out (-1)."""
        self.grad_disabled += change

    def count_layers(self, change: int) -> None:
        """Count a context that intercepts calls in (1) or out (-1)."""
        self.layers_active += change

    def count_preferences(self, change: int) -> None:
        """Count a context that prefers a backend in (1) or out (-1)."""
        self.preferences += change
        self.layers_active += change


#: The only one.
dispatch_state = DispatchState()
