"""Collectives that move tensors as they are: gather, scatter, all to all."""

from __future__ import annotations

from collections.abc import Sequence

from tensorplug.core import Tensor

from .buffers import Target, apart, array_of, hand_out, like, readable, together
from .calls import opened, rank_in
from .groups import ProcessGroup
from .work import Work

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_to_all",
    "all_to_all_single",
    "gather",
    "scatter",
]


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
    call = opened(
        "all_gather_into_tensor", group, input_tensor=input_tensor, output_tensor=output_tensor
    )
    if call is None:
        return None
    if output_tensor.numel() != input_tensor.numel() * call.size:
        raise RuntimeError(
            "output tensor size must be equal to world_size times input tensor size: "
            f"{output_tensor.numel()} elements for {call.size} times {input_tensor.numel()}"
        )
    target = Target(output_tensor)
    given = apart(input_tensor, target)  # it may be this process's part of the output
    return call.start(
        lambda: call.communicator.all_gather(target.array, array_of(given)),
        target.finish, [output_tensor], async_op, like(input_tensor),
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
    call = opened("all_gather", group, tensor=tensor, tensor_list=tensor_list)
    if call is None:
        return None
    call.check_length(tensor_list, "tensor_list")
    rank = call.communicator.rank
    if tuple(tensor_list[rank].shape) != tuple(tensor.shape):
        raise RuntimeError(
            f"all_gather: tensor_list[{rank}] has shape {tuple(tensor_list[rank].shape)}, "
            f"this process's tensor {tuple(tensor.shape)}"
        )
    counts = [part.numel() for part in tensor_list]
    output = tensor.detach().new_empty((sum(counts),))
    given, alike = readable(tensor), like(tensor)
    if len(set(counts)) == 1:
        begin = lambda: call.communicator.all_gather(array_of(output), array_of(given))  # noqa: E731
    else:
        repeated, alike = given.reshape(-1).repeat(call.size), (tuple(counts), str(tensor.dtype))
        begin = lambda: call.communicator.all_to_all(  # noqa: E731
            array_of(output), array_of(repeated), counts, [tensor.numel()] * call.size
        )
    return call.start(begin, lambda: hand_out(output, tensor_list), tensor_list, async_op, alike)


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
    call = opened("gather", group, tensor=tensor)
    if call is None:
        return None
    root = rank_in(call.group, dst, group_dst, "dst", 0)
    given, output = readable(tensor), None
    if call.communicator.rank == root:
        if gather_list is None:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        call.check_list(gather_list, tensor, "gather_list")
        output = tensor.detach().new_empty((tensor.numel() * call.size,))
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")

    def finish() -> None:
        if output is not None and gather_list is not None:
            hand_out(output, gather_list)

    return call.start(
        lambda: call.communicator.gather(
            None if output is None else array_of(output), array_of(given), root
        ),
        finish, gather_list or [], async_op, (*like(tensor), root),
    )  # fmt: skip


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
    call = opened("scatter", group, tensor=tensor)
    if call is None:
        return None
    root = rank_in(call.group, src, group_src, "src", 0)
    given: Tensor | None = None
    if call.communicator.rank == root:
        if scatter_list is None:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        call.check_list(scatter_list, tensor, "scatter_list")
        given = together(scatter_list)
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    target = Target(tensor)
    return call.start(
        lambda: call.communicator.scatter(
            target.array, None if given is None else array_of(given), root
        ),
        target.finish, [tensor], async_op, (*like(tensor), root),
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
    call = opened("all_to_all_single", group, output=output, input=input)
    if call is None:
        return None
    received = _counts(output, output_split_sizes, call.size, "output")
    sent = _counts(input, input_split_sizes, call.size, "input")
    target = Target(output)
    source = apart(input, target)
    return call.start(
        lambda: call.communicator.all_to_all(target.array, array_of(source), received, sent),
        target.finish, [output], async_op, (str(input.dtype),),
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
    call = opened(
        "all_to_all",
        group,
        input_tensor_list=input_tensor_list,
        output_tensor_list=output_tensor_list,
    )
    if call is None:
        return None
    call.check_length(input_tensor_list, "input_tensor_list")
    call.check_length(output_tensor_list, "output_tensor_list")
    source = together(input_tensor_list)
    received = [tensor.numel() for tensor in output_tensor_list]
    sent = [tensor.numel() for tensor in input_tensor_list]
    output = source.new_empty((sum(received),))
    return call.start(
        lambda: call.communicator.all_to_all(array_of(output), array_of(source), received, sent),
        lambda: hand_out(output, output_tensor_list), output_tensor_list, async_op,
        (str(source.dtype),),
    )  # fmt: skip
