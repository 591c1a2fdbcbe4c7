"""Rules for ``vmap`` that plugins supply for ops of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tensorplug.core import operators
from tensorplug.core.errors import RegistrationError

__all__ = ["VmapInfo", "VmapRule", "vmap_rule"]


class VmapInfo(NamedTuple):
    """What a rule learns of the ``vmap`` around the call."""

    batch_size: int
    randomness: str


class VmapRule:
    """The rule of one op, as a plugin hands it over."""

    __slots__ = ("function", "op", "owner")

    def __init__(self, op: str, function: Callable[..., Any]) -> None:
        self.op = op
        self.function = function
        self.owner = ""

    def __repr__(self) -> str:
        return f"<vmap rule of {self.op}>"


def vmap_rule(op: str, function: Callable[..., Any]) -> VmapRule:
    """Return an op's rule for ``vmap``, to be handed over by ``tensorplug_derivatives``.

    Few ops need one: pointwise ops and composites are batched as they are, and any other primitive works
    without a rule, called once per sample.

    Parameters
    ----------
    op : str
        The op's name.
    function : callable
        ``function(info, in_dims, *args)`` returns ``(outputs, out_dims)``, as the ``vmap`` of an
        ``autograd.Function`` does. `args` are the op's canonical arguments, all of them, with the samples of
        all batched tensors along the dimensions in `in_dims` (None for what is no batch); `info` has
        ``batch_size`` and ``randomness``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> vmap_rule("acme.row_sum", lambda info, in_dims, x: (x.movedim(in_dims[0], 0).sum(-1), 0))
    <vmap rule of acme.row_sum>
    """
    return VmapRule(op, function)


#: The rules by op.
OWN: dict[str, VmapRule] = {}


def add(rules: list[VmapRule], owner: str) -> None:
    """Register rules, all or none.

    Raises
    ------
    RegistrationError
        If an op is unknown, or has a rule already.
    """
    if not rules:
        return
    from .batching.rules import PRIMITIVES
    from .batching.whole_rules import COMPOSITES

    for rule in rules:
        rule.owner = owner
        if not operators.has_op(rule.op):
            raise RegistrationError(f"{owner}: vmap rule of an unknown op: {rule.op!r}")
        if rule.op in OWN or rule.op in PRIMITIVES or rule.op in COMPOSITES:
            whose = OWN[rule.op].owner if rule.op in OWN else "tensorplug"
            raise RegistrationError(
                f"{owner}: the op {rule.op!r} has a vmap rule already, of {whose}"
            )
    OWN.update({rule.op: rule for rule in rules})


def remove(rules: list[VmapRule]) -> None:
    """Take rules back."""
    for rule in rules:
        if OWN.get(rule.op) is rule:
            del OWN[rule.op]
