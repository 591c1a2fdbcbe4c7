"""Indexing by tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorplug.core.device import dtypes
from tensorplug.core.device.dtypes import iinfo
from tensorplug.graph import Node, Value

from ..writing import Inexpressible, Writer
from .table import lowering

__all__: list[str] = []

_REDUCTIONS = {
    "add": "add", "multiply": "mul", "sum": "add", "prod": "mul", "amax": "max", "amin": "min", None: "none",
}  # fmt: skip


@lowering("gather")
def _gather(w: Writer, node: Node, input: Value, dim: int, index: Value, **rest: Any) -> str:
    if not input.shape or not index.shape:
        raise Inexpressible("gathering from a single number")
    x = w.value(input)
    for axis, (size, wanted) in enumerate(zip(w.shape(input), w.shape(index), strict=True)):
        if axis != dim % len(input.shape) and size != wanted:
            # ONNX Runtime wants them to be the same.
            x = w.add("Slice", x, *map(w.ints, ([0], [wanted], [axis])))
    return w.add("GatherElements", x, w.value(index, dtypes.int64), axis=dim)


@lowering("index_select")
def _index_select(w: Writer, node: Node, input: Value, dim: int, index: Value, **rest: Any) -> str:
    if not input.shape:
        raise Inexpressible("selecting from a single number")
    flat = w.reshape(w.value(index, dtypes.int64), [-1])
    return w.add("Gather", w.value(input), flat, axis=dim)


@lowering("scatter")
def _scatter(
    w: Writer,
    node: Node,
    input: Value,
    dim: int,
    index: Value,
    src: Any = None,
    value: Any = None,
    reduce: str | None = None,
    **rest: Any,
) -> str:
    if not input.shape or not index.shape:
        raise Inexpressible("scattering into a single number")
    kind = node.output.dtype
    shape = w.shape(index)
    if isinstance(src, Value):
        updates = w.value(src, kind)
        if w.shape(src) != shape:
            axes = list(range(len(shape)))
            updates = w.add("Slice", updates, *map(w.ints, ([0] * len(shape), shape, axes)))
    else:
        number = w.value(value if src is None else src, kind)
        updates = w.add("Expand", number, w.ints(shape))
    places, how = w.value(index, dtypes.int64), _REDUCTIONS[reduce]
    onto = w.value(input, kind)
    return w.add("ScatterElements", onto, places, updates, axis=dim, reduction=how)


@lowering("scatter_reduce")
def _scatter_reduce(
    w: Writer,
    node: Node,
    input: Value,
    dim: int,
    index: Value,
    src: Value,
    reduce: str,
    include_self: bool = True,
    **rest: Any,
) -> str:
    if reduce != "mean" and include_self:
        return _scatter(w, node, input, dim, index, src, None, reduce)
    if not input.shape or not index.shape:
        raise Inexpressible("scattering into a single number")
    kind = node.output.dtype
    if kind is dtypes.bool_ or (reduce == "mean" and not kind.is_floating_point):
        raise Inexpressible(f"scattering {kind} by {reduce}")
    shape, places = w.shape(index), w.value(index, dtypes.int64)

    def scattered(onto: str, updates: str, how: str) -> str:
        return w.add("ScatterElements", onto, places, updates, axis=dim, reduction=how)

    def everywhere(number: Any) -> str:
        return w.add("Expand", w.constant(number, kind), w.ints(shape))

    updates = w.value(src, kind)
    if w.shape(src) != shape:
        axes = list(range(len(shape)))
        updates = w.add("Slice", updates, *map(w.ints, ([0] * len(shape), shape, axes)))
    onto = w.value(input, kind)
    if not include_self:  # what is written begins from what changes no result
        onto = scattered(onto, everywhere(_neutral(reduce, kind)), "none")
    made = scattered(onto, updates, _REDUCTIONS["sum" if reduce == "mean" else reduce])
    if reduce != "mean":
        return made
    own = w.add("Expand", w.constant(1, kind), w.ints(w.shape(input)))
    counts = own if include_self else scattered(own, everywhere(0), "none")
    counts = scattered(counts, everywhere(1), "add")
    return w.add("Div", made, counts)


def _neutral(reduce: str, kind: Any) -> Any:
    """Return the number that changes no result of a reduction."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if kind.is_floating_point:
        return -math.inf if reduce == "amax" else math.inf
    limits = iinfo(kind)
    return limits.min if reduce == "amax" else limits.max


