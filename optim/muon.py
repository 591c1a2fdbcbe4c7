"""Muon."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import bfloat16
from tensorplug.core.ops import addmm, zeros_like

from .groups import check_learning_rate
from .optimizer import Optimizer, ParamsT
from .state import number

_RATES = ("original", "match_rms_adamw")


class Muon(Optimizer):
    r"""Muon: the momentum of a matrix, made orthogonal.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        Matrices, those of hidden layers; leave biases and embeddings to :class:`~tensorplug.optim.AdamW`.
    lr : float or Tensor
        The learning rate.
    weight_decay : float
        The factor of the decoupled decay.
    momentum : float
        How much of the mean of earlier gradients is kept.
    nesterov : bool
        Look ahead along the momentum.
    ns_coefficients : triple of float
        The polynomial :math:`a x + b x^3 + c x^5` that drives singular values towards one.
    eps : float
        The least norm that a matrix is divided by.
    ns_steps : int
        How often the polynomial is applied.
    adjust_lr_fn : {"original", "match_rms_adamw"}, optional
        How the rate follows the shape (A, B): times :math:`\sqrt{\max(1, A / B)}`, the default, or
        times :math:`0.2 \sqrt{\max(A, B)}`, by which rates for AdamW fit.

    Raises
    ------
    ValueError
        If a parameter is no matrix, or an option is out of range.

    Notes
    -----
    Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024; Liu et al., "Muon is
    scalable for LLM training", 2025. As in torch the Newton-Schulz iteration runs in bfloat16.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.ones(2, 2, requires_grad=True)
    >>> optimizer = tp.optim.Muon([x], lr=0.1)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> bool((x < 1).all())
    True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_least("Learning rate", lr)
        check_learning_rate(lr)
        check_least("momentum", momentum)
        check_least("weight decay", weight_decay)
        if adjust_lr_fn is not None and adjust_lr_fn not in _RATES:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{list(parameter.shape)}"
                    )

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        if parameter.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = zeros_like(gradient, requires_grad=False)
        mean = state["momentum_buffer"]
        momentum = group["momentum"]
        mean.lerp_(gradient, 1 - momentum)
        direction = gradient.lerp(mean, momentum) if group["nesterov"] else mean
        update = orthogonalized(
            direction, group["ns_coefficients"], group["ns_steps"], group["eps"]
        )
        lr = number(group["lr"])
        rows, columns = parameter.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            adjusted = lr * 0.2 * max(rows, columns) ** 0.5
        else:
            adjusted = lr * max(1.0, rows / columns) ** 0.5
        parameter.mul_(1 - lr * group["weight_decay"])
        parameter.add_(update, alpha=-adjusted)


def orthogonalized(
    matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """Return nearly U V^T of the singular value decomposition U S V^T, by Newton-Schulz steps in bfloat16."""
    a, b, c = coefficients
    x = matrix.to(bfloat16)
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        square = x @ x.T
        x = addmm(x, addmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def check_least(name: str, value: Any, least: float = 0.0) -> None:
    """Raise ValueError for a negative option, in the words that torch has for newer optimizers."""
    if isinstance(value, Tensor) and value.numel() != 1:
        return  # which is another error
    if not value >= least:
        raise ValueError(f"{name} should be >= 0 but is: {value}")
