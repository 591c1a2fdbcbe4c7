"""Tensors of which each process has a part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.dispatch.overrides import disabled_torch_function_impl
from tensorplug.core.ops import cat, empty, zeros
from tensorplug.core.tensor.shapes import Size
from tensorplug.core.tensor.tensor import of_class
from tensorplug.nn import Parameter

from .. import distributed_c10d as c10d
from .placement_types import Placement, Replicate, Shard

__all__ = ["DTensor", "distribute_tensor"]


class DTensor(Tensor):
    """The part that a process has of a tensor, which is divided among those of a mesh.

    Ops and ``shape`` are those of the part: an optimizer that updates each element by itself works on it as
    it is. ``full_tensor()`` has the whole, ``full_shape`` its shape. (In torch, ops compute with the whole.)

    Attributes
    ----------
    device_mesh : DeviceMesh
        The processes.
    placements : tuple of Placement
        How the tensor lies along each dimension of the mesh.
    full_shape : Size
        The shape of the whole.

    Examples
    --------
    >>> whole = tp.arange(4.0)  # doctest: +SKIP
    >>> distribute_tensor(whole, mesh, [Shard(0)]).to_local()  # the second of two # doctest: +SKIP
    tensor([2., 3.])
    """

    __slots__ = ()
    __torch_function__: Any = staticmethod(disabled_torch_function_impl)
    device_mesh: Any
    placements: tuple[Placement, ...]
    full_shape: Size

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: Any,
        placements: Sequence[Placement],
        *,
        shape: Sequence[int] | None = None,
    ) -> DTensor:
        """Return a part as one of a divided tensor; memory is shared.

        Parameters
        ----------
        local_tensor : Tensor
            The part.
        device_mesh : DeviceMesh
            The processes.
        placements : sequence of Placement
            One for each dimension of the mesh.
        shape : sequence of int, optional
            Of the whole; by default all parts are as large as this one.
        """
        if shape is None:
            sizes = list(local_tensor.shape)
            for number, placement in enumerate(placements):
                if isinstance(placement, Shard):
                    sizes[placement.dim] *= device_mesh.size(number)
            shape = sizes
        return _made(DTensor, local_tensor, device_mesh, placements, shape)

    def like(self, local: Tensor) -> DTensor:
        """Return another part as one of a tensor divided as this one is."""
        return _made(DTensor, local, self.device_mesh, self.placements, self.full_shape)

    def to_local(self) -> Tensor:
        """Return the part as a plain tensor; memory is shared."""
        return Tensor.detach(self)

    def detach(self) -> DTensor:
        """Return the part without its graph, as one of a divided tensor: what state dicts hold."""
        return self.like(Tensor.detach(self))

    def full_tensor(self) -> Tensor:
        """Return the whole; all processes of the mesh call it."""
        whole = self.to_local()
        # The last dimension of the mesh divides what the ones before it have left.
        for number in reversed(range(len(self.placements))):
            placement = self.placements[number]
            if isinstance(placement, Shard):
                whole = _gathered(whole, placement, self._sizes(number), self.device_mesh, number)
        return whole

    def _sizes(self, number: int) -> int:
        """Return how long the divided dimension is before a dimension of the mesh divides it."""
        placement = self.placements[number]
        assert isinstance(placement, Shard)
        size: int = self.full_shape[placement.dim]
        for outer in range(number):
            earlier = self.placements[outer]
            if earlier.is_shard(placement.dim):
                _, size = placement.rows(
                    size, self.device_mesh.size(outer), self.device_mesh.get_local_rank(outer)
                )
        return size

    def extents(self) -> tuple[list[int], list[int]]:
        """Return where in the whole this part begins, and how long it is, by dimension."""
        starts, sizes = [0] * len(self.full_shape), list(self.full_shape)
        for number, placement in enumerate(self.placements):
            if isinstance(placement, Shard):
                mesh = self.device_mesh
                start, size = placement.rows(
                    sizes[placement.dim], mesh.size(number), mesh.get_local_rank(number)
                )
                starts[placement.dim] += start
                sizes[placement.dim] = size
        return starts, sizes

    def reduced_norm(self, norm: Tensor, order: float) -> Tensor:
        """Return the norm of wholes, from the norm of this process's parts of them."""
        total = norm.clone()
        for number, placement in enumerate(self.placements):
            if not isinstance(placement, Shard):
                continue
            group = self.device_mesh.get_group(number)
            if math.isinf(order):
                op = c10d.ReduceOp.MAX if order > 0 else c10d.ReduceOp.MIN
                c10d.all_reduce(total, op, group=group)
            elif order == 0:
                c10d.all_reduce(total, group=group)
            else:
                total.pow_(order)
                c10d.all_reduce(total, group=group)
                total.pow_(1.0 / order)
        return total

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a DTensor is one process's part of a tensor and cannot be pickled: save it with "
            "distributed.checkpoint.save, or the whole, full_tensor()"
        )

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        return f"DTensor(local_tensor={self.to_local()!r}, placements={self.placements})"


