"""Losses of random training programs: of the library, logits (rows, classes), classes and numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from random import Random
from typing import Any

CLASSES = 5
Loss = Callable[[Any, Any, Any, Any], Any]
REDUCED = ("mean", "sum", "none")


def weights(lib: Any, like: Any) -> Any:
    """Return a weight for each class."""
    return lib.arange(1.0, CLASSES + 1.0, dtype=like.dtype) / 3


def focal(lib: Any, x: Any, y: Any, z: Any) -> Any:
    """Return a loss of ordinary ops (Lin et al., Focal loss for dense object detection)."""
    chosen = x.gather(1, y[:, None])[:, 0] - lib.logsumexp(x, 1)
    return -((1 - chosen.exp()) ** 2 * chosen)


def ctc(lib: Any, x: Any, y: Any, z: Any, reduction: str) -> Any:
    """Return the loss of all rows as one sequence, of which the first class is to be read.

    More classes than rows cannot be: there torch's gradients are NaN, and ours zero.
    """
    log_probabilities = x.log_softmax(-1)[:, None]
    targets = y[:1].clamp(min=1)[None]
    return lib.nn.functional.ctc_loss(
        log_probabilities, targets, (x.shape[0],), (targets.shape[1],), reduction=reduction
    )


def triplet(lib: Any, x: Any, y: Any, z: Any, reduction: str) -> Any:
    """Return the loss of each row, the next and a given one."""
    F = lib.nn.functional
    return F.triplet_margin_loss(x, x.roll(1, 0) + 0.5, z, margin=2.0, p=2, reduction=reduction)


def cosine(lib: Any, x: Any, y: Any, z: Any, reduction: str) -> Any:
    """Return the loss of angles to be small or wide."""
    F = lib.nn.functional
    return F.cosine_embedding_loss(x, z, z[:, 0].sign(), margin=0.1, reduction=reduction)


#: By name: functions of library, logits, classes, numbers and the reduction.
LOSSES: dict[str, Callable[..., Any]] = {
    "cross_entropy": lambda lib, x, y, z, how: lib.nn.functional.cross_entropy(
        x, y, ignore_index=1, reduction=how
    ),
    "smoothed": lambda lib, x, y, z, how: lib.nn.functional.cross_entropy(
        x, y, label_smoothing=0.1, weight=weights(lib, x), reduction=how
    ),
    "soft_targets": lambda lib, x, y, z, how: lib.nn.functional.cross_entropy(
        x, z.softmax(-1), reduction=how
    ),
    "nll": lambda lib, x, y, z, how: lib.nn.functional.nll_loss(
        x.log_softmax(-1), y, weight=weights(lib, x), reduction=how
    ),
    "mse": lambda lib, x, y, z, how: lib.nn.functional.mse_loss(x, z, reduction=how),
    "l1": lambda lib, x, y, z, how: lib.nn.functional.l1_loss(x, z, reduction=how),
    "smooth_l1": lambda lib, x, y, z, how: lib.nn.functional.smooth_l1_loss(
        x, z, beta=0.3, reduction=how
    ),
    "huber": lambda lib, x, y, z, how: lib.nn.functional.huber_loss(x, z, delta=0.7, reduction=how),
    "binary": lambda lib, x, y, z, how: lib.nn.functional.binary_cross_entropy_with_logits(
        x, (z > 0).to(x.dtype), pos_weight=weights(lib, x), reduction=how
    ),
    "binary_of_probabilities": lambda lib, x, y, z, how: lib.nn.functional.binary_cross_entropy(
        x.sigmoid(), z.sigmoid(), weight=weights(lib, x), reduction=how
    ),
    "divergence": lambda lib, x, y, z, how: lib.nn.functional.kl_div(
        x.log_softmax(1), z.log_softmax(1), log_target=True, reduction=how
    ),
    "multi_margin": lambda lib, x, y, z, how: lib.nn.functional.multi_margin_loss(
        x, y, p=2, weight=weights(lib, x), reduction=how
    ),
    "multi_label": lambda lib, x, y, z, how: lib.nn.functional.multilabel_soft_margin_loss(
        x, (z > 0).to(x.dtype), weight=weights(lib, x), reduction=how
    ),
    "soft_margin": lambda lib, x, y, z, how: lib.nn.functional.soft_margin_loss(
        x, z.sign(), reduction=how
    ),
    "hinge": lambda lib, x, y, z, how: lib.nn.functional.hinge_embedding_loss(
        x, z.sign(), margin=0.5, reduction=how
    ),
    "ranking": lambda lib, x, y, z, how: lib.nn.functional.margin_ranking_loss(
        x[:, 0], x[:, 1], z[:, 0].sign(), margin=0.1, reduction=how
    ),
    "gaussian": lambda lib, x, y, z, how: lib.nn.functional.gaussian_nll_loss(
        x[:, :2], z[:, :2], lib.nn.functional.softplus(x[:, 2:4]) + 0.1, full=True, reduction=how
    ),
    "poisson": lambda lib, x, y, z, how: lib.nn.functional.poisson_nll_loss(
        x.clamp(max=3), z.abs(), full=True, reduction=how
    ),
    "ctc": ctc,
    "triplet": triplet,
    "cosine": cosine,
    "focal": lambda lib, x, y, z, how: reduced(focal(lib, x, y, z), how),
}
#: What is divided by weights, or looks at several rows: not the mean of the rows' losses.
JOINT = ("cross_entropy", "smoothed", "nll", "ctc", "triplet")


def reduced(x: Any, how: str) -> Any:
    """Apply a reduction."""
    return {"mean": x.mean, "sum": x.sum, "none": lambda: x}[how]()


def loss_named(name: str, how: str) -> Loss:
    """Return a loss that is one number, whatever the reduction."""

    def loss(lib: Any, x: Any, y: Any, z: Any) -> Any:
        found = LOSSES[name](lib, x, y, z, how)
        # The elements have different gradients, so that none stands in for another.
        return (found * (1 + 0.1 * found.detach())).mean() if how == "none" else found

    return functools.wraps(LOSSES[name])(loss)


def drawn_loss(draw: Random) -> tuple[str, str]:
    """Return a loss and a reduction."""
    return draw.choice(list(LOSSES)), draw.choice(REDUCED)
