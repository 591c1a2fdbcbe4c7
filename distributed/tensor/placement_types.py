"""How a tensor lies along one dimension of a mesh of processes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies along one dimension of a mesh: divided, whole in each, or as summands."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Return whether it is divided, along `dim` if that is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Return whether each process has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """Return whether processes have summands."""
        return isinstance(self, Partial)

    def of(self, ndim: int) -> Placement:
        """Return it for a tensor of so many dimensions, which are counted from the front."""
        return self


@dataclass(frozen=True)
class Shard(Placement):
    """Divided along a dimension: each has the rows that ``chunk`` gives it, the last ones fewer or none.

    Examples
    --------
    >>> Shard(0)
    Shard(dim=0)
    """

    dim: int = 0

    def of(self, ndim: int) -> Shard:
        """Return it for a tensor of so many dimensions, which are counted from the front.

        Examples
        --------
        >>> Shard(-1).of(3)
        Shard(dim=2)

        Raises
        ------
        IndexError
            If the tensor has no such dimension.
        """
        if not -ndim <= self.dim < ndim:
            raise IndexError(f"{self} of a tensor of {ndim} dimensions")
        return Shard(self.dim % ndim)

    def rows(self, total: int, parts: int, number: int) -> tuple[int, int]:
        """Return where a part begins, and how many rows it has.

        Examples
        --------
        >>> [Shard(0).rows(5, 4, part) for part in range(4)]
        [(0, 2), (2, 2), (4, 1), (5, 0)]
        """
        most = -(-total // parts)
        start = min(number * most, total)
        return start, min(most, total - start)


@dataclass(frozen=True)
class Replicate(Placement):
    """Whole in each process."""


@dataclass(frozen=True)
class Partial(Placement):
    """Summands, one in each process."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"
