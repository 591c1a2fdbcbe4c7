"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from operator import getitem, setitem
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.contexts import Block, Steps
from tensorplug.core.ops.joining.joining import stack

from .module import Module
from .parameter import Parameter

__all__ = ["functional_call", "stack_module_state"]

State = dict[str, Any]


def _merged(states: Any) -> State:
    if isinstance(states, dict):
        return states
    if not isinstance(states, Sequence):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(states)}"
        )
    merged: State = {}
    for part in states:
        if not isinstance(part, dict):
            raise ValueError(
                "Expected all elements of parameter_and_buffer_dicts to be dictionaries, got "
                f"{type(part)}"
            )
        twice = merged.keys() & part.keys()
        if twice:
            raise ValueError(
                f"{sorted(twice)} appeared in multiple dictionaries, which is ambiguous"
            )
        merged.update(part)
    return merged


def _slots(module: Module) -> dict[str, tuple[Module, str]]:
    """Return where each parameter and buffer is kept, by its name; shared ones at all their names."""
    found = {}
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for table in (owner._parameters, owner._buffers):
            for name, value in table.items():
                if value is not None:
                    found[f"{prefix}.{name}" if prefix else name] = (owner, name)
    return found


def _table(owner: Module, name: str) -> dict[str, Any]:
    table: dict[str, Any] = owner._parameters if name in owner._parameters else owner._buffers
    return table


def _with_ties(slots: dict[str, tuple[Module, str]], state: State) -> State:
    """Return the state with each tensor at all names that share it."""
    names: dict[int, list[str]] = {}
    for full, (owner, name) in slots.items():
        names.setdefault(id(_table(owner, name)[name]), []).append(full)
    tied = dict(state)
    for group in names.values():
        given = [name for name in group if name in state]
        values = {id(state[name]): state[name] for name in given}
        if len(values) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(given)}, which are tied. Consider "
                "using tie_weights=False"
            )
        if given:
            tied.update(dict.fromkeys(group, state[given[0]]))
    return tied


def _swapped(module: Module, state: State, tie_weights: bool, strict: bool) -> Block:
    """Return a context in which a module holds other tensors; buffers that it replaces come into `state`."""
    return Block(partial(_swapping, module, state, tie_weights, strict))


def _swapping(module: Module, state: State, tie_weights: bool, strict: bool) -> tuple[Steps, Steps]:
    for name, value in state.items():
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"functional_call(): {name}: {value} is not an instance of torch.Tensor"
            )
    # Names alone lead to their places, around circles of modules too; ties and what is missing need all.
    slots = _slots(module) if tie_weights or strict else {}
    given = _with_ties(slots, state) if tie_weights else dict(state)
    unexpected = sorted(given.keys() - slots.keys())
    missing = sorted(slots.keys() - given.keys())
    if strict and (unexpected or missing):
        lines = [f"Error(s) in reparametrizing for {module._get_name()}:"]
        if unexpected:
            lines.append(f"\tUnexpected key(s): {', '.join(map(repr, unexpected))}.")
        if missing:
            lines.append(f"\tMissing key(s): {', '.join(map(repr, missing))}.")
        raise RuntimeError("\n".join(lines))
    puts: list[Callable[[], object]] = []
    restores: list[Callable[[], object]] = []
    places: list[tuple[str, dict[str, Any], str]] = []
    for full, value in given.items():
        if full in slots:
            owner, name = slots[full]
            table = _table(owner, name)
        else:
            owner, name = _place_of(module, full)
            if _has_setter(owner, name):
                puts.append(partial(setattr, owner, name, value))
                restores.append(partial(setattr, owner, name, getattr(owner, name)))
                continue
            table = _table_by_name(owner, name, value)
        puts.append(partial(setitem, table, name, value))
        restore = partial(setitem, table, name, table[name]) if name in table else None
        restores.append(restore or partial(table.pop, name, None))
        if full in state:
            places.append((full, table, name))
    names, tables, keys = zip(*places, strict=True) if places else ((), (), ())
    replacing = map(setitem, repeat(state), names, map(getitem, tables, keys))
    replaced: Callable[[], object] = partial(deque, replacing, 0)
    return puts, [replaced, *reversed(restores)]


