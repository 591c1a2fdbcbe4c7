"""Alignment of a sequence of labels to the outputs of a network that was trained with CTC."""

from __future__ import annotations

import math

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.plugin import composite


@composite(name="torchaudio.forced_align", method=False, outputs="paths, scores")
def forced_align(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
) -> tuple[Tensor, Tensor]:
    """Return the most likely path of labels and blanks that spells the targets: Viterbi's algorithm.

    Parameters
    ----------
    log_probs : Tensor
        (1, time, classes).
    targets : Tensor
        (1, labels), int32 or int64, without blanks.
    input_lengths, target_lengths : Tensor
        (1,): how much of both counts.
    blank : int
        The class that stands for no label.

    Returns
    -------
    paths : Tensor
        (1, time): the class at each time, of the dtype of `targets`.
    scores : Tensor
        `log_probs`.

    Raises
    ------
    RuntimeError
        If there is more than one sequence, or too little time for the targets.
    """
    if log_probs.ndim != 3 or log_probs.shape[0] != 1 or targets.shape[0] != 1:
        raise RuntimeError(
            "forced_align(): expected one sequence, log_probs of shape (1, time, classes) and targets of "
            f"shape (1, labels), got {list(log_probs.shape)} and {list(targets.shape)}"
        )
    if targets.dtype not in (tp.int32, tp.int64):
        raise RuntimeError(
            f"forced_align(): targets must be int32 or int64 type, got {targets.dtype}"
        )
    classes = log_probs.shape[2]
    if not 0 <= blank < classes:
        raise RuntimeError(
            f"forced_align(): blank must be within [0, num classes) = [0, {classes}), got {blank}"
        )
    time = int(input_lengths[0])
    labels = targets[0, : int(target_lengths[0])].long()
    count = labels.shape[0]
    repeats = int((labels[1:] == labels[:-1]).sum()) if count else 0
    if time < count + repeats:
        raise RuntimeError(
            f"forced_align(): targets length is too long for CTC: {count} labels with {repeats} repeats need "
            f"as much time, got {time}"
        )
    # The states: a blank before, between and behind the labels.
    states = labels.new_full((2 * count + 1,), blank)
    states[1::2] = labels
    skips = tp.zeros_like(states, dtype=tp.bool)  # whether the blank before a label may be left out
    skips[3::2] = labels[1:] != labels[:-1]
    scores = log_probs[0].detach()[:, states]
    best = tp.full_like(scores[0], -math.inf) if time else scores.new_zeros(0)
    best[:2] = scores[0, :2]
    came_by = []
    for now in scores[1:time]:
        stay, step, skip = best, _behind(best, 1), _behind(best, 2)
        skip = skip.where(skips, -math.inf)
        by = (step > stay).long()
        by = tp.where((skip > step) & (skip > stay), 2, by)
        came_by.append(by)
        best = tp.where(by == 2, skip, tp.where(by == 1, step, stay)) + now
    last = best[-2:].tolist()
    state = 2 * count - (1 if count and last[0] >= last[1] else 0)
    path = [state]
    for by in reversed(tp.stack(came_by).tolist() if came_by else []):
        state -= by[state]
        path.append(state)
    paths = targets.new_full((1, log_probs.shape[1]), blank)
    paths[0, :time] = states[tp.tensor(path[::-1], device=states.device)].to(targets.dtype)
    return paths, log_probs


def _behind(scores: Tensor, count: int) -> Tensor:
    """Return the scores of the states that lie `count` before each."""
    return tp.nn.functional.pad(scores, (count, 0), value=-math.inf)[: scores.shape[0]]


OPS = [forced_align]
