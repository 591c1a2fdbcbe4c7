"""Ops that make tensors: what they make depends on no other tensor's elements."""

from __future__ import annotations

from ..engine.derivatives import not_differentiable
from ..vmap.vmap_rules import shared_rule

DERIVATIVES = [
    *not_differentiable("arange_new", "fill_new"),
]


VMAP_RULES = [
    shared_rule(
        "filled",
        "empty_like",
        "full_like",
        "new_empty",
        "new_empty_strided",
        "new_full",
        "new_ones",
        "new_zeros",
        "ones_like",
        "zeros_like",
    ),
    shared_rule("whole_loop", "linspace", "logspace"),
]
