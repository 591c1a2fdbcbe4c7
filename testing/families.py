"""The families of ops: the names that files have in every layer.

A layer has ``<family>.py``, a folder ``<family>/``, or nothing for each.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

FAMILIES = (
    "activation",
    "amp",
    "arithmetic",
    "attention",
    "bitwise",
    "clamp",
    "comparison",
    "complex",
    "convolution",
    "copying",
    "creation",
    "cumulative",
    "differences",
    "distances",
    "dropout",
    "elementary",
    "embedding",
    "fft",
    "indexing",
    "joining",
    "linalg",
    "linear",
    "losses",
    "masking",
    "matmul",
    "normalization",
    "norms",
    "numeric",
    "optimizers",
    "padding",
    "pooling",
    "random",
    "rearranging",
    "reductions",
    "rnn",
    "shape",
    "softmax",
    "sorting",
    "sparse",
    "special",
    "statistics",
    "strided",
    "triangles",
    "upsampling",
    "vision",
)

#: The packages whose modules are named after families.
LAYERS = (
    "tensorplug.core.ops",
    "tensorplug.nn.ops",
    "tensorplug.nn.functional",
    "tensorplug.optim.ops",
    "tensorplug.amp.ops",
    "tensorplug.sparse.ops",
    "tensorplug.autograd.formulas",
    "tensorplug.plugin.array_kernels",
    "tensorplug.testing.samples",
)

#: Modules of a layer that are no family; a name with a leading underscore says the same.
HELPERS = frozenset({"expanded_writes", "exports", "namespace", "results", "rules", "shorthands"})


def family_of(module: str, layer: str = "") -> str:
    """Return the family of a module of a layer: the first part of its name below the layer's.

    Examples
    --------
    >>> family_of("tensorplug.core.ops.linalg.factors")
    'linalg'
    """
    for package in (layer,) if layer else LAYERS:
        if module.startswith(f"{package}."):
            return module.removeprefix(f"{package}.").partition(".")[0]
    raise ValueError(f"{module} is in no layer")


def modules_of(layer: str) -> Iterator[ModuleType]:
    """Yield the modules of a layer, and those of its folders."""
    package = importlib.import_module(layer)
    for found in pkgutil.walk_packages(package.__path__, f"{layer}."):
        yield importlib.import_module(found.name)
