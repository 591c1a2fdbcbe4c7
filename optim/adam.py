"""Adam."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.device import CPU, Device

from .ops.optimizers.fused import adam_step, adam_update
from .ops.optimizers.on_device import adam_step_on_device, rate_of
from .optimizer import ParamsT
from .scalars import Scalar, moved, on_device
from .state import count_step
from .step_optimizer import Step, StepOptimizer


class Adam(StepOptimizer):
    r"""Adam: steps scaled by running averages of the gradient and its square.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize, see :class:`~tensorplug.optim.Optimizer`.
    lr : float or Tensor
        The learning rate.
    betas : pair of float
        The decay rates of the averages of the gradient and of its square.
    eps : float
        Added to the denominator.
    weight_decay : float
        The factor of the L2 penalty, or of the decay itself with `decoupled_weight_decay`.
    amsgrad : bool
        Divide by the largest average of the square so far (Reddi et al., 2018).
    maximize : bool
        Go up the gradient instead of down.
    foreach : bool, optional
        Whether one op updates all parameters, which a backend may do in one kernel; by default it does.
    fused : bool, optional
        The same; True asks for floating-point parameters, and counts the steps on the device, so that a
        :class:`~tensorplug.amp.GradScaler` does not wait for it.
    capturable : bool
        Count the steps on the device, so that a step can be captured in a graph.
    differentiable : bool
        Record the update itself, for gradients through it; parameters must then be non-leaf
        tensors.
    decoupled_weight_decay : bool
        Shrink the parameter directly, as :class:`~tensorplug.optim.AdamW` does.

    Raises
    ------
    ValueError
        If an option is out of range.

    Notes
    -----
    With gradient :math:`g` at step :math:`t`: :math:`m \leftarrow \beta_1 m + (1 - \beta_1) g`,
    :math:`v \leftarrow \beta_2 v + (1 - \beta_2) g^2`, then
    :math:`p \leftarrow p - lr \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}`
    (Kingma and Ba, 2015).

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.Adam([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([3.5000], requires_grad=True)
    """

    _step = Step(
        adam_step,
        adam_update,
        state=("exp_avg", "exp_avg_sq", "max_exp_avg_sq"),
        options=(
            "lr", "betas", "weight_decay", "eps", "amsgrad", "maximize", "decoupled_weight_decay",
        ),
        options_of_one=(
            "lr", "betas", "weight_decay", "eps", "maximize", "decoupled_weight_decay",
            "differentiable",
        ),
        only_with={"max_exp_avg_sq": "amsgrad"},
    )  # fmt: skip
    _skips_on_device = True
    _counts_together = True
    _refusal = "Adam does not support sparse gradients, please consider SparseAdam instead"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad,
            maximize=maximize, foreach=foreach, capturable=capturable,
            differentiable=differentiable, fused=fused,
            decoupled_weight_decay=decoupled_weight_decay,
        )  # fmt: skip

    def update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one dtype and device in one op."""
        kept = self.state
        states = [kept[p] or self._started(p, group) for p in parameters]
        found = self.found_inf_of(parameters[0])
        if found is None and not on_device(states[0]["step"]):
            self._update_all(parameters, states, group)
            return
        rate, lr = rate_of(group["lr"], parameters[0])
        steps = [moved(s, "step", parameters[0].device) for s in states]
        options = self._values(self._step.options[1:], parameters[0], group)
        lists = self._lists(parameters, states, group)
        arguments: list[Any] = [*lists, steps, rate, found, lr, *options]
        adam_step_on_device(*arguments)

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        if on_device(self._started(parameter, group)["step"]) and not group["differentiable"]:
            self.update_together([parameter], group)
        else:
            super().update(parameter, gradient, state, group)

    def _counting_device(self, parameter: Tensor, group: dict[str, Any]) -> Device:
        return parameter.device if group["fused"] or group["capturable"] else CPU

    def _count(
        self, state: dict[str, Any], group: dict[str, Any], device: Device
    ) -> tuple[Scalar, ...]:
        return (count_step(state),)

    def _counts(
        self, states: list[dict[str, Any]], group: dict[str, Any], device: Device
    ) -> list[list[Scalar]]:
        return [[count_step(state) for state in states]]

    def _rate(self, parameter: Tensor, group: dict[str, Any]) -> Scalar:
        rate: Scalar = group["lr"]
        return rate
