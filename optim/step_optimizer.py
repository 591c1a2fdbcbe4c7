"""Optimizers whose step is one op: each declares what it keeps, the op, and the options that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tensorplug.core import Tensor
from tensorplug.core.device.device import CPU, Device
from tensorplug.core.ops import full_like, zeros_like

from .groups import check_fused, check_options
from .optimizer import Optimizer, ParamsT
from .scalars import Scalar, counted, learning_rate
from .state import add_step, as_real, as_real_lists, number, scalar


@dataclass(frozen=True)
class Step:
    """What a step computes.

    Parameters
    ----------
    op : callable
        Takes lists: parameters, gradients, the tensors of the state; then the numbers of each parameter, as
        lists too, and the options.
    one : callable
        The same for one parameter.
    state : tuple of str
        The names of the tensors kept for a parameter, in the order of the arguments.
    options : tuple of str
        The options that `op` takes, in the order of its arguments; pairs are passed as two arguments.
    options_of_one : tuple of str, optional
        Those that `one` takes, if they are others.
    only_with : mapping of str
        The option that a tensor of the state is kept for, by its name.
    """

    op: Callable[..., Any]
    one: Callable[..., Any]
    state: tuple[str, ...]
    options: tuple[str, ...]
    options_of_one: tuple[str, ...] | None = None
    only_with: Mapping[str, str] = field(default_factory=dict)


class StepOptimizer(Optimizer):
    """Base of the optimizers that declare a :class:`Step`."""

    _step: ClassVar[Step]
    #: The options that must not be negative, besides the learning rate.
    _not_negative: ClassVar[tuple[str, ...]] = ("eps", "weight_decay")
    #: Whether the step takes the number of steps, 1 for the first.
    _takes_count: ClassVar[bool] = True

    def __init__(self, params: ParamsT, **options: Any) -> None:
        check_options(options, self._not_negative)
        super().__init__(params, options)
        check_fused(self.param_groups)

    def update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one dtype and device in one op."""
        kept = self.state
        states = [kept[p] or self._started(p, group) for p in parameters]
        self._update_all(parameters, states, group)

    def _update_all(
        self, parameters: list[Tensor], states: list[dict[str, Any]], group: dict[str, Any]
    ) -> None:
        """Update parameters whose states are known in one op."""
        lists = self._lists(parameters, states, group)
        options = self._numbers_of(self._step.options, parameters[0], group)
        device = self._counting_device(parameters[0], group)
        self._step.op(*lists, *self._counts(states, group, device), *options)

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        state = self._started(parameter, group)
        kept = [
            state[name] if self._keeps(name, parameter, group) else None
            for name in self._step.state
        ]
        self._step.one(
            *as_real([parameter, gradient, *kept]),
            *self._count(state, group, self._counting_device(parameter, group)),
            *self._values(self._step.options_of_one or self._step.options, parameter, group),
        )

    # --- state ---

    def _started(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state of a parameter, made with its first step."""
        state: dict[str, Any] = self.state[parameter]
        if not state:
            device = self._counting_device(parameter, group)
            for name, value in self._numbers(group).items():
                state[name] = scalar(value, device)
            for name in self._step.state:
                if self._keeps(name, parameter, group):
                    state[name] = self._new(name, parameter, group)
        return state

    def _numbers(self, group: dict[str, Any]) -> dict[str, float]:
        """Return the numbers of the state, as they are at first."""
        return {"step": 0.0}

    def _keeps(self, name: str, parameter: Tensor, group: dict[str, Any]) -> bool:
        """Return whether a tensor of the state is in use."""
        option = self._step.only_with.get(name)
        return option is None or bool(group[option])

    def _new(self, name: str, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        """Return a tensor of the state, as it is at first."""
        return zeros_like(parameter, requires_grad=False)

    def _counting_device(self, parameter: Tensor, group: dict[str, Any]) -> Device:
        """Return the device where the steps of a parameter are counted; the CPU is the host."""
        return parameter.device if group.get("capturable") else CPU

    # --- the arguments of a step ---

    def _lists(
        self, parameters: list[Tensor], states: Sequence[dict[str, Any]], group: dict[str, Any]
    ) -> Any:
        """Return parameters, gradients and what is kept, complex ones as real; unused lists are empty."""
        kept = [
            [s[name] for s in states] if self._keeps(name, parameters[0], group) else []
            for name in self._step.state
        ]
        return as_real_lists(parameters, [p.grad for p in parameters], *kept)

    def _count(
        self, state: dict[str, Any], group: dict[str, Any], device: Device
    ) -> tuple[Scalar, ...]:
        """Count a step of a parameter, and return the numbers of its that the step takes."""
        if self._takes_count or device is not CPU:
            step = counted(state, device)
            return (step,) if self._takes_count else ()
        add_step(state)
        return ()

    def _counts(
        self, states: list[dict[str, Any]], group: dict[str, Any], device: Device
    ) -> list[list[Scalar]]:
        """Count a step of each parameter, and return a list of each number that the step takes."""
        numbers = [self._count(state, group, device) for state in states]
        return list(map(list, zip(*numbers, strict=True)))

    def _values(self, names: Sequence[str], parameter: Tensor, group: dict[str, Any]) -> list[Any]:
        """Return options as arguments."""
        values: list[Any] = []
        for name in names:
            value = self._rate(parameter, group) if name == "lr" else group[name]
            if isinstance(value, (tuple, list)):
                values += map(number, value)
            else:
                values.append(value)
        return values

    def _numbers_of(
        self, names: Sequence[str], parameter: Tensor, group: dict[str, Any]
    ) -> list[Any]:
        """Return options as arguments, those that are tensors as numbers."""
        values: list[Any] = []
        for name in names:
            value = group[name]
            if type(value) is float or type(value) is bool or value is None:
                values.append(value)
            else:
                values += map(number, self._values((name,), parameter, group))
        return values

    def _rate(self, parameter: Tensor, group: dict[str, Any]) -> Scalar:
        return learning_rate(group, self._counting_device(parameter, group))


def filled(parameter: Tensor, value: float) -> Tensor:
    """Return a tensor like a parameter; of a complex one both parts get the value."""
    return full_like(parameter, complex(value, value) if parameter.is_complex() else value).detach()
