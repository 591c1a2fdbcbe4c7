"""Collectives on any objects that pickle takes: only for processes that trust each other."""

from __future__ import annotations

import pickle
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import dtype_named
from tensorplug.core.ops import empty, zeros
from tensorplug.core.tensor.creation import frombuffer, tensor as make_tensor

from . import collectives, gathering, point_to_point
from .buffers import together
from .calls import member, rank_in
from .groups import ProcessGroup

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]

_BYTES = dtype_named("uint8")
_SIZES = dtype_named("int64")


def _device(found: ProcessGroup, device: Any = None) -> str:
    """Return where the bytes travel: where the group's first backend takes them, the host first."""
    if device is not None:
        return str(device)
    return "cpu" if "cpu" in found._communicators else next(iter(found._communicators))


def _to_tensor(value: Any, device: str) -> Tensor:
    return frombuffer(bytearray(pickle.dumps(value)), dtype=_BYTES).to(device)


def _to_object(tensor: Tensor) -> Any:
    return pickle.loads(tensor.cpu().numpy().tobytes())  # said in the docstrings


def _sizes(values: list[int], device: str) -> Tensor:
    return make_tensor(values, dtype=_SIZES).to(device)


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Write everybody's object to a list on each.

    It is pickled: whoever sends can run code on the others.

    Parameters
    ----------
    object_list : list
        With an entry for each process; they are replaced.
    obj : object
        What this process gives.
    group : ProcessGroup, optional
        Whose processes; the world by default.
    """
    found = member(group, "all_gather_object")
    if found is None:
        return
    _check_list(object_list, found.size(), "object_list")
    parts = _gather_bytes(obj, found, group, None)
    object_list[:] = [_to_object(part) for part in parts]


def _check_list(values: Any, size: int, name: str) -> None:
    if not isinstance(values, list) or len(values) != size:
        raise ValueError(f"{name} must be a list with an entry for each of {size} processes")


def _gather_bytes(
    obj: Any, found: ProcessGroup, group: ProcessGroup | None, root: int | None
) -> list[Tensor]:
    """Return everybody's object as bytes; where `root` is given, there alone."""
    device = _device(found)
    own = _to_tensor(obj, device)
    sizes = empty(found.size(), dtype=_SIZES, device=device)
    gathering.all_gather_into_tensor(sizes, _sizes([own.numel()], device), group)
    counts = [int(count) for count in sizes.tolist()]
    longest = max(counts)
    padded = zeros(longest, dtype=_BYTES, device=device)
    padded[: own.numel()] = own
    if root is None:
        everybody = empty(found.size() * longest, dtype=_BYTES, device=device)
        gathering.all_gather_into_tensor(everybody, padded, group)
        parts = list(everybody.reshape(found.size(), longest).unbind(0))
    else:
        receives = found.rank() == root
        slots = [empty(longest, dtype=_BYTES, device=device) for _ in counts] if receives else None
        gathering.gather(padded, slots, group=group, group_dst=root)
        parts = slots or []
    return [part[:count] for part, count in zip(parts, counts, strict=False)]


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Write everybody's object to a list on one process.

    It is pickled: whoever sends can run code on the receiver.

    Parameters
    ----------
    obj : object
        What this process gives.
    object_gather_list : list, optional
        On `dst`: with an entry for each process; they are replaced.
    dst, group_dst : int
        The rank in the world, or in the group, that gets them; 0 by default.
    group : ProcessGroup, optional
        Whose processes; the world by default.
    """
    found = member(group, "gather_object")
    if found is None:
        return
    root = rank_in(found, dst, group_dst, "dst", 0)
    if found.rank() == root:
        if object_gather_list is None:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        _check_list(object_gather_list, found.size(), "object_gather_list")
    elif object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    parts = _gather_bytes(obj, found, group, root)
    if object_gather_list is not None and found.rank() == root:
        object_gather_list[:] = [_to_object(part) for part in parts]


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Replace the objects of a list on each process by those of one.

    They are pickled: whoever sends can run code on the others.

    Parameters
    ----------
    object_list : list
        Of the same length on all.
    src, group_src : int
        The rank in the world, or in the group, whose objects they are; 0 by default.
    group : ProcessGroup, optional
        Whose processes; the world by default.
    device : Device, optional
        Through which device's memory they travel.

    Examples
    --------
    ::

        settings = [{"lr": 0.1}] if dist.get_rank() == 0 else [None]
        dist.broadcast_object_list(settings, src=0)
    """
    found = member(group, "broadcast_object_list")
    if found is None:
        return
    root = rank_in(found, src, group_src, "src", 0)
    where = _device(found, device)
    sends = found.rank() == root
    parts = [_to_tensor(value, where) for value in object_list] if sends else []
    lengths = (
        _sizes([part.numel() for part in parts], where)
        if sends
        else empty(len(object_list), dtype=_SIZES, device=where)
    )
    collectives.broadcast(lengths, group=group, group_src=root)
    counts = [int(count) for count in lengths.tolist()]
    flat = together(parts) if sends and parts else empty(sum(counts), dtype=_BYTES, device=where)
    collectives.broadcast(flat, group=group, group_src=root)
    if not sends:
        object_list[:] = _objects(flat, counts)


