"""An optimizer whose state is divided among processes.

Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2020, stage 1.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from tensorplug.autograd import enable_grad, no_grad
from tensorplug.core import Tensor
from tensorplug.core.ops import cat, empty
from tensorplug.optim import Optimizer

from .. import distributed_c10d as c10d
from ..algorithms.join import Join, Joinable, JoinHook

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Has each process update its part of the parameters, and then gives the others the new values.

    Each process keeps an optimizer's state for its part alone: of Adam's two numbers per parameter, two over
    the number of processes are left. Gradients have to be the same in all processes, as
    DistributedDataParallel leaves them.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        All parameters, in the same order in every process.
    optimizer_class : type
        The optimizer of the parts.
    process_group : ProcessGroup, optional
        The processes; by default all.
    parameters_as_bucket_view : bool
        Keep parameters in flat tensors, from which they are sent without a copy.
    overlap_with_ddp : bool
        Not here: steps from DistributedDataParallel's hooks.
    **defaults
        Options of the optimizer.

    Notes
    -----
    Parameters are divided as wholes, the largest first, each to the process that has least.

    Examples
    --------
    >>> optimizer = ZeroRedundancyOptimizer(  # doctest: +SKIP
    ...     model.parameters(), optimizer_class=tp.optim.Adam, lr=1e-3
    ... )
    >>> optimizer.step()  # doctest: +SKIP
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: Callable[..., Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer(overlap_with_ddp=True) is not here; call step() after backward"
            )
        self.optim: Optimizer | None = None  # made below; add_param_group looks for it
        self.process_group = c10d._get_default_group() if process_group is None else process_group
        self.world_size = c10d.get_world_size(self.process_group)
        self.rank = c10d.get_rank(self.process_group)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._constructor = optimizer_class
        self._options = defaults
        self._all_states: list[dict[str, Any]] | None = None
        super().__init__(params, defaults)
        self._make_optimizer()

    # --- who has what ---

    def _divide(self) -> list[list[list[Tensor]]]:
        """Return by process and group the parameters that it updates."""
        sizes = [0] * self.world_size
        parts: list[list[list[Tensor]]] = [
            [[] for _ in self.param_groups] for _ in range(self.world_size)
        ]
        for number, group in enumerate(self.param_groups):
            for parameter in sorted(group["params"], key=lambda p: -p.numel()):
                rank = sizes.index(min(sizes))
                parts[rank][number].append(parameter)
                sizes[rank] += parameter.numel() if parameter.requires_grad else 0
        return parts

    def _make_optimizer(self) -> None:
        self._parts = self._divide()
        groups = [
            {**{name: value for name, value in group.items() if name != "params"}, "params": mine}
            for group, mine in zip(self.param_groups, self._parts[self.rank], strict=True)
        ]
        for group in groups:
            group.pop("param_names", None)
        self.optim = self._constructor(groups, **self._options)
        for group, local in zip(self.param_groups, self.optim.param_groups, strict=True):
            for name, value in local.items():
                group.setdefault(name, value)
        self._make_buckets()

    def _make_buckets(self) -> None:
        """Put each process's parameters of a dtype into one flat tensor, or plan to."""
        self._buckets: list[tuple[int, list[Tensor], Tensor | None]] = []
        for rank, part in enumerate(self._parts):
            kinds: dict[Any, list[Tensor]] = {}
            for parameter in [p for group in part for p in group]:
                kinds.setdefault((parameter.dtype, parameter.device), []).append(parameter)
            for (dtype, device), alike in kinds.items():
                flat = None
                if self.parameters_as_bucket_view:
                    flat = empty(sum([p.numel() for p in alike]), dtype=dtype, device=device)
                    for parameter, piece in zip(alike, _pieces(flat, alike), strict=True):
                        piece.copy_(parameter.detach())
                        parameter.data = piece
                self._buckets.append((rank, alike, flat))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters; each process takes its part."""
        super().add_param_group(param_group)
        if self.optim is None:
            return
        old = self.optim.state
        self._make_optimizer()
        assert self.optim is not None
        mine = {id(p) for group in self.optim.param_groups for p in group["params"]}
        moved = [p for p in old if id(p) not in mine]
        if moved:
            raise RuntimeError(
                "add_param_group() after steps would move the state of parameters to other processes: "
                "add groups before the first step"
            )
        self.optim.state.update(old)

    # --- the step ---

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update this process's part, and take over the others'.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss anew.

        Returns
        -------
        Any
            What `closure` returned, else None.
        """
        Join.notify_join_context(self)
        assert self.optim is not None
        _copy_options(self.param_groups, self.optim.param_groups)
        if closure is not None:
            with enable_grad():
                loss = self.optim.step(closure=closure, **kwargs)
        else:
            loss = self.optim.step(**kwargs)
        _copy_options(self.optim.param_groups, self.param_groups)
        self._exchange()
        return loss

    def _exchange(self) -> None:
        """Give all processes the parameters of each."""
        works: list[Any] = []
        with no_grad():
            for rank, alike, kept in self._buckets:
                flat = kept
                if flat is None and rank == self.rank:
                    flat = cat([p.detach().reshape(-1) for p in alike])
                elif flat is None:
                    first, size = alike[0], sum([p.numel() for p in alike])
                    flat = empty(size, dtype=first.dtype, device=first.device)
                source = c10d.get_global_rank(self.process_group, rank)
                work = c10d.broadcast(flat, source, self.process_group, async_op=True)
                works.append((work, rank, alike, flat, kept))
            for work, rank, alike, flat, kept in works:
                work.wait()
                if kept is None and rank != self.rank:
                    for parameter, piece in zip(alike, _pieces(flat, alike), strict=True):
                        parameter.detach().copy_(piece)

    # --- checkpoints ---

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the state of all processes together in one, for :meth:`state_dict`; all call it.

        Parameters
        ----------
        to : int
            The rank in the group that gets it.
        """
        assert self.optim is not None
        _copy_options(self.param_groups, self.optim.param_groups)
        states: list[Any] | None = [None] * self.world_size if self.rank == to else None
        c10d.gather_object(
            self.optim.state_dict(),
            states,
            c10d.get_global_rank(self.process_group, to),
            self.process_group,
        )
        self._all_states = states

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all parameters, as one process's optimizer would.

        Raises
        ------
        RuntimeError
            Where :meth:`consolidate_state_dict` has not brought it together.
        """
        if self._all_states is None:
            raise RuntimeError(
                f"Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the "
                "global state."
            )
        result = super().state_dict()
        numbers = self._numbers()
        for part, saved in zip(self._parts, self._all_states, strict=True):
            for group, packed in zip(part, saved["param_groups"], strict=True):
                for parameter, number in zip(group, packed["params"], strict=True):
                    if number in saved["state"]:
                        result["state"][numbers[id(parameter)]] = saved["state"][number]
        result["state"] = dict(sorted(result["state"].items()))
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state of all parameters; each process keeps what belongs to its part."""
        assert self.optim is not None
        numbers = self._numbers()
        local = self.optim.state_dict()
        state: dict[Any, Any] = {}
        for group, packed in zip(self._parts[self.rank], local["param_groups"], strict=True):
            for parameter, number in zip(group, packed["params"], strict=True):
                if numbers[id(parameter)] in state_dict["state"]:
                    state[number] = deepcopy(state_dict["state"][numbers[id(parameter)]])
        super().load_state_dict({**state_dict, "state": {}})
        _copy_options(self.param_groups, self.optim.param_groups)
        local = self.optim.state_dict()
        self.optim.load_state_dict({**local, "state": state})

    def _numbers(self) -> dict[int, int]:
        parameters = [p for group in self.param_groups for p in group["params"]]
        return {id(parameter): number for number, parameter in enumerate(parameters)}

    # --- uneven inputs ---

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what takes steps along with the processes that still have inputs."""
        return _Step(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The processes that take part."""
        return self.process_group


class _Step(JoinHook):
    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self._zero = zero

    def main_hook(self) -> None:
        self._zero.step()


def _pieces(flat: Tensor, parameters: list[Tensor]) -> list[Tensor]:
    """Return the views of a flat tensor that have the parameters' shapes."""
    pieces = flat.split([p.numel() for p in parameters])
    return [piece.view(p.shape) for piece, p in zip(pieces, parameters, strict=True)]


def _copy_options(source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
    """Give groups the options of others, such as a learning rate that a scheduler has changed."""
    for options, group in zip(source, target, strict=True):
        for name, value in options.items():
            if name not in ("params", "param_names"):
                group[name] = value
