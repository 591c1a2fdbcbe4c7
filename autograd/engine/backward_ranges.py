"""What a profile shows of a backward pass: its nodes, in the ranges of their forward ops."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from tensorplug.core.dispatch import profiling
from tensorplug.core.dispatch.profiling import local

from ..graph.nodes import Node, OutputNode


def run(step: Callable[[Node, list[Node]], None], ready: list[Node]) -> None:
    """Run the nodes of a pass with `step`, and record each.

    A range opens with the first node whose forward op ran in it, and stays open while the nodes that
    follow belong to it as well.
    """
    outer = local.ranges, local.backward
    around = local.ranges
    opened: list[tuple[str, int]] = []

    def turn_to(ranges: tuple[str, ...]) -> None:
        """Close and open ranges until those below the ones around the pass are `ranges`."""
        here = tuple([name for name, _ in opened])
        shared = _shared(here, ranges)
        while len(opened) > shared:
            name, begin = opened.pop()
            local.ranges = (*around, *[outer_name for outer_name, _ in opened])
            _add("range", name, begin)
        opened.extend([(name, perf_counter_ns()) for name in ranges[shared:]])

    local.backward = True
    try:
        while ready:
            node = ready.pop()
            extra = node.parent.extra if isinstance(node, OutputNode) else node.extra
            noted = () if extra is None else extra.ranges
            turn_to(noted[_shared(around, noted) :])
            local.ranges = noted or around
            if isinstance(node, OutputNode):
                step(node, ready)
                continue
            begin = perf_counter_ns()
            try:
                step(node, ready)
            finally:
                _add("node", node.name(), begin)
        turn_to(())
    finally:
        local.ranges, local.backward = outer


def _shared(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    """Return how many names two ranges begin with together."""
    count = 0
    while count < min(len(first), len(second)) and first[count] == second[count]:
        count += 1
    return count


def _add(category: Any, name: str, begin: int) -> None:
    recording = profiling.current()
    if recording is not None:
        recording.add(category, name, begin)
