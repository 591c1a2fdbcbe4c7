"""NAdam."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.device import Device

from .ops.optimizers.adam_variants import nadam_momentum, nadam_step, nadam_update
from .optimizer import ParamsT
from .scalars import Scalar, counted, multiplied
from .state import number
from .step_optimizer import Step, StepOptimizer

_OPTIONS = (
    "lr", "betas", "weight_decay", "momentum_decay", "eps", "maximize", "decoupled_weight_decay",
)  # fmt: skip


class NAdam(StepOptimizer):
    r"""NAdam: Adam with Nesterov's look-ahead.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize, see :class:`~tensorplug.optim.Optimizer`.
    lr : float or Tensor
        The learning rate.
    betas : pair of float
        The decay rates of the averages of the gradient and of its size.
    eps : float
        Added to the denominator.
    weight_decay : float
        The factor of the L2 penalty.
    momentum_decay : float
        How fast the momentum grows to its full value.
    decoupled_weight_decay : bool
        Shrink the parameter directly, as :class:`~tensorplug.optim.AdamW` does.
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
    With :math:`\mu_t = \beta_1 (1 - 0.5 \cdot 0.96^{t \psi})`, the step combines the gradient,
    weighted :math:`(1 - \mu_t) / (1 - \prod_{i \le t} \mu_i)`, with the average, weighted
    :math:`\mu_{t+1} / (1 - \prod_{i \le t+1} \mu_i)` (Dozat, 2016).

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.NAdam([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> bool(x < 4)
    True
    """

    _step = Step(
        nadam_step,
        nadam_update,
        state=("exp_avg", "exp_avg_sq"),
        options=_OPTIONS,
        options_of_one=(*_OPTIONS, "differentiable"),
    )
    _not_negative = ("eps", "weight_decay", "momentum_decay")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay, maximize=maximize, foreach=foreach,
            capturable=capturable, differentiable=differentiable,
        )  # fmt: skip

    def _numbers(self, group: dict[str, Any]) -> dict[str, float]:
        return {"step": 0.0, "mu_product": 1.0}

    def _count(
        self, state: dict[str, Any], group: dict[str, Any], device: Device
    ) -> tuple[Scalar, ...]:
        """Return the product of the momenta, and the number of the step that begins."""
        step = counted(state, device)
        momentum = nadam_momentum(step, number(group["betas"][0]), group["momentum_decay"])
        return multiplied(state, "mu_product", momentum, device), step
