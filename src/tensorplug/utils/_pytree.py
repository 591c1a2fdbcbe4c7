"""Nested containers, under the names that torch's programs use."""

from __future__ import annotations

from tensorplug.autograd.transforms.pytree import (
    Tree as TreeSpec,
    tree_flatten as tree_flatten,
    tree_leaves as tree_leaves,
    tree_map as tree_map,
    tree_unflatten as tree_unflatten,
)

__all__ = ["TreeSpec", "tree_flatten", "tree_leaves", "tree_map", "tree_unflatten"]
