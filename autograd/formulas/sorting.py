"""Derivatives of sorting and selection; most differentiate the gather that they end in."""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.copying import cast
from tensorplug.core.ops.indexing.gather import gather_backward

from ..engine.derivatives import derivative, not_differentiable
from ..vmap.vmap_rules import shared_rule
from .reductions import _chosen as _chosen_along


def _shared(g: Any, input: Any, result: Any) -> Any:
    """Share the gradient among the elements that equal the result; NaN equals NaN here."""
    hit = (input == result) | ((input != input) & (result != result))
    return g / hit.sum() * cast(hit, g.dtype)


def _chosen(g_values: Any, input_shape: Any, dim: int, indices: Any) -> Any:
    return gather_backward(g_values, input_shape, dim, indices)


DERIVATIVES = [
    derivative("sort", input=_chosen),
    derivative("topk", input=_chosen),
    derivative("kthvalue", input=_chosen_along),
    derivative("median", input=_chosen_along),
    derivative("nanmedian", input=_chosen_along),
    derivative("mode", input=_chosen_along),
    derivative("median_all", input=_shared),
    *not_differentiable("argsort", "nonzero", "searchsorted", "isin", "lexsort"),
]


VMAP_RULES = [
    shared_rule("along_second_argument", "argsort"),
    shared_rule("whole_loop", "nonzero_static"),
]
