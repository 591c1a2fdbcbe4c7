"""Adamax."""

from __future__ import annotations

from tensorplug.core import Tensor

from .ops.optimizers.adam_variants import adamax_step, adamax_update
from .optimizer import ParamsT
from .step_optimizer import Step, StepOptimizer


class Adamax(StepOptimizer):
    r"""Adamax: Adam with the largest recent gradient as the denominator.

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
    With gradient :math:`g` at step :math:`t`: :math:`m` as in Adam,
    :math:`u \leftarrow \max(\beta_2 u, |g| + \epsilon)`, then
    :math:`p \leftarrow p - \frac{lr}{1 - \beta_1^t} \cdot m / u` (Kingma and Ba, 2015, section 7).

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.Adamax([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> bool(x < 4)
    True
    """

    _step = Step(
        adamax_step,
        adamax_update,
        state=("exp_avg", "exp_inf"),
        options=("lr", "betas", "weight_decay", "eps", "maximize"),
        options_of_one=("lr", "betas", "weight_decay", "eps", "maximize", "differentiable"),
    )

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=foreach,
            maximize=maximize, differentiable=differentiable, capturable=capturable,
        )  # fmt: skip
