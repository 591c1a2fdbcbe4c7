"""Optimizers and schedulers of random training programs, the same for tensorplug and for torch.

The optimizers have an eps that keeps gradients of mere rounding from becoming whole steps.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

RATE = 1e-2
#: What an optimizer is called with beside parameters and rate.
OPTIONS: dict[str, Callable[[Random], dict[str, Any]]] = {
    "SGD": lambda draw: {
        "momentum": draw.choice([0, 0.9]), "weight_decay": draw.choice([0, 0.1]),
        "maximize": draw.random() < 0.1,
    },
    "Nesterov": lambda draw: {"momentum": 0.8, "nesterov": True},
    "Adam": lambda draw: {
        "amsgrad": draw.random() < 0.3, "weight_decay": draw.choice([0, 0.1]), "eps": 1e-3,
    },
    "AdamW": lambda draw: {"amsgrad": draw.random() < 0.3, "eps": 1e-3, "maximize": draw.random() < 0.1},
    "RMSprop": lambda draw: {"centered": False, "momentum": draw.choice([0, 0.9]), "eps": 1e-2},
    "Adagrad": lambda draw: {
        "lr_decay": draw.choice([0, 0.1]), "eps": 1e-3, "initial_accumulator_value": 0.1,
    },
    "Adadelta": lambda draw: {"eps": 1e-2, "rho": 0.8},
    "Adamax": lambda draw: {"eps": 1e-2, "weight_decay": draw.choice([0, 0.1])},
    "NAdam": lambda draw: {"decoupled_weight_decay": draw.random() < 0.5, "weight_decay": 0.1, "eps": 1e-3},
    "RAdam": lambda draw: {"eps": 1e-3, "weight_decay": draw.choice([0, 0.1])},
    "ASGD": lambda draw: {"t0": 2, "weight_decay": draw.choice([0, 0.1])},
    "Adafactor": lambda draw: {"eps": (1e-2, 1e-2)},
    "LBFGS": lambda draw: {"max_iter": 3, "history_size": 2},
    # A step of a sign, and one whose iterations are of bfloat16: of these the first gradients say more.
    "Rprop": lambda draw: {},
    "Muon": lambda draw: {"momentum": 0.8},
}  # fmt: skip
#: What may run over all parameters at once, and in one kernel.
FOREACH = tuple(name for name in OPTIONS if name not in ("LBFGS", "Muon", "Nesterov"))
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")
ROUGH = ("Rprop", "Muon", "LBFGS")


def made_optimizers(lib: Any, name: str, seed: int, parameters: list[Any], how: Any) -> list[Any]:
    """Return the optimizers of a program: more than one where one does not take all parameters."""
    draw = Random(seed)
    options = OPTIONS[name](draw)
    options |= {how: True} if how in ("foreach", "fused") else {}
    if how == "for":
        options["foreach"] = False
    maker = getattr(lib.optim, {"Nesterov": "SGD"}.get(name, name))
    if name == "Muon":
        matrices = [p for p in parameters if p.ndim == 2]
        others = [p for p in parameters if p.ndim != 2]
        found = [maker(matrices, lr=RATE, **options)] if matrices else []
        return found + ([lib.optim.AdamW(others, lr=RATE, eps=1e-3)] if others else [])
    if draw.random() < 0.4 and len(parameters) > 1 and name != "LBFGS":
        half = len(parameters) // 2
        groups = [{"params": parameters[:half], "lr": RATE / 2}, {"params": parameters[half:]}]
        return [maker(groups, lr=RATE, **options)]
    return [maker(parameters, lr=RATE, **options)]


#: Functions of the module of schedulers and the optimizer.
SCHEDULERS: dict[str, Callable[[Any, Any], Any]] = {
    "none": lambda s, o: None,
    "StepLR": lambda s, o: s.StepLR(o, 2),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [1, 3]),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 3),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=10, cycle_momentum=False),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 2, cycle_momentum=False, mode="exp_range"),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.3, total_iters=3),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.2, 3),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 4, 2.0),
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda epoch: 0.9**epoch),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.95),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, patience=0, threshold=1.0),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.5, 2), s.ExponentialLR(o, 0.9)]
    ),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, total_iters=2), s.CosineAnnealingLR(o, 4)], [2]
    ),
}


def made_scheduler(lib: Any, name: str, optimizer: Any) -> Any:
    """Return the scheduler of a program."""
    return SCHEDULERS[name](lib.optim.lr_scheduler, optimizer)
