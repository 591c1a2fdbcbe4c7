"""Custom functions inside of transforms: their own rules for batches and tangents."""

from __future__ import annotations

from typing import Any

from tensorplug.core.tensor.tensor import Tensor

from ..forward.forward_mode import _innermost, set_tangent, tangent_at
from ..function import Function
from ..function_node import FunctionCtx
from ..vmap.batched_tensor import BatchLevel, front, is_batched, moved, wrap
from ..vmap.calls import innermost
from ..vmap.plugin_rules import placed, two_returns
from ..vmap.vmap import vmap
from ..vmap.vmap_rules import VmapInfo
from . import levels
from .levels import BATCHED, ActiveLevels, entered, state
from .pytree import tree_flatten, tree_unflatten

_SETUP = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
    "override the setup_context staticmethod."
)


def apply(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a custom function inside of transforms; NotImplemented if no transform concerns it."""
    leaves = tree_flatten(args)[0]
    found = levels.touched(leaves)
    if found & BATCHED and state.batches:
        return _apply_batched(function, args, kwargs)
    if found and state.tangents:
        return _apply_dual(function, args, kwargs)
    return NotImplemented


# --- batches ----------------------------------------------------------------------------------


def _apply_batched(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if function.setup_context is Function.setup_context:
        raise RuntimeError(_SETUP)
    own = function.vmap is not Function.vmap
    if function.generate_vmap_rule and own:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it has both generate_vmap_rule=True and an "
            "overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the overridden "
            "vmap staticmethod to avoid ambiguity."
        )
    if not function.generate_vmap_rule and not own:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it does not have vmap support. Please "
            "override and implement the vmap staticmethod or set generate_vmap_rule=True."
        )
    leaves, spec = tree_flatten(args)
    level = innermost(leaves)
    assert level is not None
    dims = [leaf.bdim if is_batched(leaf, level) else None for leaf in leaves]
    plain = [leaf.value if is_batched(leaf, level) else leaf for leaf in leaves]
    with ActiveLevels(state.batches[: level.position], state.tangents):
        if own:
            info = VmapInfo(level.size, level.randomness)
            in_dims = tree_unflatten(dims, spec)
            result = function.vmap(info, in_dims, *tree_unflatten(plain, spec), **kwargs)
            outputs, out_dims = two_returns(result, function.__name__)
        else:
            made = _generated(function, level, dims, spec)
            outputs, out_dims = made.apply(*plain, **kwargs), 0
    return placed(outputs, out_dims, level, function.__name__)


def _generated(function: Any, level: BatchLevel, dims: list[Any], spec: Any) -> Any:
    """Return the custom function of all samples: forward and backward each batched."""

    class Batched(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx: Any, *plain: Any, **kwargs: Any) -> Any:
            inner = FunctionCtx()
            inner.needs_input_grad = ctx.needs_input_grad

            def one(*leaves: Any) -> Any:
                args = tree_unflatten(list(leaves), spec)
                output = function.forward(*args, **kwargs)
                function.setup_context(inner, args, output)
                single = not isinstance(output, tuple)
                ctx.single = single
                ctx.places = [t is not None for t in inner._to_save]
                ctx.forward_places = [t is not None for t in inner._for_forward]
                kept = tuple([t for t in inner._to_save if t is not None])
                forward = tuple([t for t in inner._for_forward if t is not None])
                return (output if not single else (output,)), kept, forward

            outputs, kept, forward = vmap(one, in_dims=tuple(dims), randomness=level.randomness)(
                *plain
            )
            inner._to_save = inner._for_forward = ()
            ctx.inner = inner
            ctx.save_for_backward(*kept)
            ctx.save_for_forward(*forward)
            return outputs[0] if ctx.single else outputs

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            kept = ctx.saved_tensors
            shown = BatchLevel(level.size, level.randomness)
            with shown, entered(shown, batch=True):
                saved = iter([wrap(t, 0, shown) for t in kept])
                ctx.inner._for_forward = tuple(
                    [next(saved) if there else None for there in ctx.forward_places]
                )
                ctx.inner._jvp = True
                given = [
                    t if t is None or dim is None else wrap(t, dim, shown)
                    for t, dim in zip(tangents, dims, strict=True)
                ]
                results = function.jvp(ctx.inner, *given)
                ctx.inner._jvp = False
                ctx.inner._for_forward = ()
                single = not isinstance(results, tuple)
                found = tuple(
                    [None if r is None else front(r, shown) for r in (results,)]
                    if single
                    else [None if r is None else front(r, shown) for r in results]
                )
            return found[0] if single else found

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            kept = ctx.saved_tensors
            shown = BatchLevel(level.size, level.randomness)
            with shown, entered(shown, batch=True):
                saved = iter([wrap(t, 0, shown) for t in kept])
                ctx.inner._node = None
                ctx.inner._to_save = tuple([next(saved) if there else None for there in ctx.places])
                given = [None if g is None else wrap(g, 0, shown) for g in gradients]
                results = function.backward(ctx.inner, *given)
                ctx.inner._to_save = ()
                results = results if isinstance(results, tuple) else (results,)
                behind = [
                    (r.value, r.bdim)
                    if isinstance(r, Tensor) and is_batched(r, shown)
                    else (r, None)
                    for r in results
                ]
            final: list[Any] = []
            for (value, bdim), dim in zip(behind, dims, strict=True):
                if value is None:
                    final.append(None)
                    continue
                whole = (
                    value.expand((level.size, *value._shape))
                    if bdim is None
                    else moved(value, bdim, 0)
                )
                final.append(whole.sum(0) if dim is None else moved(whole, 0, dim))
            return tuple(final)

    Batched.__name__ = Batched.__qualname__ = function.__name__
    return Batched


# --- tangents ---------------------------------------------------------------------------------


def _apply_dual(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    leaves = [arg for arg in args if isinstance(arg, Tensor)]
    number = _innermost(leaves)
    if number is None:
        return NotImplemented
    if function.jvp is Function.jvp:
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )
    level: Any = state.tangents[number]
    contexts: list[FunctionCtx] = []
    with ActiveLevels((), state.tangents[:number]):
        output = function.apply(*args, _contexts=contexts, **kwargs)
    ctx = contexts[0]
    with level.below(number):
        given = []
        for arg in args:
            known = tangent_at(arg, level) if isinstance(arg, Tensor) else None
            if known is None and isinstance(arg, Tensor) and ctx._materialize:
                known = arg.detach() * 0 if arg._key.is_differentiable else None
            given.append(known)
        ctx._jvp = True
        found = function.jvp(ctx, *given)
        ctx._jvp = False
        outputs = output if isinstance(output, tuple) else (output,)
        pushed = found if isinstance(found, tuple) else (found,)
        if len(pushed) != len(outputs):
            raise RuntimeError(
                f"{function.__name__}.jvp returned {len(pushed)} tangents for {len(outputs)} outputs"
            )
        for value, tangent in zip(outputs, pushed, strict=True):
            if tangent is None or not isinstance(value, Tensor):
                continue
            if tangent._shape != value._shape:
                raise RuntimeError(
                    f"{function.__name__}.jvp returned a tangent of shape {list(tangent._shape)} for an "
                    f"output of shape {list(value._shape)}"
                )
            set_tangent(value, level, tangent)
    return output
