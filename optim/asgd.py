"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import zeros_like

from .amounts import counted, counts_there, kept_there, rate, started
from .groups import check_learning_rate, check_range
from .ops.optimizers.own_rates import asgd_step, asgd_update
from .optimizer import Optimizer, ParamsT
from .state import as_real, count_step, number, step_lists


class ASGD(Optimizer):
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
        check_learning_rate(lr)
        check_range(weight_decay >= 0.0, "weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one dtype and device in one op."""
        states = [self._started(p, group) for p in parameters]
        params, grads, averages = step_lists(parameters, states, "ax")
        asgd_step(
            params, grads, averages,
            [number(s["eta"]) for s in states], [number(s["mu"]) for s in states],
            group["lambd"], group["weight_decay"], group["maximize"],
        )  # fmt: skip
        for state in states:
            self._finished(state, group)

    def _started(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state of a parameter, whose average is not used at first."""
        state: dict[str, Any] = self.state[parameter]
        if not state:
            state["step"] = started(parameter, group)
            state["eta"] = started(parameter, group, number(group["lr"]))
            state["mu"] = started(parameter, group, 1.0)
            state["ax"] = zeros_like(parameter, requires_grad=False)
        return state

    def _finished(self, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Count a step, and choose the rates of the next."""
        step, lr = count_step(state), number(group["lr"])
        state["eta"].fill_(lr / (1 + group["lambd"] * lr * step) ** group["alpha"])
        state["mu"].fill_(1 / max(1, step - group["t0"]))

    def _finished_one(
        self, parameter: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Do the same on the parameter's device."""
        step, lr = counted(state, parameter, group), rate(parameter, group)
        assert isinstance(step, Tensor)
        eta = lr / (step * (lr * group["lambd"]) + 1) ** group["alpha"]
        kept_there(state, "eta", parameter).copy_(eta)
        kept_there(state, "mu", parameter).copy_(1 / (step - group["t0"]).clamp(min=1))

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        state = self._started(parameter, group)
        there = counts_there(parameter, group)
        eta, mu = (
            kept_there(state, name, parameter) if there else number(state[name])
            for name in ("eta", "mu")
        )
        place, gradient, average = as_real((parameter, gradient, state["ax"]))
        asgd_update(
            place, gradient, average, eta, mu,
            group["lambd"], group["weight_decay"], group["maximize"],
        )  # fmt: skip
        if there:
            self._finished_one(parameter, state, group)
        else:
            self._finished(state, group)
