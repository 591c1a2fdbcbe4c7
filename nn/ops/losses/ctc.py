"""Connectionist temporal classification (Graves et al. 2006)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import INTEGER, bfloat16, float16, float32, int64
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import arange, cat, full_like, stack, where
from tensorplug.core.tensor.creation import tensor as make_tensor

from .declaration import check_tensors, reduced

# Stands for the logarithm of zero: minus infinity would make gradients NaN.
_NEVER = -1e30

Lengths = Tensor | Sequence[int]


@composite(method=False)
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
    check_tensors("ctc_loss", log_probs=log_probs, targets=targets)
    batched = log_probs.ndim == 3
    lp: Any = log_probs if batched else log_probs.unsqueeze(1)
    if lp.ndim != 3:
        raise RuntimeError(
            f"ctc_loss(): expected log_probs of 2 or 3 dimensions, got {list(log_probs.shape)}"
        )
    steps, n, classes = lp.shape
    if not 0 <= blank < classes:
        raise RuntimeError(f"blank must be in label range, got {blank} of {classes} labels")
    inputs = _lengths(input_lengths, n, "input_lengths")
    outputs = _lengths(target_lengths, n, "target_lengths")
    if max(inputs, default=0) > steps:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value {max(inputs)}"
        )
    labels = _padded_labels(targets, outputs, blank, lp.device)
    dtype = lp.dtype
    if dtype is float16 or dtype is bfloat16:
        lp = lp.to(float32)
    losses = _negative_log_likelihood(lp, labels, inputs, outputs, blank)
    impossible = losses.detach() > -_NEVER / 2
    losses = where(impossible, 0.0 if zero_infinity else float("inf"), losses)
    if reduction == "mean":
        sizes = make_tensor([max(s, 1) for s in outputs], dtype=lp.dtype, device=lp.device)
        return (losses / sizes).mean().to(dtype)
    if not batched and reduction == "none":
        return losses.reshape(()).to(dtype)
    return reduced(losses, reduction, "ctc_loss").to(dtype)


def _lengths(lengths: Any, n: int, name: str) -> list[int]:
    if isinstance(lengths, Tensor) and lengths.dtype.category > INTEGER:
        raise RuntimeError(f"{name} must be integral, got {lengths.dtype}")
    values = lengths.reshape(-1).tolist() if isinstance(lengths, Tensor) else list(lengths)
    if len(values) != n:
        raise RuntimeError(f"{name} must be of size batch_size ({n}), got {len(values)}")
    if any(value < 0 for value in values):
        raise RuntimeError(f"{name} must not be negative, got {values}")
    return [int(value) for value in values]


def _padded_labels(targets: Any, lengths: list[int], blank: int, device: Any) -> Any:
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
    if targets.shape[0] < sum(lengths):
        raise RuntimeError(
            f"Expected {sum(lengths)} targets, the sum of their lengths, but got {targets.shape[0]}"
        )
    rows, start = [], 0
    for length in lengths:
        row = targets[start : start + length]
        rows.append(cat([row, full_like(targets[:1].expand(longest - length), blank)]))
        start += length
    return stack(rows).to(device)


def _negative_log_likelihood(
    lp: Any, labels: Any, inputs: list[int], outputs: list[int], blank: int
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
