"""How processes bring a tensor from one layout to another: collectives that have derivatives.

What is whole, or a part, has one gradient, the same in all processes that have it; summands have that of
their sum each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.autograd.function import Function
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import int64
from tensorplug.core.ops import cat, empty, zeros
from tensorplug.core.tensor.creation import tensor as make_tensor

from .. import distributed_c10d as c10d
from ..reduce_op import ReduceOp
from .placement_types import Partial, Placement, Shard


def copied(tensor: Tensor, group: Any) -> Tensor:
    """Return the same tensor, whose gradient is the sum over the processes."""
    result: Tensor = _Copy.apply(tensor, group)
    return result


def summed(tensor: Tensor, group: Any) -> Tensor:
    """Return the sum over the processes, whose gradient is the same in all of them."""
    result: Tensor = _Reduce.apply(tensor, ReduceOp.SUM, group)
    return result


def split(tensor: Tensor, dim: int, group: Any) -> Tensor:
    """Return the part of a whole that this process has."""
    result: Tensor = _Split.apply(tensor, dim, group)
    return result


def whole(input: Tensor, layout: Placement, group: Any, sums: bool) -> Tensor:
    """Return the whole of an input; `sums`: the processes' gradients of it are summands."""
    if isinstance(layout, Shard):
        lengths = _lengths(input.shape[layout.dim], input, group)
        gathered: Tensor = _Gather.apply(input, layout.dim, lengths, group, sums)
        return gathered
    return copied(input, group)


def redistributed(
    tensor: Tensor, given: Placement, wanted: Placement, group: Any, size: int | None = None
) -> Tensor:
    """Return what this process has of a tensor in another layout.

    Parameters
    ----------
    tensor : Tensor
        What it has of it.
    given, wanted : Placement
        The layout, and what it becomes.
    group : ProcessGroup
        The processes.
    size : int, optional
        How long the whole is along the dimension by which it is divided, where ``Shard`` divided it. By
        default the processes ask each other how long their parts are.
    """
    given, wanted = given.of(tensor.ndim), wanted.of(tensor.ndim)
    result: Any = tensor
    if given == wanted:
        return tensor
    if wanted.is_partial():
        raise ValueError("a tensor is not divided into summands")
    if isinstance(given, Partial):
        op = ReduceOp(given.reduce_op)
        if isinstance(wanted, Shard):
            result = _ReduceScatter.apply(tensor, wanted.dim, op, group)
        else:
            result = _Reduce.apply(tensor, op, group)
    elif isinstance(given, Shard):
        length = tensor.shape[given.dim]
        parts = _lengths(length, tensor, group) if size is None else _divided(size, group)
        if isinstance(wanted, Shard):
            others = _divided(tensor.shape[wanted.dim], group)
            result = _Exchange.apply(tensor, given.dim, parts, wanted.dim, others, group)
        else:
            result = _Gather.apply(tensor, given.dim, parts, group, False)
    elif isinstance(wanted, Shard):
        result = _Split.apply(tensor, wanted.dim, group)
    moved: Tensor = result
    return moved


