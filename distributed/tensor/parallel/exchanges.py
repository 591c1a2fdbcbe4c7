"""How processes bring a tensor from one layout to another: collectives that have derivatives."""

from __future__ import annotations

from typing import Any

from tensorplug.autograd.function import Function
from tensorplug.core import Tensor
from tensorplug.core.ops import cat, empty, zeros

from ... import distributed_c10d as c10d
from ..placement_types import Placement, Shard


def copied(tensor: Tensor, group: Any) -> Tensor:
    """Return the same tensor, whose gradient is the sum over the processes."""
    result: Tensor = _Copy.apply(tensor, group)
    return result


def summed(tensor: Tensor, group: Any) -> Tensor:
    """Return the sum over the processes, whose gradient is the same in all of them."""
    result: Tensor = _Sum.apply(tensor, group)
    return result


def split(tensor: Tensor, dim: int, group: Any) -> Tensor:
    """Return the part of a whole that this process has."""
    result: Tensor = _Split.apply(tensor, dim, group)
    return result


def whole(input: Tensor, layout: Placement, group: Any, sums: bool) -> Tensor:
    """Return the whole of an input; `sums`: the processes' gradients of it are summands."""
    if isinstance(layout, Shard):
        gathered: Tensor = _Gather.apply(input, layout.dim, group, sums)
        return gathered
    copied: Tensor = _Copy.apply(input, group)
    return copied


def laid_out(output: Tensor, dim: int, layout: Placement, group: Any) -> Tensor:
    """Return an output that is divided along `dim` as it is asked for."""
    if layout in (Shard(dim), Shard(output.ndim + dim)):
        return output
    whole: Tensor = _Gather.apply(output, dim, group, False)
    if isinstance(layout, Shard):
        whole = _Split.apply(whole, layout.dim, group)
    return whole


def redistributed(tensor: Tensor, given: Placement, wanted: Placement, group: Any) -> Tensor:
    """Return what this process has of a tensor in another layout.

    What is whole is taken for the same in all processes, and so is its gradient.
    """
    result = tensor
    if given == wanted:
        return result
    if given.is_partial():
        result = _Sum.apply(result, group)
    elif isinstance(given, Shard):
        result = _Gather.apply(result, given.dim, group, False)
    if isinstance(wanted, Shard):
        result = _Split.apply(result, wanted.dim, group)
    elif wanted.is_partial():
        raise ValueError("a tensor is not divided into summands")
    return result


class _Copy(Function):
    """The same tensor; its gradient is the sum over the processes."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, group: Any) -> Tensor:
        ctx.group = group
        return input.view_as(input)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _sum(gradient, ctx.group), None


class _Sum(Function):
    """The sum over the processes; its gradient is the same in all of them."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, group: Any) -> Tensor:  # noqa: ARG004
        return _sum(input, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # noqa: ARG004
        return gradient, None


class _Split(Function):
    """The part of a whole that this process has; the gradient is brought together."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, dim: int, group: Any) -> Tensor:
        ctx.dim, ctx.group = dim, group
        return _part(input, dim, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _gather(gradient, ctx.dim, ctx.group)[0], None, None


class _Gather(Function):
    """The whole of which each has a part; of its gradient, or the sum of these, each takes its part."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, dim: int, group: Any, sums: bool) -> Tensor:
        ctx.dim, ctx.group, ctx.sums, ctx.size = dim, group, sums, input.shape[dim]
        whole, lengths = _gather(input, dim, group)
        ctx.start = sum(lengths[: c10d.get_rank(group)])
        return whole

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        whole = _sum(gradient, ctx.group) if ctx.sums else gradient
        return whole.narrow(ctx.dim, ctx.start, ctx.size), None, None, None


def _sum(tensor: Tensor, group: Any) -> Tensor:
    total = tensor.detach().clone()
    c10d.all_reduce(total, group=group)
    return total


def _part(tensor: Tensor, dim: int, group: Any) -> Tensor:
    start, count = Shard(dim).rows(
        tensor.shape[dim], c10d.get_world_size(group), c10d.get_rank(group)
    )
    return tensor.narrow(dim, start, count).clone()


def _gather(tensor: Tensor, dim: int, group: Any) -> tuple[Tensor, list[int]]:
    """Return the parts of all processes, one after the other, and how long each is."""
    size = c10d.get_world_size(group)
    lengths = [0] * size
    c10d.all_gather_object(lengths, tensor.shape[dim], group)
    rows = tensor.detach().movedim(dim, 0).contiguous()
    most = max(lengths)
    if rows.shape[0] < most:
        rest = zeros(most - rows.shape[0], *rows.shape[1:], dtype=rows.dtype, device=rows.device)
        rows = cat([rows, rest])
    everything = empty(size * most, *rows.shape[1:], dtype=rows.dtype, device=rows.device)
    c10d.all_gather_into_tensor(everything, rows, group=group)
    parts = [everything[i * most : i * most + length] for i, length in enumerate(lengths)]
    return cat(parts).movedim(0, dim).contiguous(), lengths
