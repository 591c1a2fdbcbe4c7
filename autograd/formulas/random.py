"""Random numbers depend on no tensor's elements."""

from __future__ import annotations

from ..engine.derivatives import not_differentiable
from ..vmap.vmap_rules import shared_rule

DERIVATIVES = [
    *not_differentiable("philox_bits"),
]


VMAP_RULES = [
    # These look at their inputs, which needs numbers, before they draw.
    shared_rule("random_loop", "bernoulli", "normal", "poisson"),
    shared_rule("random_rows", "multinomial"),
]
