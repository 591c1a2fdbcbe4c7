"""Parameter groups: checks and printing."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from tensorplug.core import Tensor


class _Required:
    """Stands in the defaults for an option that every group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


def new_group(
    param_group: Any, defaults: dict[str, Any], known: set[int], named: bool | None
) -> dict[str, Any]:
    """Return a checked group with all its options.

    Parameters
    ----------
    param_group : dict
        What the user gave.
    defaults : dict
        The options that it may leave out.
    known : set of int
        The ids of the parameters in earlier groups.
    named : bool or None
        Whether earlier groups have names; None if there are none.
    """
    if not isinstance(param_group, dict):
        raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
    group = dict(param_group)
    params, names = _split_names(_as_list(group["params"]))
    for param in params:
        if not isinstance(param, Tensor):
            raise TypeError(
                "optimizer can only optimize Tensors, but one of the params is "
                f"{type(param).__name__}"
            )
        if not defaults.get("differentiable") and not (param.is_leaf or param.retains_grad):
            raise ValueError(
                f"can't optimize a non-leaf Tensor (of shape {list(param.shape)}); pass the tensor "
                "that it was computed from"
            )
    for name, default in defaults.items():
        if isinstance(default, _Required) and name not in group:
            raise ValueError(
                f"parameter group didn't specify a value of required optimization parameter {name}"
            )
        group.setdefault(name, default)
    ids = {id(param) for param in params}
    if len(ids) != len(params):
        warnings.warn(
            "optimizer contains a parameter group with duplicate parameters; in future, this will "
            "cause an error",
            UserWarning,
            stacklevel=4,
        )
    if known & ids:
        raise ValueError("some parameters appear in more than one parameter group")
    if named is not None and named != (names is not None):
        raise ValueError(
            "all optimizer param groups should be with/without names. cannot add param group "
            f"{'without' if names is None else 'with'} names to the optimizer"
        )
    group["params"] = params
    if names is not None:
        group["param_names"] = names
    return group


def _as_list(params: Any) -> list[Any]:
    if isinstance(params, Tensor):
        return [params]
    if isinstance(params, (set, frozenset)):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of "
            "tensors in sets will change between runs. Please use a list instead."
        )
    return list(params)


def _split_names(params: list[Any]) -> tuple[list[Any], list[str] | None]:
    """Return the tensors and, if they came as pairs, their names."""
    pairs = [isinstance(param, tuple) for param in params]
    if not any(pairs):
        return params, None
    if not all(pairs):
        raise ValueError(
            "all optimizer params should be with/without names. Some param names are missing"
        )
    for pair in params:
        if len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(f"a named parameter is a pair of (str, Tensor), got {pair!r}")
    return [tensor for _, tensor in params], [name for name, _ in params]


def check_range(condition: bool, text: str, value: Any) -> None:
    """Raise ValueError ``"Invalid {text}: {value}"`` unless `condition` holds."""
    if not condition:
        raise ValueError(f"Invalid {text}: {value}")


def check_betas(betas: tuple[Any, Any]) -> None:
    """Raise ValueError unless both decay rates lie in [0, 1)."""
    for i in range(2):
        check_range(0.0 <= betas[i] < 1.0, f"beta parameter at index {i}", betas[i])


def check_learning_rate(lr: float | Tensor) -> None:
    """Raise ValueError for a negative learning rate or a tensor of several elements."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check_range(bool(lr >= 0.0), "learning rate", lr)


def check_options(options: dict[str, Any], not_negative: tuple[str, ...]) -> None:
    """Raise ValueError for options out of range, RuntimeError for those that exclude each other."""
    check_learning_rate(options["lr"])
    for name in not_negative:
        text = "epsilon" if name == "eps" else name
        check_range(bool(options[name] >= 0.0), f"{text} value", options[name])
    if "betas" in options:
        check_betas(options["betas"])
    if options.get("fused") and options.get("foreach"):
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    if options.get("fused") and options.get("differentiable"):
        raise RuntimeError("`fused` does not support `differentiable`")


def check_fused(groups: list[dict[str, Any]]) -> None:
    """Raise RuntimeError if a fused step is asked for of parameters that it is not made for."""
    for group in groups:
        for parameter in group["params"] if group.get("fused") else ():
            if not parameter.is_floating_point():
                raise RuntimeError(
                    "`fused=True` requires all the params to be floating point Tensors, but one is "
                    f"{parameter.dtype}; leave it out"
                )


def updates_together(group: dict[str, Any]) -> bool:
    """Return whether the options let one op update all parameters of a group."""
    if "foreach" not in group or group.get("differentiable"):
        return False
    return group["foreach"] is not False or bool(group.get("fused"))


def by_kind(parameters: list[Tensor]) -> list[list[Tensor]]:
    """Return parameters in lists of one dtype and device, that of their gradients included."""
    lists: dict[Any, list[Tensor]] = {}
    for parameter in parameters:
        gradient: Any = parameter.grad
        lists.setdefault((parameter._key, gradient._key), []).append(parameter)
    return list(lists.values())


def repr_of_groups(groups: Iterable[dict[str, Any]]) -> str:
    """Return the options of all groups, as an optimizer prints them."""
    lines = ""
    for i, group in enumerate(groups):
        lines += f"\nParameter Group {i}\n"
        for name in sorted(group):
            if name != "params":
                lines += f"    {name}: {group[name]}\n"
    return lines
