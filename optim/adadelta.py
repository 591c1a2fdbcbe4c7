"""Adadelta."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import zeros_like

from .amounts import counted, rate, started
from .groups import check_learning_rate, check_range
from .ops.optimizers.own_rates import adadelta_step, adadelta_update
from .optimizer import Optimizer, ParamsT
from .state import as_real, count_step, number, step_lists


class Adadelta(Optimizer):
    r"""Adadelta: steps in the parameter's own units, from running mean squares.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize, see :class:`~tensorplug.optim.Optimizer`.
    lr : float or Tensor
        The learning rate.
    rho : float
        The decay rate of the mean squares.
    eps : float
        Added under the roots.
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
    With gradient :math:`g`: :math:`v \leftarrow \rho v + (1 - \rho) g^2`, the step
    :math:`d = g \sqrt{u + \epsilon} / \sqrt{v + \epsilon}`, :math:`u \leftarrow \rho u + (1 - \rho)
    d^2` and :math:`p \leftarrow p - lr \cdot d` (Zeiler, 2012).

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.Adadelta([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> bool(x < 4)
    True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        check_range(0.0 <= rho <= 1.0, "rho value", rho)
        check_range(eps >= 0.0, "epsilon value", eps)
        check_range(weight_decay >= 0.0, "weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one dtype and device in one op."""
        states = [self._started(p, group) for p in parameters]
        for state in states:
            count_step(state)
        params, grads, squares, accumulated = step_lists(
            parameters, states, "square_avg", "acc_delta"
        )
        adadelta_step(
            params, grads, squares, accumulated,
            number(group["lr"]), group["rho"], group["eps"], group["weight_decay"], group["maximize"],
        )  # fmt: skip

    def _started(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state of a parameter, which is zero at first."""
        state: dict[str, Any] = self.state[parameter]
        if not state:
            state["step"] = started(parameter, group)
            state["square_avg"] = zeros_like(parameter, requires_grad=False)
            state["acc_delta"] = zeros_like(parameter, requires_grad=False)
        return state

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        state = self._started(parameter, group)
        counted(state, parameter, group)
        parameter, gradient, square, accumulated = as_real(
            (parameter, gradient, state["square_avg"], state["acc_delta"])
        )
        adadelta_update(
            parameter, gradient, square, accumulated,
            rate(parameter, group), group["rho"], group["eps"], group["weight_decay"], group["maximize"],
        )  # fmt: skip
