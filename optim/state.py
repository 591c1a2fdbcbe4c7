"""What an optimizer remembers: as plain data for checkpoints, and as numbers for an update."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.device import CPU
from tensorplug.core.device.dtypes import float32, float64, get_default_dtype
from tensorplug.core.ops import full, view_as_real


def pack_groups(groups: list[dict[str, Any]], state: Mapping[Any, Any]) -> dict[str, Any]:
    """Return groups and state with every parameter replaced by its number."""
    numbers: dict[int, int] = {}
    packed = []
    for group in groups:
        for parameter in group["params"]:
            numbers.setdefault(id(parameter), len(numbers))
        entry = {name: value for name, value in group.items() if name != "params"}
        entry["params"] = [numbers[id(parameter)] for parameter in group["params"]]
        packed.append(entry)
    remembered = {
        (numbers[id(key)] if isinstance(key, Tensor) else key): _as_divided(key, value)
        for key, value in state.items()
        if value or not isinstance(value, dict)  # SGD without momentum remembers nothing
    }
    return {"state": remembered, "param_groups": packed}


def _as_divided(parameter: Any, state: Any) -> Any:
    """Return what is remembered of a part of a parameter as parts, too: a DTensor's ``like`` makes them."""
    like = getattr(parameter, "like", None)
    if like is None or not isinstance(state, dict):
        return state
    return {
        name: like(value)
        if isinstance(value, Tensor) and value.ndim and value.shape == parameter.shape
        else value
        for name, value in state.items()
    }


def restore_state(
    saved: Mapping[Any, Any], saved_groups: list[dict[str, Any]], groups: list[dict[str, Any]]
) -> defaultdict[Any, Any]:
    """Return saved state by parameter instead of by number, converted to fit the parameters."""
    parameters: dict[Any, Tensor] = {}
    for loaded, group in zip(saved_groups, groups, strict=True):
        parameters.update(zip(loaded["params"], group["params"], strict=True))
    state: defaultdict[Any, Any] = defaultdict(dict)
    for key, value in saved.items():
        if key in parameters:
            state[parameters[key]] = _fit(value, parameters[key])
        else:
            state[key] = value
    return state


def _fit(value: Any, parameter: Tensor, name: str | None = None) -> Any:
    if isinstance(value, Tensor):
        if name == "step":  # counts in its own dtype: bfloat16 could not go on beyond 256
            return value.clone()
        dtype = parameter.dtype if parameter.is_floating_point() else value.dtype
        return value.to(device=parameter.device, dtype=dtype, copy=True)
    if isinstance(value, dict):
        return {key: _fit(item, parameter, key) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_fit(item, parameter) for item in value])
    return value


def load_group(group: dict[str, Any], loaded: dict[str, Any]) -> dict[str, Any]:
    """Return a saved group's options with the present group's parameters and names."""
    result = deepcopy({name: value for name, value in loaded.items() if name != "params"})
    result["params"] = group["params"]
    if "param_names" in group:
        result["param_names"] = group["param_names"]
    return result


# --- numbers ----------------------------------------------------------------------------------


def scalar(value: float, device: Any = "cpu") -> Tensor:
    """Return a 0-d tensor for a number that an optimizer keeps, such as its step count.

    On another device than the CPU it is of float32, as the ops that count there ask for.
    """
    wide = get_default_dtype() is float64 and device in ("cpu", CPU)
    return full((), value, dtype=float64 if wide else float32, device=device)


def count_step(state: dict[str, Any]) -> float:
    """Add one to ``state["step"]`` and return it as a number."""
    step = state["step"]
    if isinstance(step, Tensor):
        step.add_(1)
        return float(step.item())
    state["step"] = step + 1  # a checkpoint that holds a number
    return float(step + 1)


def add_step(state: dict[str, Any]) -> None:
    """Add one to ``state["step"]``, which nobody reads now."""
    step = state["step"]
    if isinstance(step, Tensor):
        step.add_(1)
    else:
        state["step"] = step + 1


def number(value: float | Tensor) -> float:
    """Return an option as a number; a tensor is read."""
    return float(value.item()) if isinstance(value, Tensor) else value


def as_real(tensors: Iterable[Tensor | None]) -> Any:
    """Return complex tensors as real ones with a last dimension of 2, over the same memory."""
    return [
        view_as_real(tensor) if tensor is not None and tensor.is_complex() else tensor
        for tensor in tensors
    ]


def as_real_lists(*lists: Sequence[Tensor | None]) -> Any:
    """Return lists of tensors with the complex ones as :func:`as_real` makes them."""
    first = lists[0][0]
    if first is None or not first.is_complex():
        return [list(tensors) for tensors in lists]
    return [as_real(tensors) for tensors in lists]
