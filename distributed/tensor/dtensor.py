"""Tensors of which each process has a part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorplug.autograd import is_grad_enabled
from tensorplug.autograd.function import Function
from tensorplug.core import DType, Tensor
from tensorplug.core.dispatch.overrides import disabled_torch_function_impl
from tensorplug.core.tensor.copies import of_class
from tensorplug.core.tensor.shapes import Size
from tensorplug.nn import Parameter

from .. import distributed_c10d as c10d
from .exchanges import redistributed
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
        """Return a part as one of a divided tensor; memory is shared, and it has a derivative.

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
        placements = _checked(placements, device_mesh, local_tensor.ndim)
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

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """Return the part as a plain tensor; memory is shared, and gradients come back as parts.

        Parameters
        ----------
        grad_placements : sequence of Placement, optional
            Without effect: the gradient of a part is a part, of a whole it is taken for the same in all
            processes.
        """
        if self.requires_grad and is_grad_enabled():
            return self.view_as(self)  # ops of a part give plain tensors
        return Tensor.detach(self)

    def detach(self) -> DTensor:
        """Return the part without its graph, as one of a divided tensor: what state dicts hold."""
        return self.like(Tensor.detach(self))

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """Return the whole; all processes of the mesh call it. `grad_placements` as in :meth:`to_local`."""
        whole = self.redistribute(placements=[Replicate()] * len(self.placements))
        return whole.to_local(grad_placements=grad_placements)

    def redistribute(
        self,
        device_mesh: Any = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: DType | None = None,
        backward_dtype: DType | None = None,
    ) -> DTensor:
        """Return the tensor divided in another way; all processes of the mesh call it.

        It has a derivative: the gradient is divided as this tensor is.

        Parameters
        ----------
        device_mesh : DeviceMesh, optional
            That of the tensor.
        placements : sequence of Placement
            One for each dimension of the mesh. Summands stay where they are asked for as they are; nothing is
            divided into summands.
        async_op
            Is accepted for torch's sake.
        forward_dtype, backward_dtype : DType, optional
            In which the result is, and its gradient on the way back.

        Raises
        ------
        NotImplementedError
            If another mesh is asked for.
        RuntimeError
            If something is to become summands.

        Examples
        --------
        >>> rows = distribute_tensor(whole, mesh, [Shard(0)])  # doctest: +SKIP
        >>> columns = rows.redistribute(placements=[Shard(1)])  # doctest: +SKIP
        """
        mesh, given = self.device_mesh, list(self.placements)
        if device_mesh is not None and device_mesh is not mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        wanted = _checked(placements, mesh, len(self.full_shape))
        if any([to.is_partial() and to != now for now, to in zip(given, wanted, strict=True)]):
            raise RuntimeError(
                f"Can not redistribute from {tuple(given)} to {wanted}, redistributing to Partial is for "
                "internal use only!"
            )
        local = self.to_local()
        if forward_dtype is not None or backward_dtype is not None:
            local = _Converted.apply(local, forward_dtype or local.dtype, backward_dtype)

        def change(number: int, placement: Placement) -> Tensor:
            now = given[number]
            size = self._before(number, given, now.dim) if isinstance(now, Shard) else None
            given[number] = placement
            return redistributed(local, now, placement, mesh.get_group(number), size)

        # Later dimensions of the mesh divide what earlier ones have left: where one of these changes, those
        # that divide the same rows are undone first, the last one first.
        for number in reversed(range(len(given))):
            now = given[number]
            if isinstance(now, Shard) and any(
                [
                    given[i] != wanted[i]
                    and (given[i].is_shard(now.dim) or wanted[i].is_shard(now.dim))
                    for i in range(number)
                ]
            ):
                local = change(number, Replicate())
        for number, placement in enumerate(wanted):
            if given[number] != placement:
                local = change(number, placement)
        return _made(DTensor, local, mesh, wanted, self.full_shape)

    def _before(self, number: int, placements: Sequence[Placement], dim: int) -> int:
        """Return how long a dimension is before a dimension of the mesh divides it."""
        size: int = self.full_shape[dim]
        for outer in range(number):
            if placements[outer].is_shard(dim):
                mesh = self.device_mesh
                _, size = Shard(dim).rows(size, mesh.size(outer), mesh.get_local_rank(outer))
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
    parameter: ShardedParameter = _made(ShardedParameter, local.detach(), mesh, placements, shape)
    parameter.requires_grad_(requires_grad)
    return parameter


def _made(
    kind: type, local: Tensor, mesh: Any, placements: Sequence[Placement], shape: Sequence[int]
) -> Any:
    tracked = local.requires_grad and is_grad_enabled()
    part = of_class(local.view_as(local) if tracked else local.detach(), kind)
    part.device_mesh = mesh
    part.placements = tuple(placements)
    part.full_shape = Size(shape)
    return part


def _checked(placements: Sequence[Placement], mesh: Any, ndim: int) -> tuple[Placement, ...]:
    """Return placements with dimensions counted from the front; there is one for each of the mesh."""
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: "
            f"{len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )
    return tuple([placement.of(ndim) for placement in placements])


class _Converted(Function):
    """A tensor in one dtype, its gradient on the way back in another."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, dtype: DType, backward: DType | None) -> Tensor:
        ctx.dtype, ctx.backward = input.dtype, backward
        return input.to(dtype, copy=True)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient.to(ctx.backward or ctx.dtype).to(ctx.dtype), None, None


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
    given = _checked(
        [Replicate()] * device_mesh.ndim if placements is None else placements,
        device_mesh,
        tensor.ndim,
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
    made = DTensor.from_local(part.clone(), device_mesh, given, shape=tensor.shape)
    made.requires_grad_(tensor.requires_grad)
    return made
