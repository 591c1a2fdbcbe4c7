"""Sparse tensors in a larger shape: what is broadcast stands at many places."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core.device.dtypes import int64
from tensorplug.core.ops import arange
from tensorplug.core.tensor.shapes import Shape

from .coordinates import CooTensor
from .structure import places_of


def broadcast(tensor: CooTensor, shape: Shape) -> CooTensor:
    """Return a tensor broadcast to a shape that it fits; new dimensions are sparse ones in front.

    Each element is stored as often as it stands in the result, so that the cost is that of the result.
    """
    if tensor._shape == shape:
        return tensor
    new = len(shape) - len(tensor._shape)
    sparse = tensor.sparse_dim() + new
    values = tensor._stored
    values = values.expand(values._shape[0], *shape[sparse:])
    former = (1,) * new + tensor._shape
    repeated = [dim for dim in range(sparse) if former[dim] != shape[dim]]
    if not repeated and not new:
        return CooTensor.of(tensor._where, values, shape, tensor._coalesced)
    sizes = tuple([shape[dim] for dim in repeated])
    copies, count = math.prod(sizes), values._shape[0]
    numbers = places_of(arange(copies, dtype=int64, device=tensor.device), sizes)
    where = tensor._where.new_zeros((sparse, copies, count))
    where[new:] = tensor._where.unsqueeze(1)
    for row, dim in enumerate(repeated):
        where[dim] = numbers[row].unsqueeze(1)
    values = values.unsqueeze(0).expand(copies, *values._shape)
    # Copy after copy, each in the order there was: in order if what is repeated leads.
    ordered = tensor._coalesced and repeated == list(range(len(repeated)))
    return CooTensor.of(
        where.reshape(sparse, copies * count),
        values.reshape(copies * count, *shape[sparse:]),
        shape,
        ordered,
    )


def fits(shape: Shape, larger: Shape) -> bool:
    """Return whether a shape broadcasts to another one."""
    pairs = zip(shape[::-1], larger[::-1], strict=False)
    return len(shape) <= len(larger) and all([a in (1, b) for a, b in pairs])


def shape_beside(dense: Any, places: CooTensor) -> Shape | None:
    """Return the shape that a dense and a sparse tensor are broadcast to, or None if they are not."""
    own, other = places._shape, tuple(dense.shape)
    count = max(len(own), len(other))
    own, other = (1,) * (count - len(own)) + own, (1,) * (count - len(other)) + other
    shape = tuple([b if a == 1 else a for a, b in zip(own, other, strict=True)])
    return shape if fits(other, shape) and fits(own, shape) else None
