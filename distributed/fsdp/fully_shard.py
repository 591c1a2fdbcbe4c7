"""``fully_shard``: parameters, gradients and optimizer states divided among processes.

Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2020, stage 3;
Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel", 2023.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from tensorplug.autograd import Variable, is_grad_enabled
from tensorplug.autograd.engine.backward_callbacks import running
from tensorplug.autograd.transforms.pytree import tree_leaves, tree_map
from tensorplug.core import Tensor
from tensorplug.nn import Module, Parameter

from .. import distributed_c10d as c10d
from ..device_mesh import init_device_mesh
from ..tensor import Shard
from .parameters import DividedParameter, ParameterGroup, is_divided
from .policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method"]


class _Root:
    """What the divided modules of one model share: the order of their use, and the end of backward."""

    def __init__(self) -> None:
        self.order: list[_State] = []  # as forward came by
        self.in_backward = False
        self.reducing: _State | None = None
        self.is_last_backward = True

    def begin_backward(self) -> None:
        if self.in_backward:
            return
        self.in_backward = True
        for state in self.order:
            state.group.begin_backward()
        Variable._execution_engine.queue_callback(self.end_backward)

    def reduce(self, state: _State) -> None:
        """Send off a group's gradients, and wait for those of the one before."""
        state.reduced = True
        state.group.start_reducing()
        if state.group.reshards_after_backward and state.group.is_trained:
            state.group.reshard()
        before, self.reducing = self.reducing, state
        if before is not None:
            before.group.finish_reducing()

    def end_backward(self) -> None:
        """Reduce what not all parameters had a gradient of, and wait."""
        self.in_backward = False
        for state in reversed(self.order):
            if not state.reduced:
                self.reduce(state)
            if state.group.reshards_after_backward:
                state.group.reshard()
            state.reduced = False
        if self.reducing is not None:
            self.reducing.group.finish_reducing()
            self.reducing = None
        if self.is_last_backward:
            self.order = []


