"""The derivative of a composite that has none of its own, but ran as one kernel: its decomposition's.

The forward pass keeps the arguments. Backward runs the decomposition on them, recording, and differentiates
that; so whatever kernel a plugin brings for a composite serves training at once.
"""

from __future__ import annotations

from typing import Any

from tensorplug.core.dispatch.op import Op
from tensorplug.core.tensor.base import TRACKED, TensorBase, new_tensor

from ..engine.backward import grad
from ..engine.derivatives import ARGUMENT, CompiledDerivative, Derivative, Formula
from ..grad_mode import enable_grad
from .nodes import FREED, Identity, MultiNode, SavedByHook

_DERIVATIVES: dict[Op, CompiledDerivative] = {}


def rule_of(op: Op) -> CompiledDerivative | None:
    """Return the rule by which a composite is recorded as a whole: it saves all arguments."""
    if op.kind != "composite" or op.writes:
        return None
    rule = _DERIVATIVES.get(op)
    if rule is None:
        rule = _DERIVATIVES[op] = CompiledDerivative(op, Derivative(op.name, {}, 0))
        rule.sources = [(ARGUMENT, position) for position in range(op.arity)]
        every = tuple(range(op.arity))
        rule.formulas = tuple(
            [Formula(name, number, _jointly, every) for number, name in enumerate(op.parameters)]
        )
    return rule


def _jointly(*arguments: Any) -> Any:
    raise NotImplementedError("DecompositionNode computes all gradients at once")


class DecompositionNode(MultiNode):
    """A composite that ran as one kernel, differentiated through its decomposition."""

    __slots__ = ()

    def apply(self, gradient: Any, raw: bool) -> list[tuple[Any, bool]]:
        """Run the decomposition on the saved arguments and differentiate it."""
        if self.saved is None:
            raise RuntimeError(FREED)
        plan = self.plan
        updates = plan.rule.op.updates
        values = [
            self._before_update(index) if index in updates else self.unpack(index)
            for index in range(len(plan.saves))
        ]
        targets: list[Any] = []
        for formula in plan.formulas:
            value = values[formula.position]
            if isinstance(value, TensorBase):
                values[formula.position] = self._target(value, raw, targets)
            else:
                values[formula.position] = [self._target(item, raw, targets) for item in value]
        with enable_grad():
            results = plan.rule.op.decompose(tuple(values))
        outputs: list[Any] = []
        gradients: list[Any] = []
        for number, output in enumerate(results if isinstance(results, tuple) else (results,)):
            given = gradient.get(number)
            if given is not None and output.requires_grad:
                key, shape = self.outputs[number]
                outputs.append(output)
                gradients.append(new_tensor(given, key, shape) if raw else given)
        wanted = [target for target in targets if target is not None]
        if not outputs or not wanted:
            return [(None, False)] * len(targets)
        found = iter(grad(outputs, wanted, gradients, create_graph=not raw, allow_unused=True))
        results_of_edges: list[tuple[Any, bool]] = []
        for target in targets:
            value = None if target is None else next(found)
            results_of_edges.append((value._array if raw and value is not None else value, False))
        return results_of_edges

    def _before_update(self, index: int) -> Any:
        """Return a copy of what the forward pass updated and the decomposition will again."""
        assert self.saved is not None
        value = self.saved[index]
        value = value.unpack() if isinstance(value, SavedByHook) else value
        return None if value is None else value.detach().clone()

    def _target(self, tensor: Any, raw: bool, targets: list[Any]) -> Any:
        """Return what replaces a saved tensor whose gradient is asked for."""
        edge = self.edges[len(targets)]
        if edge is None:
            targets.append(None)
            return tensor
        target: Any = new_tensor(tensor._array, tensor._key, tensor._shape)
        target._state = TRACKED
        if not raw:
            target._node = Identity(edge, tensor._key, tensor._shape)
        targets.append(target)
        return target
