"""Adadelta."""

from __future__ import annotations

from tensorplug.core import Tensor

from .groups import check_range
from .ops.optimizers.own_rates import adadelta_step, adadelta_update
from .optimizer import ParamsT
from .step_optimizer import Step, StepOptimizer


class Adadelta(StepOptimizer):
    r"""Adadelta: steps in the parameter's own units, from running mean squares.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize, see :class:`~tensorplug.optim.Optimizer`.
    lr : float or Tensor
        The learning rate.
    rho : float
        The decay rate of the mean squares.
    eps : float
        Added under the roots.
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
    With gradient :math:`g`: :math:`v \leftarrow \rho v + (1 - \rho) g^2`, the step
    :math:`d = g \sqrt{u + \epsilon} / \sqrt{v + \epsilon}`, :math:`u \leftarrow \rho u + (1 - \rho)
    d^2` and :math:`p \leftarrow p - lr \cdot d` (Zeiler, 2012).

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.Adadelta([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> bool(x < 4)
    True
    """

    _step = Step(
        adadelta_step,
        adadelta_update,
        state=("square_avg", "acc_delta"),
        options=("lr", "rho", "eps", "weight_decay", "maximize"),
    )
    _takes_count = False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_range(0.0 <= rho <= 1.0, "rho value", rho)
        super().__init__(
            params,
            lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize,
            capturable=capturable, foreach=foreach, differentiable=differentiable,
        )  # fmt: skip
