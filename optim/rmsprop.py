"""RMSprop."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import zeros_like

from .amounts import counted, rate, started
from .groups import check_learning_rate, check_range
from .ops.optimizers.fused import rmsprop_step, rmsprop_update
from .optimizer import Optimizer, ParamsT
from .state import as_real, as_real_lists, count_step, number


class RMSprop(Optimizer):
    r"""RMSprop: the gradient divided by the root of its running mean square.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize, see :class:`~tensorplug.optim.Optimizer`.
    lr : float or Tensor
        The learning rate.
    alpha : float
        The decay rate of the mean square.
    eps : float
        Added to the denominator.
    weight_decay : float
        The factor of the L2 penalty.
    momentum : float
        How much of the previous step is kept.
    centered : bool
        Divide by the standard deviation instead: subtract the square of the running mean.
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
    With gradient :math:`g`: :math:`v \leftarrow \alpha v + (1 - \alpha) g^2` and
    :math:`p \leftarrow p - lr \cdot g / (\sqrt{v} + \epsilon)` (Tieleman and Hinton, 2012).

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.RMSprop([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> bool(x < 4)
    True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        check_range(eps >= 0.0, "epsilon value", eps)
        check_range(momentum >= 0.0, "momentum value", momentum)
        check_range(weight_decay >= 0.0, "weight_decay value", weight_decay)
        check_range(alpha >= 0.0, "alpha value", alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one dtype and device in one op."""
        states = [self._started(p, group) for p in parameters]
        for state in states:
            count_step(state)
        params, grads, squares, means, buffers = as_real_lists(
            parameters,
            [p.grad for p in parameters],
            [s["square_avg"] for s in states],
            [s["grad_avg"] for s in states] if group["centered"] else [],
            [s["momentum_buffer"] for s in states] if group["momentum"] > 0 else [],
        )
        rmsprop_step(
            params, grads, squares, means, buffers,
            number(group["lr"]), group["alpha"], group["eps"], group["weight_decay"],
            group["momentum"], group["centered"], group["maximize"],
        )  # fmt: skip

    def _started(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state of a parameter, which is zero at first."""
        state: dict[str, Any] = self.state[parameter]
        if not state:
            state["step"] = started(parameter, group)
            state["square_avg"] = zeros_like(parameter, requires_grad=False)
            if group["momentum"] > 0:
                state["momentum_buffer"] = zeros_like(parameter, requires_grad=False)
            if group["centered"]:
                state["grad_avg"] = zeros_like(parameter, requires_grad=False)
        return state

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        state = self._started(parameter, group)
        counted(state, parameter, group)
        mean = state["grad_avg"] if group["centered"] else None
        buffer = state["momentum_buffer"] if group["momentum"] > 0 else None
        parameter, gradient, square, mean, buffer = as_real(
            (parameter, gradient, state["square_avg"], mean, buffer)
        )
        rmsprop_update(
            parameter, gradient, square, mean, buffer,
            rate(parameter, group), group["alpha"], group["eps"],
            group["weight_decay"], group["momentum"], group["maximize"], group["differentiable"],
        )  # fmt: skip
