"""Collectives that have derivatives: the derivative of each is a collective, that all processes take part in.

The gradient of what a process gives is the sum of those of what became of it on all processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.autograd.function import Function
from tensorplug.core import Tensor
from tensorplug.core.ops import empty_like, stack, zeros_like

from .. import distributed_c10d as c10d
from ..reduce_op import ReduceOp

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the reduction of everybody's tensor.

    Parameters
    ----------
    tensor : Tensor
        Of the same shape and dtype on all; it stays as it is.
    op : ReduceOp
        Derivatives are those of the sum and the average.
    group : ProcessGroup, optional
        Whose processes; the world by default.

    Examples
    --------
    ::

        mean = dist.nn.functional.all_reduce(x.mean()) / dist.get_world_size()
    """
    result: Tensor = _AllReduce.apply(op, group, tensor)
    return result


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """Return the tensor of process `src`; `tensor` has its shape on all."""
    result: Tensor = _Broadcast.apply(src, group, tensor)
    return result


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the reduction of everybody's tensor on process `dst`, on the others what it leaves there."""
    result: Tensor = _Reduce.apply(dst, op, group, tensor)
    return result


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """Return everybody's tensor on process `dst`, zeros on the others."""
    result: tuple[Tensor, ...] = _Gather.apply(dst, group, tensor)
    return result


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """Return one of the tensors of process `src`, each process its own; all give tensors of that shape."""
    result: Tensor = _Scatter.apply(src, group, *tensors)
    return result


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Return everybody's tensor, of the same shape on all.

    Examples
    --------
    ::

        batch = tp.cat(dist.nn.functional.all_gather(features))  # of all, with gradients
    """
    result: tuple[Tensor, ...] = _AllGather.apply(group, tensor)
    return result


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """Return the reduction of everybody's tensor for this process; `output` has its shape."""
    result: Tensor = _ReduceScatter.apply(op, group, output, *input_list)
    return result


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """Return what each process has for this one; the outputs have their shapes."""
    shapes = [empty_like(tensor) for tensor in output_tensor_list]
    result: tuple[Tensor, ...] = _AllToAll.apply(group, shapes, *input_tensor_list)
    return result


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Tensor:
    """Return the parts, along the first dimension, that all have for this process; `output` has the shape."""
    result: Tensor = _AllToAllSingle.apply(
        group, empty_like(output), output_split_sizes, input_split_sizes, input
    )
    return result


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        total = tensor.clone().contiguous()
        c10d.all_reduce(total, op, group)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, gradient)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        received = tensor.clone()
        c10d.broadcast(received, src, group)
        return received

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        total = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, gradient)
        return None, None, total if c10d.get_rank() == ctx.src else zeros_like(total)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        total = tensor.clone()
        c10d.reduce(total, dst, op, group)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, gradient)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> Any:
        ctx.dst, ctx.group = dst, group
        parts = [zeros_like(tensor) for _ in range(c10d.get_world_size(group))]
        c10d.gather(tensor, parts if c10d.get_rank() == dst else None, dst, group)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *gradients)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        if len({tuple(tensor.shape) for tensor in tensors}) != 1:
            raise ValueError("scatter: the tensors must have the same shape")
        received = zeros_like(tensors[0])
        c10d.scatter(received, list(tensors) if c10d.get_rank() == src else None, src, group)
        return received

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, None, *_Gather.apply(ctx.src, ctx.group, gradient)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> Any:
        ctx.group = group
        parts = [empty_like(tensor) for _ in range(c10d.get_world_size(group))]
        c10d.all_gather(parts, tensor, group)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        shape = gradients[c10d.get_rank(ctx.group)]
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, shape, *gradients)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Tensor, *tensors: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        received = empty_like(output)
        c10d.reduce_scatter(received, list(tensors), op, group)
        return received

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        gathered = stack(_AllGather.apply(ctx.group, gradient))
        if ctx.op is ReduceOp.AVG:
            gathered = gathered / gathered.shape[0]
        return None, None, None, *gathered.unbind(0)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outputs: list[Tensor], *tensors: Tensor) -> Any:
        ctx.group, ctx.inputs = group, [empty_like(tensor) for tensor in tensors]
        c10d.all_to_all(outputs, list(tensors), group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return None, None, *_AllToAll.apply(ctx.group, ctx.inputs, *gradients)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(
        ctx: Any, group: Any, output: Tensor, received: Any, sent: Any, input: Tensor
    ) -> Tensor:
        ctx.group, ctx.received, ctx.sent, ctx.input = group, received, sent, empty_like(input)
        c10d.all_to_all_single(output, input, received, sent, group)
        return output

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        back = _AllToAllSingle.apply(
            ctx.group, ctx.input, ctx.sent, ctx.received, gradient.contiguous()
        )
        return None, None, None, None, back
