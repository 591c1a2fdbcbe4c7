"""Adagrad."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor

from .ops.optimizers.fused import adagrad_step, adagrad_update
from .optimizer import ParamsT
from .state import number
from .step_optimizer import Step, StepOptimizer, filled


def _update_one(
    parameter: Tensor,
    gradient: Tensor,
    total: Tensor,
    step: float,
    lr: float,
    lr_decay: float,
    *options: Any,
) -> None:
    rate = lr / (1 + (step - 1) * lr_decay)
    adagrad_update(parameter, gradient, total, rate, *options)


class Adagrad(StepOptimizer):
    r"""Adagrad: the gradient divided by the root of the sum of its squares so far.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize, see :class:`~tensorplug.optim.Optimizer`.
    lr : float or Tensor
        The learning rate.
    lr_decay : float
        How fast the learning rate falls with the steps.
    weight_decay : float
        The factor of the L2 penalty.
    initial_accumulator_value : float
        What the sums start with.
    eps : float
        Added to the denominator.
    maximize : bool
        Go up the gradient instead of down.
    foreach : bool, optional
        Whether one op updates all parameters, which a backend may do in one kernel; by default it does.
    fused : bool, optional
        The same, for torch's sake; True asks for floating-point parameters.
    differentiable : bool
        Record the update itself, for gradients through it; parameters must then be non-leaf
        tensors.

    Raises
    ------
    ValueError
        If an option is out of range.

    Notes
    -----
    With gradient :math:`g` at step :math:`t`: :math:`s \leftarrow s + g^2` and
    :math:`p \leftarrow p - \frac{lr}{1 + (t - 1) \eta} \cdot g / (\sqrt{s} + \epsilon)`
    (Duchi, Hazan and Singer, 2011).

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.Adagrad([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> bool(x < 4)
    True
    """

    _step = Step(
        adagrad_step,
        _update_one,
        state=("sum",),
        options=("lr", "lr_decay", "weight_decay", "eps", "maximize"),
        options_of_one=("lr", "lr_decay", "weight_decay", "eps", "maximize", "differentiable"),
    )
    _not_negative = ("lr_decay", "weight_decay", "initial_accumulator_value", "eps")
    _refusal = None

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value, foreach=foreach,
            maximize=maximize, differentiable=differentiable, fused=fused,
        )  # fmt: skip

    def update_sparse(
        self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update the rows of a parameter that its gradient has, in place."""
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        state = self._started(parameter, group)
        (step,) = self._count(state, group, self._counting_device(parameter, group))
        rate = number(group["lr"]) / (1 + (number(step) - 1) * group["lr_decay"])
        gradient = (-gradient if group["maximize"] else gradient).coalesce()
        total: Any = state["sum"]
        total.add_(gradient.square())
        root = total.sparse_mask(gradient).values().sqrt().add_(group["eps"])
        change: Any = gradient.detach().clone()
        change.values().div_(root)
        parameter.add_(change, alpha=-rate)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters; their sums start at once, from the group's value."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for parameter in group["params"]:
            self._started(parameter, group)

    def _new(self, name: str, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        return filled(parameter, group["initial_accumulator_value"])
