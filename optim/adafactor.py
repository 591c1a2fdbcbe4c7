"""Adafactor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import finfo
from tensorplug.core.ops import zeros_like

from .muon import check_least
from .ops.optimizers.own_rates import adafactor_step, adafactor_update
from .optimizer import ParamsT
from .step_optimizer import Step, StepOptimizer


def _update_one(
    parameter: Tensor,
    gradient: Tensor,
    rows: Tensor | None,
    columns: Tensor | None,
    variance: Tensor | None,
    *options: Any,
) -> None:
    state: Any = (rows, columns) if variance is None else (variance,)
    adafactor_update(parameter, gradient, state, *options)


class Adafactor(StepOptimizer):
    r"""Adafactor: Adam's second moment kept as one row and one column per matrix.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize, see :class:`~tensorplug.optim.Optimizer`. They must be real.
    lr : float or Tensor
        The largest relative step, and the factor of the decay.
    beta2_decay : float
        The power of the step number that the second moment forgets by.
    eps : pair of float
        The least root of the second moment, by default the dtype's epsilon; and the least size that a
        parameter counts with.
    d : float
        An update whose root mean square is above is scaled down to it.
    weight_decay : float
        The factor of the decoupled decay.
    foreach : bool, optional
        Whether one op updates all parameters, which a backend may do in one kernel; by default it does.
    maximize : bool
        Go up the gradient instead of down.

    Raises
    ------
    ValueError
        If an option is out of range.

    Notes
    -----
    For a matrix with gradient :math:`G` at step :math:`t`, with
    :math:`\hat\beta = 1 - t^{\beta_{2,decay}}`: :math:`R` and :math:`C` are running means of the rows'
    and columns' mean squares, :math:`V = R C / \mathrm{mean}(R)`, and
    :math:`U = G / \sqrt{V}` is clipped and multiplied by
    :math:`\max(\epsilon_2, \mathrm{RMS}(p)) \min(lr, 1 / \sqrt{t})` (Shazeer and Stern, 2018). As in
    torch, and unlike in the paper, `lr` bounds the relative step, and the first epsilon bounds :math:`V`
    rather than being added to the squares.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.Adafactor([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([2.], requires_grad=True)
    """

    _step = Step(
        adafactor_step,
        _update_one,
        state=("row_var", "col_var", "variance"),
        options=("lr", "beta2_decay", "eps", "d", "weight_decay", "maximize"),
    )
    _not_negative = ()

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_least("Learning rate", lr)
        if beta2_decay > 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None:
            check_least("epsilon1", eps[0])
        check_least("epsilon2", eps[1])
        if d < 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        check_least("weight_decay", weight_decay)
        super().__init__(
            params,
            lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay,
            foreach=foreach, maximize=maximize,
        )  # fmt: skip

    def update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one dtype and device, matrices in one op and others in one."""
        for parameter in parameters:
            self._started(parameter, group)  # in their order
        for matrices in (True, False):
            chosen = [p for p in parameters if (p.ndim > 1) is matrices]
            if chosen:
                super().update_together(chosen, group)

    def _started(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if parameter.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        return super()._started(parameter, group)

    def _keeps(self, name: str, parameter: Tensor, group: dict[str, Any]) -> bool:
        return (name == "variance") == (parameter.ndim <= 1)

    def _new(self, name: str, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        gradient: Any = parameter.grad
        if name != "variance":
            gradient = gradient[..., :1] if name == "row_var" else gradient[..., :1, :]
        return zeros_like(gradient, requires_grad=False)

    def _values(self, names: Sequence[str], parameter: Tensor, group: dict[str, Any]) -> list[Any]:
        least, smallest = group["eps"]
        if least is None:
            least = finfo(parameter.dtype).eps
        return super()._values(names, parameter, {**group, "eps": (least, smallest)})