def _place_of(module: Module, full: str) -> tuple[Module, str]:
    """Return the module that a name leads to, and the name there."""
    prefix, _, name = full.rpartition(".")
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    for part in prefix.split(".") if prefix else ():
        found = getattr(module, part, None)
        if found is None:
            raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
        if not isinstance(found, Module):
            raise TypeError(f"submodule `{prefix}`: {found} is not an instance of torch.nn.Module")
        module = found
    return module, name


def _has_setter(owner: Module, name: str) -> bool:
    """Return whether a property takes values; a parametrization shows those of the module's dict."""
    computed = isinstance(getattr(type(owner), name, None), property)
    return computed and name not in getattr(owner, "parametrizations", ())


def _table_by_name(owner: Module, name: str, value: Any) -> dict[str, Any]:
    """Return where a module keeps a tensor, or would keep a new one."""
    present = getattr(owner, name, None)
    if present is not None and not isinstance(present, Tensor):
        raise TypeError(f"attribute `{name}`: {present} is not an instance of torch.Tensor")
    for table in (owner._parameters, owner._buffers):
        if name in table:
            return table
    new = present is None and isinstance(value, Parameter)
    return owner._parameters if new else owner.__dict__


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: State | Sequence[State],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers than its own.

    Parameters
    ----------
    module : Module
        What to call; it is as before, after.
    parameter_and_buffer_dicts : dict, or sequence of dicts
        Tensors by name, as in ``named_parameters()`` and ``named_buffers()``. What is left out is the
        module's own. A buffer that the module replaces is put into the dict.
    args : object or tuple
        The module's arguments.
    kwargs : dict, optional
        Its keyword arguments.
    tie_weights : bool
        Whether a tensor that the module has under several names is replaced under all of them.
    strict : bool
        Whether the names must be exactly the module's.

    Examples
    --------
    >>> import tensorplug as tp
    >>> layer = tp.nn.Linear(2, 1)
    >>> state = {"weight": tp.ones(1, 2), "bias": tp.zeros(1)}
    >>> tp.func.functional_call(layer, state, tp.tensor([[1.0, 2.0]]))
    tensor([[3.]])
    """
    state = _merged(parameter_and_buffer_dicts)
    given = () if args is None else args if isinstance(args, tuple) else (args,)
    with _swapped(module, state, tie_weights, strict):
        return module(*given, **(kwargs or {}))


def stack_module_state(models: Sequence[Module]) -> tuple[State, State]:
    """Return the parameters and the buffers of several modules of one kind, stacked.

    With ``functional_call`` and ``vmap`` they run as an ensemble.

    Raises
    ------
    RuntimeError
        If there is none, or they differ in class or in training mode.

    Examples
    --------
    >>> import tensorplug as tp
    >>> models = [tp.nn.Linear(2, 1) for _ in range(3)]
    >>> parameters, buffers = tp.func.stack_module_state(models)
    >>> parameters["weight"].shape
    Size([3, 1, 2])
    >>> def call(parameters, buffers, x):
    ...     return tp.func.functional_call(models[0], (parameters, buffers), (x,))
    >>> tp.vmap(call, in_dims=(0, 0, None))(parameters, buffers, tp.ones(5, 2)).shape
    Size([3, 5, 1])
    """
    modules = list(models)
    if not modules:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({module.training for module in modules}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(module) is not type(modules[0]) for module in modules):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(module.named_parameters()) for module in modules]
    buffers = [dict(module.named_buffers()) for module in modules]
    return _stacked(parameters), _stacked(buffers)


def _stacked(states: list[State]) -> State:
    stacked = {}
    for name in states[0]:
        tensors = [state[name] for state in states]
        if len({tensor.requires_grad for tensor in tensors}) > 1:
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        made = stack(tensors)
        if tensors[0].is_leaf:
            made = made.detach().requires_grad_(tensors[0].requires_grad)
        stacked[name] = made
    return stacked
