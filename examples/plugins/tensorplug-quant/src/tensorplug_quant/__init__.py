"""Linear layers with 8-bit weights for tensorplug: ops, their derivatives and kernel, and a module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorplug.plugin import Kernel, Op, hookimpl

from .derivatives import DERIVATIVES, TANGENTS, VMAP_RULES
from .kernels import table
from .modules import Int8Linear, quantize, quantize_weight
from .ops import _matmul_int8, linear_int8

__all__ = ["Int8Linear", "linear_int8", "plugin", "quantize", "quantize_weight"]


class QuantPlugin:
    """Registers the ops of this package."""

    name = "quant"

    @hookimpl
    def tensorplug_ops(self) -> Iterable[Op]:
        """Return the ops."""
        return [linear_int8, _matmul_int8]

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel]:
        """Return the kernel that beats the op's body on "cpu"."""
        return table

    @hookimpl
    def tensorplug_derivatives(self) -> Iterable[Any]:
        """Return the derivatives."""
        return DERIVATIVES

    @hookimpl
    def tensorplug_tangents(self) -> Iterable[Any]:
        """Return the forward rules."""
        return TANGENTS

    @hookimpl
    def tensorplug_vmap_rules(self) -> Iterable[Any]:
        """Return the rules for vmap."""
        return VMAP_RULES

    @hookimpl
    def tensorplug_records(self) -> Iterable[Any]:
        """Return what the conformance suite tests; only tests ask for it."""
        from .records import RECORDS

        return RECORDS


plugin = QuantPlugin()
