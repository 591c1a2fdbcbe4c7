"""Collectives on tensors, as torch.distributed has them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.ops import cat

from .buffers import (
    Target,
    after,
    array_of,
    before,
    check_alike,
    check_reduction,
    check_tensor,
    check_tensors,
    member,
    readable,
    start,
)
from .groups import ProcessGroup
from .reduce_op import ReduceOp, parse
from .work import Work

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
]


def _root(
    found: ProcessGroup, rank: int | None, group_rank: int | None, name: str, what: str
) -> int:
    """Return a root's rank in the group, given as its rank in the world or in the group."""
    if rank is not None and group_rank is not None:
        raise ValueError(f"Can't specify both group_{name} and {name}")
    if group_rank is not None:
        if not 0 <= group_rank < found.size():
            raise ValueError(
                f"{what}: group_{name} {group_rank} is not within 0..{found.size() - 1}"
            )
        return group_rank
    if rank is None:
        raise ValueError(f"Must specify {name} or group_{name}")
    return found._to_group(rank)


def _like(tensor: Tensor) -> tuple[Any, ...]:
    return tuple(tensor.shape), str(tensor.dtype)


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
    check_tensor(tensor, "tensor")
    found = member(group, "all_reduce")
    if found is None:
        return None
    reduction = parse(op)
    communicator = found._communicator(tensor.device.type)
    told = check_reduction(reduction, tensor, "all_reduce", communicator)
    target = Target(tensor, read=True)
    before(reduction, target.buffer)

    def finish() -> None:
        after(reduction, target.buffer, found.size())
        target.finish()

    return start(
        found, "all_reduce", communicator, lambda: communicator.all_reduce(target.array, told),
        finish, [tensor], async_op, alike=(*_like(tensor), reduction.op.name),
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
    check_tensor(tensor, "tensor")
    found = member(group, "reduce")
    if found is None:
        return None
    root = _root(found, dst, group_dst, "dst", "reduce")
    reduction = parse(op)
    communicator = found._communicator(tensor.device.type)
    told = check_reduction(reduction, tensor, "reduce", communicator)
    target = Target(tensor, read=True)
    if reduction.op is ReduceOp.PREMUL_SUM and root != communicator.rank:
        target.buffer = target.buffer.clone()  # the tensor stays as it is
        target.array = array_of(target.buffer)
    before(reduction, target.buffer)

    def finish() -> None:
        if root == communicator.rank:
            after(reduction, target.buffer, found.size())
            target.finish()

    return start(
        found, "reduce", communicator, lambda: communicator.reduce(target.array, told, root),
        finish, [tensor], async_op, alike=(*_like(tensor), reduction.op.name, root),
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
    check_tensor(tensor, "tensor")
    found = member(group, "broadcast")
    if found is None:
        return None
    root = _root(found, src, group_src, "src", "broadcast")
    communicator = found._communicator(tensor.device.type)
    sends = root == communicator.rank
    target = Target(tensor, read=sends)
    return start(
        found, "broadcast", communicator, lambda: communicator.broadcast(target.array, root),
        None if sends else target.finish, [tensor], async_op, alike=(*_like(tensor), root),
    )  # fmt: skip


def all_gather_into_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Write everybody's tensor, in the order of ranks, to one tensor on each.

    Parameters
    ----------
    output_tensor : Tensor
        With `n` times the elements of `input_tensor`, concatenated along the first dimension or stacked.
    input_tensor : Tensor
        Of the same shape and dtype on all `n` processes.
    group, async_op
        As in :func:`all_reduce`.

    Returns
    -------
    Work or None
        What to wait for, if `async_op`.
    """
    check_tensor(input_tensor, "input_tensor")
    check_tensor(output_tensor, "output_tensor")
    found = member(group, "all_gather_into_tensor")
    if found is None:
        return None
    check_alike(input_tensor, [output_tensor], "all_gather_into_tensor")
    if output_tensor.numel() != input_tensor.numel() * found.size():
        raise RuntimeError(
            "output tensor size must be equal to world_size times input tensor size: "
            f"{output_tensor.numel()} elements for {found.size()} times {input_tensor.numel()}"
        )
    communicator = found._communicator(input_tensor.device.type)
    given, target = readable(input_tensor), Target(output_tensor)
    return start(
        found, "all_gather_into_tensor", communicator,
        lambda: communicator.all_gather(target.array, array_of(given)),
        target.finish, [output_tensor], async_op, alike=_like(input_tensor),
    )  # fmt: skip


def all_gather(
    tensor_list: list[Tensor],
    tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Write everybody's tensor to a list of tensors on each.

    Parameters
    ----------
    tensor_list : list of Tensor
        One for each process, of the shape of its tensor; they are written to.
    tensor : Tensor
        What this process gives. Shapes may differ between processes where the lists say so.
    group, async_op
        As in :func:`all_reduce`.

    Returns
    -------
    Work or None
        What to wait for, if `async_op`.
    """
    check_tensors(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    found = member(group, "all_gather")
    if found is None:
        return None
    check_alike(tensor, tensor_list, "all_gather")
    _check_length(tensor_list, found.size(), "all_gather", "tensor_list")
    if tuple(tensor_list[found.rank()].shape) != tuple(tensor.shape):
        raise RuntimeError(
            f"all_gather: tensor_list[{found.rank()}] has shape {tuple(tensor_list[found.rank()].shape)}, "
            f"this process's tensor {tuple(tensor.shape)}"
        )
    counts = [part.numel() for part in tensor_list]
    communicator = found._communicator(tensor.device.type)
    output = tensor.detach().new_empty((sum(counts),))
    if len(set(counts)) == 1:
        given = readable(tensor)
        begin = lambda: communicator.all_gather(array_of(output), array_of(given))  # noqa: E731
        alike: tuple[Any, ...] = _like(tensor)
    else:
        given = readable(tensor).reshape(-1).repeat(found.size())
        begin = lambda: communicator.all_to_all(  # noqa: E731
            array_of(output), array_of(given), counts, [tensor.numel()] * found.size()
        )
        alike = (tuple(counts), str(tensor.dtype))
    return start(
        found, "all_gather", communicator, begin, lambda: _hand_out(output, tensor_list),
        tensor_list, async_op, alike=alike,
    )  # fmt: skip


def _check_length(tensors: Sequence[Tensor], size: int, what: str, name: str) -> None:
    if len(tensors) != size:
        raise RuntimeError(f"{what}: {name} has {len(tensors)} tensors, the group {size} processes")


def _hand_out(flat: Tensor, tensors: Sequence[Tensor]) -> None:
    """Copy consecutive parts of a flat tensor to tensors."""
    at = 0
    with no_grad():
        for tensor in tensors:
            tensor.copy_(flat[at : at + tensor.numel()].reshape(tuple(tensor.shape)))
            at += tensor.numel()


def _together(tensors: Sequence[Tensor]) -> Tensor:
    """Return the elements of all tensors in one that is new."""
    return cat([tensor.detach().reshape(-1) for tensor in tensors])


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Write everybody's tensor to a list of tensors on one process.

    Parameters
    ----------
    tensor : Tensor
        Of the same shape and dtype on all.
    gather_list : list of Tensor, optional
        On `dst`: one for each process; they are written to.
    dst, group_dst : int
        The rank in the world, or in the group, that gets them; 0 by default.
    group, async_op
        As in :func:`all_reduce`.

    Returns
    -------
    Work or None
        What to wait for, if `async_op`.
    """
    check_tensor(tensor, "tensor")
    found = member(group, "gather")
    if found is None:
        return None
    root = _root(found, 0 if dst is None and group_dst is None else dst, group_dst, "dst", "gather")
    communicator = found._communicator(tensor.device.type)
    given = readable(tensor)
    if communicator.rank != root:
        if gather_list:
            raise ValueError(
                "Argument ``gather_list`` must NOT be specified on non-destination ranks."
            )
        return start(
            found, "gather", communicator,
            lambda: communicator.gather(None, array_of(given), root), None, [], async_op,
            alike=(*_like(tensor), root),
        )  # fmt: skip
    if gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    check_tensors(gather_list, "gather_list")
    check_alike(tensor, gather_list, "gather")
    _check_length(gather_list, found.size(), "gather", "gather_list")
    _check_shapes(gather_list, tensor, "gather", "gather_list")
    output = tensor.detach().new_empty((tensor.numel() * found.size(),))
    return start(
        found, "gather", communicator,
        lambda: communicator.gather(array_of(output), array_of(given), root),
        lambda: _hand_out(output, gather_list), gather_list, async_op, alike=(*_like(tensor), root),
    )  # fmt: skip


def _check_shapes(tensors: Sequence[Tensor], tensor: Tensor, what: str, name: str) -> None:
    for number, other in enumerate(tensors):
        if tuple(other.shape) != tuple(tensor.shape):
            raise RuntimeError(
                f"{what}: {name}[{number}] has shape {tuple(other.shape)}, the tensor {tuple(tensor.shape)}"
            )


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give each process one tensor of a list that one process has.

    Parameters
    ----------
    tensor : Tensor
        Of the same shape and dtype on all; it is written to.
    scatter_list : list of Tensor, optional
        On `src`: one for each process.
    src, group_src : int
        The rank in the world, or in the group, that gives them; 0 by default.
    group, async_op
        As in :func:`all_reduce`.

    Returns
    -------
    Work or None
        What to wait for, if `async_op`.
    """
    check_tensor(tensor, "tensor")
    found = member(group, "scatter")
    if found is None:
        return None
    root = _root(
        found, 0 if src is None and group_src is None else src, group_src, "src", "scatter"
    )
    communicator = found._communicator(tensor.device.type)
    given: Tensor | None = None
    if communicator.rank == root:
        if scatter_list is None:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        check_tensors(scatter_list, "scatter_list")
        check_alike(tensor, scatter_list, "scatter")
        _check_length(scatter_list, found.size(), "scatter", "scatter_list")
        _check_shapes(scatter_list, tensor, "scatter", "scatter_list")
        given = _together(scatter_list)
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    target = Target(tensor)
    return start(
        found, "scatter", communicator,
        lambda: communicator.scatter(target.array, None if given is None else array_of(given), root),
        target.finish, [tensor], async_op, alike=(*_like(tensor), root),
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
    check_tensor(output, "output")
    check_tensor(input, "input")
    return _reduce_scatter(output, input, [input], op, group, async_op, "reduce_scatter_tensor")


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
    check_tensor(output, "output")
    check_tensors(input_list, "input_list")
    found = member(group, "reduce_scatter")
    if found is None:
        return None
    _check_length(input_list, found.size(), "reduce_scatter", "input_list")
    _check_shapes(input_list, output, "reduce_scatter", "input_list")
    check_alike(output, input_list, "reduce_scatter")
    return _reduce_scatter(
        output, _together(input_list), input_list, op, group, async_op, "reduce_scatter"
    )


def _reduce_scatter(
    output: Tensor,
    input: Tensor,
    given: list[Tensor],
    op: Any,
    group: ProcessGroup | None,
    async_op: bool,
    what: str,
) -> Work | None:
    found = member(group, what)
    if found is None:
        return None
    check_alike(input, [output], what)
    if input.numel() != output.numel() * found.size():
        raise RuntimeError(
            "input tensor must be the same size as output size times world size: "
            f"{input.numel()} elements for {found.size()} times {output.numel()}"
        )
    reduction = parse(op)
    communicator = found._communicator(input.device.type)
    told = check_reduction(reduction, input, what, communicator)
    # A backend may overwrite what it reduces: what is the user's is copied.
    source = input.detach() if input is not given[0] else input.detach().clone().contiguous()
    before(reduction, source)
    target = Target(output)

    def finish() -> None:
        after(reduction, target.buffer, found.size())
        target.finish()

    return start(
        found, what, communicator,
        lambda: communicator.reduce_scatter(target.array, array_of(source), told),
        finish, [output], async_op, alike=(*_like(output), reduction.op.name),
    )  # fmt: skip


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Split a tensor along its first dimension, and give each process one part.

    Parameters
    ----------
    output : Tensor
        What comes from all, in the order of ranks, along the first dimension; it is written to.
    input : Tensor
        What goes to all.
    output_split_sizes, input_split_sizes : sequence of int, optional
        How much of the first dimension comes from, and goes to, each; equal parts by default.
    group, async_op
        As in :func:`all_reduce`.

    Returns
    -------
    Work or None
        What to wait for, if `async_op`.
    """
    check_tensor(output, "output")
    check_tensor(input, "input")
    found = member(group, "all_to_all_single")
    if found is None:
        return None
    check_alike(input, [output], "all_to_all_single")
    received = _counts(output, output_split_sizes, found.size(), "output")
    sent = _counts(input, input_split_sizes, found.size(), "input")
    communicator = found._communicator(input.device.type)
    source, target = readable(input), Target(output)
    return start(
        found, "all_to_all_single", communicator,
        lambda: communicator.all_to_all(target.array, array_of(source), received, sent),
        target.finish, [output], async_op, alike=(str(input.dtype),),
    )  # fmt: skip


def _counts(tensor: Tensor, sizes: Sequence[int] | None, members: int, name: str) -> list[int]:
    """Return how many elements each process's part has."""
    first = tensor.shape[0] if tensor.dim() else 1
    row = tensor.numel() // first if first else 0
    if not sizes:
        if first % members:
            raise RuntimeError(
                f"Tensor's dim 0 does not divide equally across group size: {name} has {first} rows "
                f"for {members} processes"
            )
        return [first // members * row] * members
    if len(sizes) != members:
        raise RuntimeError(
            f"Number of tensor splits not equal to group size: {name} has {len(sizes)}"
        )
    if sum(sizes) != first or min(sizes) < 0:
        raise RuntimeError(
            f"Split sizes doesn't match total dim 0 size: {list(sizes)} of {name} for {first} rows"
        )
    return [size * row for size in sizes]


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Give each process one tensor of a list, and get one from each.

    Parameters
    ----------
    output_tensor_list : list of Tensor
        One for each process, of the shape that it sends; they are written to.
    input_tensor_list : list of Tensor
        One for each process.
    group, async_op
        As in :func:`all_reduce`.

    Returns
    -------
    Work or None
        What to wait for, if `async_op`.
    """
    check_tensors(output_tensor_list, "output_tensor_list")
    check_tensors(input_tensor_list, "input_tensor_list")
    found = member(group, "all_to_all")
    if found is None:
        return None
    _check_length(input_tensor_list, found.size(), "all_to_all", "input_tensor_list")
    _check_length(output_tensor_list, found.size(), "all_to_all", "output_tensor_list")
    first = input_tensor_list[0]
    check_alike(first, [*input_tensor_list, *output_tensor_list], "all_to_all")
    communicator = found._communicator(first.device.type)
    source = _together(input_tensor_list)
    received = [tensor.numel() for tensor in output_tensor_list]
    sent = [tensor.numel() for tensor in input_tensor_list]
    output = source.new_empty((sum(received),))
    return start(
        found, "all_to_all", communicator,
        lambda: communicator.all_to_all(array_of(output), array_of(source), received, sent),
        lambda: _hand_out(output, output_tensor_list), output_tensor_list, async_op,
        alike=(str(first.dtype),),
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
    found = member(group, "barrier")
    if found is None:
        return None
    communicator = next(iter(found._communicators.values()))
    return start(found, "barrier", communicator, communicator.barrier, None, [], async_op)


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
    found = member(group, "monitored_barrier")
    if found is None:
        return
    communicator = next(iter(found._communicators.values()))
    work = start(found, "monitored_barrier", communicator, communicator.barrier, None, [], True)
    if work is not None:
        work.wait(timeout)
