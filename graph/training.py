"""Training: a captured program with its gradients, both as programs, and one node in autograd's graph.

The forward half returns the results and what the backward half needs. What the two cannot do, such as second
derivatives, is done by the ops of the graph: the node runs them again on the same inputs.
"""

from __future__ import annotations

from typing import Any

from tensorplug.autograd import grad
from tensorplug.autograd.engine.backward_callbacks import running
from tensorplug.autograd.grad_mode import enable_grad
from tensorplug.autograd.graph.nodes import FREED, Identity, MultiNode
from tensorplug.autograd.graph.recording import attach_several, shared
from tensorplug.autograd.graph.views import edge_of
from tensorplug.autograd.transforms.levels import ActiveLevels, state
from tensorplug.core.device.generator import fork_rng, generator_of, going_on
from tensorplug.core.dispatch.keys import DispatchKey, dispatch_key
from tensorplug.core.dispatch.layers import recording
from tensorplug.core.tensor.base import TRACKED, new_tensor, version_of

from .graph import Graph
from .joint import Joint, join
from .lowering import lower
from .program import Program

__all__ = ["Training"]

#: For how many layouts of incoming gradients a backward half is lowered.
_LAYOUTS = 8


class Training:
    """A graph and its gradients, for inputs of which given ones require grad.

    Parameters
    ----------
    graph : Graph
        What was captured of the program.
    inputs : list of Tensor
        One for each input of the graph.
    mode : str
        What `tp.compile` was told.

    Raises
    ------
    Uncapturable, NothingRecorded
        As :func:`~.joint.join` does.
    """

    def __init__(self, graph: Graph, inputs: list[Any], mode: str) -> None:
        self.graph = graph
        self.mode = mode
        self.joint: Joint = join(graph, inputs)
        self.needing = [number for number, tensor in enumerate(inputs) if tensor.requires_grad]
        self.forward: Program | None = None
        self.backward: dict[Any, Program] = {}
        needed = set(self.joint.wanted)
        for node in reversed(graph.nodes):
            if not needed.isdisjoint(node.outputs):
                needed.update(node.values())
        needed &= {target for target, _ in graph.writes}
        # What is read for results and written, too: running again takes the values from before.
        self.rewritten = [n for n, value in enumerate(graph.inputs) if value in needed]
        # Of results, where they are among a call's tensors: those whose gradients come in, and those whose
        # memory saved values show.
        places = graph.places()
        self.wanted = [places[value] for value in self.joint.wanted]
        self.shown = [places[graph.result[number]] for number in self.joint.results]
        # For each input that requires grad whether it gets a gradient.
        self.reached = [value is not None for value in self.joint.backward.result]
        # Of the graph's outputs, once there is a program.
        self.keys: list[DispatchKey] = []
        random = {v.device for node in graph.nodes if node.op.random for v in node.outputs}
        self.generators = [generator_of(device) for device in random]

    def run(self, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return the arrays of the graph's outputs and of what is saved."""
        program = self.forward
        graph = self.joint.forward
        if program is None or not program.is_current():
            program, made = lower(graph, inputs, self.mode)
            self.forward = program
            arrays = [tensor._array for tensor in made]
            self.keys = self._apart([program.keys[place] for place in program.outputs])[0]
        else:
            given = []
            for item in inputs:
                tensor = item
                given.append(tensor._array)
            arrays = program.run(given)
        return self._apart(arrays)

    def _apart(self, found: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return what there is for the graph's outputs, and for what is saved."""
        # In the order of Graph.outputs(): results, saved values, what is written.
        end = len(found) - len(self.graph.writes)
        begin = end - self.joint.saved
        return found[:begin] + found[end:], found[begin:end]

    def gradients(
        self, saved: list[Any], given: list[Any], keys: list[DispatchKey]
    ) -> list[tuple[Any, bool]]:
        """Return (gradient, fresh) for each input that requires grad, from saved and incoming arrays.

        The list of what was saved is emptied.
        """
        layout = tuple([key.runtime.strides(array) for key, array in zip(keys, given, strict=True)])
        program = self.backward.get(layout)
        if program is None or not program.is_current():
            values = self.joint.backward.inputs
            tensors = [
                new_tensor(array, dispatch_key(value.device, value.dtype), tuple(array.shape))
                for array, value in zip([*saved, *given], values, strict=True)
            ]
            program, made = lower(self.joint.backward, tensors, self.mode)
            if len(self.backward) < _LAYOUTS:
                self.backward[layout] = program
            arrays, fresh = [tensor._array for tensor in made], [False] * len(made)
        else:
            arrays = [*saved, *given]
            saved.clear()
            arrays, fresh = program.run(arrays), program.fresh
        found: list[tuple[Any, bool]] = []
        number = 0
        for reached in self.reached:
            if reached:
                found.append((arrays[number], fresh[number]))
                number += 1
            else:
                found.append((None, False))
        return found

    def streams(self) -> list[Any]:
        """Return what has the generators that the program draws from go on from where they are now."""
        return [going_on(generator) for generator in self.generators]

    def record(
        self, inputs: list[Any], saved: list[Any], streams: list[Any], tensors: list[Any]
    ) -> None:
        """Make a node the maker of the results whose gradients may come in.

        `tensors` are the inputs, then what was made.
        """
        node = new_compiled_node()
        outputs = [tensors[place] for place in self.wanted]
        first = outputs[0]
        edges = tuple([edge_of(inputs[place]) for place in self.needing])
        node.begin(edges, first._key, first._shape)
        node.training = self
        node.saved = tuple(saved)
        node.inputs = inputs.copy()
        for place in self.rewritten:
            node.inputs[place] = inputs[place].detach().clone()
        node.versions = tuple([version_of(tensor) for tensor in inputs])
        kept = [inputs[place] for place in self.joint.inputs]
        kept += [shared(tensors[place]) for place in self.shown]
        node.watched = kept
        node.watched_versions = [version_of(tensor) for tensor in kept]
        node.streams = streams
        node.arrived, node.done = set(), set()
        attach_several(node, outputs)

    def by_ops(
        self, inputs: list[Any], given: list[Any], streams: list[Any], create_graph: bool
    ) -> list[Any]:
        """Return the gradients of inputs that require grad, where some incoming ones may be None.

        With `create_graph` they are differentiable in the inputs and in what comes in.
        """
        targets: list[Any] = []
        values = []
        for tensor in inputs:
            value = new_tensor(tensor._array, tensor._key, tensor._shape)
            if tensor.requires_grad:
                value._state = TRACKED
                if create_graph:
                    value._node = Identity(edge_of(tensor), tensor._key, tensor._shape)
                targets.append(value)
            values.append(value)
        with fork_rng(), enable_grad(), ActiveLevels((), state.tangents):
            for step in streams:
                step()
            made = self.graph.values(values, self.joint.wanted)
        pairs = [(o, g) for o, g in zip(made, given, strict=True) if g is not None]
        if not pairs:
            return [None] * len(targets)
        outputs, gradients = zip(*pairs, strict=True)
        return list(grad(outputs, targets, gradients, create_graph=create_graph, allow_unused=True))


class CompiledNode(MultiNode):
    """The node of a compiled program; it stands behind one output node per result."""

    __slots__ = (
        "arrived", "done", "inputs", "streams", "training", "watched", "watched_versions",
    )  # fmt: skip

    training: Training
    inputs: list[Any]
    # Tensors whose memory saved arrays show, and how often they had been written.
    watched: list[Any]
    watched_versions: list[int]
    # What has the generators go on from where the program began.
    streams: list[Any]
    # Which results had a gradient in this pass, and in passes that let go of the graph.
    arrived: set[int]
    done: set[int]

    def name(self) -> str:
        """Return "CompiledFunctionBackward"."""
        return "CompiledFunctionBackward"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.name()!r} has no attribute {name!r}")

    def release(self) -> None:
        """Drop what was saved, once all results had gradients: each may be differentiated by itself."""
        self.done |= self.arrived
        if len(self.done) < len(self.outputs):
            return
        self.saved = None
        self.inputs = []
        self.watched = []
        self.watched_versions = []

    def apply(self, gradient: Any, raw: bool) -> list[tuple[Any, bool]]:
        """Run the backward half; where it does not serve, the graph op by op."""
        self.arrived = {number for number, value in gradient.items() if value is not None}
        if self.saved is None or not self.done.isdisjoint(self.arrived):
            raise RuntimeError(FREED)
        for number, tensor in enumerate(self.watched):
            if version_of(tensor) != self.watched_versions[number]:
                raise self.modified(tensor, self.watched_versions[number])
        if raw and len(self.arrived) == len(self.outputs):
            keys = [kind[0] for kind in self.outputs]
            arrays = []
            for number, key in enumerate(keys):
                array = gradient[number]
                arrays.append(array if type(array) is key.array_type else key.as_array(array))
            saved = list(self.saved)
            if not running.current.retain_graph:
                self.saved = None  # as `release` does, so that each array goes after its last use
            return self.training.gradients(saved, arrays, keys)
        given = [gradient.get(number) for number in range(len(self.outputs))]
        written = {target for target, _ in self.training.graph.writes}
        for value, tensor, version in zip(
            self.training.graph.inputs, self.inputs, self.versions, strict=True
        ):
            if value not in written and version_of(tensor) != version:
                raise self.modified(tensor, version)
        if raw:
            given = [
                None if array is None else new_tensor(array, *kind)
                for array, kind in zip(given, self.outputs, strict=True)
            ]
        found = self.training.by_ops(
            self.inputs, given, self.streams, recording.enabled and not raw
        )
        return [(value if value is None or not raw else value._array, False) for value in found]

    def modified(self, tensor: Any, version: int) -> RuntimeError:
        """Return the error for a tensor that was written to."""
        return RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace "
            f"operation: [{tensor.device} {tensor.dtype.name} {list(tensor._shape)}], saved by "
            f"{self.name()}, is at version {version_of(tensor)}; expected version {version} instead"
        )


def new_compiled_node() -> CompiledNode:
    """Return a node whose slots are still to be set."""
    return CompiledNode.__new__(CompiledNode)
