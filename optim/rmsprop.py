"""RMSprop."""

from __future__ import annotations

from tensorplug.core import Tensor

from .ops.optimizers.fused import rmsprop_step, rmsprop_update
from .optimizer import ParamsT
from .step_optimizer import Step, StepOptimizer


class RMSprop(StepOptimizer):
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

    _step = Step(
        rmsprop_step,
        rmsprop_update,
        state=("square_avg", "grad_avg", "momentum_buffer"),
        options=("lr", "alpha", "eps", "weight_decay", "momentum", "centered", "maximize"),
        options_of_one=(
            "lr", "alpha", "eps", "weight_decay", "momentum", "maximize", "differentiable",
        ),
        only_with={"grad_avg": "centered", "momentum_buffer": "momentum"},
    )  # fmt: skip
    _not_negative = ("eps", "momentum", "weight_decay", "alpha")
    _takes_count = False

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
        super().__init__(
            params,
            lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered,
            weight_decay=weight_decay, capturable=capturable, foreach=foreach, maximize=maximize,
            differentiable=differentiable,
        )  # fmt: skip
