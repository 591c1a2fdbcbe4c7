"""A graph of ONNX as steps: each an operator's function, with the names of what it takes and gives.

Shapes, axes and sizes are wanted as Python numbers, on every device. So values that hold nothing else (what
Shape and Size return, small integer constants, and what is computed from these alone) stay on the host; the
steps where they meet other tensors take copies to the device. A value is dropped after its last step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from tensorplug.core import Tensor

from .registry import Operator

__all__ = ["Call", "Program", "Step"]


class Call(NamedTuple):
    """What a call of the module shares with all steps."""

    device: Any
    training: bool
    state: Mapping[str, Any]


@dataclass
class Step:
    """One node: an operator, what it takes and gives."""

    operator: Operator
    label: str
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    graphs: dict[str, Program]
    moved: tuple[int, ...]  # positions of inputs on the host that are wanted on the device
    fixed: dict[int, Any]  # inputs known as Python values
    on_host: bool
    lifted: dict[str, str] = field(default_factory=dict)  # attributes that are tensors of the state
    dropped: tuple[str, ...] = ()

    def uses(self) -> set[str]:
        """Return the names of all values that the step reads, in its graphs too."""
        own = {
            name for i, name in enumerate(self.inputs) if name is not None and i not in self.fixed
        }
        return own.union(self.lifted.values(), *(graph.captures for graph in self.graphs.values()))

    def run(self, values: dict[str, Any], call: Call) -> None:
        """Compute the outputs from the values that there are, and put them among these."""
        operator, fixed = self.operator, self.fixed
        arguments: list[Any] = []
        for i, name in enumerate(self.inputs):
            if i in fixed:
                value = fixed[i]
            elif name is None:
                value = None
            else:
                value = values[name]
                if i in self.moved:
                    value = moved(value, call.device)
                elif i in operator.host and isinstance(value, Tensor):
                    value = value.tolist()
            arguments.append(value)
        keywords = dict(self.attributes)
        for attribute, name in self.lifted.items():
            keywords[attribute] = values[name]
        for name, graph in self.graphs.items():
            captured = {capture: values[capture] for capture in graph.captures}
            keywords[name] = partial(graph.run, call=call, captured=captured)
        if operator.context:
            if "training" in operator.context:
                keywords["training"] = call.training
            if "n_outputs" in operator.context:
                keywords["n_outputs"] = len(self.outputs)
            if "device" in operator.context:
                keywords["device"] = call.device
        results = operator.function(*arguments, **keywords)
        if len(self.outputs) == 1 and not isinstance(results, tuple):
            values[self.outputs[0]] = results
        else:
            values.update(zip(self.outputs, results, strict=False))


@dataclass
class Program:
    """The steps of a graph in their order, with the names of its inputs and outputs.

    Attributes
    ----------
    stored
        The names of values that are parameters or buffers, and their keys in the module's state.
    constants
        Values that are no tensors: strings.
    captures
        The names of values of the graphs around this one that its steps read.
    on_host
        The names of values that stay on the host.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    steps: list[Step] = field(default_factory=list)
    stored: dict[str, str] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    captures: set[str] = field(default_factory=set)
    on_host: set[str] = field(default_factory=set)

    def finish(self) -> None:
        """Find what comes from the graphs around, and after which step each value is dropped."""
        known = {*self.inputs, *self.stored, *self.constants}
        for step in self.steps:
            self.captures |= step.uses() - known
            known.update(step.outputs)
        self.captures |= set(self.outputs) - known
        needed = set(self.outputs)
        for step in reversed(self.steps):
            used = step.uses() | set(step.outputs)
            step.dropped = tuple(used - needed)
            needed |= used

    def run(
        self, *inputs: Any, call: Call, captured: Mapping[str, Any] | None = None
    ) -> tuple[Any, ...]:
        """Return the outputs for these inputs."""
        values: dict[str, Any] = dict(captured or ())
        values.update(self.constants)
        for name, key in self.stored.items():
            values[name] = call.state[key]
        values.update(zip(self.inputs, inputs, strict=True))
        for step in self.steps:
            try:
                step.run(values, call)
            except Exception as error:
                if not any(note.startswith("in ONNX") for note in getattr(error, "__notes__", ())):
                    error.add_note(f"in ONNX {step.label}: inputs {_described(step, values)}")
                raise
            for name in step.dropped:
                values.pop(name, None)
        return tuple(
            moved(values[name], call.device) if name in self.on_host else values[name]
            for name in self.outputs
        )

    def walk(self) -> Iterable[Step]:
        """Yield all steps, those of inner graphs too."""
        for step in self.steps:
            yield step
            for graph in step.graphs.values():
                yield from graph.walk()


def moved(value: Any, device: Any) -> Any:
    """Return a value on a device: a tensor, or a sequence of them."""
    if isinstance(value, Tensor):
        return value if value.device == device else value.to(device)
    return [moved(item, device) for item in value] if isinstance(value, list) else value


def _described(step: Step, values: Mapping[str, Any]) -> str:
    said: list[str] = []
    for i, name in enumerate(step.inputs):
        value = step.fixed.get(i, values.get(name or ""))
        if isinstance(value, Tensor):
            said.append(f"{name}: {str(value.dtype).split('.')[-1]}{list(value.shape)}")
        else:
            said.append(f"{name}: {value!r:.40}" if name else "-")
    return ", ".join(said) or "none"
