"""Nodes of composites whose bodies were replayed: one for all that a body calls."""

from __future__ import annotations

from typing import Any

from tensorplug.core.dispatch.dispatcher import run
from tensorplug.core.dispatch.overrides import in_formula
from tensorplug.core.dispatch.programs import Program
from tensorplug.core.dispatch.recorded_bodies import RecordedBody, replaced
from tensorplug.core.tensor.base import TRACKED, new_tensor, version_of

from ..engine.backward import grad
from ..grad_mode import enable_grad
from ..transforms.levels import ActiveLevels, state
from .nodes import FREED, Identity, Node, modified
from .recording import shared
from .views import edge_of


class BodyNode(Node):
    """A composite whose body ran as a program, and has another one for its gradients.

    Attributes
    ----------
    body : RecordedBody
        The programs.
    arrays : list or None
        What the forward program saved.
    checked : list of (Tensor, int)
        What shares memory with it, with the versions.
    tensors : list of (Tensor, int)
        Those among the arguments, with their versions, for passes that are recorded themselves.
    """

    __slots__ = ("arrays", "body", "checked", "tensors")

    body: RecordedBody
    arrays: list[Any] | None
    checked: list[tuple[Any, int]]
    tensors: list[tuple[Any, int]]

    def name(self) -> str:
        """Return the name of the node that the body would end with."""
        return self.body.name

    def release(self) -> None:
        """Drop what was saved; what needs none can run again."""
        if self.arrays:
            self.arrays = None
            self.checked = []
            self.tensors = []

    def apply(self, gradient: Any, raw: bool) -> list[tuple[Any, bool]]:
        """Run the program, or, where the pass is recorded, the body."""
        if self.arrays is None:
            raise RuntimeError(FREED)
        if not raw:
            return self._recorded(gradient)
        self._check(self.checked)
        program: Program = self.body.backward
        fresh: Any = program.fresh
        return list(zip(program.run([*self.arrays, gradient]), fresh, strict=True))

    def _check(self, saved: list[tuple[Any, int]]) -> None:
        """Raise if a tensor was written to since."""
        for tensor, version in saved:
            if version_of(tensor) != version:
                raise modified(self, tensor, version)

    def _recorded(self, gradient: Any) -> list[tuple[Any, bool]]:
        """Run the body on the arguments once more, recording, and differentiate that."""
        self._check(self.tensors)
        tensors = [tensor for tensor, _ in self.tensors]
        targets: list[Any] = []
        for index, edge in zip(self.body.tracked, self.edges, strict=True):
            tensor = tensors[index]
            target: Any = new_tensor(tensor._array, tensor._key, tensor._shape)
            target._state = TRACKED
            target._node = Identity(edge, tensor._key, tensor._shape)
            targets.append(target)
            tensors[index] = target
        assert self.body.call is not None
        op, args, kwargs = self.body.call
        given = iter(tensors)
        # The tensors are ordinary, whatever the gradient is: a body with a vjp asks which levels there are.
        with enable_grad(), ActiveLevels((), state.tangents), in_formula():
            result = run(op, *replaced((args, kwargs), lambda _: next(given)))
        found = grad((result,), targets, (gradient,), create_graph=True, allow_unused=True)
        return [(value, False) for value in found]


def record_body(recorded: RecordedBody, tensors: list[Any], output: Any, found: list[Any]) -> None:
    """Make the output of a replayed body that of a new node; see ``GradientLayer.record_body``."""
    node = BodyNode()
    node.begin(
        tuple([edge_of(tensors[index]) for index in recorded.tracked]), output._key, output._shape
    )
    node.body = recorded
    node.arrays = found[1:]
    # Without its node: a write could make this one part of it.
    node.tensors = [
        (tensor if tensor._node is None else shared(tensor), version_of(tensor))
        for tensor in tensors
    ]
    node.checked = [node.tensors[index] for index in recorded.shown]
    if recorded.shows_result:
        node.checked.append((shared(output), version_of(output)))
    output._node = node
    output._state = TRACKED


def differentiate(inputs: list[Any], outputs: list[Any], gradients: list[Any]) -> tuple[Any, ...]:
    """Return the gradients of those of `inputs` that require grad, as tensors that are recorded."""
    wanted = [tensor for tensor in inputs if tensor._state]
    return grad(outputs, wanted, gradients, create_graph=True, allow_unused=True)
