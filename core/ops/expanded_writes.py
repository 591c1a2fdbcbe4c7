"""Writes to tensors of which several elements are one in memory, as those of an expanded one are.

Filling such a tensor means the same in any order, and what is written at positions counts in the order of the
positions, as in torch; which warns of those. Zeros beside a diagonal are written wherever one of the elements
that are one in memory gets one. Other in-place variants are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..device.dtypes import bool_
from ..dispatch.op_registry import handle
from ..dispatch.writes import EXPANDED, inplace
from ..errors import warn
from .indexing.index_select import index_fill
from .indexing.indexing import index, index_put, part
from .indexing.take import put
from .masking import masked_fill
from .shape.expansion import expand
from .shape.shape import reshape
from .triangles import tril, triu

_ANY = handle("any")
_ARANGE = handle("arange")
_COPY = handle("copy")


def _repeated(target: Any) -> list[int]:
    """Return the dimensions along which all elements are one in memory."""
    sizes = zip(target._shape, target.stride(), strict=True)
    return [dim for dim, (size, stride) in enumerate(sizes) if size > 1 and not stride]


def _once(target: Any) -> Any:
    """Return a view with each element of the memory once."""
    for dim in _repeated(target):
        target = part(target, dim, 0, 1)
    return target


def _deprecated(name: str, index: str, value: str) -> None:
    warn(
        f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this "
        f"operation. This also applies to advanced indexing e.g. tensor[{index}] = {value}",
        UserWarning,
    )


def _writes(name: str) -> Callable[[Callable[..., None]], None]:
    """Have a function do what the in-place variant of that name does to an expanded tensor."""

    def declare(body: Callable[..., None]) -> None:
        def write(target: Any, *args: Any, **kwargs: Any) -> Any:
            body(target, *args, **kwargs)
            return target

        EXPANDED[name] = write

    return declare


@_writes("fill_")
def _fill(target: Any, src: Any) -> None:
    inplace(_COPY, "fill_", _once(target), (src,), {})


@_writes("masked_fill_")
def _masked_fill(target: Any, mask: Any, value: Any) -> None:
    _deprecated("masked_fill_", "mask", "scalar")
    mask = expand(mask, target._shape)
    for dim in _repeated(target):
        mask = _ANY.call(mask, dim, keepdim=True)
    inplace(masked_fill.op, "masked_fill_", _once(target), (mask, value), {})  # type: ignore[attr-defined]


def _cut_off(cut: Callable[..., Any], target: Any, diagonal: int) -> None:
    """Write zeros where one of the elements that are one in memory lies on the wrong side of a diagonal."""
    outside = cut(target.new_ones(target._shape, dtype=bool_), diagonal).logical_not()
    for dim in _repeated(target):
        outside = _ANY.call(outside, dim, keepdim=True)
    inplace(masked_fill.op, f"{cut.__name__}_", _once(target), (outside, 0), {})  # type: ignore[attr-defined]


@_writes("tril_")
def _tril(target: Any, diagonal: int = 0) -> None:
    _cut_off(tril, target, diagonal)


@_writes("triu_")
def _triu(target: Any, diagonal: int = 0) -> None:
    _cut_off(triu, target, diagonal)


@_writes("index_fill_")
def _index_fill(target: Any, dim: int, index: Any, value: Any) -> None:
    _deprecated("index_fill_", "mask", "scalar")
    index_fill(target, dim, index, value)  # which checks the positions
    once = _once(target)
    if once._shape[dim] != target._shape[dim]:
        index = index[:1] * 0
    inplace(index_fill.op, "index_fill_", once, (dim, index, value), {})  # type: ignore[attr-defined]


@_writes("index_put_")
def _index_put(target: Any, indices: Any, values: Any, accumulate: bool = False) -> None:
    _deprecated("index_put_", "indices", "tensor")
    spec = index_put.op.function(target, indices, values, accumulate)  # type: ignore[attr-defined]
    _, found, values, accumulate = spec.values
    once = _once(target)
    places = _ARANGE.call(math.prod(once._shape), device=target.device)
    places = index(expand(reshape(places, once._shape), target._shape), found)
    inplace(put.op, "put_", once, (places, expand(values, places._shape), accumulate), {})  # type: ignore[attr-defined]
