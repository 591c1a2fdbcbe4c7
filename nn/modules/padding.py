"""Padding as modules; what is added is said in :func:`~tensorplug.nn.functional.pad`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tensorplug.core import Tensor

from .. import functional as F
from ..module import Module
from ._sizes import as_tuple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """Padding of the last `dimensions` dimensions."""

    dimensions: ClassVar[int]
    mode: ClassVar[str] = "constant"
    padding: tuple[int, ...]

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = as_tuple(padding, 2 * self.dimensions)

    def forward(self, input: Tensor) -> Tensor:
        """Return `input` padded."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Return `input` padded."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"{self.padding}"


class _ReflectionPad(_Pad):
    mode = "reflect"


class _ReplicationPad(_Pad):
    mode = "replicate"


class _CircularPad(_Pad):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """Return `input` padded."""
        count = self.dimensions
        if input.ndim not in (count + 1, count + 2):
            raise ValueError(
                f"expected {count + 1}D or {count + 2}D input (got {input.ndim}D input)"
            )
        return super().forward(input)


class ConstantPad1d(_ConstantPad):
    """A value added at the ends of the last dimension; see :class:`ConstantPad2d`."""

    dimensions = 1


class ConstantPad2d(_ConstantPad):
    """A value added around the last two dimensions.

    Parameters
    ----------
    padding : int or sequence of int
        As much everywhere, or (left, right, top, bottom).
    value : float
        What is added.
    """

    dimensions = 2


class ConstantPad3d(_ConstantPad):
    """A value added around the last three dimensions; see :class:`ConstantPad2d`."""

    dimensions = 3


class ZeroPad1d(_ZeroPad):
    """Zeros added at the ends of the last dimension."""

    dimensions = 1


class ZeroPad2d(_ZeroPad):
    """Zeros added around the last two dimensions.

    Examples
    --------
    >>> import tensorplug as tp
    >>> ZeroPad2d((1, 0, 0, 0))(tp.ones(1, 2, 2))
    tensor([[[0., 1., 1.],
             [0., 1., 1.]]])
    """

    dimensions = 2


class ZeroPad3d(_ZeroPad):
    """Zeros added around the last three dimensions."""

    dimensions = 3


class ReflectionPad1d(_ReflectionPad):
    """The elements mirrored at the ends of the last dimension."""

    dimensions = 1


class ReflectionPad2d(_ReflectionPad):
    """The elements mirrored around the last two dimensions."""

    dimensions = 2


class ReflectionPad3d(_ReflectionPad):
    """The elements mirrored around the last three dimensions."""

    dimensions = 3


class ReplicationPad1d(_ReplicationPad):
    """The edge repeated at the ends of the last dimension."""

    dimensions = 1


class ReplicationPad2d(_ReplicationPad):
    """The edge repeated around the last two dimensions."""

    dimensions = 2


class ReplicationPad3d(_ReplicationPad):
    """The edge repeated around the last three dimensions."""

    dimensions = 3


class CircularPad1d(_CircularPad):
    """The other end added at each end of the last dimension."""

    dimensions = 1


class CircularPad2d(_CircularPad):
    """The other end added around the last two dimensions."""

    dimensions = 2


class CircularPad3d(_CircularPad):
    """The other end added around the last three dimensions."""

    dimensions = 3
