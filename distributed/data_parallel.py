"""A module that several processes train together, each on its part of the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from tensorplug.autograd import is_grad_enabled, no_grad
from tensorplug.autograd.transforms.pytree import tree_leaves
from tensorplug.core import Tensor
from tensorplug.core.contexts import Block, Steps
from tensorplug.core.device.device import Device
from tensorplug.core.ops import cat
from tensorplug.core.tensor.creation import tensor
from tensorplug.nn import Module

from . import distributed_c10d as c10d
from .algorithms.join import Join, Joinable, JoinHook
from .reducer import BUCKET_MIB, FIRST_BUCKET_BYTES, MIB, GradBucket, Reducer

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module, Joinable):
    """Trains a module in several processes; after backward all have the mean of their gradients.

    Each process has a copy of the module and its part of the data. Gradients are reduced in buckets while
    backward still runs, so that every process makes the same step. The module is called as it is; its state
    dict has it under ``module``.

    Parameters
    ----------
    module : Module
        What is called. Its parameters and buffers become those of the first process.
    device_ids : sequence of int or Device, optional
        The one device that the module is on. A process has one; it moves no inputs.
    output_device : int or Device, optional
        Not used; outputs stay where the module has them.
    dim : int
        Not used.
    broadcast_buffers : bool
        Give all processes the first one's buffers at the start of each forward pass.
    init_sync : bool
        Compare the parameters' shapes and broadcast their values, to begin with.
    process_group : ProcessGroup, optional
        The processes; by default all.
    bucket_cap_mb : int, optional
        The size of a bucket in MiB, 25 by default.
    find_unused_parameters : bool
        Look in each forward pass for parameters from which no output depends. Without, it is an error if one
        gets no gradient.
    gradient_as_bucket_view : bool
        Let gradients be views of the buckets, which saves the memory of one set of gradients.
    static_graph : bool
        Promise that every iteration uses the same parameters, equally often. Lets parameters be unused, or
        used in reentrant checkpoints, without a search.
    device_mesh : DeviceMesh, optional
        One of a single dimension, in place of `process_group`.

    Raises
    ------
    RuntimeError
        If no parameter requires grad, the processes' modules differ, or, in forward, a parameter got no
        gradient in the last backward pass.
    ValueError
        If `device_ids` names several devices, or the parameters are on several types of device.

    Notes
    -----
    Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", 2020.

    Examples
    --------
    Started with ``mpiexec -n 2 python train.py``:

    >>> tp.distributed.init_process_group("mpi")  # doctest: +SKIP
    >>> model = tp.nn.parallel.DistributedDataParallel(tp.nn.Linear(2, 1))  # doctest: +SKIP
    >>> model(batch).sum().backward()  # doctest: +SKIP
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[int | Device] | None = None,
        output_device: int | Device | None = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,  # torch ignores it, too
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
    ) -> None:
        super().__init__()
        for name, value in (
            ("delay_all_reduce_named_params", delay_all_reduce_named_params),
            ("param_to_hook_all_reduce", param_to_hook_all_reduce),
            ("mixed_precision", mixed_precision),
            ("skip_all_reduce_unused_params", skip_all_reduce_unused_params),
        ):
            if value:
                raise NotImplementedError(
                    f"DistributedDataParallel({name}=…) is an option of torch that is not here; amp.autocast "
                    "around forward, or fully_shard with a MixedPrecisionPolicy, computes in fewer bits"
                )
        if process_group is not None and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if device_mesh is not None:
            if device_mesh.ndim != 1:
                raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
            process_group = device_mesh.get_group(mesh_dim=0)
        ignored: set[str] = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(n, p) for n, p in module.named_parameters() if n not in ignored]
        trained = [(n, p) for n, p in named if p.requires_grad]
        if not trained:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that "
                "requires a gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(
                "device_ids can only be None or contain a single element: start a process per device, "
                f"got {list(device_ids)}"
            )
        types = {p.device.type for _, p in named}
        if len(types) > 1:
            raise ValueError(
                f"DistributedDataParallel's input module must be on the same type of devices, but its "
                f"parameters are on {sorted(types)}."
            )
        self.process_group = c10d._get_default_group() if process_group is None else process_group
        self.module = module
        self.dim = dim
        self.device = trained[0][1].device
        self.device_type = self.device.type
        self.device_ids = None if device_ids is None else list(device_ids)
        self.output_device = output_device
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.parameters_to_ignore = ignored
        self._divide_by_initial_world_size = True
        self._root = c10d.get_global_rank(self.process_group, 0)
        self.modules_buffers = [b for n, b in module.named_buffers() if n not in ignored]
        if init_sync:
            self._compare([(n, tuple(p.shape), str(p.dtype)) for n, p in named])
            self._broadcast([p for _, p in named] + self.modules_buffers, self._root)
        self._bucket_mib = bucket_cap_mb
        self._make_reducer()

    def _make_reducer(self) -> None:
        size = int((BUCKET_MIB if self._bucket_mib is None else self._bucket_mib) * MIB)
        trained = [
            (name, parameter)
            for name, parameter in self.module.named_parameters()
            if parameter.requires_grad and name not in self.parameters_to_ignore
        ]
        self.reducer = Reducer(
            [parameter for _, parameter in trained],
            self.process_group,
            bucket_bytes=size,
            first_bucket_bytes=min(FIRST_BUCKET_BYTES, size),
            find_unused=self.find_unused_parameters,
            static_graph=self.static_graph,
            gradient_as_bucket_view=self.gradient_as_bucket_view,
            names=[name for name, _ in trained],
        )

    def _compare(self, layout: list[Any]) -> None:
        """Raise RuntimeError in all processes if their modules differ."""
        layouts: list[Any] = [None] * c10d.get_world_size(self.process_group)
        c10d.all_gather_object(layouts, layout, self.process_group)
        for rank, other in enumerate(layouts):
            if other == layouts[0]:
                continue
            if len(other) != len(layouts[0]):
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank 0 has {len(layouts[0])} params, "
                    f"while rank {rank} has inconsistent {len(other)} params."
                )
            mine, theirs = next(
                pair for pair in zip(layouts[0], other, strict=True) if pair[0] != pair[1]
            )
            raise RuntimeError(
                f"DDP expects same model across all ranks, but parameter {mine} of rank 0 is {theirs} on "
                f"rank {rank}."
            )

    def _broadcast(self, tensors: Iterable[Tensor], source: int) -> None:
        """Give all processes one's values, in one collective per dtype."""
        kinds: dict[Any, list[Tensor]] = {}
        for value in tensors:
            kinds.setdefault((value.dtype, value.device), []).append(value.detach())
        with no_grad():
            for alike in kinds.values():
                flat = cat([value.reshape(-1) for value in alike])
                c10d.broadcast(flat, source, self.process_group)
                pieces = flat.split([value.numel() for value in alike])
                for value, piece in zip(alike, pieces, strict=True):
                    value.copy_(piece.view(value.shape))

    # --- forward ---

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module; expect a backward pass from what it returns."""
        synchronized = is_grad_enabled() and self.require_backward_grad_sync
        active = Join.notify_join_context(self)
        divisor = None
        if active is not None:
            active.wait()
            if not self._divide_by_initial_world_size:
                divisor = float(active.result()[0].item())
        if synchronized:
            self.reducer.rebuild_buckets()
        if self._buffers_are_due():
            self._sync_buffers()
        if self._join_config.enable:
            self._any_synchronizes(synchronized)
        output = self.module(*inputs, **kwargs)
        if synchronized:
            self.require_forward_param_sync = True
            searched = self.find_unused_parameters and not self.static_graph
            outputs = [o for o in tree_leaves(output) if isinstance(o, Tensor)] if searched else []
            self.reducer.prepare_for_backward(outputs, divisor)
        else:
            self.require_forward_param_sync = False
            if is_grad_enabled():
                # The next backward pass is not the one that an earlier call announced.
                self.reducer.expect_nothing()
        return output

    def _buffers_are_due(self) -> bool:
        return (
            self.require_forward_param_sync
            and self.broadcast_buffers
            and bool(self.modules_buffers)
        )

    def _sync_buffers(self) -> None:
        """Give all processes the first one's buffers, or those of the last that still has inputs."""
        source = self._root
        if self._join_config.enable:
            source = self._last_active(True)
        self._broadcast(self.modules_buffers, source)

    def _last_active(self, is_active: bool) -> int:
        """Return the highest rank of those for which `is_active`."""
        mine = c10d.get_rank() if is_active else -1
        rank = tensor([mine], device=self.device)
        c10d.all_reduce(rank, c10d.ReduceOp.MAX, group=self.process_group)
        return int(rank.item())

    def _any_synchronizes(self, synchronized: bool) -> bool:
        """Return whether the processes that go on will reduce gradients."""
        flag = tensor([int(synchronized)], device=self.device)
        c10d.all_reduce(flag, group=self.process_group)
        return bool(flag.item())

    def no_sync(self) -> Block:
        """Accumulate gradients in each process by itself within a ``with`` block.

        The first backward pass after it reduces the sums; forward belongs into the block, too.

        Examples
        --------
        >>> with model.no_sync():  # doctest: +SKIP
        ...     model(first).sum().backward()
        >>> model(second).sum().backward()  # doctest: +SKIP
        """

        def steps() -> tuple[Steps, Steps]:
            own, name = vars(self), "require_backward_grad_sync"
            return [partial(own.update, {name: False})], [partial(own.update, {name: own[name]})]

        return Block(steps)

    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        """Let a hook reduce the buckets of gradients.

        Parameters
        ----------
        state : Any
            Given to the hook at each call, for example the process group.
        hook : callable
            ``hook(state, bucket)`` returns a future of the reduced flat tensor; it divides itself. See
            ``distributed.algorithms.ddp_comm_hooks``.

        Raises
        ------
        TypeError
            If `hook` cannot be called.
        RuntimeError
            If there is one already.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        self.reducer.register_comm_hook(state, hook)

    # --- uneven inputs ---

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:
        """Let processes have unequally many batches within a ``with`` block.

        Parameters
        ----------
        divide_by_initial_world_size : bool
            Divide sums of gradients by the number of all processes, rather than of those that still have
            inputs.
        enable, throw_on_early_termination
            See :class:`tensorplug.distributed.algorithms.Join`.
        """
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what answers the collectives of an iteration; see :meth:`join`."""
        self._divide_by_initial_world_size = kwargs.get("divide_by_initial_world_size", True)
        return _Answer(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The processes that take part."""
        return self.process_group

    # --- copies ---

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["process_group"], state["reducer"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = c10d._get_default_group()
        self._make_reducer()

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(
        module: Module, params_and_buffers_to_ignore: Iterable[str]
    ) -> None:
        module._ddp_params_and_buffers_to_ignore = list(params_and_buffers_to_ignore)


class _Answer(JoinHook):
    """Answers the collectives of the iterations of a module in other processes."""

    def __init__(self, ddp: DistributedDataParallel) -> None:
        self._ddp = ddp

    def main_hook(self) -> None:
        ddp = self._ddp
        ddp.reducer.rebuild_buckets()
        if ddp._buffers_are_due():
            ddp._broadcast(ddp.modules_buffers, ddp._last_active(False))
        synchronized = ddp._any_synchronizes(False)
        ddp.require_forward_param_sync = synchronized
        if synchronized:
            ddp.reducer.answer_backward()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Take over the module of a process that ended last."""
        ddp = self._ddp
        source = ddp._last_active(is_last_joiner)
        ddp._broadcast([*ddp.module.parameters(), *ddp.modules_buffers], source)
