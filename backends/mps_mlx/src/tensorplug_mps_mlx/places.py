"""Writes to some elements of an array that never changes: by slices if they are that, else by positions."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.plugin import Shape, contiguous_strides

from ._mlx import mx


def put(held: Any, target: Any, source: Any) -> Any:
    """Return an array like `held`, with the elements of `source` where `target`, a view of it, has them."""
    found = _slices(tuple(held.shape), target.shape, target.strides, target.offset)
    if found is not None:
        slices, order = found
        # Into the order of the base's dimensions; those that the view lacks have one element.
        moved = mx.transpose(source, order) if order != tuple(range(len(order))) else source
        moved = mx.reshape(moved, [_count(part) for part in slices])
        result = mx.reshape(held, held.shape)  # another object over the same elements
        result[slices] = moved
        return result
    flat = mx.reshape(held, (-1,))
    flat[positions(target.shape, target.strides, target.offset)] = mx.reshape(source, (-1,))
    return mx.reshape(flat, held.shape)


def _count(part: slice) -> int:
    return len(range(part.start, part.stop, part.step))


def _slices(
    base: Shape, shape: Shape, strides: Shape, offset: int
) -> tuple[tuple[slice, ...], tuple[int, ...]] | None:
    """Return a view's place as slices of the base's dimensions, and the order in which they take its own.

    None where it is not of that form: diagonals, windows that overlap, views in other shapes.
    """
    steps = contiguous_strides(base)
    starts: list[int] = []
    rest = offset
    for step in steps:
        starts.append(rest // step)
        rest %= step
    slices = [slice(start, start + 1, 1) for start in starts]
    owners: dict[int, int] = {}  # by dimension of the base, that of the view
    small = []
    for d, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        if size == 1:
            small.append(d)
            continue
        for b, step in enumerate(steps):
            # The dimension that a stride belongs to is the last whose own step divides it and which it
            # does not leave.
            if base[b] > 1 and step <= stride and stride % step == 0:
                factor = stride // step
                stop = starts[b] + (size - 1) * factor + 1
                if b in owners or stop > base[b]:
                    return None
                owners[b] = d
                slices[b] = slice(starts[b], stop, factor)
                break
        else:
            return None
    if any(part.stop > size for part, size in zip(slices, base, strict=True)):
        return None
    order = (*[owners[b] for b in sorted(owners)], *small)
    return tuple(slices), order


def positions(shape: Shape, strides: Shape, offset: int) -> Any:
    """Return where in its store each element of a view is."""
    wide = mx.int64 if offset + math.prod(shape) > 1 << 30 else mx.int32
    found = mx.array(offset, dtype=wide)
    for d, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        along = mx.arange(size, dtype=wide) * stride
        found = found + mx.reshape(along, (size,) + (1,) * (len(shape) - d - 1))
    return mx.reshape(mx.broadcast_to(found, shape), (-1,))
