"""Learning-rate schedulers."""

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
from .scheduler_base import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING, LRScheduler

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
