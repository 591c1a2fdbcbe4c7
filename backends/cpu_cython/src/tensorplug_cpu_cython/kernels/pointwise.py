"""Pointwise kernels of core's ops: one loop each."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, dtype_named

from .. import pointwise, sorting_search
from .._dtypes import ELEMENTS, FLOATS, SINGLE_AND_DOUBLE
from . import activation

# What the loops of clone serve has a function of its own.
_OTHERS = frozenset({"clone", *activation.NAMES})

# Ops whose loops have NumPy's names.
_OPS = {"true_divide": "div"}

_DIVISIONS = frozenset({"floor_divide", "fmod", "remainder"})


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for sort, kernel_class in (("unary", pointwise.Unary), ("binary", pointwise.Binary)):
        for name in pointwise.names(sort):
            if name in _OTHERS:
                continue
            kernel: Any = kernel_class(name, getattr(np, name, None))
            dtypes = [ELEMENTS[number] for number in pointwise.types_of(sort, name)]
            if name in _DIVISIONS:
                whole = [dtype for dtype in dtypes if dtype not in FLOATS]
                divide = pointwise.Division(name, getattr(np, name))
                table.add(name, divide.call, dtypes=whole, out=True)
                dtypes = list(FLOATS)
            table.add(_OPS.get(name, name), kernel.call, dtypes=dtypes, out=True)
    within = (*SINGLE_AND_DOUBLE, dtype_named("int32"))
    table.add("is_within", sorting_search.is_within, dtypes=within)
    table.add("relu_backward", pointwise.Binary("relu_gradient").call, dtypes=FLOATS)
