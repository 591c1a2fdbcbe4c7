"""States as names and values: dicts and lists gone into, objects' states in their places."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from tensorplug.core import Tensor

from .. import distributed_c10d as c10d
from ..tensor import DTensor


@runtime_checkable
class Stateful(Protocol):
    """What gives its state, and takes it: modules, optimizers, data loaders."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state over."""
        ...


def states_of(state_dict: dict[str, Any]) -> dict[str, Any]:
    """Return a state with the states of objects in their places."""
    return {
        key: value.state_dict() if isinstance(value, Stateful) else value
        for key, value in state_dict.items()
    }


def has_tensor(value: Any) -> bool:
    """Return whether a value is or holds a tensor."""
    if isinstance(value, dict):
        return any([has_tensor(item) for item in value.values()])
    if isinstance(value, (list, tuple)):
        return any([has_tensor(item) for item in value])
    return isinstance(value, Tensor)


def walk(tree: Any, prefix: str, visit: Callable[[Any, Any, str], None]) -> None:
    """Call ``visit(container, key, name)`` for each value; dicts and lists with tensors are gone into."""
    pairs = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree))
    for key, value in pairs:
        name = f"{prefix}{key}"
        if (isinstance(value, dict) and value) or (isinstance(value, list) and has_tensor(value)):
            walk(value, f"{name}.", visit)
        else:
            visit(tree, key, name)


def flattened(states: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a state by their names."""
    found: dict[str, Any] = {}

    def note(tree: Any, key: Any, name: str) -> None:
        if name in found:
            raise ValueError(f"two values of the state are called {name!r}")
        found[name] = tree[key]

    walk(states, "", note)
    return found


def replace(states: Any, objects: dict[str, Any], prefix: str) -> None:
    """Put objects into a state in place of what is no tensor."""

    def put(tree: Any, key: Any, name: str) -> None:
        if not isinstance(tree[key], Tensor):
            tree[key] = objects[name]

    walk(states, prefix, put)


def part_of(value: Tensor) -> tuple[list[int], Tensor]:
    """Return where in the whole this process's part begins, and the part."""
    if isinstance(value, DTensor):
        return value.extents()[0], value.to_local()
    return [0] * value.ndim, value.detach()


def full_shape(value: Tensor) -> list[int]:
    """Return the shape of a tensor, of the whole if it is divided."""
    return list(value.full_shape if isinstance(value, DTensor) else value.shape)


def folder(checkpoint_id: str | os.PathLike[str] | None) -> str | os.PathLike[str]:
    """Return the folder of a checkpoint; refuse that there is none."""
    if checkpoint_id is None:
        raise ValueError("name the folder of the checkpoint: checkpoint_id=…")
    return checkpoint_id


def of(group: Any) -> Any:
    """Return a group, the world by default."""
    return c10d._get_default_group() if group is None else group


def refuse_planner(planner: Any) -> None:
    """Refuse planners."""
    if planner is not None:
        raise NotImplementedError(
            "planners are not here: leave out of the state what is not to be written"
        )
