"""Messages from one process to another."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.plugins.process_groups import Communicator

from .buffers import Target, array_of, check_tensor, readable
from .calls import opened, rank_in
from .groups import ProcessGroup, resolve
from .work import Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def _peer(
    found: ProcessGroup, rank: int | None, group_rank: int | None, name: str, word: str
) -> int:
    peer = rank_in(found, rank, group_rank, name)
    if peer == found.rank():
        raise ValueError(
            f"Invalid {word} rank: {word} rank should not be the same as the rank of the current process."
        )
    return peer


def _check_tag(tag: Any) -> int:
    if isinstance(tag, bool) or not isinstance(tag, int) or not 0 <= tag < 2**15:
        raise ValueError(f"tag must be an int from 0 to {2**15 - 1}, got {tag!r}")
    return tag


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Start to send a tensor to a process.

    Parameters
    ----------
    tensor : Tensor
        It may not be written to until the work is complete.
    dst, group_dst : int
        The receiver's rank in the world, or in the group.
    group : ProcessGroup, optional
        The world by default.
    tag : int
        A number that the receiver names as well, from 0 to 32767.

    Returns
    -------
    Work
        What to wait for; None on a process that is no member of the group.

    Raises
    ------
    ValueError
        If the receiver is this process, or none of the group.
    """
    call = opened("isend", group, tensor=tensor)
    if call is None:
        return None
    peer = _peer(call.group, dst, group_dst, "dst", "destination")
    _check_tag(tag)
    call.what = f"send to rank {call.group._to_global(peer)}"
    given = readable(tensor)
    return call.start(
        lambda: call.communicator.send(array_of(given), peer, tag),
        None,
        [tensor],
        True,
        message=True,
    )


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Start to receive a tensor from a process, or from any.

    Parameters
    ----------
    tensor : Tensor
        Of the shape and dtype of what comes; it is written to.
    src, group_src : int, optional
        The sender's rank in the world, or in the group; any by default.
    group, tag
        As in :func:`isend`.

    Returns
    -------
    Work
        What to wait for; None on a process that is no member of the group.
    """
    call = opened("irecv", group, tensor=tensor)
    if call is None:
        return None
    _check_tag(tag)
    peer = None
    if src is not None or group_src is not None:
        peer = _peer(call.group, src, group_src, "src", "source")
    sender = "any rank" if peer is None else f"rank {call.group._to_global(peer)}"
    call.what = f"receive from {sender}"
    target = Target(tensor)
    return call.start(
        lambda: call.communicator.receive(target.array, peer, tag),
        target.finish, [tensor], True, message=True,
    )  # fmt: skip


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to a process, and wait until it may be written to; arguments as in :func:`isend`.

    Examples
    --------
    ::

        if dist.get_rank() == 0:
            dist.send(tp.ones(3), dst=1)
        else:
            dist.recv(t := tp.empty(3), src=0)
    """
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor from a process, or from any; arguments as in :func:`irecv`.

    Returns
    -------
    int
        The sender's rank in the world; -1 on a process that is no member of the group.
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


class P2POp:
    """One message of :func:`batch_isend_irecv`.

    Parameters
    ----------
    op : callable
        :func:`isend` or :func:`irecv`.
    tensor : Tensor
        What is sent, or written to.
    peer, group_peer : int
        The other's rank in the world, or in the group.
    group, tag
        As in :func:`isend`.
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = (
            op, tensor, peer, group, tag, group_peer,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"P2POp({self.op.__name__} with {self.peer}, {tuple(self.tensor.shape)}, tag={self.tag})"


def _communicator(op: P2POp) -> Communicator | None:
    found = resolve(op.group)
    return None if found is None else found._communicator(op.tensor.device.type)


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start several messages, in any order.

    Parameters
    ----------
    p2p_op_list : list of P2POp
        The messages; their groups have one backend.

    Returns
    -------
    list of Work
        What to wait for.

    Raises
    ------
    ValueError
        If the list is empty, or of something else.

    Examples
    --------
    ::

        ring = [dist.P2POp(dist.isend, give, right), dist.P2POp(dist.irecv, take, left)]
        for work in dist.batch_isend_irecv(ring):
            work.wait()
    """
    given: Any = p2p_op_list
    if not isinstance(given, list) or not all(isinstance(op, P2POp) for op in given):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to be of type ``torch.distributed.P2POp``."
        )
    if not p2p_op_list:
        raise ValueError("Invalid ``p2p_op_list``: it is empty")
    for op in p2p_op_list:  # before anything is sent
        found = resolve(op.group)
        if found is not None:
            _check_tag(op.tag)
            word = "destination" if op.op is isend else "source"
            _peer(found, op.peer, op.group_peer, "peer", word)
    with contextlib.ExitStack() as together:
        for communicator in dict.fromkeys(filter(None, map(_communicator, p2p_op_list))):
            together.enter_context(communicator.batch())
        started = [op.op(op.tensor, op.peer, op.group, op.tag, op.group_peer) for op in p2p_op_list]
    return [work for work in started if work is not None]
