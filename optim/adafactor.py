"""Adafactor."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.dtypes import finfo
from tensorplug.core.ops import zeros_like

from .groups import check_learning_rate
from .muon import check_least
from .ops.optimizers.own_rates import adafactor_step, adafactor_update
from .optimizer import Optimizer, ParamsT
from .state import count_step, number, scalar, step_lists


class Adafactor(Optimizer):
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
        check_learning_rate(lr)
        if beta2_decay > 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None:
            check_least("epsilon1", eps[0])
        check_least("epsilon2", eps[1])
        if d < 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        check_least("weight_decay", weight_decay)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one dtype and device in one op."""
        states = {p: self._started(p, p.grad) for p in parameters}
        options = _options(parameters[0], group)
        matrices = [p for p in parameters if p.ndim > 1]
        if matrices:
            chosen = [states[p] for p in matrices]
            params, grads, rows, columns = step_lists(matrices, chosen, "row_var", "col_var")
            adafactor_step(
                params, grads, rows, columns, [], [count_step(s) for s in chosen], *options
            )
        others = [p for p in parameters if p.ndim <= 1]
        if others:
            chosen = [states[p] for p in others]
            params, grads, variances = step_lists(others, chosen, "variance")
            adafactor_step(
                params, grads, [], [], variances, [count_step(s) for s in chosen], *options
            )

    def _started(self, parameter: Tensor, gradient: Any) -> dict[str, Any]:
        """Return the state of a parameter, which is zero at first."""
        if parameter.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        state: dict[str, Any] = self.state[parameter]
        if not state:
            state["step"] = scalar(0.0)
            if gradient.ndim > 1:
                state["row_var"] = zeros_like(gradient[..., :1], requires_grad=False)
                state["col_var"] = zeros_like(gradient[..., :1, :], requires_grad=False)
            else:
                state["variance"] = zeros_like(gradient, requires_grad=False)
        return state

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        state = self._started(parameter, gradient)
        names = ("row_var", "col_var") if "row_var" in state else ("variance",)
        adafactor_update(
            parameter, gradient, tuple([state[name] for name in names]), count_step(state),
            *_options(parameter, group),
        )  # fmt: skip


def _options(parameter: Tensor, group: dict[str, Any]) -> tuple[Any, ...]:
    least, smallest = group["eps"]
    if least is None:
        least = finfo(parameter.dtype).eps
    return (
        number(group["lr"]), group["beta2_decay"], least, smallest, group["d"],
        group["weight_decay"], group["maximize"],
    )  # fmt: skip
