"""Layouts and memory formats: their names, and the strides that they stand for.

A memory format says in which order the elements of a new tensor lie; values never depend on it. A device
whose runtime shows no strides (see "views" in :data:`~.runtime.CAPABILITIES`) keeps its own order.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..device.dtypes import shown
from .shapes import Shape, contiguous_strides

if TYPE_CHECKING:
    from ..dispatch.keys import DispatchKey

__all__ = [
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "layout",
    "memory_format",
    "preserve_format",
    "strided",
]


# Asked again and again for the same few shapes, these functions take longer than small copies.
_remembered = functools.lru_cache(maxsize=1024)


class _Name:
    """A constant that prints as its name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return shown(self.name)

    def __reduce__(self) -> str:
        return self.name


class layout(_Name):
    """The type of ``tp.strided``.

    One of another package has tensors that compute ops on themselves; a call that asks for it is handed to
    its `compute`, with the op and the arguments, see :mod:`tensorplug.core.dispatch.interception`.
    """

    __slots__ = ()
    intercepts = False

    def compute(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what an op makes in this layout."""
        raise NotImplementedError(f"{op.name}(): there are no tensors of layout {self}")


class memory_format(_Name):
    """The type of ``tp.contiguous_format`` and its like."""

    __slots__ = ()


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")

# The dimensions of the formats for images from the one that varies fastest to the one that varies slowest.
_ORDERS = {channels_last: (1, 3, 2, 0), channels_last_3d: (1, 4, 3, 2, 0)}


def check_format(value: Any, name: str) -> Any:
    """Return a memory format, or raise TypeError for anything else."""
    if isinstance(value, memory_format):
        return value
    raise TypeError(
        f"{name}(): argument 'memory_format' must be tensorplug.memory_format, not "
        f"{type(value).__name__}"
    )


@_remembered
def format_strides(shape: Shape, chosen: Any, name: str) -> Shape:
    """Return the strides of a shape in a memory format.

    Raises
    ------
    TypeError
        If `chosen` is no memory format.
    RuntimeError
        If the format is for tensors of another rank, or ``preserve_format``.
    """
    check_format(chosen, name)
    if chosen is contiguous_format:
        return contiguous_strides(shape)
    order = _ORDERS.get(chosen)
    if order is None:
        raise RuntimeError(f"{name}(): unsupported memory format {chosen!r}")
    if len(shape) != len(order):
        raise RuntimeError(
            f"{name}(): required rank {len(order)} tensor to use {chosen.name} format, got shape "
            f"{list(shape)}"
        )
    return strides_in_order(shape, order)


def strides_in_order(shape: Shape, order: Shape) -> Shape:
    """Return strides without gaps for dimensions from the fastest to the slowest."""
    strides = [1] * len(shape)
    step = 1
    for dim in order:
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


@_remembered
def in_format(shape: Shape, strides: Shape, chosen: Any) -> bool:
    """Return whether strides are those of a format, but for dimensions of size 1; of no elements, always."""
    order = _ORDERS.get(chosen)
    if order is None:
        order = tuple(range(len(shape) - 1, -1, -1))
    elif len(shape) != len(order):
        return False
    wanted = strides_in_order(shape, order)
    return 0 in shape or all(
        [size == 1 or a == b for size, a, b in zip(shape, strides, wanted, strict=True)]
    )


@_remembered
def suggested_format(shape: Shape, strides: Shape) -> Any:
    """Return the format that a tensor is taken to be in, where its strides fit several.

    The formats for images may have gaps. Where one channel, or one row of pixels, leaves open which
    format it is, it is ``contiguous_format``.
    """
    for chosen, order in _ORDERS.items():
        if len(shape) == len(order) and 0 not in shape and strides[1]:
            least = 0
            for dim in order:
                if strides[dim] < least or (dim == 0 and least == strides[1]):
                    break
                least = strides[dim] * shape[dim]
            else:
                return chosen
    return contiguous_format


def is_dense(shape: Shape, strides: Shape) -> bool:
    """Return whether the elements fill a piece of memory, each place once, in whatever order."""
    step = 1
    for stride, size in sorted(
        [(stride, size) for stride, size in zip(strides, shape, strict=True) if size != 1]
    ):
        if stride != step:
            return False
        step *= size
    return True


@_remembered
def preserved_strides(shape: Shape, strides: Shape) -> Shape:
    """Return the strides of a copy of a tensor that keeps the order of its dimensions in memory.

    They are the tensor's own if it is dense. Else the dimensions are packed in their order: equal strides
    put the smaller one first, and a dimension of stride 0, which has no place in the order, stays where it
    is.
    """
    if 0 in shape:
        return contiguous_strides(shape)
    if is_dense(shape, strides):
        return strides
    order: list[int] = []
    for dim in range(len(shape) - 1, -1, -1):
        order.append(dim)
        index = len(order) - 1
        for before in range(index - 1, -1, -1):
            other = order[before]
            if not strides[other] or not strides[dim]:
                continue
            if (strides[other], shape[other]) <= (strides[dim], shape[dim]):
                if strides[other] < strides[dim]:
                    break
                continue
            order[before], order[index] = dim, other
            index = before
    return strides_in_order(shape, tuple(order))


def strides_like(input: Any, memory_format: Any, name: str) -> Shape | None:
    """Return the strides of a new tensor like `input`, None if its elements lie row by row.

    Raises
    ------
    TypeError
        If `memory_format` is something else.
    RuntimeError
        If it is for tensors of another rank.
    """
    shape: Shape = input._shape
    runtime = input._key.runtime
    if memory_format is None or memory_format is preserve_format:
        if 1 not in shape and runtime.is_contiguous(input._array):
            return None
        return _unless_rows(shape, runtime.strides(input._array))
    return strides_of(shape, memory_format, input._key, name)


@_remembered
def _unless_rows(shape: Shape, strides: Shape) -> Shape | None:
    """Return the strides that a copy keeps, None if they lay it out row by row."""
    stride = preserved_strides(shape, strides)
    return None if stride == contiguous_strides(shape) else stride


def strides_of(shape: Shape, memory_format: Any, key: DispatchKey, name: str) -> Shape | None:
    """Return the strides of a new tensor in a format, None if its elements lie row by row.

    They do so in any format where there are no elements, and on a device without strides.
    """
    stride = _format_unless_rows(shape, memory_format, name)
    return stride if stride is None or "views" in key.runtime.capabilities else None


@_remembered
def _format_unless_rows(shape: Shape, memory_format: Any, name: str) -> Shape | None:
    stride = format_strides(shape, memory_format, name)
    return None if stride == contiguous_strides(shape) or 0 in shape else stride
