"""The steps of optimizers."""

from __future__ import annotations

from tensorplug.plugin import KernelTable

from .. import optimizers
from .._dtypes import FLOATS


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    wide = [dtype for dtype in FLOATS if dtype.itemsize >= 4]
    for name in ("sgd_step", "adam_step", "adagrad_step", "rmsprop_step"):
        table.add(f"optim.{name}", getattr(optimizers, name), dtypes=wide)
