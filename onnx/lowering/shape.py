"""Shapes: views, joining, padding, and tensors made from nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.core.device import dtypes
from tensorplug.graph import Node, Value
from tensorplug.graph.nodes import call
from tensorplug.graph.ops import shown

from ..writing import Inexpressible, Size, Writer
from .table import lowering

__all__ = ["fixed", "picked_by"]


def fixed(w: Writer, value: Value) -> tuple[int, ...]:
    """Return a shape that has to be the same in all runs."""
    shape = w.shape(value)
    if any(isinstance(size, Size) for size in shape):
        raise Inexpressible("it needs a shape that does not vary")
    return tuple(shape)


@lowering("view", "reshape", "flatten", "squeeze", "unsqueeze", "unflatten", "view_as")
def _reshape(w: Writer, node: Node, input: Value, **rest: Any) -> str:
    return w.reshape(w.value(input), w.shape(node.output))


@lowering("permute")
def _permute(
    w: Writer, node: Node, input: Value, order: Any = (), dims: Any = None, **rest: Any
) -> str:
    given = dims if dims is not None else order
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        given = given[0]
    rank = len(input.shape)
    if not rank:
        return w.add("Identity", w.value(input))
    return w.add("Transpose", w.value(input), perm=[d % rank for d in given])


@lowering("transpose")
def _transpose(w: Writer, node: Node, input: Value, dim0: int, dim1: int, **rest: Any) -> str:
    order = list(range(len(input.shape)))
    if not order:
        return w.add("Identity", w.value(input))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return w.add("Transpose", w.value(input), perm=order)


@lowering("expand", "broadcast_to", "expand_as")
def _expand(w: Writer, node: Node, input: Value, **rest: Any) -> str:
    return w.add("Expand", w.value(input), w.ints(w.shape(node.output)))


@lowering("cat")
def _cat(
    w: Writer,
    node: Node,
    tensors: Sequence[Value],
    dim: int = 0,
    axis: int | None = None,
    **rest: Any,
) -> str:
    kind = node.output.dtype
    rank = len(node.output.shape)
    parts = [w.value(t, kind) for t in tensors if len(t.shape) == rank]
    return w.add("Concat", *parts, axis=(dim if axis is None else axis))


@lowering("flip")
def _flip(
    w: Writer, node: Node, input: Value, axes: Any = (), dims: Any = None, **rest: Any
) -> str:
    given = dims if dims is not None else axes
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        given = given[0]
    if not given or not input.shape:
        return w.add("Identity", w.value(input))
    n = len(given)
    last = [-(2**63) + 1] * n
    return w.add("Slice", w.value(input), *map(w.ints, ([-1] * n, last, list(given), [-1] * n)))


@lowering("basic_index")
def _basic_index(w: Writer, node: Node, input: Value, key: Sequence[Any], **rest: Any) -> str:
    """Cut, then drop the dimensions that a number chose and add those of None."""
    starts: list[Any] = []
    ends: list[Any] = []
    axes: list[int] = []
    steps: list[int] = []
    chosen: list[int] = []
    axis = 0
    for item in key:
        if item is None:
            continue
        if isinstance(item, slice):
            whole = item.start in (None, 0) and item.step in (None, 1)
            if not whole or item.stop not in (None, w.shape(input)[axis]):
                starts.append(item.start or 0)
                ends.append(2**63 - 1 if item.stop is None else item.stop)
                axes.append(axis)
                steps.append(item.step or 1)
        else:
            starts.append(item)
            ends.append(item + 1 if item != -1 else 2**63 - 1)
            axes.append(axis)
            steps.append(1)
            chosen.append(axis)
        axis += 1
    name = w.value(input)
    if axes:
        name = w.add("Slice", name, *map(w.ints, (starts, ends, axes, steps)))
    if chosen:
        name = w.add("Squeeze", name, w.ints(chosen))
    added: list[int] = []
    place = 0
    for item in key:
        if item is None:
            added.append(place)
        if item is None or isinstance(item, slice):
            place += 1
    if added:
        name = w.add("Unsqueeze", name, w.ints(added))
    return name if axes or added else w.add("Identity", name)


def picked_by(w: Writer, node: Node, input: Value) -> Tensor:
    """Return which element of the flattened input each element of a view is, found by running the op."""
    places = ops.arange(_count(fixed(w, input))).reshape(fixed(w, input))
    fixed(w, node.output)
    arguments = (places, *node.args[1:])
    return call(node.op, arguments)


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


@lowering("as_strided", "diagonal", "unfold")
def _picked(w: Writer, node: Node, input: Value, **rest: Any) -> str:
    places = picked_by(w, node, input)
    index = w.constant(places.reshape(-1).tolist(), dtypes.int64, list(places.shape))
    return w.add("Gather", w.reshape(w.value(input), [-1]), index, axis=0)


@lowering("place")
def _place(
    w: Writer, node: Node, input: Value, shape: Sequence[Any], key: Sequence[Any], **rest: Any
) -> str:
    """Put a tensor into zeros: padding, or where elements lie apart, scattering."""
    spans = [item for item in key if isinstance(item, slice)]
    kind = node.output.dtype
    if len(spans) == len(key) == len(shape) and all(item.step in (None, 1) for item in spans):
        before = [item.start or 0 for item in spans]
        sizes = w.shape(input)
        after: list[int] = []
        for size, start, length in zip(sizes, before, shape, strict=True):
            if isinstance(size, Size) or isinstance(length, Size):
                if start:
                    raise Inexpressible("padding of a dimension that varies")
                after.append(0)
            else:
                after.append(length - start - size)
        if not (any(isinstance(s, Size) for s in shape) and any(s is None for s in shape)):
            return w.add("Pad", w.value(input), w.ints([*before, *after]), w.constant(0, kind))
    places = ops.arange(_count(fixed(w, node.output))).reshape(tuple(shape))[tuple(key)]
    return _scattered(w, w.value(input), places, list(shape), kind)


def _scattered(
    w: Writer, values: str, places: Tensor, shape: Sequence[int], kind: Any, onto: str = ""
) -> str:
    """Write values to places of zeros, or of a tensor."""
    index = w.constant(places.reshape(-1).tolist(), dtypes.int64, [places.numel()])
    if onto:
        flat = w.reshape(onto, [-1])
    else:
        flat = w.add("Expand", w.constant(0, kind), w.ints([_count(shape)]))
    made = w.add("ScatterElements", flat, index, w.reshape(values, [-1]), axis=0)
    return w.reshape(made, shape)


@lowering("graph.write_view")
def _write_view(w: Writer, node: Node, input: Value, value: Value, views: Any, **rest: Any) -> str:
    whole = fixed(w, input)
    fixed(w, value)
    places = shown(ops.arange(_count(whole)).reshape(whole), views)
    kind = node.output.dtype
    return _scattered(w, w.value(value, kind), places, whole, kind, w.value(input, kind))


# --- made from nothing ----------------------------------------------------------------------------


@lowering("fill_new")
def _fill(w: Writer, node: Node, shape: Sequence[Any], value: Any, dtype: Any, **rest: Any) -> str:
    number = w.value(value, node.output.dtype)
    return w.add("Expand", number, w.ints(shape)) if len(shape) else w.add("Identity", number)


_LIKE = {"zeros_like": 0, "ones_like": 1, "empty_like": 0}


@lowering("full_like", *_LIKE)
def _like(w: Writer, node: Node, input: Any, fill_value: Any = None, **rest: Any) -> str:
    # Of an input whose elements lie in another order the body lays them out so, which ONNX knows nothing of.
    value = _LIKE.get(node.op.name, fill_value)
    return _fill(w, node, w.shape(node.output), value, node.output.dtype)


@lowering("empty", "empty_strided", "new_empty", "new_empty_strided")
def _empty(w: Writer, node: Node, **rest: Any) -> str:
    """Zeros serve: what is read of such memory has been written."""
    return _fill(w, node, w.shape(node.output), 0, node.output.dtype)


@lowering("arange_new")
def _arange(
    w: Writer, node: Node, start: Any, step: Any, count: Any, dtype: Any, **rest: Any
) -> str:
    kind = node.output.dtype
    if isinstance(count, Size) or isinstance(start, Size):
        inner = dtypes.int64
        zero, one = w.constant(0, inner), w.constant(1, inner)
        places = w.add("Range", zero, w.value(count, inner), one)
        scaled = w.add("Mul", w.cast(places, kind), w.value(step, kind))
        return w.add("Add", scaled, w.value(start, kind))
    numbers = [start + i * step for i in range(count)]
    whole = not kind.is_floating_point
    return w.constant([int(n) if whole else n for n in numbers], kind, [count])
