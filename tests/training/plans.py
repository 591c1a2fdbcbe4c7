"""What a random training program does, drawn from a seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from random import Random
from typing import Any

from additions import ADDITIONS
from image_layers import IMAGE_LAYERS
from losses import drawn_loss
from optimizers import FOREACH, FUSED, OPTIONS, ROUGH, SCHEDULERS
from sequence_layers import SEQUENCE_LAYERS

STEPS = 5
EVENTS = ("reload", "deepcopy", "pickle", "freeze", "unfreeze", "evaluate")


@dataclasses.dataclass(frozen=True)
class Plan:
    """A training program; the defaults are the simplest one."""

    seed: int
    images: bool
    #: Names and seeds of layers.
    layers: tuple[tuple[str, int], ...]
    loss: tuple[str, str] = ("mse", "mean")
    optimizer: tuple[str, int] = ("SGD", 0)
    #: "foreach", "fused", "for" or None, as the library likes.
    stepping: str | None = None
    scheduler: str = "none"
    addition: str | None = None
    #: How gradients are clipped.
    clip: str | None = None
    #: What is done before which step.
    events: tuple[tuple[int, str], ...] = ()
    #: Whether the gradient of the input is a part of the loss.
    penalty: bool = False
    average: bool = False
    # --- what should change no value ---
    #: "call", "checkpoint", "reentrant", "functional", "func_grad", "per_sample"
    forward: str = "call"
    parts: int = 1
    channels_last: bool = False
    to_none: bool = True
    #: "", "network", "step"
    compiled: str = ""
    #: "float64", "float32", "bfloat16", "autocast", "scaled"
    precision: str = "float64"

    def has(self, *names: str) -> bool:
        """Tell whether there is a layer of one of these kinds."""
        return any(name in names for name, _ in self.layers)


def drawn(seed: int, *, dropout: bool) -> Plan:
    """Return a program; what drops elements draws other numbers in each library."""
    draw = Random(seed)
    images = draw.random() < 0.5
    kinds = list(IMAGE_LAYERS if images else SEQUENCE_LAYERS)
    if not dropout:
        kinds.remove("dropout")
    layers = tuple((draw.choice(kinds), draw.randrange(1000)) for _ in range(draw.randint(1, 5)))
    optimizer = draw.choice(list(OPTIONS))
    ways: list[str | None] = [None, None, "for"]
    ways += ["foreach"] * (optimizer in FOREACH) + ["fused"] * (optimizer in FUSED)
    event = [(draw.randrange(1, STEPS), draw.choice(EVENTS)) for _ in range(draw.choice([0, 1, 2]))]
    return settled(
        Plan(
            seed,
            images,
            layers,
            loss=drawn_loss(draw),
            optimizer=(optimizer, draw.randrange(1000)),
            stepping=draw.choice(ways) if optimizer in FOREACH else None,
            scheduler=draw.choice(["none", *SCHEDULERS]),
            addition=draw.choice([None, None, *ADDITIONS]),
            clip=draw.choice([None, None, "norm", "norm1", "value"]),
            events=tuple(sorted(event)),
            penalty=draw.random() < 0.15,
            average=draw.random() < 0.2,
            forward=draw.choice(["call", "call", "call", "checkpoint", "reentrant", "functional"]),
            parts=draw.choice([1, 1, 2]),
            channels_last=draw.random() < 0.4,
            to_none=draw.random() < 0.5,
        )
    )


def settled(plan: Plan) -> Plan:
    """Return a plan without what does not go together."""
    changes: dict[str, Any] = {}
    # Of channels-last images torch has wrong gradients of the one, and crashes in those of the other.
    if not plan.images or plan.has("instance_norm", "group_norm"):
        changes["channels_last"] = False
    if plan.penalty and plan.forward in ("reentrant", "func_grad", "per_sample"):
        changes["penalty"] = False  # reentrant checkpoints take no grad()
    if plan.addition in ("pruned", "spectral_norm", "orthogonal", "weight_norm"):
        # Copies are of leaves, and these have weights that are none.
        events = [e for e in plan.events if e[1] not in ("deepcopy", "pickle")]
        changes |= {"average": False, "events": tuple(events)}
    if plan.addition is not None:  # hooks are lambdas
        events = [e for e in changes.get("events", plan.events) if e[1] != "pickle"]
        changes["events"] = tuple(events)
    return dataclasses.replace(plan, **changes)


def simpler(plan: Plan) -> Iterator[Plan]:
    """Yield programs with one thing less."""
    for number in range(len(plan.layers)):
        yield dataclasses.replace(plan, layers=plan.layers[:number] + plan.layers[number + 1 :])
    for field in dataclasses.fields(Plan):
        if field.default is not dataclasses.MISSING and getattr(plan, field.name) != field.default:
            yield dataclasses.replace(plan, **{field.name: field.default})


def rough(plan: Plan) -> bool:
    """Tell whether rounding may become as large as a step: only the first one is compared then."""
    return plan.optimizer[0] in ROUGH
