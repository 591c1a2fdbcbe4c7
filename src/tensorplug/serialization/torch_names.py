"""Torch's names for classes and functions, and ours for them: pickles hold objects by name."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

from tensorplug.core.dispatch import op_registry

#: Torch's file for classes that are in another one here; the rest have the same.
_MODULES = "torch.nn.modules."
_FILES = {
    "ChannelShuffle": f"{_MODULES}channelshuffle",
    **dict.fromkeys(("Fold", "Unfold"), f"{_MODULES}fold"),
    **dict.fromkeys(("PixelShuffle", "PixelUnshuffle"), f"{_MODULES}pixelshuffle"),
    **dict.fromkeys(
        ("Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"), f"{_MODULES}upsampling"
    ),
    **{f"InstanceNorm{n}d": f"{_MODULES}instancenorm" for n in (1, 2, 3)},
    **{
        f"Lazy{kind}{n}d": f"{_MODULES}{file}"
        for kind, file in {
            "BatchNorm": "batchnorm",
            "InstanceNorm": "instancenorm",
            "Conv": "conv",
            "ConvTranspose": "conv",
        }.items()
        for n in (1, 2, 3)
    },
    "LazyLinear": f"{_MODULES}linear",
    "MultiheadAttention": f"{_MODULES}activation",
    "Module": f"{_MODULES}module",
    "DataParallel": "torch.nn.parallel.data_parallel",
    "Adafactor": "torch.optim",
    "Muon": "torch.optim",
}
_RENAMED = {
    "tensorplug.nn.modules.margin_loss": f"{_MODULES}loss",
    "tensorplug.nn.modules.parameter_container": f"{_MODULES}container",
    "tensorplug.nn.modules.rnn_cells": f"{_MODULES}rnn",
    "tensorplug.optim.plateau": "torch.optim.lr_scheduler",
    "tensorplug.optim.scheduler_base": "torch.optim.lr_scheduler",
    **{
        f"tensorplug.optim.{kind}_schedulers": "torch.optim.lr_scheduler"
        for kind in ("composed", "cosine", "cyclic", "factor")
    },
    "tensorplug.core.tensor.tensor": "torch",
    "tensorplug.data.datasets": "torch.utils.data.dataset",
    "tensorplug.data.loader": "torch.utils.data.dataloader",
    "tensorplug.data.samplers": "torch.utils.data.sampler",
    "tensorplug.data.distributed_sampler": "torch.utils.data.distributed",
}
_SAME = ("tensorplug.nn.", "tensorplug.optim.")
_PACKAGES = tuple([f"tensorplug.{name}" for name in ("nn", "optim", "data", "distributions")])
_FUNCTIONS = ("tensorplug.nn.functional", "tensorplug")


def name_of(thing: Any) -> tuple[str, str] | None:
    """Return torch's module and name for a class or function of ours; None if there is none.

    Examples
    --------
    >>> import tensorplug as tp
    >>> name_of(tp.nn.PixelShuffle)
    ('torch.nn.modules.pixelshuffle', 'PixelShuffle')
    >>> name_of(tp.nn.functional.relu)
    ('torch.nn.functional', 'relu')
    """
    module = getattr(thing, "__module__", None)
    if not isinstance(module, str) or not module.startswith("tensorplug."):
        return None
    if not isinstance(thing, type):
        for space in _FUNCTIONS:
            name = getattr(thing, "__name__", "")
            if getattr(importlib.import_module(space), name, None) is thing:
                return space.replace("tensorplug", "torch"), name
        return None
    name = thing.__qualname__
    if module in _RENAMED:
        return _RENAMED[module], name
    if module.startswith("tensorplug.distributions."):
        return "torch.distributions", name
    if module.startswith(_SAME):
        return _FILES.get(name, module.replace("tensorplug", "torch", 1)), name
    return None


def find(module: str, name: str) -> Any:
    """Return our class or function for torch's name; None if there is none.

    Examples
    --------
    >>> find("torch.nn.modules.pixelshuffle", "PixelShuffle")
    <class 'tensorplug.nn.modules.vision.PixelShuffle'>
    """
    place = module
    if module.startswith("torch._C"):
        place = "torch" if name == "Generator" else "torch.nn.functional"
    elif module.startswith("torch.utils.data"):
        place = f"torch{module.removeprefix('torch.utils')}"
    place = place.replace("torch", "tensorplug", 1)
    package = ".".join(place.split(".")[:2])
    if package in _PACKAGES:  # no other module is imported because a file names it
        importlib.import_module(package)
    while place:
        value: Any = sys.modules.get(place)
        for part in name.split("."):
            value = getattr(value, part, None)
        if value is None:
            place = place.rpartition(".")[0]
            continue
        owner = getattr(value, "__module__", None) or ""
        callable_ = isinstance(value, (type, types.FunctionType)) or is_op(value)
        return value if callable_ and owner.startswith("tensorplug") else None
    return None


def is_op(value: Any) -> bool:
    """Return whether something is the function of an op, which computes and does nothing else."""
    name = getattr(value, "__name__", None)
    if not isinstance(name, str) or isinstance(value, type):
        return False
    functional = sys.modules.get("tensorplug.nn.functional")
    if getattr(functional, name, None) is value:
        return True
    return op_registry.has_op(name) and op_registry.get_op(name).call is value