class ShardedParameter(DTensor, Parameter):
    """A parameter that is divided among processes."""

    __slots__ = ()


def sharded_parameter(
    local: Tensor,
    mesh: Any,
    placements: Sequence[Placement],
    shape: Sequence[int],
    requires_grad: bool,
) -> ShardedParameter:
    """Return a part of a parameter."""
    parameter: ShardedParameter = _made(ShardedParameter, local, mesh, placements, shape)
    parameter.requires_grad_(requires_grad)
    return parameter


def _made(
    kind: type, local: Tensor, mesh: Any, placements: Sequence[Placement], shape: Sequence[int]
) -> Any:
    part = of_class(local.detach(), kind)
    part.device_mesh = mesh
    part.placements = tuple(placements)
    part.full_shape = Size(shape)
    return part


def _gathered(part: Tensor, placement: Shard, size: int, mesh: Any, number: int) -> Tensor:
    """Return the whole along one dimension of the mesh."""
    parts = mesh.size(number)
    most = -(-size // parts)
    with no_grad():
        rows = part.transpose(0, placement.dim).contiguous()
        if rows.shape[0] < most:
            rest = zeros(
                most - rows.shape[0], *rows.shape[1:], dtype=part.dtype, device=part.device
            )
            rows = cat([rows, rest])
        whole = empty(parts * most, *rows.shape[1:], dtype=part.dtype, device=part.device)
        c10d.all_gather_into_tensor(whole, rows, group=mesh.get_group(number))
        return whole[:size].transpose(0, placement.dim).contiguous()


def distribute_tensor(
    tensor: Tensor,
    device_mesh: Any,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Return this process's part of a tensor that each process has.

    Parameters
    ----------
    tensor : Tensor
        The whole.
    device_mesh : DeviceMesh
        The processes.
    placements : sequence of Placement, optional
        One for each dimension of the mesh; by default all have the whole.
    src_data_rank : int or None
        The process of each group whose values count; None takes those of each.
    """
    given: Sequence[Placement] = (
        [Replicate()] * device_mesh.ndim if placements is None else placements
    )
    if len(given) != device_mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: "
            f"{len(given)}, and device_mesh.ndim: {device_mesh.ndim}."
        )
    part = tensor.detach()
    if src_data_rank is not None:
        part = part.clone()
        for number in range(device_mesh.ndim):
            group = device_mesh.get_group(number)
            c10d.broadcast(part, c10d.get_global_rank(group, src_data_rank), group)
    for number, placement in enumerate(given):
        if isinstance(placement, Shard):
            start, size = placement.rows(
                part.shape[placement.dim],
                device_mesh.size(number),
                device_mesh.get_local_rank(number),
            )
            part = part.narrow(placement.dim, start, size)
    return DTensor.from_local(part.clone(), device_mesh, given, shape=tensor.shape)
