"""What core asks of the package that records operations for differentiation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .call_cache import CachedCall
from .op import Op
from .view_plans import ViewPlan, ViewPlans


class GradientLayer:
    """The interface of autograd, and what serves until it is loaded: nothing is recorded.

    A package that records derives its own layer from this one and hands it to
    :meth:`.state.DispatchState.set_gradient`.
    """

    __slots__ = ("watched",)

    def __init__(self) -> None:
        #: Whether something is to be done with each new node.
        self.watched = False

    def enabled(self) -> bool:
        """Return whether this thread records; asked only while some thread does not."""
        return False

    def record_unary(self, op: Op, output: Any, input: Any) -> None:
        """Record a pointwise op of one argument."""

    def record_binary(
        self, op: Op, output: Any, input: Any, other: Any, left: int, right: int, broadcast: bool
    ) -> None:
        """Record a pointwise op of two arguments, one of which may be a number.

        `left` and `right` are the arguments' ``_state``, 0 for a number; `broadcast` tells whether
        two tensors have different shapes.
        """

    def record(self, op: Op, values: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        """Record any other op."""

    def record_cached(self, op: Op, cached: CachedCall, args: tuple[Any, ...], output: Any) -> None:
        """Record a primitive with one output, whose spec was cached."""

    def record_listed(self, op: Op, cached: CachedCall, tensors: Any, output: Any) -> None:
        """Record an op of a list of tensors with one output, whose spec was cached."""

    def record_cached_outputs(
        self, op: Op, cached: CachedCall, args: tuple[Any, ...], outputs: Any
    ) -> None:
        """Record a composite with several outputs, whose spec was cached."""

    def record_body(self, recorded: Any, tensors: Any, output: Any, found: Any) -> None:
        """Record a composite whose body was replayed.

        `recorded` is a RecordedBody, `tensors` those among the arguments, and `found` what the forward
        program returned: the output's array and what is saved.
        """

    def differentiate(self, inputs: Any, outputs: Any, gradients: Any) -> Any:
        """Return the gradients of those of `inputs` that require grad, as tensors that are recorded."""
        raise _missing("differentiate")

    def mark_if_inference(self, output: Any) -> None:
        """Mark what was made in inference mode; called while some thread makes inference tensors."""

    def record_view(
        self, op: Op, source: Any, values: tuple[Any, ...], output: Any, plan: ViewPlan | None
    ) -> None:
        """Make `output` a view of `source`, whether or not that requires grad; `values` follow it."""

    def record_views(self, source: Any, outputs: Any, plans: ViewPlans) -> None:
        """Make `outputs` views of `source`, which requires grad, and record them as `plans` tells."""

    def release_view(self, output: Any) -> None:
        """Make a view, of a tensor that nobody else holds, a tensor of its own."""

    def before_inplace(
        self, op: Op, target: Any, values: tuple[Any, ...]
    ) -> tuple[Any, ...] | None:
        """Refuse what may not be written to; return the values to record with, None to record nothing."""
        return None

    def record_inplace(self, op: Op, target: Any, values: tuple[Any, ...], version: int) -> None:
        """Record that `target`, at `version` before, now holds the op's result."""

    def relayout(self, name: str, target: Any, show: Callable[[Any], Any]) -> None:
        """Turn a tensor into the view of itself that `show` makes, for the op called `name`."""
        result = show(target)
        target._array, target._shape = result._array, result._shape

    def requires_grad(self, tensor: Any) -> bool:
        """Return whether a view of a tensor that required no grad does so by now."""
        return False

    def set_requires_grad(self, tensor: Any, value: bool) -> None:
        """Make a leaf require grad or not."""
        raise _missing("set_requires_grad")

    def grad_fn(self, tensor: Any) -> Any:
        """Return the node that made the tensor, or None."""

    def backward(
        self, tensor: Any, gradient: Any, retain_graph: Any, create_graph: bool, inputs: Any
    ) -> None:
        """Run the backward pass from a tensor."""
        raise _missing("backward")

    def retain_grad(self, tensor: Any) -> None:
        """Keep the gradient of a non-leaf."""
        raise _missing("retain_grad")

    def register_hook(self, tensor: Any, hook: Callable[..., Any]) -> Any:
        """Call `hook` with the tensor's gradient."""
        raise _missing("register_hook")

    def register_post_accumulate_grad_hook(self, tensor: Any, hook: Callable[..., Any]) -> Any:
        """Call `hook` after a leaf's gradient was accumulated."""
        raise _missing("register_post_accumulate_grad_hook")

    def detach_(self, tensor: Any) -> None:
        """Take the tensor out of its graph."""


def _missing(name: str) -> RuntimeError:
    return RuntimeError(f"{name} needs the autograd package: import tensorplug.autograd")
