"""A backward pass whose nodes run on the queues of their forward ops.

The nodes run one after the other, and each queue waits for the one before it where they differ. In the end
the queue of the pass waits for the last, and the others for that: memory that they are given back was used
there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..graph.nodes import Node, OutputNode


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


def run(step: Callable[[Node, list[Node]], None], ready: list[Node], around: Any) -> None:
    """Run the nodes of a pass with `step`; `around` is the queue on which it was called."""
    here = around
    used: list[Any] = []
    try:
        while ready:
            node = ready.pop()
            extra = node.parent.extra if isinstance(node, OutputNode) else node.extra
            queue = around if extra is None or extra.queue is None else extra.queue
            if queue != here:
                queue.wait_stream(here)
                if queue != around and queue not in used:
                    used.append(queue)
                here = queue
            with here:
                step(node, ready)
    finally:
        if here != around:
            around.wait_stream(here)
        for queue in used:
            queue.wait_stream(around)
