"""State dicts of divided modules and optimizers, by the names of parameters.

``torch.distributed.checkpoint.state_dict``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.ops import zeros_like
from tensorplug.nn import Module
from tensorplug.optim import Optimizer

from .. import distributed_c10d as c10d
from ..data_parallel import DistributedDataParallel
from ..tensor import DTensor, distribute_tensor

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]


@dataclass
class StateDictOptions:
    """How state dicts are made and taken over.

    Parameters
    ----------
    full_state_dict : bool
        Whole tensors in place of parts.
    cpu_offload : bool
        On the CPU; with `full_state_dict` in the first process alone, the others get an empty dict.
    ignore_frozen_params : bool
        Leave out parameters that do not require grad.
    strict : bool
        Whether a module's names have to match.
    broadcast_from_rank0 : bool
        With `full_state_dict`: take the first process's values over; the others give none.

    Examples
    --------
    >>> StateDictOptions(full_state_dict=True).strict
    True
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    strict: bool = True
    broadcast_from_rank0: bool = False


def _plain(model: Module) -> Module:
    inner: Any = model.module if isinstance(model, DistributedDataParallel) else model
    return inner


def _shown(tree: Any, options: StateDictOptions) -> Any:
    """Return a state with whole tensors, or on the CPU, as the options ask."""
    if isinstance(tree, dict):
        return {key: _shown(value, options) for key, value in tree.items()}
    if not isinstance(tree, Tensor):
        return tree
    if options.full_state_dict and isinstance(tree, DTensor):
        tree = tree.full_tensor()
    return tree.to("cpu") if options.cpu_offload else tree


def _for_all(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    shown: dict[str, Any] = _shown(state, options)
    first = not c10d.is_initialized() or c10d.get_rank() == 0
    return shown if first or not (options.full_state_dict and options.cpu_offload) else {}


def get_model_state_dict(
    model: Module, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Return a module's state dict under the names that it has in one process; all processes call it.

    Parameters
    ----------
    model : Module
        Divided, in DistributedDataParallel, or neither.
    submodules : set of Module, optional
        Not here.
    options : StateDictOptions, optional
        Parts or wholes.
    """
    if submodules is not None:
        raise NotImplementedError("get_model_state_dict(submodules=…) is not here")
    options = options or StateDictOptions()
    inner = _plain(model)
    state = dict(inner.state_dict())
    if options.ignore_frozen_params:
        for name, parameter in inner.named_parameters():
            if not parameter.requires_grad:
                state.pop(name, None)
    return _for_all(state, options)


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Take over a state dict of parts, or of wholes with ``full_state_dict``; all processes call it.

    Returns
    -------
    NamedTuple
        Missing and unexpected names, as ``load_state_dict``.
    """
    options = options or StateDictOptions()
    inner = _plain(model)
    if options.full_state_dict:
        model_state_dict = _divided(dict(inner.state_dict()), model_state_dict, options)
    return inner.load_state_dict(model_state_dict, strict=options.strict)


def _divided(own: Any, given: Any, options: StateDictOptions) -> Any:
    """Return given wholes divided as one's own tensors are."""
    if options.broadcast_from_rank0:
        everything = [given]
        c10d.broadcast_object_list(everything, 0)
        given = everything[0]
    return _alike(own, given)


def _alike(own: Any, given: Any) -> Any:
    if isinstance(given, dict) and isinstance(own, dict):
        return {key: _alike(own.get(key), value) for key, value in given.items()}
    if isinstance(own, DTensor) and isinstance(given, Tensor) and not isinstance(given, DTensor):
        whole = given.to(device=own.device, dtype=own.dtype)
        return distribute_tensor(whole, own.device_mesh, own.placements, src_data_rank=None)
    return given


# --- optimizers -------------------------------------------------------------------------------


def _as_list(optimizers: Optimizer | Iterable[Optimizer]) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def _names(model: Module) -> dict[int, str]:
    return {id(parameter): name for name, parameter in _plain(model).named_parameters()}


def initialize_state(optimizer: Optimizer) -> None:
    """Have an optimizer remember what it will: by a step that changes nothing, if it has made none."""
    if optimizer.state:
        return
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if any([parameter.grad is not None for parameter in parameters]):
        return
    rates = [group.get("lr") for group in optimizer.param_groups]
    with no_grad():
        kept = [parameter.detach().clone() for parameter in parameters]
        for parameter in parameters:
            if parameter.requires_grad:
                parameter.grad = zeros_like(parameter)
        for group in optimizer.param_groups:
            if "lr" in group:
                group["lr"] = 0.0
        optimizer.step()
        for parameter, before in zip(parameters, kept, strict=True):
            parameter.copy_(before)
            parameter.grad = None
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            if "lr" in group:
                group["lr"] = rate


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: Any = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """Return the state of optimizers by the names of the module's parameters; all processes call it.

    An optimizer that has made no step gets the state that it will have, so that a checkpoint can be read into
    what is returned.

    Parameters
    ----------
    model : Module
        Whose parameters they update.
    optimizers : Optimizer or iterable of Optimizer
        Of parameters that no two of them share.
    submodules : set of Module, optional
        Not here.
    options : StateDictOptions, optional
        Parts or wholes.
    """
    if submodules is not None:
        raise NotImplementedError("get_optimizer_state_dict(submodules=…) is not here")
    names = _names(model)
    result: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _as_list(optimizers):
        initialize_state(optimizer)
        packed = optimizer.state_dict()
        for group, saved in zip(optimizer.param_groups, packed["param_groups"], strict=True):
            named = [names[id(parameter)] for parameter in group["params"]]
            for name, number in zip(named, saved["params"], strict=True):
                if number in packed["state"]:
                    result["state"][name] = packed["state"][number]
            result["param_groups"].append({**saved, "params": named})
    return _for_all(result, options or StateDictOptions())


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Take over what :func:`get_optimizer_state_dict` returned; all processes call it."""
    options = options or StateDictOptions()
    if options.full_state_dict:
        own = get_optimizer_state_dict(model, optimizers)
        optim_state_dict = _divided(own, optim_state_dict, options)
    names = _names(model)
    by_names = {tuple(group["params"]): group for group in optim_state_dict["param_groups"]}
    for optimizer in _as_list(optimizers):
        packed = optimizer.state_dict()
        state: dict[Any, Any] = {}
        groups: list[dict[str, Any]] = []
        for group, saved in zip(optimizer.param_groups, packed["param_groups"], strict=True):
            named = [names[id(parameter)] for parameter in group["params"]]
            for name, number in zip(named, saved["params"], strict=True):
                if name in optim_state_dict["state"]:
                    state[number] = optim_state_dict["state"][name]
            groups.append({**saved, **by_names.get(tuple(named), {}), "params": saved["params"]})
        optimizer.load_state_dict({"state": state, "param_groups": groups})


def get_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: Any = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the state dicts of a module and its optimizers; all processes call it.

    Examples
    --------
    >>> weights, moments = get_state_dict(model, optimizer)  # doctest: +SKIP
    >>> save({"model": weights, "optimizer": moments}, checkpoint_id="step-1000")  # doctest: +SKIP
    """
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Take over what :func:`get_state_dict` returned; all processes call it."""
    found = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found