def _places(w: Writer, indices: Sequence[Value | None]) -> tuple[list[int], str, int]:
    """Return the dimensions that are indexed, the places along them, and their rank."""
    given = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    axes = [axis for axis, _ in given]
    if any(index.dtype is dtypes.bool_ for _, index in given):
        if len(given) > 1:
            raise Inexpressible("indices that are masks, beside others")
        first, mask = given[0]
        places = w.add("Transpose", w.add("NonZero", w.value(mask)), perm=[1, 0])
        return list(range(first, first + len(mask.shape))), places, 1
    rank = max(len(index.shape) for _, index in given)
    names = [w.value(index, dtypes.int64) for _, index in given]
    if len(names) > 1:
        whole = names[0]
        for name in names[1:]:
            whole = w.add("Add", whole, name)
        shape = w.add("Shape", whole)
        names = [w.add("Expand", name, shape) for name in names]
    last = w.ints([-1])
    parts = [w.add("Unsqueeze", name, last) for name in names]
    return axes, parts[0] if len(parts) == 1 else w.add("Concat", *parts, axis=-1), rank


@lowering("index")
def _index(
    w: Writer, node: Node, input: Value, indices: Sequence[Value | None], **rest: Any
) -> str:
    given = [axis for axis, index in enumerate(indices) if index is not None]
    x = w.value(input)
    if len(given) == 1 and indices[given[0]].dtype is not dtypes.bool_:  # type: ignore[union-attr]
        return w.add("Gather", x, w.value(indices[given[0]], dtypes.int64), axis=given[0])
    axes, places, rank = _places(w, indices)
    order = axes + [axis for axis in range(len(input.shape)) if axis not in axes]
    picked = w.add("GatherND", w.add("Transpose", x, perm=order), places)
    together = given == list(range(given[0], given[0] + len(given)))
    if not together or given[0] == 0:
        return picked
    before = given[
        0
    ]  # where indices are neighbours, the result has their dimensions in their place
    total = len(node.output.shape)
    back = [*range(rank, rank + before), *range(rank), *range(rank + before, total)]
    return w.add("Transpose", picked, perm=back)


def nonzero_places(w: Writer, input: Value) -> list[str]:
    """Return for each dimension where along it the elements lie that are not zero."""
    found = w.add("NonZero", w.value(input))
    return [
        w.add("Gather", found, w.constant(dim, dtypes.int64), axis=0)
        for dim in range(len(input.shape))
    ]


@lowering("repeat_interleave")
def _repeat_interleave(
    w: Writer, node: Node, input: Value, repeats: Any = None, dim: int | None = None, **rest: Any
) -> str:
    counts = input if repeats is None else repeats
    if not isinstance(counts, Value) or len(counts.shape) != 1 or counts.shape[0] == 1:
        raise Inexpressible("repeats that are one number")
    each, first, one = w.value(counts, dtypes.int64), *[w.constant(n, dtypes.int64) for n in (0, 1)]
    ends = w.add("Unsqueeze", w.add("CumSum", each, first), w.ints([0]))
    total = w.add("ReduceSum", each, keepdims=0)
    places = w.add("Unsqueeze", w.add("Range", first, total, one), w.ints([1]))
    # As many of them end before a place as there are in front of the one that it belongs to.
    before = w.cast(w.add("LessOrEqual", ends, places), dtypes.int64)
    chosen = w.add("ReduceSum", before, w.ints([1]), keepdims=0)
    if repeats is None:
        return chosen
    x = w.value(input) if dim is not None else w.reshape(w.value(input), [-1])
    return w.add("Gather", x, chosen, axis=dim or 0)


@lowering("index_put")
def _index_put(
    w: Writer,
    node: Node,
    input: Value,
    indices: Sequence[Value | None],
    values: Value,
    accumulate: bool = False,
    **rest: Any,
) -> str:
    axes, places, _ = _places(w, indices)
    if axes != list(range(len(axes))):
        raise Inexpressible("writing to indices that are not the first")
    kind = node.output.dtype
    lead = w.add("Slice", w.add("Shape", places), w.ints([0]), w.ints([-1]))
    inner = [w.ints([size]) for size in w.shape(input)[len(axes) :]]
    shape = w.add("Concat", lead, *inner, axis=0)
    updates = w.add("Expand", w.value(values, kind), shape)
    how = "add" if accumulate else "none"
    return w.add("ScatterND", w.value(input, kind), places, updates, reduction=how)


@lowering("masked_scatter")
def _masked_scatter(
    w: Writer, node: Node, input: Value, mask: Value, source: Value, **rest: Any
) -> str:
    kind = node.output.dtype
    shape = w.ints(w.shape(node.output) or [1])
    everywhere = w.add("Expand", w.value(mask), shape)
    places = w.add("Transpose", w.add("NonZero", everywhere), perm=[1, 0])
    count = w.add("Slice", w.add("Shape", places), w.ints([0]), w.ints([1]))
    flat = w.reshape(w.value(source, kind), [-1])
    updates = w.add("Slice", flat, w.ints([0]), count)
    made = w.add("ScatterND", w.add("Expand", w.value(input, kind), shape), places, updates)
    return made if node.output.shape else w.reshape(made, [])
