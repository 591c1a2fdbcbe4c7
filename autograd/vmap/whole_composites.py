"""Composites with a derivative of their own, batched as a whole.

Taken apart, such a composite would lose its derivative, and with it what that says of the points where the
decomposition's has none: the norm at zero, equal elements under a root. So a call of it for all samples is
one call of another composite: its decomposition and its formulas are those of the op, each batched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorplug.core.dispatch.layers import gradient_off, recording
from tensorplug.core.dispatch.op_registry import Op
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor.base import TensorBase

from ..engine.derivatives import (
    ARGUMENT,
    GRADIENT,
    GRADIENTS,
    NDIM,
    OUTPUT,
    SHAPE,
    CompiledDerivative,
    Derivative,
    Formula,
    on_tensors,
)
from ..forward.tangents import FORMULAS, TangentRule, rule_of
from ..transforms.levels import (
    BATCHED,
    ActiveLevels,
    entered,
    map_tensors,
    state,
    tensors_in,
    touched,
)
from .batched_tensor import BatchLevel, front, is_batched, moved, wrap

# Of each argument, whether it is batched; of a list, one for each of its items.
Marks = Any


def call_whole(op: Op, values: tuple[Any, ...], level: BatchLevel) -> Any:
    """Call a composite for all samples; NotImplemented where nobody asks for derivatives."""
    rule = op.derivative
    if rule is None or not rule.formulas or op.view or op.writes:
        return NotImplemented
    if not state.tangents and not (
        recording.enabled and any(tensor.requires_grad for tensor in tensors_in(values))
    ):
        return NotImplemented
    with ActiveLevels(state.batches[: level.position], state.tangents):
        plain = map_tensors(
            values, lambda t: moved(t.value, t.bdim, 0) if is_batched(t, level) else t
        )
        marks = tuple([_mark(value, level) for value in values])
        whole = _whole(op, rule, rule_of(op), marks, level.size, level.randomness)
        return whole.call(*plain)


def _mark(value: Any, level: BatchLevel) -> Marks:
    if isinstance(value, (list, tuple)):
        return tuple([_mark(item, level) for item in value])
    return is_batched(value, level)


class WholeComposite(Op):
    """One composite called for all samples of a vmap.

    Attributes
    ----------
    tangents : TangentRule or None
        The forward rule; other ops have theirs in a table, by name.
    """

    def __init__(
        self,
        op: Op,
        rule: CompiledDerivative,
        tangents: TangentRule | None,
        marks: Marks,
        size: int,
        randomness: str,
    ) -> None:
        super().__init__(f"vmap({op.name})")
        self.kind = "composite"
        self.owner = op.owner
        self.parameters = op.parameters
        self.outputs = op.outputs
        self.named = op.named
        self.leading = self.arity = len(op.parameters)
        self.canonical = _as_given
        samples = _Samples(marks, size, randomness)
        self.function = functools.partial(samples.decompose, op)
        self.call = self._call
        self.derivative = samples.derivative(self, rule)
        self.tangents = samples.tangents(tangents)

    def _call(self, *values: Any) -> Any:
        found = touched(values)
        if found & BATCHED:
            return dispatch_state.call_batched(self, values, {})
        if found and state.tangents:
            return dispatch_state.call_dual(self, values, {})
        with gradient_off():
            results = self.function(*values)
        if recording.enabled:
            outputs = tuple(results) if isinstance(results, tuple) else (results,)
            dispatch_state.gradient.record(self, values, outputs)
        return results


_whole = functools.lru_cache(512)(WholeComposite)


def _as_given(*values: Any) -> Any:
    return values


class _Samples:
    """Applies functions of one sample's values to those of all samples.

    Whatever they are given has the samples first where it is batched; results have them first.
    """

    def __init__(self, marks: Marks, size: int, randomness: str) -> None:
        self.marks = marks
        self.size = size
        self.randomness = randomness

    def decompose(self, op: Op, *values: Any) -> Any:
        """Run an op's decomposition."""
        return self._run(lambda *shown: op.decompose(shown), zip(values, self.marks, strict=True))

    def derivative(self, op: Op, rule: CompiledDerivative) -> CompiledDerivative:
        """Return the derivative whose formulas are batched."""
        made = CompiledDerivative(op, Derivative(op.name, {}, 0))
        made.name = rule.name
        made.owner = rule.owner
        made.sources = rule.sources
        formulas = []
        for formula in rule.formulas:
            marks = [self._mark_of(*rule.sources[slot]) for slot in formula.slots]
            function = on_tensors(self._formula(formula, marks))
            formulas.append(
                Formula(
                    formula.argument, formula.position, function, formula.slots, formula.positions
                )
            )
        made.formulas = tuple(formulas)
        return made

    def tangents(self, rule: TangentRule | None) -> TangentRule | None:
        """Return the forward rule whose formulas are batched."""
        if rule is None or rule.kind != FORMULAS:
            return rule
        made: TangentRule = TangentRule.__new__(TangentRule)
        made.source = rule.source
        made.kind = rule.kind
        made.positions = rule.positions
        made.formulas = []
        for position, function, sources, argument in rule.formulas:
            marks = [
                self.marks[position] if origin == GRADIENT else self._mark_of(origin, index)
                for origin, index in sources
            ]
            made.formulas.append((position, self._function(function, marks), sources, argument))
        return made

    def _mark_of(self, origin: int, position: int) -> Marks:
        """Return how one argument of a formula is marked."""
        if origin in (OUTPUT, GRADIENT, GRADIENTS):
            return True
        if origin == ARGUMENT:
            return self.marks[position]
        if origin in (SHAPE, NDIM):
            return _Described(self.marks[position])
        return False

    def _function(self, function: Callable[..., Any], marks: list[Marks]) -> Callable[..., Any]:
        return lambda *given: self._run(function, zip(given, marks, strict=True))

    def _formula(self, formula: Formula, marks: list[Marks]) -> Callable[..., Any]:
        """Return a formula whose gradients of what all samples share are summed."""
        function = self._function(formula.function, marks)
        wanted: Marks = [self.marks[position] for position in formula.positions]
        if len(wanted) == 1:
            wanted = wanted[0]

        def batched(*given: Any) -> Any:
            found = function(*given)
            if isinstance(found, list):
                return [_summed(g, mark) for g, mark in zip(found, wanted, strict=True)]
            return _summed(found, wanted)

        return batched

    def _run(self, function: Callable[..., Any], given: Any) -> Any:
        level = BatchLevel(self.size, self.randomness)
        with entered(level, batch=True):
            results = function(*[_shown(value, mark, level) for value, mark in given])
            return map_tensors(results, lambda t: front(t, level))


def _summed(gradient: Any, mark: Marks) -> Any:
    return gradient if gradient is None or mark else gradient.sum(0)


class _Described:
    """Marks the shapes, or the numbers of dimensions, of arguments."""

    def __init__(self, marks: Marks) -> None:
        self.marks = marks


def _shown(value: Any, mark: Marks, level: BatchLevel) -> Any:
    """Return a value as a function of one sample is to see it."""
    if isinstance(mark, _Described):
        return _described(value, mark.marks)
    if isinstance(value, TensorBase):
        return wrap(value, 0, level) if mark else value
    if isinstance(value, (list, tuple)):
        marks = mark if isinstance(mark, tuple) else (mark,) * len(value)
        items = [_shown(item, known, level) for item, known in zip(value, marks, strict=True)]
        return tuple(items) if isinstance(value, tuple) else items
    return value


def _described(value: Any, mark: Marks) -> Any:
    """Return the shape or number of dimensions of one sample, or a list of those."""
    if isinstance(mark, tuple):
        return [_described(item, known) for item, known in zip(value, mark, strict=True)]
    if not mark or value is None:
        return value
    return value - 1 if isinstance(value, int) else value[1:]
