"""Functions with a derivative written by the user, outside of any plugin."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tensorplug.core.dispatch import layers
from tensorplug.core.dispatch.counts import recording_on
from tensorplug.core.dispatch.layers import gradient_off, recording
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.tensor import Tensor

from .function_node import FunctionCtx, FunctionNode, attach
from .graph.views import requires_grad


class Function:
    """Base class of functions with a derivative of their own.

    A subclass has two static methods: ``forward(ctx, *args)`` computes, ``backward(ctx, *grads)`` returns a
    gradient (or None) for each argument. Or ``forward(*args)`` without ctx and
    ``setup_context(ctx, inputs, output)``. It is called by ``apply``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> class Cube(tp.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return g * 3 * x * x
    >>> x = tp.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    #: Whether ``vmap`` batches ``forward`` and ``backward`` as they are.
    generate_vmap_rule = False

    #: The class of the nodes that calls record, named after this one.
    _backward_cls: type[FunctionNode] = FunctionNode

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._backward_cls = type(f"{cls.__name__}Backward", (FunctionNode,), {"__slots__": ()})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static: call "
            "apply() on the class itself",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse the way that functions were called in before their methods were static."""
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style "
            f"autograd function with static forward method: call {type(self).__name__}.apply()"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keep what ``backward`` needs, where ``forward`` takes no ctx."""
        raise NotImplementedError("setup_context is not implemented")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any, **_: Any) -> Any:
        """Return the gradients of the arguments."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use "
            "it with backward mode AD."
        )

    #: Another name of ``backward``; a subclass defines the one or the other.
    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangents of the outputs from those of the arguments: forward mode."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """Return ``(outputs, out_dims)`` for arguments that hold a batch along `in_dims`.

        `info` has ``batch_size`` and ``randomness``.
        """
        raise NotImplementedError("a Function has to define vmap() to be used inside of vmap")

    @classmethod
    def _chosen_backward(cls) -> Any:
        """Return ``backward``, under the name that it has in this class."""
        if cls.vjp is Function.vjp:
            return cls.backward
        if cls.backward is not Function.backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should "
                "only implement one of them."
            )
        return cls.vjp

    @classmethod
    def apply(cls, *args: Any, _contexts: list[Any] | None = None, **kwargs: Any) -> Any:
        """Call the function and record the call."""
        if cls.setup_context is not Function.setup_context and (
            kwargs or getattr(cls.forward, "__defaults__", None)
        ):
            # What forward has by default is an input like others.
            import inspect  # on first use: saves import time

            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        if dispatch_state.layers_active and _contexts is None:
            from .transforms.custom_functions import apply  # on first use: saves import time

            result = apply(cls, args, kwargs)
            if result is not NotImplemented:
                return result
        ctx = FunctionCtx()
        if _contexts is not None:
            _contexts.append(ctx)
        tracked = tuple([isinstance(arg, TensorBase) and requires_grad(arg) for arg in args])
        recorded = any(tracked) and (not dispatch_state.grad_disabled or recording_on())
        if recorded and dispatch_state.layers_active:
            layers.note_opaque(f"{cls.__name__}.apply()")
        ctx.needs_input_grad = tracked if recorded else (False,) * len(args)
        with gradient_off():
            if cls.setup_context is Function.setup_context:
                output = cls.forward(ctx, *args, **kwargs)
            else:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
        single = not isinstance(output, (tuple, list))
        outputs = [output] if single else list(output)
        for dirty in ctx._dirty:
            if not any(dirty is out for out in outputs):
                raise RuntimeError(
                    f"{cls.__name__}: an input marked dirty with mark_dirty() must be returned by forward()"
                )
        inputs = [arg for arg in args if isinstance(arg, TensorBase)]
        for position, out in enumerate(outputs):
            if any(out is arg for arg in inputs):
                if cls.setup_context is not Function.setup_context:
                    _check_not_saved(out, ctx)
                outputs[position] = _returned(out, ctx)
        if recorded:
            attach(cls, ctx, args, tracked, outputs)
        return outputs[0] if single else tuple(outputs)


def _check_not_saved(given: Any, ctx: FunctionCtx) -> None:
    """Refuse to save an input that is returned: setup_context cannot tell it from the output."""
    saved = (*ctx._to_save, *ctx._for_forward)
    apart = any(given is other for other in ctx._dirty) or (
        requires_grad(given) and any(given is other for other in ctx._non_differentiable)
    )
    if not apart and any(given is other for other in saved):
        raise RuntimeError(
            "An input that has been returned as-is as output is being saved for backward. This is not "
            "supported if you override setup_context. You should return and save a view of the input "
            "instead, e.g. with x.view_as(x) or setup ctx inside the forward function itself."
        )


def _returned(given: Any, ctx: FunctionCtx) -> Any:
    """Return what stands for an input that is returned: where it was not written to, a view of it."""
    if any(given is other for other in ctx._non_differentiable):
        alone = given.detach()
        ctx._non_differentiable = (*ctx._non_differentiable, alone)
        return alone
    if any(given is other for other in ctx._dirty):
        return given
    if given._key.intercepts:
        return given.detach()
    with gradient_off():  # a write to the view would reach the input
        return given.view_as(given)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a ``backward`` whose own computation cannot be differentiated.

    Its results are cut off from the graph; a second derivative through them raises.
    """
    import functools

    @functools.wraps(backward)
    def wrapper(ctx: Any, *gradients: Any) -> Any:
        with gradient_off():
            results = backward(ctx, *gradients)
        if not recording.enabled or not any(
            isinstance(g, TensorBase) and requires_grad(g) for g in gradients
        ):
            return results
        items = results if isinstance(results, tuple) else (results,)
        marked = tuple(
            [
                _NotTwice.apply(item.detach().requires_grad_())
                if isinstance(item, Tensor)
                else item
                for item in items
            ]
        )
        return marked if isinstance(results, tuple) else marked[0]

    return wrapper


class _NotTwice(Function):
    """Passes a tensor on, and refuses to be differentiated."""

    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )
