"""Adam for sparse gradients."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import zeros_like
from tensorplug.core.tensor.layout import strided

from .groups import check_betas, check_range
from .optimizer import Optimizer, ParamsT
from .state import number


class SparseAdam(Optimizer):
    r"""Adam for gradients that are sparse: moments and parameters change only where these have elements.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize, see :class:`~tensorplug.optim.Optimizer`: dense tensors with sparse gradients, such
        as the weight of ``nn.Embedding(sparse=True)``.
    lr : float or Tensor
        The learning rate.
    betas : (float, float)
        The decay rates of the moments.
    eps : float
        Added to the denominator.
    maximize : bool
        Go up the gradient instead of down.

    Raises
    ------
    ValueError
        If an option is out of range, or a parameter is itself sparse, or complex.
    RuntimeError
        In `step`, if a gradient is dense.

    Notes
    -----
    Moments do not decay where the gradient has no elements; of Adam, this is an approximation that is
    as cheap as the gradient is sparse.

    Examples
    --------
    >>> import tensorplug as tp
    >>> table = tp.nn.Embedding(10, 3, sparse=True)
    >>> optimizer = tp.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> before = table.weight.detach().clone()
    >>> table(tp.tensor([2, 7])).sum().backward()
    >>> optimizer.step()
    >>> (table.weight != before).any(1).nonzero().flatten()
    tensor([2, 7])
    """

    _refusal = None

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check_range(bool(lr > 0.0), "learning rate", lr)
        check_range(eps > 0.0, "epsilon value", eps)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        parameters = [
            ([number_of_group, place], parameter)
            for number_of_group, group in enumerate(self.param_groups)
            for place, parameter in enumerate(group["params"])
        ]
        sparse = [where for where, parameter in parameters if parameter.layout is not strided]
        if sparse:
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )
        complex_ = [where for where, parameter in parameters if parameter.is_complex()]
        if complex_:
            raise ValueError(
                f"Complex params at indices {complex_}: SparseAdam does not support complex parameters"
            )

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Raise: the gradient is dense."""
        raise RuntimeError(
            "SparseAdam does not support dense gradients, please consider Adam instead"
        )

    def update_sparse(
        self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update the rows of a parameter that its gradient has, in place."""
        if not state:
            state["step"] = 0
            for name in ("exp_avg", "exp_avg_sq"):
                state[name] = zeros_like(parameter, requires_grad=False)
        state["step"] += 1
        gradient = (-gradient if group["maximize"] else gradient).coalesce().detach()
        if not gradient._nnz():
            return
        first, second = map(number, group["betas"])
        values = gradient.values()
        mean = _moved(state["exp_avg"], gradient, values, 1 - first)
        square = _moved(state["exp_avg_sq"], gradient, values * values, 1 - second)
        step = state["step"]
        rate = number(group["lr"]) * math.sqrt(1 - second**step) / (1 - first**step)
        change = mean / square.sqrt().add_(group["eps"])
        parameter.add_(gradient._with_values(change), alpha=-rate)


def _moved(moment: Any, gradient: Any, target: Any, share: float) -> Any:
    """Move a moment a share of the way to `target` where a gradient has elements; return it there."""
    before = moment.sparse_mask(gradient).values()
    change = (target - before) * share
    moment.add_(gradient._with_values(change))
    return before + change
