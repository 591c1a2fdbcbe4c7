"""Learning-rate schedulers."""

from . import scheduler_base
from .composed_schedulers import ChainedScheduler, SequentialLR
from .cosine_schedulers import CosineAnnealingLR, CosineAnnealingWarmRestarts
from .cyclic_schedulers import CyclicLR, OneCycleLR
from .factor_schedulers import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .plateau import ReduceLROnPlateau
from .scheduler_base import LRScheduler

EPOCH_DEPRECATION_WARNING = scheduler_base.EPOCH_DEPRECATION_WARNING
_LRScheduler = LRScheduler  # the name that code for older releases of torch asks isinstance with

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
