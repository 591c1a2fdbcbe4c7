"""Backward hooks of a module: identities before and after it that watch the gradients pass."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import Function, is_grad_enabled
from tensorplug.core import Tensor

if TYPE_CHECKING:
    from .module import Module


class _Watch(Function):
    """The identity; in backward, ``watch(gradients)`` returns those to pass on."""

    @staticmethod
    def forward(ctx: Any, watch: Callable[[tuple[Any, ...]], Any], *tensors: Tensor) -> Any:
        ctx.watch = watch
        ctx.set_materialize_grads(False)
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, *ctx.watch(gradients))


def _replaced(result: Any, present: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    """Return what a hook returned, as a tuple, or `present` if it returned None."""
    if result is None:
        return present
    changed = result if isinstance(result, tuple) else (result,)
    if len(changed) != len(present):
        raise RuntimeError(
            f"Backward hook returned an invalid number of {what}, got {len(changed)}, but expected "
            f"{len(present)}"
        )
    return changed


class BackwardTap:
    """Watches one call of a module, and runs its backward hooks with the gradients of that call.

    Parameters
    ----------
    module : Module
        What the hooks are called with.
    hooks, pre_hooks : sequence of callable
        The hooks as they were at the time of the forward.
    """

    def __init__(
        self,
        module: Module,
        hooks: Sequence[Callable[..., Any]],
        pre_hooks: Sequence[Callable[..., Any]],
    ) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_output: tuple[Any, ...] | None = None
        self.watches_inputs = False
        self.argument_count = 0

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments, seen through an identity if there are hooks for their gradients."""
        self.argument_count = len(args)
        if not self.hooks:
            return args
        args, indices = self._through(args, self._inputs_known)
        self.watches_inputs = bool(indices)
        return args

    def outputs(self, result: Any) -> Any:
        """Return the output, seen through an identity."""
        single = isinstance(result, Tensor)
        if not single and not isinstance(result, tuple):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}",
                UserWarning,
                stacklevel=4,
            )
            return result
        values, _ = self._through((result,) if single else result, self._outputs_known)
        if single:
            return values[0]
        return type(result)(*values) if hasattr(result, "_fields") else values

    def _through(
        self,
        values: tuple[Any, ...],
        known: Callable[[tuple[Any, ...], Sequence[int], int], tuple[Any, ...]],
    ) -> tuple[tuple[Any, ...], list[int]]:
        indices = [
            i for i, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad
        ]
        if not indices or not is_grad_enabled():
            return values, []
        count = len(values)
        watched = _Watch.apply(
            lambda gradients: known(gradients, indices, count), *[values[i] for i in indices]
        )
        changed = list(values)
        for index, value in zip(indices, watched, strict=True):
            changed[index] = value
        return tuple(changed), indices

    def _outputs_known(
        self, gradients: tuple[Any, ...], indices: Sequence[int], count: int
    ) -> tuple[Any, ...]:
        grad_output = _spread(gradients, indices, count)
        for hook in self.pre_hooks:
            grad_output = _replaced(hook(self.module, grad_output), grad_output, "grad_output")
        self.grad_output = grad_output
        if self.hooks and not self.watches_inputs:
            # No input requires grad, so this is the last that backward sees of the module.
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs "
                "since no inputs require gradients: grad_input is None for each of them.",
                UserWarning,
                stacklevel=2,
            )
            grad_input = (None,) * self.argument_count
            for hook in self.hooks:
                changed = hook(self.module, grad_input, grad_output)
                if changed is not None and any(item is not None for item in _tuple(changed)):
                    raise RuntimeError(
                        "backward hook for Modules where no input requires gradient should always "
                        "return None or None for all gradients."
                    )
            self.grad_output = None
        return tuple(grad_output[index] for index in indices)

    def _inputs_known(
        self, gradients: tuple[Any, ...], indices: Sequence[int], count: int
    ) -> tuple[Any, ...]:
        grad_input = _spread(gradients, indices, count)
        if self.grad_output is None:
            # Backward came in past the output: the hooks have nothing to be called with.
            return gradients
        for hook in self.hooks:
            grad_input = _replaced(
                hook(self.module, grad_input, self.grad_output), grad_input, "grad_input"
            )
        self.grad_output = None
        return tuple(grad_input[index] for index in indices)


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _spread(gradients: tuple[Any, ...], indices: Sequence[int], count: int) -> tuple[Any, ...]:
    spread: list[Any] = [None] * count
    for index, gradient in zip(indices, gradients, strict=True):
        spread[index] = gradient
    return tuple(spread)


def watch_node(module: Module, hooks: Sequence[Callable[..., Any]], result: Any) -> None:
    """Have hooks of the older form called by the node of the first tensor of an output, as torch does.

    Parameters
    ----------
    module : Module
        What the hooks are called with.
    hooks : sequence of callable
        The hooks.
    result : dict, list or other
        The module's output; without a tensor nothing happens.
    """
    warnings.warn(
        "Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of "
        "Tensors is deprecated and will be removed in future versions. This hook will be missing some of the "
        "grad_output. Please use register_full_backward_hook to get the documented behavior.",
        FutureWarning,
        stacklevel=4,
    )
    node = getattr(_first_tensor(result), "grad_fn", None)
    if node is None:
        return
    for hook in hooks:
        node.register_hook(lambda inputs, outputs, hook=hook: hook(module, inputs, outputs))


def _first_tensor(value: Any) -> Tensor | None:
    """Return the first tensor in an output of dicts and sequences, None if there is none."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, dict):
        return next((item for item in value.values() if isinstance(item, Tensor)), None)
    return _first_tensor(value[0]) if isinstance(value, (list, tuple)) and value else None
