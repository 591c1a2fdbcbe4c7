"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor

from .groups import check_implementation, check_learning_rate, check_range
from .optimizer import Optimizer, ParamsT


class SGD(Optimizer):
    r"""Stochastic gradient descent, with momentum if asked for.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize, see :class:`~tensorplug.optim.Optimizer`.
    lr : float or Tensor
        The learning rate.
    momentum : float
        How much of the previous direction is kept.
    dampening : float
        How much less of the new gradient enters the momentum.
    weight_decay : float or Tensor
        The factor of the L2 penalty.
    nesterov : bool
        Look ahead along the momentum.
    maximize : bool
        Go up the gradient instead of down.
    foreach, fused : bool, optional
        Accepted for torch's sake. Every tensor is updated by a few in-place ops, whatever they say.
    differentiable : bool
        Record the update itself, for gradients through it; parameters must then be non-leaf
        tensors.

    Raises
    ------
    ValueError
        If an option is out of range.

    Notes
    -----
    With gradient :math:`g`, momentum :math:`\mu` and dampening :math:`\tau`:
    :math:`b \leftarrow \mu b + (1 - \tau) g`, starting with :math:`b = g`, then
    :math:`p \leftarrow p - lr \cdot b`. Nesterov's form uses :math:`g + \mu b` instead of :math:`b`
    (Sutskever et al., 2013).

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.SGD([x], lr=0.25)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([2.], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_learning_rate(lr)
        check_range(momentum >= 0.0, "momentum value", momentum)
        check_range(bool(weight_decay >= 0.0), "weight_decay value", weight_decay)
        check_implementation(foreach, fused, differentiable)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        if group["maximize"]:
            gradient = -gradient
        decay = group["weight_decay"]
        if isinstance(decay, Tensor):
            gradient = gradient + decay * parameter
        elif decay != 0:
            gradient = gradient.add(parameter, alpha=decay)
        momentum = group["momentum"]
        if momentum != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = gradient.clone() if group["differentiable"] else gradient.detach().clone()
                state["momentum_buffer"] = buffer
            else:
                buffer.mul_(momentum).add_(gradient, alpha=1 - group["dampening"])
            gradient = gradient.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        lr = group["lr"]
        if not isinstance(lr, Tensor):
            parameter.add_(gradient, alpha=-lr)
        else:
            parameter.sub_(gradient * lr)
