"""Connectionist temporal classification (Graves et al. 2006)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from tensorplug.autograd import derivative
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import (
    FLOATING,
    INTEGER,
    bfloat16,
    float16,
    float32,
    int64,
    scalar_type,
)
from tensorplug.core.dispatch.op_registry import Delegated, composite
from tensorplug.core.ops import arange, cat, full_like, stack, where
from tensorplug.core.tensor.creation import tensor as make_tensor
from tensorplug.core.tensor.shapes import Shape

from .._gradients import gradients
from .declaration import check_gradient, check_tensors, reduced

# Stands for the logarithm of zero: minus infinity would make gradients NaN.
_NEVER = -1e30

Lengths = Tensor | Sequence[int]


def _canonical_ctc(
    log_probs: Any,
    targets: Any,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    check_tensors("ctc_loss", log_probs=log_probs, targets=targets)
    if log_probs._key.dtype.category != FLOATING:
        raise NotImplementedError(
            f'ctc_loss(): "ctc_loss" not implemented for {scalar_type(log_probs.dtype)!r}: log '
            "probabilities are floating-point numbers"
        )
    if log_probs.ndim == 2:
        losses = ctc_loss(
            log_probs.unsqueeze(1),
            targets,
            input_lengths,
            target_lengths,
            blank,
            reduction,
            zero_infinity,
        )
        return Delegated(losses.reshape(()))
    if log_probs.ndim != 3:
        raise RuntimeError(
            f"ctc_loss(): expected log_probs of 2 or 3 dimensions, got {list(log_probs.shape)}"
        )
    steps, n, classes = log_probs.shape
    if not log_probs.numel():
        raise RuntimeError("log_probs tensor must not be empty")
    if not 0 <= blank < classes:
        raise RuntimeError(f"blank must be in label range, got {blank} of {classes} labels")
    inputs = _lengths(input_lengths, n, "input_lengths")
    outputs = _lengths(target_lengths, n, "target_lengths")
    if max(inputs, default=0) > steps:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value {max(inputs)}"
        )
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(
            f"ctc_loss(): {reduction} is not a valid value for reduction: none, mean, sum"
        )
    labels = _padded_labels(targets, outputs, blank, log_probs.device)
    return log_probs, labels, inputs, outputs, blank, reduction, bool(zero_infinity)


@composite(rule=_canonical_ctc, method=False)
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return the negative log likelihood of label sequences, summed over all alignments with the input.

    Parameters
    ----------
    log_probs : Tensor
        Log probabilities, (T, N, C) or (T, C).
    targets : Tensor
        Labels, (N, S), or all of them one after the other; none is `blank`.
    input_lengths, target_lengths : Tensor or sequence of int
        One of each per sample.
    blank : int
        The label that stands for none.
    reduction : {"mean", "sum", "none"}
        "mean" divides each loss by its target's length first.
    zero_infinity : bool
        Whether a target that is too long for its input loses nothing, rather than infinitely much.

    Raises
    ------
    RuntimeError
        If lengths or labels do not fit.

    Notes
    -----
    Half precision is computed in float32.
    """
    inputs: Any = input_lengths
    outputs: Any = target_lengths
    dtype = log_probs.dtype
    lp = log_probs.to(float32) if dtype is float16 or dtype is bfloat16 else log_probs
    losses = _negative_log_likelihood(lp, targets, inputs, outputs, blank)
    impossible = losses.detach() > -_NEVER / 2
    losses = where(impossible, 0.0 if zero_infinity else float("inf"), losses)
    if reduction == "mean":
        sizes = make_tensor([max(s, 1) for s in outputs], dtype=lp.dtype, device=lp.device)
        result: Tensor = (losses / sizes).mean().to(dtype)
    else:
        result = reduced(losses, reduction, "ctc_loss").to(dtype)
    return result


def _check_gradient(
    grad_output: Any,
    log_probs: Any,
    targets: Any,
    inputs: Any,
    outputs: Any,
    blank: int,
    *rest: Any,
) -> None:
    _canonical_ctc(log_probs, targets, inputs, outputs, blank, rest[0])
    check_gradient(grad_output, log_probs._shape[1:2], rest[0])


