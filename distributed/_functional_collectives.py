"""Collectives that return their result (``torch.distributed._functional_collectives``).

A result is complete when it is returned: ``wait_tensor`` has nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from tensorplug.core import Tensor
from tensorplug.core.ops import cat, chunk, empty

from . import distributed_c10d as c10d
from .nn import functional as differentiable
from .reduce_op import ReduceOp

# Of each world: the groups that were asked for by their ranks. All processes ask in the same order.
_made: WeakKeyDictionary[c10d.ProcessGroup, dict[str, Any]] = WeakKeyDictionary()


def _group(given: Any) -> Any:
    """Return the group meant by a group, a mesh, a mesh and its dimension, ranks, or lists of ranks."""
    if isinstance(given, tuple):
        return given[0].get_group(given[1])
    if hasattr(given, "get_group"):
        return given.get_group()
    if isinstance(given, list):
        known, name = _made.setdefault(c10d._get_default_group(), {}), repr(given)
        if name not in known:
            parts = given if isinstance(given[0], list) else [given]
            own, _ = c10d.new_subgroups_by_enumeration(parts)
            known[name] = c10d.GroupMember.NON_GROUP_MEMBER if own is None else own
        return known[name]
    return given


def _op(name: str) -> ReduceOp:
    known = [op.value for op in ReduceOp if op is not ReduceOp.PREMUL_SUM]
    if name.lower() not in known:
        raise ValueError(f"unknown reduction {name!r}: one of {', '.join(known)}")
    return ReduceOp(name.lower())


def wait_tensor(tensor: Tensor) -> Tensor:
    """Return a tensor: what collectives return here is complete."""
    return tensor


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:  # noqa: N803
    """Return the reduction of everybody's tensor; it has a derivative."""
    return differentiable.all_reduce(self, _op(reduceOp), _group(group))


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """Return the tensor of the group's process `src`."""
    found = _group(group)
    rank = src if found is None else c10d.get_global_rank(found, src)
    return differentiable.broadcast(self, rank, found)


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """Return everybody's tensor, one after the other along a dimension; it has a derivative."""
    return cat(differentiable.all_gather(self, _group(group)), gather_dim)


def reduce_scatter_tensor(
    self: Tensor,
    reduceOp: str,  # noqa: N803
    scatter_dim: int,
    group: Any,
    tag: str = "",
) -> Tensor:
    """Return this process's part, along a dimension, of the reduction; it has a derivative."""
    found = _group(group)
    size = c10d.get_world_size(found)
    if self.shape[scatter_dim] % size:
        raise ValueError(
            f"input dimension {scatter_dim} ({self.shape[scatter_dim]}) must be a multiple of group_size "
            f"{size}"
        )
    parts = [part.contiguous() for part in chunk(self, size, scatter_dim)]
    return differentiable.reduce_scatter(parts[0], parts, _op(reduceOp), found)


def all_to_all_single(
    self: Tensor,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """Return the parts, along the first dimension, that all have for this process; it has a derivative."""
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    output = empty(rows, *self.shape[1:], dtype=self.dtype, device=self.device)
    return differentiable.all_to_all_single(
        output, self, output_split_sizes, input_split_sizes, _group(group)
    )


def all_reduce_coalesced(
    self: Sequence[Tensor],
    reduceOp: str,  # noqa: N803
    group: Any,
    tag: str = "",
) -> list[Tensor]:
    """Return the reductions of everybody's tensors."""
    copies = [tensor.detach().clone() for tensor in self]
    c10d.all_reduce_coalesced(copies, _op(reduceOp), _group(group))
    return copies


def all_gather_into_tensor_coalesced(
    self: Sequence[Tensor], group: Any, tag: str = ""
) -> list[Tensor]:
    """Return for each tensor everybody's, one after the other."""
    return [all_gather_tensor(tensor, 0, group) for tensor in self]


def reduce_scatter_tensor_coalesced(
    inputs: Sequence[Tensor],
    reduceOp: str,  # noqa: N803
    scatter_dim: Sequence[int],
    group: Any,
    tag: str = "",
) -> list[Tensor]:
    """Return of each tensor this process's part of the reduction."""
    return [
        reduce_scatter_tensor(tensor, reduceOp, dim, group)
        for tensor, dim in zip(inputs, scatter_dim, strict=True)
    ]


# These have derivatives here in any case.
all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_tensor_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
