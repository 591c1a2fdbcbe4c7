"""Minimal cuts of networks of capacities, by Dinic's algorithm."""

from __future__ import annotations

__all__ = ["INFINITE", "Network"]

INFINITE = 1 << 62


class Network:
    """Points and the capacities between them.

    Examples
    --------
    >>> from tensorplug.graph.cut import Network
    >>> network = Network()
    >>> source, middle, sink = network.add(), network.add(), network.add()
    >>> network.join(source, middle, 2)
    >>> network.join(middle, sink, 5)
    >>> network.cut(source, sink) == {source}
    True
    """

    def __init__(self) -> None:
        # Of each point the numbers of its edges; of each edge where it leads to and what it still can carry.
        # The edge of the other direction has the number with the last bit changed.
        self._edges: list[list[int]] = []
        self._ends: list[int] = []
        self._left: list[int] = []

    def add(self) -> int:
        """Add a point and return its number."""
        self._edges.append([])
        return len(self._edges) - 1

    def join(self, start: int, end: int, capacity: int) -> None:
        """Add an edge."""
        self._edges[start].append(len(self._ends))
        self._edges[end].append(len(self._ends) + 1)
        self._ends += (end, start)
        self._left += (capacity, 0)

    def cut(self, source: int, sink: int) -> set[int]:
        """Return the points on the source's side of a cut of the least capacity, the one nearest to it."""
        while True:
            levels = self._levels(source)
            if sink not in levels:
                return set(levels)
            self._fill(source, sink, levels)

    def _levels(self, source: int) -> dict[int, int]:
        """Return how many edges each point that can still be reached is from the source."""
        levels = {source: 0}
        queue = [source]
        for point in queue:
            for edge in self._edges[point]:
                end = self._ends[edge]
                if self._left[edge] and end not in levels:
                    levels[end] = levels[point] + 1
                    queue.append(end)
        return levels

    def _fill(self, source: int, sink: int, levels: dict[int, int]) -> None:
        """Fill paths along which levels rise until there is none."""
        following = [0] * len(self._edges)
        path: list[int] = []
        point = source
        while True:
            if point == sink:
                least = min([self._left[edge] for edge in path])
                for edge in path:
                    self._left[edge] -= least
                    self._left[edge ^ 1] += least
                point, path = source, []
                continue
            edges = self._edges[point]
            number = following[point]
            if number < len(edges):
                edge = edges[number]
                end = self._ends[edge]
                if self._left[edge] and levels.get(end) == levels[point] + 1:
                    path.append(edge)
                    point = end
                else:
                    following[point] += 1
            elif path:
                point = self._ends[path.pop() ^ 1]
                following[point] += 1
            else:
                return