def _objects(flat: Tensor, counts: list[int]) -> list[Any]:
    found, at = [], 0
    for count in counts:
        found.append(_to_object(flat[at : at + count]))
        at += count
    return found


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Give each process one object of a list that one process has.

    They are pickled: whoever sends can run code on the others.

    Parameters
    ----------
    scatter_object_output_list : list
        Its first entry is replaced.
    scatter_object_input_list : list, optional
        On `src`: an object for each process.
    src, group_src : int
        The rank in the world, or in the group, that gives them; 0 by default.
    group : ProcessGroup, optional
        Whose processes; the world by default.
    """
    found = member(group, "scatter_object_list")
    if found is None:
        return
    given: Any = scatter_object_output_list
    if not isinstance(given, list) or not given:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    root = rank_in(found, src, group_src, "src", 0)
    device = _device(found)
    parts: list[Tensor] = []
    if found.rank() == root:
        _check_list(scatter_object_input_list, found.size(), "scatter_object_input_list")
        parts = [_to_tensor(value, device) for value in scatter_object_input_list or ()]
    counts = [part.numel() for part in parts] or [0] * found.size()
    lengths = _sizes(counts, device)
    collectives.broadcast(lengths, group=group, group_src=root)
    counts = [int(count) for count in lengths.tolist()]
    longest = max(counts)
    own = empty(longest, dtype=_BYTES, device=device)
    padded = None
    if parts:
        padded = [zeros(longest, dtype=_BYTES, device=device) for _ in parts]
        for slot, part in zip(padded, parts, strict=True):
            slot[: part.numel()] = part
    gathering.scatter(own, padded, group=group, group_src=root)
    scatter_object_output_list[0] = _to_object(own[: counts[found.rank()]])


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_dst: int | None = None,
) -> None:
    """Send the objects of a list to one process, which calls :func:`recv_object_list`.

    They are pickled: whoever sends can run code on the receiver.
    """
    found = member(group, "send_object_list")
    if found is None:
        return
    where = _device(found, device)
    parts = [_to_tensor(value, where) for value in object_list]
    point_to_point.send(
        _sizes([part.numel() for part in parts], where), dst, group, group_dst=group_dst
    )
    if parts:
        point_to_point.send(together(parts), dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> int:
    """Replace the objects of a list by those that one process, or any, sends.

    They are pickled: whoever sends can run code here.

    Returns
    -------
    int
        The sender's rank in the world; -1 on a process that is no member of the group.
    """
    found = member(group, "recv_object_list")
    if found is None:
        return -1
    where = _device(found, device)
    lengths = empty(len(object_list), dtype=_SIZES, device=where)
    sender = point_to_point.recv(lengths, src, group, group_src=group_src)
    counts = [int(count) for count in lengths.tolist()]
    if counts:
        flat = empty(sum(counts), dtype=_BYTES, device=where)
        point_to_point.recv(flat, sender, group)
        object_list[:] = _objects(flat, counts)
    return sender
