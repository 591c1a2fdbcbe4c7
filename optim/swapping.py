"""Running an optimizer on other tensors for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.contexts import Block, Steps

from .optimizer import Optimizer


def swap_in_optimizer_params_and_state(
    optimizer: Optimizer,
    swapin_parameters: dict[str, Tensor],
    swapin_optim_state: dict[str, Any],
) -> Block:
    """Let an optimizer work on other parameters with other state within a ``with`` block.

    Parameters
    ----------
    optimizer : Optimizer
        Gets its own parameters, options and state back at the end.
    swapin_parameters : dict of Tensor
        The other parameters, in the order of the optimizer's own.
    swapin_optim_state : dict
        State and options as :meth:`Optimizer.state_dict` gives them. What a step writes into its tensors
        stays in them; what it replaces is lost.

    Raises
    ------
    ValueError
        If the numbers of parameters or groups differ.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x, other = tp.zeros(1), tp.zeros(1)
    >>> optimizer = tp.optim.SGD([x], lr=1.0)
    >>> other.grad = tp.ones(1)
    >>> with swap_in_optimizer_params_and_state(optimizer, {"x": other}, optimizer.state_dict()):
    ...     optimizer.step()
    >>> x, other
    (tensor([0.]), tensor([-1.]))
    """
    return Block(partial(_steps, optimizer, swapin_parameters, swapin_optim_state))


def _steps(
    optimizer: Optimizer, tensors: dict[str, Tensor], values: dict[str, Any]
) -> tuple[Steps, Steps]:
    parameters = list(tensors.values())
    count = sum(len(group["params"]) for group in optimizer.param_groups)
    saved_groups = values["param_groups"]
    if len(parameters) != count or len(saved_groups) != len(optimizer.param_groups):
        raise ValueError(
            f"the optimizer has {count} parameters in {len(optimizer.param_groups)} groups, got "
            f"{len(parameters)} in {len(saved_groups)}"
        )
    state: defaultdict[Any, Any] = defaultdict(dict)
    for key, value in values["state"].items():
        state[parameters[key] if isinstance(key, int) else key] = value
    beginning: list[Callable[[], object]] = [partial(setattr, optimizer, "state", state)]
    ending: list[Callable[[], object]] = [partial(setattr, optimizer, "state", optimizer.state)]
    start = 0
    for group, saved in zip(optimizer.param_groups, saved_groups, strict=True):
        stop = start + len(group["params"])
        beginning.append(partial(group.update, {**saved, "params": parameters[start:stop]}))
        ending += [group.clear, partial(group.update, dict(group))]
        start = stop
    return beginning, ending