class _State:
    """What ``fully_shard`` knows of one module."""

    def __init__(
        self,
        modules: list[Module],
        group: ParameterGroup,
        reshard_after_forward: bool | None,
        policy: MixedPrecisionPolicy,
    ) -> None:
        self.modules = [weakref.ref(module) for module in modules]
        self.group = group
        self.reshard_after_forward = reshard_after_forward
        self.policy = policy
        self.root: _Root | None = None
        self.is_root = False
        self.reduced = False
        self.prefetch_forward: list[_State] | None = None
        self.prefetch_backward: list[_State] | None = None
        this: weakref.ref[_State] = weakref.ref(self)
        group.on_gradients = lambda: _all_arrived(this)

    def all_states(self) -> list[_State]:
        """Return those of the model below this one's module, its own included."""
        module = self.modules[0]()
        return [] if module is None else states_of(module)

    def prepare(self) -> _Root:
        """Return what the model shares: the outermost module that is called first is its root."""
        if self.root is None:
            self.root = _Root()
            self.is_root = True
            for state in self.all_states():
                if state.root is None or state is self:
                    state.root = self.root
        return self.root

    # --- forward ---

    def before_forward(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        root = self.prepare()
        if running.targets is None:
            root.in_backward = False  # the last pass may have broken off
        self.group.unshard()
        for state in self.prefetch_forward or ():
            state.group.start_unshard()
        dtype = self.policy.param_dtype
        if dtype is not None and self.policy.cast_forward_inputs:
            args, kwargs = _cast((args, kwargs), dtype)
        return args, kwargs

    def after_forward(self, output: Any) -> Any:
        root = self.prepare()
        if is_grad_enabled() and not root.in_backward:  # else a checkpoint computes anew
            if self in root.order:
                root.order.remove(self)
            root.order.append(self)
        if self._reshards_after_forward() and not root.in_backward:
            self.group.reshard()
        if is_grad_enabled():
            this: weakref.ref[_State] = weakref.ref(self)
            for value in tree_leaves(output):
                if isinstance(value, Tensor) and value.requires_grad:
                    value.register_hook(lambda _: _before_backward(this))
        if self.policy.output_dtype is not None:
            output = _cast(output, self.policy.output_dtype)
        return output

    def _reshards_after_forward(self) -> bool:
        if self.reshard_after_forward is None:
            return not self.is_root
        return self.reshard_after_forward

    # --- backward ---

    def before_backward(self) -> None:
        root = self.prepare()
        root.begin_backward()
        self.group.unshard()
        if self.prefetch_backward is not None:
            for state in self.prefetch_backward:
                state.group.start_unshard()
        elif self in root.order:
            position = root.order.index(self)
            if position and not root.order[position - 1].reduced:
                root.order[position - 1].group.start_unshard()


def _before_backward(state: weakref.ref[_State]) -> None:
    found = state()
    if found is not None:
        found.before_backward()


def _all_arrived(state: weakref.ref[_State]) -> None:
    found = state()
    if found is not None and found.root is not None:
        found.root.reduce(found)


def _cast(tree: Any, dtype: Any) -> Any:
    def convert(value: Any) -> Any:
        if isinstance(value, Tensor) and value.is_floating_point():
            return value.to(dtype)
        return value

    return tree_map(convert, tree)


def state_of(module: Module) -> _State | None:
    """Return what is known of a divided module; None of others."""
    return module.__dict__.get("_fsdp_state")


def states_of(module: Module) -> list[_State]:
    """Return the states of the divided modules in a module, from the outermost on."""
    found = [state_of(child) for child in module.modules()]
    return list(dict.fromkeys([state for state in found if state is not None]))


class UnshardHandle:
    """Parameters that are being gathered; see :meth:`FSDPModule.unshard`."""

    def __init__(self, state: _State | None) -> None:
        self._state = state

    def wait(self) -> None:
        """Wait until the module has them."""
        if self._state is not None:
            self._state.group.unshard()
            self._state = None


class FSDPModule(Module):
    """What :func:`fully_shard` adds to a module."""

    def _state(self) -> _State:
        state: _State = self._fsdp_state
        return state

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters of this module, not of those in it that are divided themselves.

        Parameters
        ----------
        async_op : bool
            Return a handle, on which to wait.
        """
        state = self._state()
        if async_op:
            state.group.start_unshard()
            return UnshardHandle(state)
        state.group.unshard()
        return None

    def reshard(self) -> None:
        """Give the gathered parameters up."""
        self._state().group.reshard()

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Set whether backward reduces gradients; without, each process accumulates its own whole ones."""
        for state in self._of(recurse):
            state.group.reduces = requires_gradient_sync

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Set whether the next backward pass is the last one of what forward recorded."""
        self._state().prepare().is_last_backward = is_last_backward

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Set whether forward gives the parameters up."""
        for state in self._of(recurse):
            state.reshard_after_forward = reshard_after_forward

    def set_reshard_after_backward(
        self, reshard_after_backward: bool, *, recurse: bool = True
    ) -> None:
        """Set whether backward gives the parameters up; keep them while gradients are accumulated."""
        for state in self._of(recurse):
            state.group.reshards_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Have forward of this module begin to gather the parameters of others."""
        self._state().prefetch_forward = [module._state() for module in modules]

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Have backward of this module begin to gather those of others; by default of the one before."""
        self._state().prefetch_backward = [module._state() for module in modules]

    def _of(self, recurse: bool) -> list[_State]:
        return states_of(self) if recurse else [self._state()]


def fully_shard(
    module: Module | list[Module],
    *,
    mesh: Any = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Parameter], Shard | None] | None = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: Iterable[Parameter] | None = None,
) -> Any:
    """Divide a module's parameters among processes; forward and backward gather them as they are needed.

    Each process keeps a part of each parameter, of its gradient, and so of the optimizer's state. Parameters
    of modules in it that were divided before are left to them: call it for blocks first, then for the model.
    What is gathered is given up after forward, and gathered again for backward; while a block's backward
    runs, the parameters of the one before it are on their way.

    Parameters
    ----------
    module : Module or list of Module
        What to divide, in place; its class gets the methods of :class:`FSDPModule`. Modules of a list are
        gathered together.
    mesh : DeviceMesh, optional
        The processes, by default all. Of two dimensions the second divides and the first replicates.
    reshard_after_forward : bool, optional
        Whether forward gives parameters up; by default in all but the outermost module.
    shard_placement_fn : callable, optional
        Returns for a parameter the ``Shard`` by which it is divided, or None for its first dimension.
    mp_policy : MixedPrecisionPolicy, optional
        The dtypes of computation and communication.
    offload_policy : OffloadPolicy, optional
        Parts are kept where the parameters are.
    ignored_params : set of Parameter, optional
        Those that stay whole in each process; their gradients are not reduced.

    Returns
    -------
    Module or list of Module
        What was given.

    Raises
    ------
    ValueError
        If a module was divided already, or is a list or dict of modules, which nobody calls.

    Examples
    --------
    >>> for block in model.blocks:  # doctest: +SKIP
    ...     fully_shard(block)
    >>> fully_shard(model)  # doctest: +SKIP
    >>> optimizer = tp.optim.Adam(model.parameters())  # after it: of the parts # doctest: +SKIP
    """
    modules = module if isinstance(module, list) else [module]
    for each in modules:
        if state_of(each) is not None:
            raise ValueError(f"fully_shard was called on a module already: {type(each).__name__}")
        if type(each).forward is Module.forward:
            raise ValueError(
                f"fully_shard does not support containers that do not implement forward: {each}"
            )
    policy = mp_policy or MixedPrecisionPolicy()
    ignored = set(map(id, ignored_params or ()))
    managed = _managed(modules, ignored)
    if mesh is None:
        first = next(iter(managed.values()), None)
        kind = "cpu" if first is None else first[0].device.type
        mesh = init_device_mesh(kind, (c10d.get_world_size(),))
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    if isinstance(offload_policy, CPUOffloadPolicy) and any(
        [parameter.device.type != "cpu" for parameter, _, _ in managed.values()]
    ):
        raise NotImplementedError("CPUOffloadPolicy is here for modules on the CPU only")
    divided = []
    for parameter, name, owners in managed.values():
        shard = None if shard_placement_fn is None else shard_placement_fn(parameter)
        if not parameter.ndim:
            raise ValueError(
                f"fully_shard doesn't support scalar parameters. Change {name} to a 1D tensor with numel "
                "equal to 1."
            )
        divided.append(DividedParameter(parameter, name, owners, mesh, shard or Shard(0), policy))
    group = ParameterGroup(divided, type(modules[0]).__name__)
    reshard = None if reshard_after_forward is None else bool(reshard_after_forward)
    state = _State(modules, group, reshard, policy)
    for each in modules:
        _attach(each, state, divided)
    return module


