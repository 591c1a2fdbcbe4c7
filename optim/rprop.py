"""Rprop."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import full_like, zeros_like

from .amounts import counted, started
from .groups import check_learning_rate, check_range
from .ops.optimizers.own_rates import rprop_step, rprop_update
from .optimizer import Optimizer, ParamsT
from .state import as_real, count_step, number, step_lists


class Rprop(Optimizer):
    r"""Rprop: step sizes that grow while a gradient keeps its sign and shrink when it turns.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize, see :class:`~tensorplug.optim.Optimizer`.
    lr : float or Tensor
        The learning rate.
    etas : pair of float
        The factors by which a step size shrinks and grows.
    step_sizes : pair of float
        The smallest and the largest step size.
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
    Only the gradient's sign is used, so it suits full batches (Riedmiller and Braun, 1993).

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.Rprop([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> bool(x < 4)
    True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        check_range(0.0 < etas[0] < 1.0 < etas[1], "eta values", f"{etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one dtype and device in one op."""
        states = [self._started(p, group) for p in parameters]
        for state in states:
            count_step(state)
        params, grads, previous, sizes = step_lists(parameters, states, "prev", "step_size")
        (shrink, grow), (smallest, largest) = group["etas"], group["step_sizes"]
        rprop_step(
            params, grads, previous, sizes,
            shrink, grow, smallest, largest, group["maximize"],
        )  # fmt: skip

    def _started(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state of a parameter, whose step sizes are the learning rate at first."""
        state: dict[str, Any] = self.state[parameter]
        if not state:
            state["step"] = started(parameter, group)
            state["prev"] = zeros_like(parameter, requires_grad=False)
            rate = number(group["lr"])
            value = complex(rate, rate) if parameter.is_complex() else rate
            state["step_size"] = full_like(parameter, value).detach()
        return state

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        state = self._started(parameter, group)
        counted(state, parameter, group)
        parameter, gradient, previous, size = as_real(
            (parameter, gradient, state["prev"], state["step_size"])
        )
        (shrink, grow), (smallest, largest) = group["etas"], group["step_sizes"]
        rprop_update(
            parameter, gradient, previous, size,
            shrink, grow, smallest, largest, group["maximize"],
        )  # fmt: skip
