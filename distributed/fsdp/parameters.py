"""The parameters of one divided module: gathered before they are used, given up afterwards."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.core import DType, Tensor
from tensorplug.core.device.dtypes import bfloat16, float16
from tensorplug.core.ops import empty
from tensorplug.nn import Module, Parameter

from .. import distributed_c10d as c10d
from ..tensor import Placement, Replicate, Shard
from ..tensor.dtensor import DTensor, sharded_parameter
from ..tensor.exchanges import padded
from .policies import MixedPrecisionPolicy


class DividedParameter:
    """One parameter: this process's part, and the whole while it is there.

    The whole is one tensor for ever, whose memory comes and goes: what the graph saved of it in forward has
    its values again in backward.
    """

    def __init__(
        self,
        parameter: Parameter,
        name: str,
        owners: list[tuple[Module, str]],
        mesh: Any,
        shard: Shard,
        policy: MixedPrecisionPolicy,
    ) -> None:
        self.name = name
        self.owners = owners
        self.mesh = mesh
        self.shard = shard
        self.dimension = mesh.ndim - 1  # of the mesh, the one that divides
        self.group = mesh.get_group(self.dimension)
        self.size = c10d.get_world_size(self.group)
        self.rank = c10d.get_rank(self.group)
        self.shape = tuple(parameter.shape)
        self.reduce_dtype = policy.reduce_dtype
        self.gather_dtype: DType | None = (
            policy.param_dtype if parameter.is_floating_point() else None
        )
        rows = self.shape[shard.dim]
        self.most = -(-rows // self.size)
        start, count = shard.rows(rows, self.size, self.rank)
        placements: list[Placement] = [Replicate()] * self.dimension + [shard]
        with no_grad():
            part = parameter.detach().narrow(shard.dim, start, count).clone()
            self.part = sharded_parameter(
                part, mesh, placements, self.shape, parameter.requires_grad
            )
            self.whole = Parameter(
                empty(0, dtype=self.gather_dtype or parameter.dtype, device=parameter.device),
                requires_grad=parameter.requires_grad,
            )
        self.work: Any = None
        self._gathered: Tensor | None = None
        self.show_part()

    # --- what the module has ---

    def show_part(self) -> None:
        """Have the module hold this process's part."""
        for module, name in self.owners:
            module._parameters[name] = self.part

    def _show_whole(self) -> None:
        for module, name in self.owners:
            module._parameters[name] = self.whole

    # --- gathering ---

    def start_gathering(self) -> None:
        """Ask the other processes for their parts."""
        local = self.part.to_local()
        if self.gather_dtype is not None:
            local = local.to(self.gather_dtype)
        local = padded(local.movedim(self.shard.dim, 0), self.most)
        self._gathered = empty(
            self.size * self.most, *local.shape[1:], dtype=local.dtype, device=local.device
        )
        self.work = c10d.all_gather_into_tensor(
            self._gathered, local, group=self.group, async_op=True
        )

    def finish_gathering(self) -> None:
        """Have the module hold the whole."""
        assert self._gathered is not None
        self.work.wait()
        whole = self._gathered[: self.shape[self.shard.dim]]
        if self.shard.dim:
            whole = whole.movedim(0, self.shard.dim).contiguous()
        self.whole.data = whole
        self.whole.requires_grad_(self.part.requires_grad)
        self.work = self._gathered = None
        self._show_whole()

    def give_up(self) -> None:
        """Have the module hold the part, and free the whole."""
        self.whole.data = empty(0, dtype=self.whole.dtype, device=self.whole.device)
        self.show_part()

    # --- gradients ---

    def start_reducing(self, gradient: Tensor) -> Callable[[], None]:
        """Sum a gradient over the processes; what is returned waits, and adds the mean of the part."""
        dtype = self.reduce_dtype or gradient.dtype
        replicas = self.mesh.size() // self.size
        divisor = self.size * replicas
        rows = padded(gradient.to(dtype).movedim(self.shard.dim, 0), self.size * self.most)
        narrow = dtype in (float16, bfloat16)
        if narrow:
            rows = rows / divisor  # sums of 16 bits overflow sooner
        part = empty(self.most, *rows.shape[1:], dtype=dtype, device=rows.device)
        work: Any = c10d.reduce_scatter_tensor(part, rows, group=self.group, async_op=True)

        def finish() -> None:
            work.wait()
            if replicas > 1:
                c10d.all_reduce(part, group=self.mesh.get_group(0))
            if not narrow:
                part.div_(divisor)
            self._add(part)

        return finish

    def _add(self, rows: Tensor) -> None:
        """Add the mean of this process's part of the gradient to what the part has."""
        count = self.part.shape[self.shard.dim]
        local = rows[:count].movedim(0, self.shard.dim).to(self.part.dtype)
        known = self.part.grad
        if known is None:
            self.part.grad = self.part.like(local.contiguous())
        else:
            known.add_(local)