def _managed(
    modules: Sequence[Module], ignored: set[int]
) -> dict[int, tuple[Parameter, str, list[tuple[Module, str]]]]:
    """Return the parameters that no module below has divided, each with all places where it is."""
    found: dict[int, tuple[Parameter, str, list[tuple[Module, str]]]] = {}

    def visit(module: Module, prefix: str) -> None:
        for name, parameter in module._parameters.items():
            if parameter is None or id(parameter) in ignored or is_divided(parameter):
                continue
            entry = found.setdefault(id(parameter), (parameter, prefix + name, []))
            entry[2].append((module, name))
        for name, child in module._modules.items():
            if child is not None and state_of(child) is None:
                visit(child, f"{prefix}{name}.")

    for module in modules:
        visit(module, "")
    return found


def _attach(module: Module, state: _State, divided: list[DividedParameter]) -> None:
    """Give a module the hooks and the methods of a divided one."""
    module._fsdp_state = state
    cls = type(module)
    module.__class__ = _class_of(cls)
    module.register_forward_pre_hook(
        lambda _, args, kwargs: state.before_forward(args, kwargs), prepend=True, with_kwargs=True
    )
    module.register_forward_hook(lambda _, __, output: state.after_forward(output))
    # State dicts hold parts.
    module.register_state_dict_pre_hook(lambda *_: state.group.reshard())
    module.register_load_state_dict_pre_hook(lambda *_: state.group.reshard())


_classes: dict[type[Module], type[Module]] = {}


def _class_of(cls: type[Module]) -> type[Module]:
    if cls not in _classes:
        made = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {"__module__": cls.__module__})
        _classes[cls] = cast(type[Module], made)
    return _classes[cls]


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Have a method gather and give up parameters as forward does.

    Parameters
    ----------
    module : Module
        A divided module; of others nothing is changed.
    method_name : str
        The method, for example ``"generate"``.
    """
    state = state_of(module)
    if state is None:
        return
    method = getattr(module, method_name)

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = state.before_forward(args, kwargs)
        return state.after_forward(method(*args, **kwargs))

    setattr(module, method_name, wrapped)
