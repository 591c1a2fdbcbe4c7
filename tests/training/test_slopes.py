"""The gradients of random networks' losses are the slopes of the losses, measured from both sides.

This needs no other library. ``make fuzz`` runs ``TENSORPLUG_FUZZ`` programs.
"""

from __future__ import annotations

import dataclasses
import os
import warnings

import numpy as np
import pytest
from additions import SCALING
from comparing import check
from plans import Plan, drawn, settled
from training import Training, batch

import tensorplug as tp

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "200"))
PARTS = 4
STEP = 1e-6


def slopes(plan: Plan) -> tuple[float, float, float]:
    """Return the slope of the loss along a random direction: by its gradients, and measured on both sides."""
    training = Training(tp, plan)
    training.network.train()
    given = batch(tp, plan, 0)
    trained = [p for p in training.network.parameters() if p.requires_grad]
    numbers = np.random.default_rng(plan.seed)
    directions = [tp.tensor(numbers.standard_normal(tuple(p.shape))) for p in trained]

    def loss(distance: float) -> float:
        with tp.no_grad():
            for parameter, direction in zip(trained, directions, strict=True):
                parameter.add_(direction, alpha=distance)
        tp.manual_seed(plan.seed)
        found = float(training.backward(*given))
        with tp.no_grad():
            for parameter, direction in zip(trained, directions, strict=True):
                parameter.sub_(direction, alpha=distance)
        return found

    before, after, here = loss(-STEP), loss(STEP), None
    for parameter in trained:
        parameter.grad = None
    here = loss(0.0)
    gradients = [p.grad for p in trained]
    expected = sum(
        float((g * d).sum()) for g, d in zip(gradients, directions, strict=True) if g is not None
    )
    return expected, (here - before) / STEP, (after - here) / STEP


def differs(plan: Plan) -> str:
    """Return in what gradients and slopes differ."""
    with tp.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected, left, right = slopes(plan)
        except (RuntimeError, ValueError) as error:
            return repr(error)
    scale = 1 + abs(expected)
    if not np.isfinite(expected) or abs(left - right) > 1e-3 * scale:
        return ""  # a kink lies there: a maximum of two, the border of an activation
    if abs((left + right) / 2 - expected) < 1e-4 * scale:
        return ""
    return f"by gradients {expected}, measured {left}, {right}"


def smooth(seed: int) -> Plan:
    """Return a program whose gradients are those of its loss as it returns it."""
    plan = drawn(seed, dropout=True)
    # What the gradients of embeddings leave out, or divide, the loss does not know of.
    layers = tuple([layer for layer in plan.layers if layer[0] != "embedding"])
    changes: dict[str, object] = {"layers": layers, "parts": 1, "events": (), "average": False}
    if plan.addition in (
        *SCALING,
        "spectral_norm",
        "frozen",
    ):  # whose estimate moves with each call
        changes["addition"] = None
    if plan.forward == "reentrant":  # there the input is a leaf, which may not be written to
        changes["forward"] = "call"
    if plan.loss[1] == "none":  # it is weighted by its own values
        changes["loss"] = (plan.loss[0], "mean")
    return settled(dataclasses.replace(plan, **changes))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_slopes(part: int) -> None:
    for seed in range(part, COUNT, PARTS):
        check(smooth(seed), differs)
