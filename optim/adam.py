"""Adam."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import maximum, zeros_like

from .groups import check_betas, check_implementation, check_learning_rate, check_range
from .optimizer import Optimizer, ParamsT
from .state import as_real, count_step, number, scalar


class Adam(Optimizer):
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
    foreach, fused : bool, optional
        Accepted for torch's sake. Every tensor is updated by a few in-place ops, whatever they say.
    capturable : bool
        Accepted for torch's sake: whether a step can be captured in a graph is up to the backend.
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
        check_learning_rate(lr)
        check_range(eps >= 0.0, "epsilon value", eps)
        check_betas(betas)
        check_range(weight_decay >= 0.0, "weight_decay value", weight_decay)
        check_implementation(foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        if not state:
            state["step"] = scalar(0.0)
            state["exp_avg"] = zeros_like(parameter)
            state["exp_avg_sq"] = zeros_like(parameter)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = zeros_like(parameter)
        step = count_step(state)
        lr = group["lr"]
        beta1, beta2 = number(group["betas"][0]), number(group["betas"][1])
        if group["maximize"]:
            gradient = -gradient
        decay = group["weight_decay"]
        if decay != 0:
            if group["decoupled_weight_decay"]:
                parameter.mul_(1 - lr * decay)
            else:
                gradient = gradient.add(parameter, alpha=decay)
        average, square = state["exp_avg"], state["exp_avg_sq"]
        largest = state["max_exp_avg_sq"] if group["amsgrad"] else None
        if parameter.is_complex():
            parameter, gradient, average, square, largest = as_real(
                (parameter, gradient, average, square, largest)
            )
        average.lerp_(gradient, 1 - beta1)
        square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        differentiable = group["differentiable"]
        if differentiable:  # later steps overwrite the averages that the derivative needs
            average, square = average.clone(), square.clone()
        if largest is not None:
            square = maximum(largest.clone() if differentiable else largest, square)
            largest.copy_(square)
        root = (1 - beta2**step) ** 0.5
        denominator = square.sqrt()
        if differentiable:
            denominator = denominator / root + group["eps"]
        else:
            denominator.div_(root).add_(group["eps"])
        correction = 1 - beta1**step
        if differentiable and isinstance(lr, Tensor):
            parameter.sub_(average / denominator * (lr / correction))
        else:
            parameter.addcdiv_(average, denominator, value=-number(lr) / correction)
