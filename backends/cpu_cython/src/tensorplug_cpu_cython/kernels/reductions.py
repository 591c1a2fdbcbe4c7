"""Kernels of core's reductions."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable, dtype_named

from .. import cumulative, reductions
from .._dtypes import COMPLEX, FLOATS, NUMBERED
from ..below import below

_TRUTH = (dtype_named("bool"),)
_KINDS = {
    "sum": (reductions.SUM, False),
    "mean": (reductions.SUM, True),
    "prod": (reductions.PROD, False),
    "amax": (reductions.MAX, False),
    "amin": (reductions.MIN, False),
}


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for op, (kind, is_mean) in _KINDS.items():
        dtypes = [NUMBERED[number] for number in reductions.types_of(kind)]
        if is_mean:
            dtypes = [dtype for dtype in dtypes if dtype.is_floating_point]
        if kind == reductions.SUM:
            dtypes += COMPLEX  # part by part
        kernel = reductions.Reduction(kind, below(op), is_mean)
        table.add(op, kernel.call, dtypes=dtypes)
    table.add("prod", cumulative.complex_prod, dtypes=COMPLEX)
    dtypes = [NUMBERED[number] for number in reductions.index_types()]
    for kind, op in enumerate(("argmax", "argmin")):
        table.add(op, reductions.ArgExtreme(kind, below(op)).call, dtypes=dtypes)
        along = "max" if op == "argmax" else "min"
        table.add(along, reductions.Extreme(kind, below(op)).call, dtypes=dtypes)
    least = reductions.Reduction(reductions.MIN, below("amin"))
    most = reductions.Reduction(reductions.MAX, below("amax"))
    dtypes = [NUMBERED[number] for number in reductions.types_of(reductions.MIN)]
    both = reductions.Extremes(least, most)

    @table.kernel(dtypes=dtypes)
    def aminmax(input: Any, dim: int | None, keepdim: bool) -> Any:
        return both.call(input, tuple(range(input.ndim)) if dim is None else (dim,), keepdim)

    truths = []
    for op, extreme, kind in (("all", "amin", reductions.MIN), ("any", "amax", reductions.MAX)):
        kernel = reductions.Reduction(kind, below(op), of_truth=True)
        table.add(op, kernel.call, dtypes=NUMBERED)
        table.add(extreme, kernel.call, dtypes=_TRUTH)
        truths.append(kernel)
    all_of, any_of = truths

    @table.kernel("aminmax", dtypes=_TRUTH)
    def aminmax_of_truth(input: Any, dim: int | None, keepdim: bool) -> Any:
        dims = tuple(range(input.ndim)) if dim is None else (dim,)
        return all_of.call(input, dims, keepdim), any_of.call(input, dims, keepdim)

    table.add(
        "count_nonzero",
        reductions.Reduction(reductions.FILLED, of_truth=True).count,
        dtypes=NUMBERED,
    )
    table.add("nansum", reductions.Reduction(reductions.NANSUM, below("sum")).call, dtypes=FLOATS)
    wide = [dtype for dtype in FLOATS if dtype.itemsize > 2]
    table.add("nanmean", reductions.NanMean(below("sum")).call, dtypes=wide)
