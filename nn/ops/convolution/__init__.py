"""Convolution, and the windows that it is taken over."""

from __future__ import annotations

from . import convolution, unfold

DERIVATIVES = [*unfold.DERIVATIVES, *convolution.DERIVATIVES]
VMAP_RULES = [*unfold.VMAP_RULES, *convolution.VMAP_RULES]
