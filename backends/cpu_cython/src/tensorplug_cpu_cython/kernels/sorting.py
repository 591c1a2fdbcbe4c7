"""Kernels that sort and select."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable

from .. import sorting, sorting_runs, sorting_search, sorting_select
from .._dtypes import FLOATS, NUMBERED
from ..below import below
from ..halves import HALVES, in_single


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    argsort_below = below("argsort")

    @table.kernel(dtypes=NUMBERED)
    def argsort(input: Any, dim: int, descending: bool) -> Any:
        return sorting.argsort(input, dim, descending, argsort_below)

    @table.kernel(dtypes=NUMBERED)
    def median(input: Any, dim: int, keepdim: bool) -> Any:
        return sorting_select.median(input, dim, keepdim, False)

    @table.kernel(dtypes=NUMBERED)
    def nanmedian(input: Any, dim: int, keepdim: bool) -> Any:
        return sorting_select.median(input, dim, keepdim, True)

    table.add("sort", sorting.sort, dtypes=NUMBERED)
    table.add("topk", sorting.top, dtypes=NUMBERED)
    table.add("unique_consecutive", sorting_runs.unique_consecutive, dtypes=NUMBERED)
    table.add("nonzero", sorting_select.nonzero)
    table.add("nonzero_static", sorting_select.nonzero_static)
    table.add("kthvalue", sorting_select.kth, dtypes=NUMBERED)
    table.add("median_all", sorting_select.median_of_all, dtypes=NUMBERED)
    whole = [d for d in NUMBERED if d not in FLOATS and d.name != "bool"]
    whole += [d for d in FLOATS if d.itemsize > 2]
    table.add("searchsorted", sorting_search.searchsorted, dtypes=whole)
    table.add("searchsorted", _searched_halves, dtypes=HALVES)
    for op, kernel in (
        ("mode", sorting_select.mode),
        ("isin", sorting_select.among),
    ):
        table.add(op, kernel, dtypes=whole)
        table.add(op, in_single(kernel), dtypes=HALVES)


_searched_in_single = in_single(sorting_search.searchsorted)


def _searched_halves(sorted_sequence: Any, input: Any, right: bool) -> Any:
    """Return the places of values: of few in a long sequence without converting all of that."""
    search = (
        sorting_search.searchsorted if input.size < sorted_sequence.size else _searched_in_single
    )
    return search(sorted_sequence, input, right)
