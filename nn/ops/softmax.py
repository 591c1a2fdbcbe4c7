"""Samples of categories that have a gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import softmax, zeros_like
from tensorplug.core.ops.rules import check_tensor

if TYPE_CHECKING:
    from tensorplug.core import Tensor


@composite(random=True, method=False)
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Return a sample that is nearly one-hot and still has a gradient.

    Parameters
    ----------
    logits : Tensor
        Unnormalised log probabilities.
    tau : float
        Temperature: the lower, the nearer to one-hot.
    hard : bool
        Whether the result is one-hot, with the gradient of the soft sample.
    eps : float
        Unused, as in torch.
    dim : int
        The dimension of the classes.

    Notes
    -----
    Jang, Gu and Poole, "Categorical reparameterization with Gumbel-softmax", 2017.
    """
    check_tensor(logits, "gumbel_softmax", "logits")
    noise = -zeros_like(logits, requires_grad=False).exponential_().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.argmax(dim, keepdim=True)
    one_hot = zeros_like(logits, requires_grad=False).scatter(dim, index, 1.0)
    return one_hot - soft.detach() + soft
