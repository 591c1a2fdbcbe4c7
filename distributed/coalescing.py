"""Several collectives as one: of lists of tensors, and all that a block starts."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.futures import Future

from .buffers import after, array_of, before, check_tensors, hand_out, like, together
from .calls import opened
from .groups import ProcessGroup, resolve
from .reduce_op import ReduceOp
from .work import Work

__all__ = ["all_gather_coalesced", "all_reduce_coalesced"]


def all_reduce_coalesced(
    tensors: list[Tensor],
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Future[list[Any]] | None:
    """Replace tensors on each process by their reductions over all, in one collective.

    Parameters
    ----------
    tensors : list of Tensor
        Of one dtype; of the same shapes on all processes. They are written to.
    op, group, async_op
        As in ``all_reduce``.

    Returns
    -------
    Future or None
        Of the tensors, if `async_op`.

    Examples
    --------
    ::

        dist.all_reduce_coalesced([weight.grad, bias.grad], dist.ReduceOp.AVG)
    """
    call = opened("all_reduce_coalesced", group, tensor_list=tensors)
    if call is None or not tensors:
        return None
    flat = together(tensors)
    reduction, told = call.reduction(op, flat)
    before(reduction, flat)

    def finish() -> None:
        after(reduction, flat, call.size)
        hand_out(flat, tensors)

    work = call.start(
        lambda: call.communicator.all_reduce(array_of(flat), told),
        finish, tensors, async_op, (*map(like, tensors), reduction.op.name),
    )  # fmt: skip
    return None if work is None else work.get_future()


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Future[list[Any]] | None:
    """Write everybody's tensors to lists of tensors on each, in one collective.

    Parameters
    ----------
    output_tensor_lists : list of list of Tensor
        A list for each process, with a tensor for each of its own; they are written to.
    input_tensor_list : list of Tensor
        What this process gives: of one dtype, of the same shapes on all.
    group, async_op
        As in ``all_reduce``.

    Returns
    -------
    Future or None
        Of the tensors, if `async_op`.

    Examples
    --------
    ::

        parts = [[tp.empty(2), tp.empty(3)] for _ in range(dist.get_world_size())]
        dist.all_gather_coalesced(parts, [tp.ones(2), tp.zeros(3)])
    """
    given: Any = output_tensor_lists
    if not isinstance(given, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    outputs = [t for part in given for t in check_tensors(part, "output_tensor_lists")]
    call = opened(
        "all_gather_coalesced", group, input_tensor_list=input_tensor_list, output_list=outputs
    )
    if call is None:
        return None
    call.check_length(output_tensor_lists, "output_tensor_lists")
    shapes = [tuple(t.shape) for t in input_tensor_list]
    for number, part in enumerate(output_tensor_lists):
        if [tuple(t.shape) for t in part] != shapes:
            raise RuntimeError(
                f"all_gather_coalesced: output_tensor_lists[{number}] has shapes "
                f"{[tuple(t.shape) for t in part]}, this process's tensors {shapes}"
            )
    flat = together(input_tensor_list)
    output = flat.new_empty((flat.numel() * call.size,))
    work = call.start(
        lambda: call.communicator.all_gather(array_of(output), array_of(flat)),
        lambda: hand_out(output, outputs), outputs, async_op, [like(t) for t in input_tensor_list],
    )  # fmt: skip
    return None if work is None else work.get_future()


class _CoalescingManager:
    """The work that a coalescing block has started."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Add work to be waited for."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for all of it."""
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(
    group: ProcessGroup | None = None, device: Any = None, async_ops: bool = False
) -> Generator[_CoalescingManager]:
    """Start the collectives of a block together, and wait at its end unless `async_ops`."""
    manager = _CoalescingManager()
    found = resolve(group)
    if found is None:
        yield manager
        return
    if found._coalesced is not None:
        raise ValueError("a block of coalesced collectives of this group is open already")
    found._coalesced = manager.works
    try:
        with contextlib.ExitStack() as block:
            for communicator in found._distinct():
                block.enter_context(communicator.batch())
            yield manager
    finally:
        found._coalesced = None
    if not async_ops:
        manager.wait()
