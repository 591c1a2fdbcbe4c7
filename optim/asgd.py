"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.device import Device

from .ops.optimizers.own_rates import asgd_step, asgd_update
from .optimizer import ParamsT
from .scalars import Scalar, at_least, counted, read
from .state import number
from .step_optimizer import Step, StepOptimizer


class ASGD(StepOptimizer):
    r"""Stochastic gradient descent that also keeps the average of its path.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize, see :class:`~tensorplug.optim.Optimizer`.
    lr : float or Tensor
        The learning rate.
    lambd : float
        How fast the parameters decay.
    alpha : float
        The power by which the step size falls.
    t0 : float
        The step from which on the path is averaged.
    weight_decay : float
        The factor of the L2 penalty.
    maximize : bool
        Go up the gradient instead of down.
    foreach : bool, optional
        Whether one op updates all parameters, which a backend may do in one kernel; by default it does.
    capturable : bool
        Count the steps on the device, so that a step can be captured in a graph.
    differentiable : bool
        Record the update itself, for gradients through it; parameters must then be non-leaf
        tensors.

    Raises
    ------
    ValueError
        If an option is out of range.

    Notes
    -----
    The average is ``optimizer.state[parameter]["ax"]`` (Polyak and Juditsky, 1992).

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.ASGD([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> bool(x < 4)
    True
    """

    _step = Step(
        asgd_step, asgd_update, state=("ax",), options=("lambd", "weight_decay", "maximize")
    )
    _not_negative = ("weight_decay",)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, foreach=foreach,
            maximize=maximize, differentiable=differentiable, capturable=capturable,
        )  # fmt: skip

    def _numbers(self, group: dict[str, Any]) -> dict[str, float]:
        return {"step": 0.0, "eta": number(group["lr"]), "mu": 1.0}

    def _count(
        self, state: dict[str, Any], group: dict[str, Any], device: Device
    ) -> tuple[Scalar, ...]:
        """Return the rates that the last step chose."""
        return read(state, "eta", device), read(state, "mu", device)

    def update_group(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update the parameters of a group; then count the step, and choose the rates of the next."""
        super().update_group(parameters, group)
        for parameter in parameters:
            state = self.state[parameter]
            step = counted(state, self._counting_device(parameter, group))
            lr = self._rate(parameter, group)
            _set(state["eta"], lr / (1 + group["lambd"] * lr * step) ** group["alpha"])
            _set(state["mu"], 1 / at_least(step - group["t0"], 1))


def _set(rate: Tensor, value: Scalar) -> None:
    if isinstance(value, Tensor):
        rate.copy_(value)
    else:
        rate.fill_(value)
