"""A backward pass whose nodes run on the queues of their forward ops.

A node waits for those that its gradients come from, where they ran on other queues, and for nothing else: so
branches that were recorded on several queues overlap as their forward ops did. In the end the queue of the
pass waits for all of them, and they for it: memory that they are given back was used there.

Memory returns to the queue on which it was allocated, so that what is read on another is held until that has
come past.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.core.tensor.base import TensorBase

from ..graph.nodes import Node, OutputNode

if TYPE_CHECKING:
    from .engine import BackwardPass


def needed(roots: list[Node], around: Any) -> bool:
    """Return whether a node that the roots lead to was recorded on another queue than the pass's."""
    seen = set(roots)
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.extra is not None and node.extra.queue not in (None, around):
            return True
        for edge in node.edges:
            if isinstance(edge, Node) and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return False


def run(pass_: BackwardPass, ready: list[Node], around: Any) -> None:
    """Run the nodes of a pass; `around` is the queue on which it was called."""
    start = around.record_event()
    used: list[Any] = []
    # Of nodes and leaves whose gradient has arrived, or a part of it: where that was, and the mark behind it.
    arrived: dict[Any, tuple[Any, Any]] = {}
    try:
        while ready:
            node = ready.pop()
            queue = _queue_of(node, around)
            if queue != around and queue not in used:
                queue.wait_event(start)
                used.append(queue)
            ends = [edge for edge in node.edges if edge is not None]
            for target in (node, *ends):  # what has arrived at its ends is added to
                known = arrived.get(target)
                if known is not None and known[0] != queue:
                    queue.wait_event(known[1])
                    _hold(pass_, target, queue)
            arrived.pop(node, None)
            _hold_saved(node, queue)
            with queue:
                pass_._step(node, ready)
                marked = [end for end in ends if _matters_elsewhere(pass_, end, queue, around)]
                if marked:
                    arrived.update(dict.fromkeys(marked, (queue, queue.record_event())))
    finally:
        for queue in used:
            around.wait_stream(queue)
        for queue in used:
            queue.wait_stream(around)


def _queue_of(node: Node, around: Any) -> Any:
    """Return the queue on which a node runs."""
    extra = node.parent.extra if isinstance(node, OutputNode) else node.extra
    return around if extra is None or extra.queue is None else extra.queue


def _matters_elsewhere(pass_: BackwardPass, end: Any, queue: Any, around: Any) -> bool:
    """Return whether a gradient that has gone along an edge may be read on another queue."""
    if isinstance(end, TensorBase):
        return end in pass_.leaves  # more is to come
    state = pass_.states.get(end) if not pass_.alone else end
    return state is not None and (state.pending > 0 or _queue_of(end, around) != queue)


def _hold(pass_: BackwardPass, target: Any, queue: Any) -> None:
    """Keep the gradient that has arrived at a node or leaf until a queue that reads it has come past."""
    if isinstance(target, TensorBase):
        key = target._key
        gradient = pass_.leaves[target][1]
    else:
        key = target.key
        gradient = pass_._state(target).gradient
    for value in gradient.values() if isinstance(gradient, dict) else (gradient,):
        if isinstance(value, TensorBase):
            _hold_tensor(value, queue)
        elif type(value) is key.array_type:
            key.runtime.record_stream(value, queue)


def _hold_saved(node: Node, queue: Any) -> None:
    """Keep what a node saved until its queue has come past: it may have been allocated on another one."""
    for value in getattr(node, "saved", None) or ():
        for tensor in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(tensor, TensorBase):
                _hold_tensor(tensor, queue)


def _hold_tensor(tensor: Any, queue: Any) -> None:
    key = tensor._key
    if type(tensor._array) is key.array_type and key.runtime.current_queue(0) is not None:
        key.runtime.record_stream(tensor._array, queue)
