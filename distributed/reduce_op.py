"""How the elements of several processes become one."""

from __future__ import annotations

from enum import Enum
from typing import Any

__all__ = ["ReduceOp", "Reduction", "parse", "reduce_op"]


class ReduceOp(Enum):
    """How ``all_reduce``, ``reduce`` and ``reduce_scatter`` combine elements.

    ``SUM``, ``AVG``, ``PRODUCT``, ``MIN`` and ``MAX``; ``BAND``, ``BOR`` and ``BXOR`` for integers and bool.
    ``AVG`` is the sum divided by the number of processes, for floating-point and complex tensors.

    Examples
    --------
    >>> import tensorplug.distributed as dist
    >>> dist.ReduceOp.SUM
    <ReduceOp.SUM: 'sum'>
    """

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"
    PREMUL_SUM = "premul_sum"


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # the name of the constants' type in torch

#: Before torch had :class:`ReduceOp`, its constants were found under this name.
reduce_op = ReduceOp


class Reduction:
    """A :class:`ReduceOp` with what goes with it: the factor of a sum of products."""

    __slots__ = ("factor", "op")

    def __init__(self, op: ReduceOp, factor: Any = None) -> None:
        self.op = op
        self.factor = factor


def make_premul_sum(factor: Any) -> Reduction:
    """Return the reduction that multiplies by `factor`, a number or tensor, and then sums."""
    return Reduction(ReduceOp.PREMUL_SUM, factor)


def parse(op: Any) -> Reduction:
    """Return the reduction that a user's argument means.

    Raises
    ------
    TypeError
        If it is no reduction.
    ValueError
        If it is ``PREMUL_SUM`` without a factor.
    """
    if isinstance(op, Reduction):
        return op
    if not isinstance(op, ReduceOp):
        raise TypeError(f"expected a ReduceOp such as ReduceOp.SUM, got {op!r}")
    if op is ReduceOp.PREMUL_SUM:
        raise ValueError(
            "ReduceOp.PREMUL_SUM needs a factor, which _make_nccl_premul_sum(factor) takes"
        )
    return Reduction(op)


def supports_complex(op: Any) -> bool:
    """Return whether a reduction has a meaning for complex tensors.

    Examples
    --------
    >>> import tensorplug.distributed as dist
    >>> dist.reduce_op, dist.distributed_c10d.supports_complex(dist.ReduceOp.MAX)
    (<enum 'ReduceOp'>, False)
    """
    return parse(op).op in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT)
