"""Derivatives: how a formula is written down, checked and stored with its op.

A formula is a function of the output's gradient ``g`` and of what it needs saved, by name::

    derivative("mul", input=lambda g, other: g * other, other=lambda g, input: g * input)
    derivative("exp", input=lambda g, result: g * result)

The names a formula may ask for:

- an argument of the op (a tensor is saved, a plain value is kept),
- ``result``, or an output by its name,
- ``<argument>_shape``, ``_dtype``, ``_device`` and ``_ndim``, which keep no memory alive,
- ``g``, the gradient of the only differentiable output, or ``g_<output>`` for ops with several,
- ``gs``, the list of the gradients of all outputs, for an op whose number of outputs varies,
- ``needs_<argument>``, whether that argument's gradient is asked for at all.

A formula for an argument that is a list of tensors returns a list. Broadcasting is undone by the engine.
One formula may serve several arguments, ``joint={"input, weight": function}``; it returns a list of their
gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tensorplug.core.dispatch import kernel_registry
from tensorplug.core.dispatch.op import Op
from tensorplug.core.errors import RegistrationError
from tensorplug.core.plugins import manager
from tensorplug.core.plugins.op_rules import OpRules

FormulaFunction: TypeAlias = Callable[..., Any]

# Where a formula's parameter comes from.
ARGUMENT, OUTPUT, SHAPE, DTYPE, DEVICE, NDIM, GRADIENT, NEEDS, GRADIENTS = range(9)

# What a plan saves, where it is not one argument: nothing, the output, both arguments of two, anything else.
NOTHING, THE_OUTPUT, BOTH, SEVERAL = -1, -2, -3, -4


_SUFFIXES = (("_shape", SHAPE), ("_dtype", DTYPE), ("_device", DEVICE), ("_ndim", NDIM))


class Derivative:
    """The reverse-mode formulas of one op, as a plugin hands them over."""

    __slots__ = ("formulas", "op", "owner", "priority")

    hook = "tensorplug_derivatives"

    def __init__(self, op: str, formulas: dict[str, FormulaFunction | None], priority: int) -> None:
        self.op = op
        self.formulas = formulas
        self.priority = priority
        self.owner = ""

    def __repr__(self) -> str:
        return f"<derivative of {self.op} for {', '.join(self.formulas) or 'nothing'}>"


def derivative(
    op: str,
    /,
    *,
    priority: int = 0,
    joint: Mapping[str, FormulaFunction] | None = None,
    **formulas: FormulaFunction | None,
) -> Derivative:
    """Return the derivative of an op, to be handed over by ``tensorplug_derivatives``.

    Parameters
    ----------
    op : str
        The op's name.
    priority : int
        A derivative of higher priority replaces one of lower; equal priorities are refused.
    joint : mapping, optional
        Formulas that each serve several arguments, by their names: ``"input, weight"``.
    **formulas
        One formula per differentiable argument; None for one that has no derivative by nature.

    Examples
    --------
    >>> derivative("mul", input=lambda g, other: g * other, other=lambda g, input: g * input)
    <derivative of mul for input, other>
    """
    return Derivative(op, {**formulas, **(joint or {})}, priority)


def not_differentiable(*ops: str) -> list[Derivative]:
    """Return the explicit statement that the outputs of these ops have no derivative."""
    return [Derivative(op, {}, 0) for op in ops]


def on_tensors(function: FormulaFunction) -> FormulaFunction:
    """Mark a formula that is to run as it is each time, rather than be traced to a program.

    That suits formulas whose plain values change from call to call, such as the position in a loop.
    """
    function.on_tensors = True  # type: ignore[attr-defined]
    return function


class Formula:
    """One formula of a derivative: the gradient of one argument.

    Attributes
    ----------
    position : int
        The argument's index among the op's arguments; of several, the first one's.
    positions : tuple of int
        The indices of all arguments that it is for.
    function : callable
        What the plugin wrote.
    slots : tuple of int
        For each parameter of `function`, the index of what it needs in :attr:`CompiledDerivative.sources`.
    """

    __slots__ = (
        "argument", "function", "keyed", "position", "positions", "programs", "slots", "untraceable",
    )  # fmt: skip

    def __init__(
        self,
        argument: str,
        position: int,
        function: FormulaFunction,
        slots: tuple[int, ...],
        positions: tuple[int, ...] = (),
    ) -> None:
        self.argument = argument
        self.position = position
        self.positions = positions or (position,)
        self.function = function
        self.slots = slots
        self.programs: dict[Any, Any] = {}
        # Whether its programs depend on shapes and plain values, and whether it has none at all.
        self.keyed = False
        self.untraceable = getattr(function, "on_tensors", False)


class Plan:
    """What a node saves and computes, for one choice of arguments that require grad."""

    __slots__ = (
        "checked", "formulas", "gradients", "latest", "only", "partial", "programs", "rule", "saves",
    )  # fmt: skip

    def __init__(self, rule: CompiledDerivative, mask: int) -> None:
        sources = rule.sources
        formulas = tuple(
            [f for f in rule.formulas if any([mask >> index & 1 for index in f.positions])]
        )
        wanted = {index for f in formulas for index in f.positions if mask >> index & 1}
        self.rule = rule
        # Whether the formulas have been held to what they promise, see formula_contracts.
        self.checked = False
        # By formula, where the calls are all alike: its program as soon as it was traced, see Recording.
        self.programs: list[Any] | None = None
        # The key and the program of the engine's latest use, where there is one formula.
        self.latest: tuple[Any, Any] = (None, None)
        # Whether an argument that requires grad is declared to have no derivative.
        self.partial = mask.bit_count() != len(wanted)
        slots = {slot for formula in formulas for slot in formula.slots}
        used = sorted(slots, key=sources.__getitem__)  # arguments first, in their order
        # (slot among the rule's sources, where it comes from, position there)
        self.saves = tuple([(slot, *sources[slot]) for slot in used if sources[slot][0] < GRADIENT])
        # What is saved, for those who record in a hurry: the position of an argument, or one of these.
        origins = [origin for _, origin, _ in self.saves]
        self.only = SEVERAL if self.saves else NOTHING
        if origins == [ARGUMENT]:
            self.only = self.saves[0][2]
        elif origins == [OUTPUT]:
            self.only = THE_OUTPUT
        elif origins == [ARGUMENT, ARGUMENT] and len(rule.op.parameters) == 2:
            self.only = BOTH
        indices = {slot: index for index, (slot, _, _) in enumerate(self.saves)}
        self.formulas = formulas
        # For each formula: per parameter, the index in ``node.saved``, or -1 - output for a gradient,
        # or a bool that is the value itself, or None for the list of all gradients.
        self.gradients: tuple[tuple[Any, ...], ...] = tuple(
            [
                tuple(
                    [_reference(sources[slot], indices.get(slot), wanted) for slot in formula.slots]
                )
                for formula in formulas
            ]
        )


def _reference(source: tuple[int, int], index: int | None, wanted: set[int]) -> Any:
    origin, position = source
    if origin == GRADIENT:
        return -1 - position
    if origin == NEEDS:
        return position in wanted
    return None if origin == GRADIENTS else index


class CompiledDerivative:
    """A derivative compiled against its op: what recording and backward look at.

    Attributes
    ----------
    formulas : tuple of Formula
        One per differentiable argument.
    connected : tuple of bool or None
        Of which outputs formulas take the gradient; None for all. The others require none.
    plans : dict
        By the bit mask of arguments that require grad.
    quick : list
        The same for the masks of two arguments; None before the first use.
    """

    __slots__ = (
        "connected", "formulas", "name", "op", "owner", "plans", "quick", "sources",
    )  # fmt: skip

    def __init__(self, op: Op, source: Derivative) -> None:
        self.op = op
        self.name = _node_name(op.name)
        self.owner = source.owner
        self.sources: list[tuple[int, int]] = []
        formulas = []
        for argument, function in source.formulas.items():
            names = [name.strip() for name in argument.split(",")]
            for name in names:
                if name not in op.parameters:
                    raise RegistrationError(
                        f"{source.owner}: the derivative of {op.name!r} has a formula for {name!r}, "
                        f"but the op's arguments are {', '.join(op.parameters)}"
                    )
            if function is None:
                continue
            slots = tuple([self._slot(name) for name in _parameters(function, op, source.owner)])
            positions = tuple([op.parameters.index(name) for name in names])
            formula = Formula(argument, positions[0], function, slots, positions)
            if any([self.sources[slot][0] == GRADIENTS for slot in slots]):
                formula.untraceable = True
            formulas.append(formula)
        self.formulas = tuple(sorted(formulas, key=lambda formula: formula.position))
        asked = [(GRADIENT, number) in self.sources for number in range(len(op.outputs))]
        several = formulas and (GRADIENTS, 0) not in self.sources
        self.connected = tuple(asked) if several and False in asked else None
        self.plans: dict[int, Plan] = {}
        self.quick: list[Plan | None] = [None] * 4

    def plan(self, mask: int) -> Plan:
        """Return the plan for the arguments whose bits are set in `mask`."""
        plan = self.plans.get(mask)
        if plan is None:
            plan = self.plans[mask] = Plan(self, mask)
            if mask < 4:
                self.quick[mask] = plan
        return plan

    def _slot(self, name: str) -> int:
        source = _origin(name, self.op)
        if source is None:
            raise RegistrationError(
                f"{self.owner}: a formula of {self.op.name!r} asks for {name!r}, which is neither an "
                f"argument ({', '.join(self.op.parameters)}), an output "
                f"({', '.join(self.op.outputs)}), nor a gradient (g)"
            )
        if source not in self.sources:
            self.sources.append(source)
        return self.sources.index(source)


def _origin(name: str, op: Op) -> tuple[int, int] | None:
    if name == "g":
        return GRADIENT, 0
    if name == "gs":
        return GRADIENTS, 0
    if name in op.parameters:
        return ARGUMENT, op.parameters.index(name)
    if name in op.outputs:
        return OUTPUT, op.outputs.index(name)
    if name.startswith("g_") and name[2:] in op.outputs:
        return GRADIENT, op.outputs.index(name[2:])
    if name.startswith("needs_") and name[6:] in op.parameters:
        return NEEDS, op.parameters.index(name[6:])
    for suffix, origin in _SUFFIXES:
        if name.endswith(suffix) and name.removesuffix(suffix) in op.parameters:
            return origin, op.parameters.index(name.removesuffix(suffix))
    return None


def _parameters(function: FormulaFunction, op: Op, owner: str) -> tuple[str, ...]:
    code = getattr(function, "__code__", None)
    if code is None:
        import inspect

        return tuple(inspect.signature(function).parameters)
    if code.co_flags & 0x0C:
        raise RegistrationError(
            f"{owner}: a formula of {op.name!r} takes *args or **kwargs, but its parameters name what it "
            "saves"
        )
    return tuple(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def _node_name(op: str) -> str:
    short = op.rpartition(".")[2]
    return "".join(part.capitalize() for part in short.split("_")) + "Backward0"


def _changed(op: Op, rule: CompiledDerivative | None) -> None:
    op.derivative = rule
    kernel_registry.refresh_overridden(op)


#: The derivatives that plugins registered.
DERIVATIVE_RULES = manager.op_rules["derivatives"] = OpRules(
    "tensorplug_derivatives", "derivative", Derivative, CompiledDerivative, _changed
)
