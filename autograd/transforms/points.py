"""What transforms of functions share: where to differentiate, what comes out, and for which arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tensorplug.core.ops.creation.creation_like import zeros_like
from tensorplug.core.tensor.tensor import Tensor

from ..engine import backward
from ..forward.forward_mode import keep_tangents
from ..grad_mode import _Fixed
from ..graph.nodes import Node
from ..graph.views import edge_of
from ..vmap.batched_tensor import BatchedTensor, front, moved, wrap
from ..vmap.vmap import batched_everywhere
from .levels import ActiveLevels, leaf_for, state
from .pytree import tree_map

Function = Callable[..., Any]


# --- tensors behind batched ones --------------------------------------------------------------


def lowered(tensor: Any, batches: tuple[Any, ...]) -> Any:
    """Return the tensor behind one that is batched at all of these levels, their dimensions first.

    A level that came later, and so is the outermost wrapping, stays.
    """
    if not batches:
        return tensor
    if isinstance(tensor, BatchedTensor) and tensor.level not in batches:
        inner = lowered(tensor.value, batches)
        return wrap(inner, tensor.bdim + len(batches), tensor.level)
    for number in range(len(batches) - 1, -1, -1):
        with ActiveLevels(batches[:number], state.tangents):
            tensor = front(tensor, batches[number])
    return tensor


def raised(tensor: Any, batches: tuple[Any, ...]) -> Any:
    """Undo :func:`lowered`."""
    if not batches:
        return tensor
    if isinstance(tensor, BatchedTensor):
        with ActiveLevels((), state.tangents):
            inner = moved(tensor.value, tensor.bdim, len(batches))
        return wrap(raised(inner, batches), 0, tensor.level)
    for level in batches:
        tensor = wrap(tensor, 0, level)
    return tensor


def behind(tensor: Any, batches: tuple[Any, ...]) -> Any:
    """Return what lies behind any tensor, as if it were batched at all of these levels."""
    return lowered(batched_everywhere(tensor, batches), batches)


def met_by(tensors: Iterable[Any]) -> tuple[Any, ...]:
    """Return those of the batches at work at which some of the tensors are batched."""
    found = set()
    for tensor in tensors:
        while isinstance(tensor, BatchedTensor):
            found.add(tensor.level)
            tensor = tensor.value
    return tuple([level for level in state.batches if level in found])


def rebuilt(tensor: Any, change: Callable[[Any], Any]) -> Any:
    """Return a tensor with the ordinary one that lies behind it changed."""
    if isinstance(tensor, BatchedTensor):
        return wrap(rebuilt(tensor.value, change), tensor.bdim, tensor.level)
    return change(tensor)


# --- points to differentiate at, and what comes out ---------------------------------------------


def point_of(tensor: Any, batches: tuple[Any, ...]) -> Any:
    """Return a fresh tensor of the graph, of the same content, from behind the batches."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(tensor)}")
    if not tensor._key.is_differentiable:
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    low = behind(tensor, batches)
    with ActiveLevels((), state.tangents):
        if low.requires_grad:
            return low.view_as(low)
        fresh = leaf_for(low)
        keep_tangents(low, fresh)
        return fresh


def probe_like(tensor: Any) -> Any:
    """Return zeros of the shape of a tensor, to differentiate a derivative for what it is multiplied with."""
    return leaf_for(zeros_like(tensor))


def _depends_elsewhere(tensors: Sequence[Any], points: Sequence[Any]) -> bool:
    """Return whether the graph of some tensors leads to a leaf other than these points."""
    own = {id(point) for point in points}
    stack = [edge_of(tensor) for tensor in tensors if tensor.requires_grad]
    seen: set[int] = set()
    while stack:
        edge = stack.pop()
        if edge is None or id(edge) in seen:
            continue
        seen.add(id(edge))
        if isinstance(edge, Node):
            stack.extend(edge.edges)
        elif id(edge) not in own:
            return True
    return False


def released(tree: Any, points: Sequence[Any], outside: bool) -> Any:
    """Return results as the caller may have them: recorded only as far as the caller records."""

    def release(tensor: Any) -> Any:
        if not tensor.requires_grad:
            return tensor
        if outside and _depends_elsewhere([tensor], points):
            return tensor
        cut = tensor.detach()
        keep_tangents(tensor, cut)
        return cut

    return tree_map(lambda leaf: rebuilt(leaf, release) if isinstance(leaf, Tensor) else leaf, tree)


def gradients_of(
    outputs: Sequence[Any],
    points: Sequence[Any],
    vectors: Sequence[Any],
    batches: tuple[Any, ...],
    outside: bool,
    retain: bool,
    own: Sequence[Any] = (),
) -> list[Any]:
    """Return the gradients of ordinary tensors, zeros where nothing depends."""
    live = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad]
    record = outside and (
        any(v.requires_grad for _, v in live)
        or _depends_elsewhere([o for o, _ in live], [*points, *own])
    )
    inner = tuple([level for level in state.batches if level not in batches])
    with ActiveLevels(inner, state.tangents), _Fixed(record):
        found: Sequence[Any] = [None] * len(points)
        if live:
            found = backward.grad(
                [o for o, _ in live],
                list(points),
                [v for _, v in live],
                retain_graph=retain or record,
                create_graph=record,
                allow_unused=True,
            )
        return [
            zeros_like(point.detach()) if value is None else value
            for value, point in zip(found, points, strict=True)
        ]


# --- which arguments --------------------------------------------------------------------------


def _argnums(argnums: Any, count: int) -> tuple[int, ...]:
    """Return the positions of the arguments to differentiate for, nonnegative."""
    if isinstance(argnums, bool) or not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    chosen = (argnums,) if isinstance(argnums, int) else argnums
    if not chosen:
        raise RuntimeError("argnums must be non-empty")
    for number in chosen:
        if not isinstance(number, int):
            raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(number)}")
        if not -count <= number < count:
            raise RuntimeError(f"Got argnum={number}, but only {count} positional inputs")
    chosen = tuple([number % count for number in chosen])
    if len(set(chosen)) != len(chosen):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return chosen


def picked_arguments(args: tuple[Any, ...], argnums: Any) -> tuple[tuple[int, ...], Any]:
    """Return the positions of the arguments to differentiate for, and these arguments."""
    chosen = _argnums(argnums, len(args))
    return chosen, args[chosen[0]] if isinstance(argnums, int) else tuple([args[n] for n in chosen])


def replaced_arguments(
    args: tuple[Any, ...], argnums: Any, chosen: tuple[int, ...], new: Any
) -> list[Any]:
    """Return the arguments with other ones at the chosen indices."""
    result = list(args)
    for number, value in zip(chosen, (new,) if isinstance(argnums, int) else new, strict=True):
        result[number] = value
    return result
