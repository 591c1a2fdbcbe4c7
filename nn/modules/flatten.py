"""Modules that change the shape: Flatten and Unflatten."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor

from ..module import Module


class Flatten(Module):
    """Merge a range of dimensions into one; by default all but the first.

    Parameters
    ----------
    start_dim, end_dim : int
        The first and the last dimension of the range.

    Examples
    --------
    >>> import tensorplug as tp
    >>> Flatten()(tp.zeros(5, 2, 3)).shape
    Size([5, 6])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Return `input` flattened."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split a dimension into several.

    Parameters
    ----------
    dim : int
        Which one.
    unflattened_size : tuple of int
        What it becomes; one size may be -1.

    Raises
    ------
    TypeError
        If the sizes are not a tuple or list of ints.

    Examples
    --------
    >>> import tensorplug as tp
    >>> Unflatten(1, (2, 3))(tp.zeros(5, 6)).shape
    Size([5, 2, 3])
    """

    def __init__(self, dim: int, unflattened_size: tuple[int, ...]) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"dim must be an int, but found type {type(dim).__name__}")
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                "unflattened_size must be a tuple of ints, but found type "
                f"{type(unflattened_size).__name__}"
            )
        for position, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {position}"
                )
        self.dim = dim
        self.unflattened_size: Any = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """Return `input` with the dimension split."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