@composite(
    shapes="grad_output(*R), log_probs(T, N, C), targets:int64(N, S)",
    rule=_check_gradient,
    method=False,
)
def ctc_loss_backward(
    grad_output: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Shape,
    target_lengths: Shape,
    blank: int,
    reduction: str,
    zero_infinity: bool,
) -> Tensor:
    """Return the gradient of :func:`ctc_loss`'s log probabilities; of what is impossible it is zero.

    Parameters
    ----------
    grad_output : Tensor
        (N,), or of no dimensions if the losses were reduced.
    log_probs : Tensor
        (T, N, C).
    targets : Tensor
        int64, (N, S).
    input_lengths, target_lengths : tuple of int
        One of each per sample.
    blank, reduction, zero_infinity
        As of :func:`ctc_loss`.
    """
    arguments = (log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
    result: Tensor = gradients(ctc_loss, grad_output, arguments, 0)[0]
    return result


def _lengths(lengths: Any, n: int, name: str) -> tuple[int, ...]:
    if isinstance(lengths, Tensor) and lengths.dtype.category > INTEGER:
        raise RuntimeError(f"{name} must be integral, got {lengths.dtype}")
    values = lengths.reshape(-1).tolist() if isinstance(lengths, Tensor) else list(lengths)
    if len(values) != n:
        raise RuntimeError(f"{name} must be of size batch_size ({n}), got {len(values)}")
    if any(value < 0 for value in values):
        raise RuntimeError(f"{name} must not be negative, got {values}")
    return tuple([index(value) for value in values])


def _padded_labels(targets: Any, lengths: tuple[int, ...], blank: int, device: Any) -> Any:
    """Return labels as (N, longest)."""
    longest = max(lengths, default=0)
    targets = targets.to(int64)
    if targets.ndim == 2:
        if targets.shape[0] != len(lengths) or targets.shape[1] < longest:
            raise RuntimeError(
                f"Expected targets to have size at least {longest} at dimension 1, but got size "
                f"{list(targets.shape)}"
            )
        return targets[:, :longest].to(device)
    if targets.shape[0] != sum(lengths):
        raise RuntimeError(
            f"Expected tensor to have size {sum(lengths)} at dimension 0, but got size "
            f"{targets.shape[0]} for argument #2 'targets': the sum of their lengths"
        )
    rows, start = [], 0
    for length in lengths:
        row = targets[start : start + length]
        rows.append(cat([row, full_like(targets[:1].expand(longest - length), blank)]))
        start += length
    return stack(rows).to(device)


def _negative_log_likelihood(
    lp: Any, labels: Any, inputs: tuple[int, ...], outputs: tuple[int, ...], blank: int
) -> Any:
    steps, n, _ = lp.shape
    longest = labels.shape[1]
    states = 2 * longest + 1
    index = arange(states, device=lp.device)
    # Between the labels, before and after them, there may be blanks.
    inside = stack([full_like(labels, blank), labels], 2).reshape(n, 2 * longest)
    path = cat(
        [inside, full_like(inside[:, :1] if longest else labels.new_zeros((n, 1)), blank)], 1
    )
    before = cat([full_like(path[:, :2], blank), path[:, :-2]], 1)[:, :states]
    skip = (path != blank).logical_and(path != before).logical_and(index >= 2)
    emitted = lp.gather(2, path.unsqueeze(0).expand(steps, n, states))
    alpha = where(index < 2, emitted[0], _NEVER) if steps else emitted.sum(0)
    lengths = make_tensor(inputs, dtype=int64, device=lp.device).unsqueeze(1)
    for t in range(1, steps):
        from_one = cat([full_like(alpha[:, :1], _NEVER), alpha[:, :-1]], 1)
        reached = [alpha, from_one]
        if states > 2:
            from_two = cat([full_like(alpha[:, :2], _NEVER), alpha[:, :-2]], 1)
            reached.append(where(skip, from_two, _NEVER))
        new = (stack(reached).logsumexp(0) + emitted[t]).clamp(min=_NEVER)
        alpha = where(lengths > t, new, alpha)
    ends = make_tensor(outputs, dtype=int64, device=lp.device).unsqueeze(1)
    last = alpha.gather(1, 2 * ends)
    label = where(ends > 0, alpha.gather(1, (2 * ends - 1).clamp(min=0)), _NEVER)
    total = cat([last, label], 1).logsumexp(1)
    # Without any input only the empty target is certain.
    started = lengths.reshape(-1) > 0
    nothing = where(ends.reshape(-1) == 0, 0.0, -_NEVER)
    return where(started, -total, nothing)


def _gradient(
    g: Any,
    log_probs: Any,
    targets: Any,
    input_lengths: Shape,
    target_lengths: Shape,
    blank: int,
    reduction: str,
    zero_infinity: bool,
) -> Any:
    lengths = (input_lengths, target_lengths)
    return ctc_loss_backward(g, log_probs, targets, *lengths, blank, reduction, zero_infinity)


DERIVATIVES = [derivative("ctc_loss", log_probs=_gradient)]