class _Copy(Function):
    """The same tensor; its gradient is the sum over the processes."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, group: Any) -> Tensor:
        ctx.group = group
        return input.view_as(input)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _reduced(gradient, ReduceOp.SUM, ctx.group), None


class _Reduce(Function):
    """The reduction over the processes; its gradient is the same in all of them."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, op: ReduceOp, group: Any) -> Tensor:
        ctx.op, ctx.group = op, group
        return _reduced(input, op, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _of_summand(gradient, ctx.op, ctx.group), None, None


class _ReduceScatter(Function):
    """The part of the reduction that this process has; the gradient is brought together."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, dim: int, op: ReduceOp, group: Any) -> Tensor:
        ctx.dim, ctx.op, ctx.group, ctx.size = dim, op, group, input.shape[dim]
        lengths = _divided(ctx.size, group)
        rows = padded(input.detach().movedim(dim, 0), max(lengths) * len(lengths))
        part = empty(max(lengths), *rows.shape[1:], dtype=rows.dtype, device=rows.device)
        c10d.reduce_scatter_tensor(part, rows, op, group)
        return part[: lengths[c10d.get_rank(group)]].movedim(0, dim).contiguous()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        everything = gathered(gradient, ctx.dim, _divided(ctx.size, ctx.group), ctx.group)
        return _of_summand(everything, ctx.op, ctx.group), None, None, None


class _Split(Function):
    """The part of a whole that this process has; the gradient is brought together."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, dim: int, group: Any) -> Tensor:
        ctx.dim, ctx.group, ctx.lengths = dim, group, _divided(input.shape[dim], group)
        return _own(input, dim, ctx.lengths, group).clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gathered(gradient, ctx.dim, ctx.lengths, ctx.group), None, None


class _Gather(Function):
    """The whole of which each has a part; of its gradient, or the sum of these, each takes its part."""

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, dim: int, lengths: list[int], group: Any, sums: bool
    ) -> Tensor:
        ctx.dim, ctx.lengths, ctx.group, ctx.sums = dim, lengths, group, sums
        return gathered(input, dim, lengths, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        whole = _reduced(gradient, ReduceOp.SUM, ctx.group) if ctx.sums else gradient
        return _own(whole, ctx.dim, ctx.lengths, ctx.group), None, None, None, None


class _Exchange(Function):
    """What is divided along one dimension, along another; the gradient goes the other way."""

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, dim: int, lengths: list[int], other: int, parts: list[int], group: Any
    ) -> Tensor:  # fmt: skip
        ctx.back = other, parts, dim, lengths, group
        return _exchanged(input, dim, lengths, other, parts, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _exchanged(gradient, *ctx.back), None, None, None, None, None


def _exchanged(
    tensor: Tensor, dim: int, lengths: list[int], other: int, parts: list[int], group: Any
) -> Tensor:
    """Return what is divided along `dim`, by `lengths`, divided along `other`, by `parts`."""
    pieces = [piece.contiguous() for piece in tensor.detach().split(parts, other)]
    shape = list(pieces[c10d.get_rank(group)].shape)
    received = []
    for length in lengths:
        shape[dim] = length
        received.append(empty(*shape, dtype=tensor.dtype, device=tensor.device))
    c10d.all_to_all(received, pieces, group)
    return cat(received, dim)


def _reduced(tensor: Tensor, op: ReduceOp, group: Any) -> Tensor:
    total = tensor.detach().clone()
    c10d.all_reduce(total, op, group)
    return total


def _of_summand(gradient: Tensor, op: ReduceOp, group: Any) -> Tensor:
    """Return the gradient of what one process gave to a reduction."""
    if op is ReduceOp.SUM:
        return gradient
    if op is ReduceOp.AVG:
        return gradient / c10d.get_world_size(group)
    raise NotImplementedError(
        f"the derivative of Partial({op.value!r}): of sums and averages alone"
    )


def _divided(size: int, group: Any) -> list[int]:
    """Return how long the part of each process is, as ``Shard`` divides."""
    parts = c10d.get_world_size(group)
    return [Shard().rows(size, parts, number)[1] for number in range(parts)]


def _lengths(own: int, like: Tensor, group: Any) -> list[int]:
    """Return how long the part of each process is, as they say."""
    found = empty(c10d.get_world_size(group), dtype=int64, device=like.device)
    c10d.all_gather_into_tensor(found, make_tensor([own], dtype=int64, device=like.device), group)
    return [int(length) for length in found.tolist()]


def _own(tensor: Tensor, dim: int, lengths: list[int], group: Any) -> Tensor:
    """Return this process's part of a whole."""
    rank = c10d.get_rank(group)
    return tensor.narrow(dim, sum(lengths[:rank]), lengths[rank])


def padded(rows: Tensor, count: int) -> Tensor:
    """Return a tensor with so many rows, zeros after its own; contiguous."""
    missing = count - rows.shape[0]
    if not missing:
        return rows.contiguous()
    return cat([rows, zeros(missing, *rows.shape[1:], dtype=rows.dtype, device=rows.device)])


def gathered(part: Tensor, dim: int, lengths: Sequence[int], group: Any) -> Tensor:
    """Return the parts of all processes, one after the other along a dimension."""
    most = max(lengths)
    rows = padded(part.detach().movedim(dim, 0), most)
    everything = empty(len(lengths) * most, *rows.shape[1:], dtype=rows.dtype, device=rows.device)
    c10d.all_gather_into_tensor(everything, rows, group=group)
    total = sum(lengths)
    if list(lengths) == _divided(total, group):  # only the end is padded
        return everything[:total].movedim(0, dim).contiguous()
    parts = [everything[i * most : i * most + length] for i, length in enumerate(lengths)]
    return cat(parts).movedim(0, dim).contiguous()
