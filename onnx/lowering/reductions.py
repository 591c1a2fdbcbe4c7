"""Reductions, what is accumulated, and what is sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorplug.core.device import dtypes
from tensorplug.graph import Node, Value

from ..writing import Inexpressible, Writer
from .indexing import nonzero_places
from .table import LOWERINGS, lowering

__all__: list[str] = []


def _axes(dim: Any, value: Value) -> list[int] | None:
    """Return the dimensions that are reduced; None stands for all."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return None
    dims = list(dim) if isinstance(dim, (list, tuple)) else [dim]
    return [d % max(len(value.shape), 1) for d in dims]


def _reduced(w: Writer, name: str, x: str, axes: Sequence[int] | None, keep: bool) -> str:
    """Write a reduction; before opset 18 most had their axes as an attribute."""
    return w.add(name, x, w.ints(axes) if axes is not None else "", keepdims=int(keep))


def _reduction(onnx_name: str) -> Callable[..., str]:
    def lower(
        w: Writer, node: Node, input: Value, dim: Any = None, keepdim: bool = False, **rest: Any
    ) -> str:
        kind = node.output.dtype
        if not input.shape:
            return w.add("Identity", w.value(input, kind))
        if kind is dtypes.bool_:
            kind = dtypes.int32
            made = _reduced(w, onnx_name, w.value(input, kind), _axes(dim, input), keepdim)
            return w.cast(made, dtypes.bool_)
        name = w.value(input, kind)
        if onnx_name == "ReduceMean" and 0 in input.shape:  # which has no mean: 0 / 0
            total = _reduced(w, "ReduceSum", name, _axes(dim, input), keepdim)
            return w.add("Div", total, w.constant(0, kind))
        return _reduced(w, onnx_name, name, _axes(dim, input), keepdim)

    return lower


LOWERINGS["sum"] = _reduction("ReduceSum")
LOWERINGS["mean"] = _reduction("ReduceMean")
LOWERINGS["prod"] = _reduction("ReduceProd")
LOWERINGS["amax"] = _reduction("ReduceMax")
LOWERINGS["amin"] = _reduction("ReduceMin")


def _truth_axes(dim: Any, value: Value) -> list[int]:
    """Return the dimensions that `any` and `all` reduce: without any they are as they were."""
    rank = len(value.shape)
    if dim is None:
        return list(range(rank))
    dims = list(dim) if isinstance(dim, (list, tuple)) else [dim]
    return [d % rank for d in dims] if rank else []


@lowering("any", "all")
def _truth(
    w: Writer, node: Node, input: Value, dim: Any = None, keepdim: bool = False, **rest: Any
) -> str:
    truth = w.value(input, dtypes.bool_)
    dims = _truth_axes(dim, input)
    if dims:  # whether one is true, or none is false; among no elements neither
        counted = truth if node.op.name == "any" else w.add("Not", truth)
        count = _reduced(w, "ReduceSum", w.cast(counted, dtypes.int32), dims, keepdim)
        name = "Greater" if node.op.name == "any" else "Equal"
        truth = w.add(name, count, w.constant(0, dtypes.int32))
    return truth if node.output.dtype is dtypes.bool_ else w.cast(truth, node.output.dtype)


@lowering("argmax", "argmin")
def _position(
    w: Writer, node: Node, input: Value, dim: int | None = None, keepdim: bool = False, **rest: Any
) -> str:
    x = w.value(input) if input.dtype is not dtypes.bool_ else w.value(input, dtypes.int32)
    name = "ArgMax" if node.op.name == "argmax" else "ArgMin"
    if dim is None or not input.shape:
        flat = w.add(name, w.reshape(x, [-1]), axis=0, keepdims=0)
        return w.reshape(flat, [1] * len(node.output.shape))
    return w.add(name, x, axis=dim, keepdims=int(keepdim))


@lowering("cumsum")
def _cumsum(w: Writer, node: Node, input: Value, dim: int, **rest: Any) -> str:
    x = w.value(input, node.output.dtype)
    if not input.shape:
        return w.add("Identity", x)
    return w.add("CumSum", x, w.constant(dim, dtypes.int64))


@lowering("cumprod")
def _cumprod(w: Writer, node: Node, input: Value, dim: int, **rest: Any) -> str:
    x = w.value(input, node.output.dtype)
    if not input.shape:
        return w.add("Identity", x)
    if w.opset < 26:
        raise Inexpressible("cumulative products are of opset 26")
    return w.add("CumProd", x, w.constant(dim, dtypes.int64))


@lowering("logcumsumexp")
def _logcumsumexp(w: Writer, node: Node, input: Value, dim: int, **rest: Any) -> str:
    x = w.value(input, node.output.dtype)
    if not input.shape:
        return w.add("Identity", x)
    top = w.add("ReduceMax", x, w.ints([dim]), keepdims=1)
    total = w.add("CumSum", w.add("Exp", w.add("Sub", x, top)), w.constant(dim, dtypes.int64))
    return w.add("Add", w.add("Log", total), top)


@lowering("argsort")
def _argsort(
    w: Writer, node: Node, input: Value, dim: int = -1, descending: bool = False, **rest: Any
) -> str:
    if not input.shape:
        return w.constant(0, dtypes.int64)
    kind = dtypes.int32 if not input.dtype.is_floating_point and input.dtype.itemsize < 4 else None
    x = w.value(input, kind)
    count = w.ints([w.shape(input)[dim]])
    return w.add("TopK", x, count, outputs=2, axis=dim, largest=int(descending), sorted=1)[1]


@lowering("topk")
def _topk(
    w: Writer,
    node: Node,
    input: Value,
    k: Any,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    **rest: Any,
) -> list[str]:
    if not input.shape:
        raise Inexpressible("topk of a single number")
    options = {"axis": dim, "largest": int(largest), "sorted": int(sorted)}
    return w.add("TopK", w.value(input), w.ints([k]), outputs=2, **options)


@lowering("nonzero")
def _nonzero(
    w: Writer, node: Node, input: Value, as_tuple: bool = False, **rest: Any
) -> str | list[str]:
    if not input.shape:
        raise Inexpressible("nonzero of a single number")
    if as_tuple:
        return nonzero_places(w, input)
    return w.add("Transpose", w.add("NonZero", w.value(input)), perm=[1, 0])
