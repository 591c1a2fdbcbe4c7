"""What a backward pass does beside the formulas: hooks of tensors and of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.core.dispatch.keys import DispatchKey
from tensorplug.core.tensor.base import TensorBase

from ..graph.nodes import MultiNode, Node, OutputNode
from .accumulation import accumulate
from .arithmetic import normal, shown

if TYPE_CHECKING:
    from .engine import BackwardPass

# A pass works on raw arrays or on tensors; hooks see tensors.


def call_tensor_hooks(run: BackwardPass, node: Node, extra: Any, gradient: Any) -> Any:
    """Return the gradient of a node's output as the hooks of that tensor leave it."""
    if not extra.tensor_hooks and extra.retains is None:
        return gradient
    tensor = as_tensor(run, gradient, node.key)
    for hook in list(extra.tensor_hooks.values()):
        replaced = hook(tensor)
        if replaced is not None:
            check_replacement(tensor, replaced)
            tensor = replaced
    owner = None if extra.retains is None else extra.retains()
    if owner is not None:
        accumulate(owner, tensor, False, run.create_graph, run.raw)
    return _value(run, tensor)


def apply_hooked(run: BackwardPass, node: Node, gradient: Any) -> list[tuple[Any, bool]]:
    """Apply a node between its own hooks."""
    extra = node.extra
    assert extra is not None
    numbers: list[int] = []
    if isinstance(node, MultiNode):
        # Positions and the like have no gradients, and hooks see nothing of them.
        numbers = [n for n, (key, _) in enumerate(node.outputs) if key.is_differentiable]
        outputs = tuple([as_tensor(run, gradient.get(n), node.outputs[n][0]) for n in numbers])
    else:
        outputs = (as_tensor(run, gradient, node.key),)
    for hook in list(extra.pre_hooks.values()):
        replaced = hook(outputs)
        if replaced is not None:
            outputs = _as_tuple(replaced, len(outputs), node.name())
    if isinstance(node, MultiNode):
        gradient = {
            n: _value(run, t) for n, t in zip(numbers, outputs, strict=True) if t is not None
        }
    else:
        gradient = _value(run, outputs[0])
    results = node.apply(gradient, run.raw)
    if not extra.post_hooks:
        return results
    inputs = tuple(
        [
            as_tensor(run, value, key_of(edge))
            if edge is not None and not isinstance(node, OutputNode)
            else value
            for (value, _), edge in zip(results, node.edges, strict=True)
        ]
    )
    for hook in list(extra.post_hooks.values()):
        replaced = hook(inputs, outputs)
        if replaced is not None:
            inputs = _as_tuple(replaced, len(results), node.name())
    return [(_value(run, tensor), False) for tensor in inputs]


def accumulate_hooked(run: BackwardPass, leaf: Any, gradient: Any) -> None:
    """Add a gradient to a leaf's ``grad`` between the hooks of its AccumulateGrad node."""
    before, after = leaf._extra.accumulation_hooks
    for hook in list(before.values()):
        replaced = hook((gradient,))
        if replaced is not None:
            (gradient,) = _as_tuple(replaced, 1, "AccumulateGrad")
    accumulate(leaf, gradient, False, run.create_graph, run.raw)
    for hook in list(after.values()):
        hook((), (gradient,))


def _as_tuple(replaced: Any, count: int, name: str) -> tuple[Any, ...]:
    """Return what a node's hook returned, one gradient or None for each."""
    found = (replaced,) if isinstance(replaced, TensorBase) else replaced
    if not isinstance(found, tuple):
        raise TypeError(
            f"a hook of {name} must return a tuple of Tensors, or None; it returned "
            f"{type(replaced).__name__!r}"
        )
    if len(found) != count:
        raise RuntimeError(
            f"a hook of {name} has returned an incorrect number of values: {len(found)} gradients, expected "
            f"{count}"
        )
    for value in found:
        if value is not None and not isinstance(value, TensorBase):
            raise TypeError(
                f"a hook of {name}: expected Variable, but hook returned {type(value).__name__!r}"
            )
    return found


def check_replacement(tensor: Any, replaced: Any) -> None:
    """Refuse what a hook returned if it cannot stand for the gradient."""
    if not isinstance(replaced, TensorBase):
        raise TypeError(f"a hook must return a Tensor or None, got {type(replaced).__name__}")
    if replaced._shape != tensor._shape or replaced._key is not tensor._key:
        raise RuntimeError(
            f"a hook changed the gradient from {list(tensor._shape)} of {tensor._key} to "
            f"{list(replaced._shape)} of {replaced._key}"
        )


def as_tensor(run: BackwardPass, gradient: Any, key: DispatchKey) -> Any:
    """Return the tensor of a gradient that a pass works on."""
    if not run.raw or gradient is None or isinstance(gradient, TensorBase):
        return gradient
    return shown(normal(gradient, key), key)


def _value(run: BackwardPass, tensor: Any) -> Any:
    if not run.raw or tensor is None or tensor._key.intercepts:
        return tensor
    return tensor._array


def key_of(edge: Any) -> DispatchKey:
    """Return the key of the gradient that goes along an edge to a leaf or a node."""
    key: DispatchKey = edge._key if isinstance(edge, TensorBase) else edge.key
    return key
