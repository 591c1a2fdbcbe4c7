"""Rprop."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import full_like, ones_like, zeros_like

from .groups import check_learning_rate, check_range
from .optimizer import Optimizer, ParamsT
from .state import as_real, count_step, number, scalar


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
        Accepted for torch's sake. Every tensor is updated by a few in-place ops, whatever it says.
    capturable : bool
        Accepted for torch's sake: whether a step can be captured in a graph is up to the backend.
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

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        if not state:
            state["step"] = scalar(0.0)
            state["prev"] = zeros_like(parameter)
            rate = number(group["lr"])
            value = complex(rate, rate) if parameter.is_complex() else rate
            state["step_size"] = full_like(parameter, value).detach()
        count_step(state)
        if group["maximize"]:
            gradient = -gradient
        previous, size = state["prev"], state["step_size"]
        if parameter.is_complex():
            parameter, gradient, previous, size = as_real((parameter, gradient, previous, size))
        shrink, grow = group["etas"]
        agreement = gradient * previous
        turned = agreement < 0
        factor = ones_like(size).masked_fill_(agreement > 0, grow).masked_fill_(turned, shrink)
        size.mul_(factor).clamp_(*group["step_sizes"])
        gradient = gradient.masked_fill(turned, 0)  # no step, and no verdict in the next one
        parameter.addcmul_(gradient.sign(), size, value=-1)
        previous.copy_(gradient)
