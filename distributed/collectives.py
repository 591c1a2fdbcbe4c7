"""Collectives on tensors that reduce or broadcast, and barriers, as torch.distributed has them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tensorplug.core import Tensor

from .buffers import Target, after, apart, array_of, before, like, together
from .calls import Call, opened, rank_in
from .groups import ProcessGroup
from .reduce_op import ReduceOp, Reduction
from .work import Work

__all__ = [
    "all_reduce",
    "barrier",
    "broadcast",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
]


def _ending(reduction: Reduction, target: Target, size: int) -> Callable[[], None]:
    """Return what is done once a reduction is complete."""

    def finish() -> None:
        after(reduction, target.buffer, size)
        target.finish()

    return finish


def all_reduce(
    tensor: Tensor,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Replace a tensor on each process by its reduction over all.

    float16 and bfloat16 are summed in float32 and rounded once, in the MPI backend.

    Parameters
    ----------
    tensor : Tensor
        Of the same shape and dtype on all; it is written to.
    op : ReduceOp
        How; the sum by default.
    group : ProcessGroup, optional
        Whose processes; the world by default.
    async_op : bool
        Whether to return at once.

    Returns
    -------
    Work or None
        What to wait for, if `async_op`. None on a process that is no member of the group.

    Raises
    ------
    TypeError
        If `tensor` is none.
    ValueError, RuntimeError
        If `op` has no meaning for its dtype, or the group does not take tensors of its device.

    Examples
    --------
    ::

        t = tp.arange(2.0) + dist.get_rank()  # of 2 processes
        dist.all_reduce(t)  # tensor([1., 3.])
    """
    call = opened("all_reduce", group, tensor=tensor)
    if call is None:
        return None
    reduction, told = call.reduction(op, tensor)
    target = Target(tensor, read=True)
    before(reduction, target.buffer)
    return call.start(
        lambda: call.communicator.all_reduce(target.array, told),
        _ending(reduction, target, call.size),
        [tensor], async_op, (*like(tensor), reduction.op.name),
    )  # fmt: skip


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Replace a tensor by its reduction over all processes, on one of them.

    Parameters
    ----------
    tensor : Tensor
        Of the same shape and dtype on all; on `dst` it is written to.
    dst, group_dst : int
        The rank in the world, or in the group, that gets the result.
    op, group, async_op
        As in :func:`all_reduce`.

    Returns
    -------
    Work or None
        What to wait for, if `async_op`.
    """
    call = opened("reduce", group, tensor=tensor)
    if call is None:
        return None
    root = rank_in(call.group, dst, group_dst, "dst")
    reduction, told = call.reduction(op, tensor)
    receives = root == call.communicator.rank
    target = Target(tensor, read=True)
    if reduction.op is ReduceOp.PREMUL_SUM and not receives:
        target.buffer = target.buffer.clone()  # the tensor stays as it is
        target.array = array_of(target.buffer)
    before(reduction, target.buffer)
    return call.start(
        lambda: call.communicator.reduce(target.array, told, root),
        _ending(reduction, target, call.size) if receives else None,
        [tensor], async_op, (*like(tensor), reduction.op.name, root),
    )  # fmt: skip


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Replace a tensor on each process by that of one.

    Parameters
    ----------
    tensor : Tensor
        Of the same shape and dtype on all; on all but `src` it is written to.
    src, group_src : int
        The rank in the world, or in the group, whose tensor it is.
    group, async_op
        As in :func:`all_reduce`.

    Returns
    -------
    Work or None
        What to wait for, if `async_op`.
    """
    call = opened("broadcast", group, tensor=tensor)
    if call is None:
        return None
    root = rank_in(call.group, src, group_src, "src")
    sends = root == call.communicator.rank
    target = Target(tensor, read=sends)
    return call.start(
        lambda: call.communicator.broadcast(target.array, root),
        None if sends else target.finish,
        [tensor], async_op, (*like(tensor), root),
    )  # fmt: skip


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce a tensor over all processes, and give each its share of the result.

    Parameters
    ----------
    output : Tensor
        With the `n`-th part of the elements of `input`; it is written to.
    input : Tensor
        Of the same shape and dtype on all `n` processes.
    op, group, async_op
        As in :func:`all_reduce`.

    Returns
    -------
    Work or None
        What to wait for, if `async_op`.
    """
    call = opened("reduce_scatter_tensor", group, output=output, input=input)
    if call is None:
        return None
    return _reduce_scatter(call, output, input, op, async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce a list of tensors over all processes, and give each one of them.

    Parameters
    ----------
    output : Tensor
        It is written to.
    input_list : list of Tensor
        One for each process, of the shape of `output`.
    op, group, async_op
        As in :func:`all_reduce`.

    Returns
    -------
    Work or None
        What to wait for, if `async_op`.
    """
    call = opened("reduce_scatter", group, output=output, input_list=input_list)
    if call is None:
        return None
    call.check_list(input_list, output, "input_list")
    return _reduce_scatter(call, output, together(input_list), op, async_op)


def _reduce_scatter(
    call: Call, output: Tensor, source: Tensor, op: Any, async_op: bool
) -> Work | None:
    if source.numel() != output.numel() * call.size:
        raise RuntimeError(
            "input tensor must be the same size as output size times world size: "
            f"{source.numel()} elements for {call.size} times {output.numel()}"
        )
    reduction, told = call.reduction(op, source)
    target = Target(output)
    source = apart(source, target)
    if reduction.op is ReduceOp.PREMUL_SUM:
        source = source.clone()  # the input stays as it is
        before(reduction, source)
    return call.start(
        lambda: call.communicator.reduce_scatter(target.array, array_of(source), told),
        _ending(reduction, target, call.size),
        [output], async_op, (*like(output), reduction.op.name),
    )  # fmt: skip


def barrier(
    group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None
) -> Work | None:
    """Wait until each process of the group is here.

    Parameters
    ----------
    group, async_op
        As in :func:`all_reduce`.
    device_ids : list of int, optional
        Is accepted for torch's sake.

    Returns
    -------
    Work or None
        What to wait for, if `async_op`.
    """
    call = opened("barrier", group)
    return None if call is None else call.start(call.communicator.barrier, None, [], async_op)


def monitored_barrier(
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    wait_all_ranks: bool = False,
) -> None:
    """Wait until each process of the group is here, and name those that are not in time.

    Parameters
    ----------
    group : ProcessGroup, optional
        Whose processes; the world by default.
    timeout : timedelta, optional
        How long to wait; by default as long as the group does.
    wait_all_ranks : bool
        Is accepted for torch's sake: all that are missing are always named.

    Raises
    ------
    RuntimeError
        If somebody did not come.
    """
    call = opened("monitored_barrier", group)
    if call is None:
        return
    work = call.start(call.communicator.barrier, None, [], True)
    if work is not None:
        work.wait(timeout)
