"""Rules of forward mode: how an op turns tangents of its arguments into the tangent of its result.

Most ops need none. A pointwise op of real numbers has a diagonal Jacobian, so its reverse formula, given a
tangent instead of a gradient, is its forward rule; for holomorphic functions of complex numbers it is so with
the conjugate taken before and after. For all others forward mode differentiates the reverse formula, which
is linear in the gradient, once more. A rule of its own makes that cheaper::

    tangent("matmul", input=lambda t, other: t @ other, other=lambda t, input: input @ t)
    linear("cumsum", "input")

The names a formula may ask for are those of :mod:`.derivatives`, with ``t``, the tangent of its argument, for
the gradient. The contributions of all arguments are added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core.dispatch.op import Op
from tensorplug.core.errors import RegistrationError
from tensorplug.core.plugins import manager
from tensorplug.core.plugins.op_rules import OpRules

from ..engine.derivatives import GRADIENT, GRADIENTS, NEEDS, _origin, _parameters

__all__ = ["Tangent", "holomorphic", "linear", "tangent"]

FORMULAS, LINEAR, HOLOMORPHIC = range(3)


class Tangent:
    """The forward rule of one op, as a plugin hands it over."""

    __slots__ = ("arguments", "formulas", "kind", "op", "owner", "priority")

    hook = "tensorplug_tangents"

    def __init__(
        self,
        op: str,
        kind: int,
        formulas: dict[str, Callable[..., Any]] | None = None,
        arguments: tuple[str, ...] = (),
        priority: int = 0,
    ) -> None:
        self.op = op
        self.priority = priority
        self.kind = kind
        self.formulas = formulas or {}
        self.arguments = arguments
        self.owner = ""

    def __repr__(self) -> str:
        return f"<tangent of {self.op} for {', '.join(self.arguments or self.formulas)}>"


def tangent(op: str, /, *, priority: int = 0, **formulas: Callable[..., Any]) -> Tangent:
    """Return the forward rule of an op, to be handed over by ``tensorplug_tangents``.

    Parameters
    ----------
    op : str
        The op's name.
    priority : int
        A rule of higher priority replaces one of lower; equal priorities are refused.
    **formulas
        One per argument: what the argument's tangent ``t`` contributes to the tangent of the result (for
        several outputs, a tuple).

    Examples
    --------
    >>> tangent("mul", input=lambda t, other: t * other, other=lambda t, input: t * input)
    <tangent of mul for input, other>
    """
    return Tangent(op, FORMULAS, formulas, priority=priority)


def linear(op: str, *arguments: str, priority: int = 0) -> Tangent:
    """Say that an op is linear in these arguments jointly: its tangent is the op itself, of the tangents.

    Examples
    --------
    >>> linear("sum", "input")
    <tangent of sum for input>
    """
    return Tangent(op, LINEAR, arguments=arguments or ("input",), priority=priority)


def holomorphic(*ops: str, priority: int = 0) -> list[Tangent]:
    """Say that these pointwise ops are holomorphic in all their arguments, where they take complex ones."""
    return [Tangent(op, HOLOMORPHIC, priority=priority) for op in ops]


class TangentRule:
    """A forward rule compiled against its op."""

    __slots__ = ("formulas", "kind", "positions", "source")

    def __init__(self, op: Op, source: Tangent) -> None:
        self.source = source
        self.kind = source.kind
        for argument in (*source.arguments, *source.formulas):
            if argument not in op.parameters:
                raise RegistrationError(
                    f"{source.owner}: the tangent of {op.name!r} speaks of {argument!r}, but the op's "
                    f"arguments are {', '.join(op.parameters)}"
                )
        self.positions = tuple([op.parameters.index(name) for name in source.arguments])
        self.formulas = []
        for argument, function in source.formulas.items():
            names = _parameters(function, op, source.owner)
            sources = tuple([_source(name, op, source.owner) for name in names])
            self.formulas.append((op.parameters.index(argument), function, sources, argument))


def _source(name: str, op: Op, owner: str) -> tuple[int, int]:
    found = (GRADIENT, 0) if name == "t" else _origin(name, op)
    if found is None or (name != "t" and found[0] in (GRADIENT, GRADIENTS, NEEDS)):
        raise RegistrationError(
            f"{owner}: a tangent formula of {op.name!r} asks for {name!r}, which is neither an argument "
            f"({', '.join(op.parameters)}), an output ({', '.join(op.outputs)}), nor the tangent (t)"
        )
    return found


#: The forward rules that plugins registered.
TANGENT_RULES = manager.op_rules["tangents"] = OpRules(
    "tensorplug_tangents", "tangent", Tangent, TangentRule
)


def rule_of(op: Op) -> TangentRule | None:
    """Return an op's forward rule, if it has one."""
    rule: TangentRule | None = getattr(op, "tangents", None) or TANGENT_RULES.active.get(op.name)
    return rule
