"""What a compiled function tells of itself."""

from __future__ import annotations

from typing import NamedTuple

from .graph import Graph

__all__ = ["Break", "Explanation"]


class Break(NamedTuple):
    """Where a program could not be captured.

    Attributes
    ----------
    reason : str
        What it does.
    source : str
        The line, ``file:line``.
    """

    reason: str
    source: str


class Explanation(NamedTuple):
    """What :meth:`Compiled.explain` returns.

    Attributes
    ----------
    graphs : list of Graph
        What was captured, one for all sizes that it holds for.
    guards : list of str
        What the graphs hold for.
    breaks : list of Break
        Why calls stayed eager.
    captures, calls, eager : int
        How many calls were captured, were answered by a graph, and ran as they are.
    """

    graphs: list[Graph]
    guards: list[str]
    breaks: list[Break]
    captures: int
    calls: int
    eager: int

    @property
    def graph_count(self) -> int:
        """How many graphs there are."""
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        """In how many places calls stayed eager."""
        return len(self.breaks)

    @property
    def break_reasons(self) -> list[Break]:
        """Why calls stayed eager; torch's name for `breaks`."""
        return self.breaks

    @property
    def op_count(self) -> int:
        """How many calls of ops the graphs have, all together."""
        return sum([len(graph.nodes) for graph in self.graphs])

    def __str__(self) -> str:
        ran = f"{self.calls} calls ran as graphs, {self.eager} eagerly"
        lines = [f"{len(self.graphs)} graphs, {self.captures} captures; {ran}"]
        lines += [f"break: {reason} ({source})" for reason, source in self.breaks]
        lines += [f"guard: {guard}" for guard in self.guards]
        return "\n".join([*lines, *map(str, self.graphs)])
