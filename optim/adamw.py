"""AdamW: Adam with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor

from .adam import Adam
from .optimizer import ParamsT


class AdamW(Adam):
    """Adam with weight decay that shrinks the parameter directly, past the averages.

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
        How much of the parameter is taken away per step, times `lr`.
    amsgrad : bool
        Divide by the largest average of the square so far.
    maximize : bool
        Go up the gradient instead of down.
    foreach : bool, optional
        Whether one op updates all parameters, which a backend may do in one kernel; by default it does.
    fused : bool, optional
        The same, for torch's sake; True asks for floating-point parameters.
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
    Loshchilov and Hutter, "Decoupled weight decay regularization", 2019.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.AdamW([x], lr=0.5, weight_decay=0.1)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([3.3000], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True  # also after a checkpoint of Adam
