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

from collections.abc import Callable, Iterable
from typing import Any

from tensorplug.core import operators
from tensorplug.core.errors import RegistrationError
from tensorplug.core.op import Op

from .derivatives import ARGUMENT, GRADIENT, GRADIENTS, NEEDS, OUTPUT, _origin, _parameters

__all__ = ["Tangent", "holomorphic", "linear", "tangent"]

FORMULAS, LINEAR, HOLOMORPHIC = range(3)


class Tangent:
    """The forward rule of one op, as a plugin hands it over."""

    __slots__ = ("arguments", "formulas", "op", "owner", "sort")

    def __init__(
        self,
        op: str,
        sort: int,
        formulas: dict[str, Callable[..., Any]] | None = None,
        arguments: tuple[str, ...] = (),
    ) -> None:
        self.op = op
        self.sort = sort
        self.formulas = formulas or {}
        self.arguments = arguments
        self.owner = ""

    def __repr__(self) -> str:
        return f"<tangent of {self.op} for {', '.join(self.arguments or self.formulas)}>"


def tangent(op: str, /, **formulas: Callable[..., Any]) -> Tangent:
    """Return the forward rule of an op, to be handed over by ``tensorplug_derivatives``.

    Parameters
    ----------
    op : str
        The op's name.
    **formulas
        One per argument: what the argument's tangent ``t`` contributes to the tangent of the result (for
        several outputs, a tuple).

    Examples
    --------
    >>> tangent("mul", input=lambda t, other: t * other, other=lambda t, input: t * input)
    <tangent of mul for input, other>
    """
    return Tangent(op, FORMULAS, formulas)


def linear(op: str, *arguments: str) -> Tangent:
    """Say that an op is linear in these arguments jointly: its tangent is the op itself, of the tangents.

    Examples
    --------
    >>> linear("sum", "input")
    <tangent of sum for input>
    """
    return Tangent(op, LINEAR, arguments=arguments or ("input",))


def holomorphic(*ops: str) -> list[Tangent]:
    """Say that these pointwise ops are holomorphic in all their arguments, where they take complex ones."""
    return [Tangent(op, HOLOMORPHIC) for op in ops]


class TangentRule:
    """A forward rule compiled against its op."""

    __slots__ = ("formulas", "positions", "sort", "source")

    def __init__(self, op: Op, source: Tangent) -> None:
        self.source = source
        self.sort = source.sort
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
            self.formulas.append((op.parameters.index(argument), function, sources))


def _source(name: str, op: Op, owner: str) -> tuple[int, int]:
    found = (GRADIENT, 0) if name == "t" else _origin(name, op)
    if found is None or (name != "t" and found[0] in (GRADIENT, GRADIENTS, NEEDS)):
        raise RegistrationError(
            f"{owner}: a tangent formula of {op.name!r} asks for {name!r}, which is neither an argument "
            f"({', '.join(op.parameters)}), an output ({', '.join(op.outputs)}), nor the tangent (t)"
        )
    return found


RULES: dict[str, TangentRule] = {}


def add(items: Iterable[Tangent], owner: str) -> None:
    """Take up the rules that a plugin hands over."""
    made: dict[str, TangentRule] = {}
    for item in items:
        item.owner = owner
        try:
            op = operators.get_op(item.op)
        except KeyError as error:
            raise RegistrationError(f"{owner}: tangent of an unknown op: {error.args[0]}") from None
        known = RULES.get(item.op) or made.get(item.op)
        if known is not None:
            raise RegistrationError(
                f"{owner}: op {item.op!r} has a tangent already, from {known.source.owner}"
            )
        made[item.op] = TangentRule(op, item)
    RULES.update(made)


def remove(items: Iterable[Tangent]) -> None:
    """Forget rules."""
    for item in items:
        rule = RULES.get(item.op)
        if rule is not None and rule.source is item:
            del RULES[item.op]


def value_of(origin: int, position: int, values: tuple[Any, ...], outputs: tuple[Any, ...]) -> Any:
    """Return what a formula asks for, save tangents and gradients."""
    from .recording import of_each

    if origin == ARGUMENT:
        return values[position]
    if origin == OUTPUT:
        return outputs[position]
    return of_each(values[position], origin)
