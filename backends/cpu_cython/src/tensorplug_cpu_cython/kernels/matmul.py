"""Matrix products: by oneDNN, where it is installed, and of what BLAS has no fast form of."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable, dtype_named

from .. import matmul_products
from .._dtypes import FLOATS, NUMBERED
from ..below import below
from ..halves import HALVES, in_single
from ..library import onednn


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    matmul_below = below("matmul")

    def floats(input: Any, other: Any) -> Any:
        return matmul_products.floats(input, other, matmul_below)

    def integers(input: Any, other: Any) -> Any:
        found = matmul_products.integers(input, other)
        return matmul_below(input, other) if found is None else found

    whole = [d for d in NUMBERED if d not in FLOATS and d.name != "bool"]
    table.add("matmul", integers, dtypes=whole)
    table.add("matmul", floats, dtypes=[dtype_named("float64")])
    if onednn is not None:
        from .. import matmul

        table.add("matmul", matmul.matmul, dtypes=[dtype_named("float32")])
        table.add("matmul", matmul.half_matmul, dtypes=[dtype_named("bfloat16")])
        table.add("matmul", in_single(matmul.matmul), dtypes=[dtype_named("float16")])
    else:
        table.add("matmul", floats, dtypes=[dtype_named("float32")])
        table.add("matmul", in_single(floats), dtypes=HALVES)
