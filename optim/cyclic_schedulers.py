"""Schedulers that move the learning rate and the momentum within a cycle: CyclicLR, OneCycleLR."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from .optimizer import Optimizer
from .scheduler_base import LRScheduler, check_optimizer, copied, per_group, set_value


def _check_momentum(optimizer: Optimizer, name: str) -> None:
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            f"optimizer must support momentum or beta1 with `{name}` option enabled; "
            f"{type(optimizer).__name__} has neither"
        )


def _set_momentum(group: dict[str, Any], value: float) -> None:
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def _start(group: dict[str, Any], lr: float) -> None:
    set_value(group, "lr", copied(lr))
    group["initial_lr"] = copied(group["lr"])


class CyclicLR(LRScheduler):
    """The rate up and down between two bounds, per batch.

    Parameters
    ----------
    optimizer : Optimizer
        Whose learning rates are set.
    base_lr, max_lr : float or list of float
        The bounds, for all groups or for each.
    step_size_up, step_size_down : int
        Steps up and steps down; down as many as up by default.
    mode : {"triangular", "triangular2", "exp_range"}
        Constant height, halved each cycle, or times ``gamma ** step``.
    gamma : float
        See `mode`.
    scale_fn : callable, optional
        The height as a function of the cycle or the step; `mode` is ignored then.
    scale_mode : {"cycle", "iterations"}
        What `scale_fn` is called with.
    cycle_momentum : bool
        Move the momentum (or the first of ``betas``) the other way.
    base_momentum, max_momentum : float or list of float
        Its bounds.
    last_epoch : int
        See :class:`~tensorplug.optim.lr_scheduler.LRScheduler`.

    Notes
    -----
    Smith, "Cyclical learning rates for training neural networks", 2017.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        base_lrs = per_group("base_lr", optimizer, base_lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"mode is invalid and scale_fn is None: {mode!r}")
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None and mode == "exp_range":
            self.scale_mode = "iterations"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _check_momentum(optimizer, "cycle_momentum")
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
        if last_epoch == -1:
            for i, (group, base) in enumerate(zip(optimizer.param_groups, base_lrs, strict=True)):
                _start(group, base)
                if cycle_momentum:
                    _set_momentum(group, self.max_momentums[i])
                    group["max_momentum"] = self.max_momentums[i]
                    group["base_momentum"] = self.base_momentums[i]
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the height at cycle or step `x`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "exp_range":
            return float(self.gamma**x)
        return 1.0 if self.mode == "triangular" else 1.0 / 2.0 ** (x - 1)

    def get_lr(self) -> list[Any]:
        """Return the rates at the present step; set the momentum as well."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        rising = place <= self.step_ratio
        height = place / self.step_ratio if rising else (place - 1) / (self.step_ratio - 1)
        scaled = height * self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            ):
                _set_momentum(group, high - (high - low) * scaled)
        return [
            low + (high - low) * scaled
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer; of `scale_fn`, what is not a function."""
        state = super().state_dict()
        custom = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = (
            None if custom is None or not hasattr(custom, "__dict__") else dict(custom.__dict__)
        ) or None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned."""
        rest = dict(state_dict)
        attributes = rest.pop("_scale_fn_custom", None)
        super().load_state_dict(rest)
        if attributes is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)


def _along_cosine(start: float, end: float, done: float) -> float:
    return end + (start - end) / 2.0 * (math.cos(math.pi * done) + 1)


def _along_line(start: float, end: float, done: float) -> float:
    return (end - start) * done + start


class OneCycleLR(LRScheduler):
    """The rate from a low value to a high one, then down to almost nothing, per batch.

    Parameters
    ----------
    optimizer : Optimizer
        Whose learning rates are set.
    max_lr : float or list of float
        The highest rates.
    total_steps : int, optional
        Steps in all; or give `epochs` and `steps_per_epoch`.
    epochs, steps_per_epoch : int, optional
        Their product is the number of steps.
    pct_start : float
        The share of the steps in which the rate rises.
    anneal_strategy : {"cos", "linear"}
        The form of each phase.
    cycle_momentum : bool
        Move the momentum (or the first of ``betas``) the other way.
    base_momentum, max_momentum : float or list of float
        Its bounds.
    div_factor, final_div_factor : float
        The initial rate is the highest divided by the first; the final one is the initial divided
        by the second.
    three_phase : bool
        Come down to the initial rate in as many steps as the rise took, then to the final one.
    last_epoch : int
        See :class:`~tensorplug.optim.lr_scheduler.LRScheduler`.

    Notes
    -----
    Smith and Topin, "Super-convergence", 2018.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        share: Any = pct_start
        if not isinstance(share, float) or not 0 <= share <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        rise = float(pct_start * self.total_steps) - 1
        last = self.total_steps - 1
        # A phase per dict, with the keys that checkpoints of torch have.
        self._schedule_phases: list[dict[str, Any]] = [
            _phase(rise, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        ]
        if three_phase:
            fall = float(2 * pct_start * self.total_steps) - 2
            self._schedule_phases += [
                _phase(fall, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                _phase(last, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            self._schedule_phases.append(
                _phase(last, "max_lr", "min_lr", "base_momentum", "max_momentum")
            )
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _check_momentum(optimizer, "cycle_momentum")
        highest = per_group("max_lr", optimizer, max_lr)
        low = per_group("base_momentum", optimizer, base_momentum)
        high = per_group("max_momentum", optimizer, max_momentum)
        if last_epoch == -1:
            for i, group in enumerate(optimizer.param_groups):
                group["initial_lr"] = highest[i] / div_factor
                group["max_lr"] = highest[i]
                group["min_lr"] = group["initial_lr"] / final_div_factor
                if cycle_momentum:
                    _set_momentum(group, high[i])
                    group["base_momentum"] = low[i]
                    group["max_momentum"] = high[i]
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rates at the present step; set the momentum as well."""
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        anneal = _along_cosine if self._anneal_func_type == "cos" else _along_line
        start = 0.0
        phase = self._schedule_phases[0]
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if step <= end or phase is self._schedule_phases[-1]:
                break
            start = end
        done = (step - start) / (phase["end_step"] - start)
        values = []
        for group in self.optimizer.param_groups:
            values.append(anneal(group[phase["start_lr"]], group[phase["end_lr"]], done))
            if self.cycle_momentum:
                first, last = group[phase["start_momentum"]], group[phase["end_momentum"]]
                _set_momentum(group, anneal(first, last, done))
        return values


def _phase(
    end: float, start_lr: str, end_lr: str, start_momentum: str, end_momentum: str
) -> dict[str, Any]:
    """Return when a phase ends, and which options of a group it moves between."""
    return {
        "end_step": end,
        "start_lr": start_lr,
        "end_lr": end_lr,
        "start_momentum": start_momentum,
        "end_momentum": end_momentum,
    }


def _total_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    given = {"total_steps": total_steps}
    if total_steps is None:
        if epochs is None or steps_per_epoch is None:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(value for value in given.values() if value is not None)
