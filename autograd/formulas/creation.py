"""Ops that make tensors: what they make depends on no other tensor's elements."""

from __future__ import annotations

from ..derivatives import not_differentiable

DERIVATIVES = [
    *not_differentiable("arange_new", "fill_new"),
]
