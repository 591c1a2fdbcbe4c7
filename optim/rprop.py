"""Rprop."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor

from .groups import check_range
from .ops.optimizers.own_rates import rprop_step, rprop_update
from .optimizer import ParamsT
from .state import number
from .step_optimizer import Step, StepOptimizer, filled


class Rprop(StepOptimizer):
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

    _step = Step(
        rprop_step,
        rprop_update,
        state=("prev", "step_size"),
        options=("etas", "step_sizes", "maximize"),
    )
    _not_negative = ()
    _takes_count = False

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
        check_range(0.0 < etas[0] < 1.0 < etas[1], "eta values", f"{etas[0]}, {etas[1]}")
        super().__init__(
            params,
            lr=lr, etas=etas, step_sizes=step_sizes, foreach=foreach, maximize=maximize,
            differentiable=differentiable, capturable=capturable,
        )  # fmt: skip

    def _new(self, name: str, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        """Return zeros, or step sizes that are the learning rate at first."""
        if name == "step_size":
            return filled(parameter, number(group["lr"]))
        return super()._new(name, parameter, group)
