"""RMSprop."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import zeros_like

from .groups import check_learning_rate, check_range
from .optimizer import Optimizer, ParamsT
from .state import as_real, count_step, number, scalar


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

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        if not state:
            state["step"] = scalar(0.0)
            state["square_avg"] = zeros_like(parameter)
            if group["momentum"] > 0:
                state["momentum_buffer"] = zeros_like(parameter)
            if group["centered"]:
                state["grad_avg"] = zeros_like(parameter)
        count_step(state)
        if group["maximize"]:
            gradient = -gradient
        if group["weight_decay"] != 0:
            gradient = gradient.add(parameter, alpha=group["weight_decay"])
        square = state["square_avg"]
        buffer, mean = state.get("momentum_buffer"), state.get("grad_avg")
        if parameter.is_complex():
            parameter, gradient, square, buffer, mean = as_real(
                (parameter, gradient, square, buffer, mean)
            )
        alpha = group["alpha"]
        square.mul_(alpha).addcmul_(gradient, gradient, value=1 - alpha)
        # Later steps overwrite the averages that the derivative needs.
        variance = square.clone() if group["differentiable"] else square
        if group["centered"]:
            assert mean is not None
            mean.lerp_(gradient, 1 - alpha)
            mean = mean.clone() if group["differentiable"] else mean
            variance = square.addcmul(mean, mean, value=-1)
        denominator = variance.sqrt() + group["eps"]
        lr = number(group["lr"])
        if group["momentum"] > 0:
            assert buffer is not None
            buffer.mul_(group["momentum"]).addcdiv_(gradient, denominator)
            parameter.add_(buffer, alpha=-lr)
        else:
            parameter.addcdiv_(gradient, denominator, value=-lr)
