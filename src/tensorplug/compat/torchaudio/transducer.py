"""The loss of recurrent neural network transducers.

Source: Graves 2012, Sequence Transduction with Recurrent Neural Networks, https://arxiv.org/abs/1211.3711.
"""

from __future__ import annotations

import math

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.plugin import composite


@composite(name="torchaudio.rnnt_loss_forward", method=False, outputs="costs, gradients")
def rnnt_loss_forward(
    logits: Tensor,
    targets: Tensor,
    logit_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    clamp: float,
    fused_log_softmax: bool = True,
) -> tuple[Tensor, Tensor]:
    """Return the negative log likelihood of each sequence of targets, and its gradient.

    Parameters
    ----------
    logits : Tensor
        (batch, time, labels + 1, classes).
    targets : Tensor
        (batch, labels), integers.
    logit_lengths, target_lengths : Tensor
        (batch,): how much of the time and of the labels counts.
    blank : int
        The class that goes one step on in time.
    clamp : float
        What gradients are held within, on both sides of zero; not positive: nothing.
    fused_log_softmax : bool
        Whether the classes' scores have yet to be normalised.

    Returns
    -------
    costs : Tensor
        (batch,).
    gradients : Tensor
        Of the shape of `logits`.

    Raises
    ------
    RuntimeError
        If the shapes do not fit.
    """
    if logits.ndim != 4 or tuple(targets.shape) != (logits.shape[0], logits.shape[2] - 1):
        raise RuntimeError(
            "rnnt_loss(): expected logits of shape (batch, time, labels + 1, classes) and targets of shape "
            f"(batch, labels), got {list(logits.shape)} and {list(targets.shape)}"
        )
    given = logits.detach()
    given = (given if given.dtype == tp.float64 else given.float()).requires_grad_()
    with tp.enable_grad():
        scores = given.log_softmax(3) if fused_log_softmax else given
        costs = _costs(scores, targets.long(), logit_lengths.long(), target_lengths.long(), blank)
        (gradients,) = tp.autograd.grad(costs.sum(), given)
    if clamp > 0:
        gradients = gradients.clamp(-clamp, clamp)
    return costs.detach().to(logits.dtype), gradients.to(logits.dtype)


def _costs(scores: Tensor, targets: Tensor, times: Tensor, counts: Tensor, blank: int) -> Tensor:
    """Return the costs by the likelihoods of all beginnings, one diagonal of time + label after another."""
    batch, time, width, _ = scores.shape
    waits = scores[..., blank]
    index = targets.unsqueeze(1).unsqueeze(3).expand(batch, time, width - 1, 1)
    emits = scores[:, :, :-1].gather(3, index).squeeze(3)
    label = tp.arange(width, device=scores.device)
    # likelihood[:, u] on diagonal n is that of having emitted u labels by the time n - u
    likelihood = scores.new_full((batch, width), -math.inf)
    likelihood = likelihood.masked_fill(label == 0, 0.0)
    ends = times - 1 + counts  # the diagonal of the last cell
    final = _at(likelihood, counts)
    row = tp.arange(batch, device=scores.device).unsqueeze(1)
    for diagonal in range(1, time + width - 1):
        before = (diagonal - 1 - label).clamp(
            0, time - 1
        )  # the time of the cell one step of time ago
        waited = likelihood + waits[row, before, label]
        waited = waited.masked_fill(
            (diagonal - label < 1) | (diagonal - label > time - 1), -math.inf
        )
        at = (diagonal - label[1:]).clamp(0, time - 1)
        emitted = likelihood[:, :-1] + emits[row, at, label[:-1]]
        emitted = emitted.masked_fill(
            (diagonal < label[1:]) | (diagonal - label[1:] > time - 1), -math.inf
        )
        emitted = tp.nn.functional.pad(emitted, (1, 0), value=-math.inf)
        likelihood = _added(waited, emitted)
        final = tp.where(ends == diagonal, _at(likelihood, counts), final)
    return -(final + waits[row[:, 0], times - 1, counts])


def _at(likelihood: Tensor, counts: Tensor) -> Tensor:
    return likelihood.gather(1, counts.unsqueeze(1)).squeeze(1)


def _added(one: Tensor, other: Tensor) -> Tensor:
    """Return log(exp(one) + exp(other)); where both are nothing, without a gradient that is NaN."""
    nothing = (one == -math.inf) & (other == -math.inf)
    made = tp.logaddexp(one.masked_fill(nothing, 0.0), other.masked_fill(nothing, 0.0))
    return made.masked_fill(nothing, -math.inf)


OPS = [rnnt_loss_forward]