class ParameterGroup:
    """The parameters of a divided module, which are gathered and given up together."""

    def __init__(
        self,
        parameters: list[DividedParameter],
        name: str,
    ) -> None:
        self.parameters = parameters
        self.name = name
        self.is_whole = False
        self.is_gathering = False
        self.reduces = True
        #: Gives the whole up after backward.
        self.reshards_after_backward = True
        # Of frozen parameters no gradient says that they are not needed any more.
        self.is_trained = all([parameter.whole.requires_grad for parameter in parameters])
        self._arrived = 0
        self._finish: list[Callable[[], None]] = []
        #: Called when all gradients of the group have arrived.
        self.on_gradients: Callable[[], object] | None = None
        this: weakref.ref[ParameterGroup] = weakref.ref(self)
        for parameter in parameters:
            if parameter.whole.requires_grad:
                parameter.whole.register_post_accumulate_grad_hook(_counter(this))

    def start_unshard(self) -> None:
        """Begin to gather, unless it has been done."""
        if self.is_whole or self.is_gathering:
            return
        self.is_gathering = True
        with no_grad():
            for parameter in self.parameters:
                parameter.start_gathering()

    def unshard(self) -> None:
        """Gather, and wait for it."""
        if self.is_whole:
            return
        self.start_unshard()
        with no_grad():
            for parameter in self.parameters:
                parameter.finish_gathering()
        self.is_gathering, self.is_whole = False, True

    def reshard(self) -> None:
        """Give the wholes up."""
        if self.is_gathering:
            self.unshard()  # processes have answered
        if not self.is_whole:
            return
        with no_grad():
            for parameter in self.parameters:
                parameter.give_up()
        self.is_whole = False

    def progress(self) -> None:
        """Let collectives move on: some do only when they are asked."""
        for parameter in self.parameters:
            if parameter.work is not None:
                parameter.work.is_completed()

    # --- gradients ---

    def begin_backward(self) -> None:
        """Expect gradients."""
        self._arrived = 0

    def count_gradient(self) -> None:
        """Note that a parameter's gradient was accumulated."""
        self._arrived += 1
        expected = sum([p.whole.requires_grad for p in self.parameters])
        if self._arrived == expected and self.on_gradients is not None:
            self.on_gradients()

    def start_reducing(self) -> None:
        """Send off the gradients that there are."""
        if not self.reduces:
            return
        with no_grad():
            for parameter in self.parameters:
                gradient = parameter.whole.grad
                if gradient is not None:
                    parameter.whole.grad = None
                    self._finish.append(parameter.start_reducing(gradient))

    def finish_reducing(self) -> None:
        """Wait for the sums."""
        with no_grad():
            for finish in self._finish:
                finish()
        self._finish = []


def _counter(group: weakref.ref[ParameterGroup]) -> Callable[[Any], None]:
    def hook(_: Any) -> None:
        target = group()
        if target is not None:
            target.count_gradient()

    return hook


def is_divided(parameter: Any) -> bool:
    """Return whether a parameter is a part already."""
    return isinstance(parameter, DTensor)
