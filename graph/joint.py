"""Joint graphs: a captured program and its gradients as one graph, cut into two.

The program runs once more, op by op, and is differentiated, while a :class:`~.capture.Recorder` notes both;
so the gradients are those of the registered derivatives, summed in the engine's order. What depends on the
gradients that come in runs backward; what it needs of the rest is saved, or made anew (:func:`chosen`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tensorplug.autograd import grad
from tensorplug.autograd.grad_mode import enable_grad, no_grad
from tensorplug.core.device.dtypes import float32, float64
from tensorplug.core.device.generator import fork_rng
from tensorplug.core.dispatch import layers
from tensorplug.core.dispatch.op_registry import handle
from tensorplug.core.ops.creation.creation_like import ones_like

from . import ops
from .cut import INFINITE, Network
from .graph import Graph
from .layouts import Values
from .memory import Uncapturable, memory_of, roots
from .nodes import Node, Value, known_op, map_values, values_in
from .passes import merge_common
from .recorded_level import RecordedLevel, draws_by_seed

__all__ = ["Joint", "join"]

_CLONE = handle("clone")
_DROPOUT = handle("dropout")
_VIEW, _RESHAPE = handle("view"), handle("reshape")
_HARDTANH, _HARDTANH_BACKWARD = handle("hardtanh"), handle("hardtanh_backward")
#: The number of the part that derivatives are.
_FORMULAS = -1


class NothingRecorded(Exception):
    """No result of a program requires grad."""


class Joint(NamedTuple):
    """The two halves of a program with its gradients.

    Attributes
    ----------
    forward : Graph
        For the program's inputs: the results, then what is saved.
    backward : Graph
        For what is saved and the gradients of results: those of the inputs that require grad, None where
        nothing depends on one.
    wanted : list of Value
        The program's results that require grad, whose gradients come in.
    saved : int
        How many values are saved.
    inputs, results : list of int
        The numbers of inputs and of results whose memory saved values show: they must not be written before
        the backward pass.
    """

    forward: Graph
    backward: Graph
    wanted: list[Value]
    saved: int
    inputs: list[int]
    results: list[int]


def join(graph: Graph, inputs: list[Any]) -> Joint:
    """Return the halves of a graph and its gradients.

    Parameters
    ----------
    graph : Graph
        What was captured of the program.
    inputs : list of Tensor
        One for each input of the graph; those that require grad get gradients.

    Raises
    ------
    Uncapturable
        If what is written requires grad, a formula depends on data, or keeps a tensor that no op makes.
    NothingRecorded
        If no result requires grad.
    """
    made, wanted, gradients, views = _captured(graph, inputs)
    _simplify(made, views)
    leaves, written, found = made.result
    if any([value.kind == "constant" for value in made.inputs]):
        raise Uncapturable("a derivative keeps a tensor that no op made")
    if draws_by_seed(made):
        raise Uncapturable("random numbers are drawn within an op")
    late = _depending(made, gradients)
    _expect_any_layout(made, late)
    forward_values = [*values_in(leaves), *written]
    demanded = [
        value
        for node in made.nodes
        if any([output in late for output in node.outputs])
        for value in node.values()
        if value not in late
    ]
    demanded += [value for value in values_in(found) if value not in late]
    checked = [value for node in made.nodes if not node.outputs for value in node.values()]
    early = _ancestors([*forward_values, *checked])
    again = _again(made, late, forward_values)
    saved = chosen(made, list(dict.fromkeys(demanded)), late, early, again)

    targets = [value for value, _ in graph.writes]
    first = dict(zip(graph.inputs, made.inputs, strict=False))
    overwritten = {first[value] for value in targets}
    own = made.inputs[: len(graph.inputs)]
    forward = _Part(own)
    drawn = [v for node in made.nodes if node.op.random for v in node.outputs if v not in late]
    needed = _ancestors([*forward_values, *saved, *checked, *drawn])
    for node in made.nodes:
        if node in needed or not node.outputs:
            forward.add(node)
    kept = [
        forward.graph.call(_CLONE, forward.known[value])
        if value in overwritten
        else forward.known[value]
        for value in saved
    ]
    forward.graph.result = [*map_values(leaves, forward.known.__getitem__), *kept]
    forward.graph.writes = [
        (forward.known[first[target]], forward.known[new])
        for target, new in zip(targets, written, strict=True)
    ]

    backward = _Part([*saved, *gradients])
    for node in made.nodes:
        if any([output in late for output in node.outputs]):
            backward.add_with_sources(node)
    for value in values_in(found):
        backward.make(value)
    backward.graph.result = map_values(found, backward.known.__getitem__)
    backward.graph.remove_unused()

    shown = {root for value in saved if value not in overwritten for root in roots(value, views)}
    return Joint(
        forward.graph,
        backward.graph,
        wanted,
        len(saved),
        [number for number, value in enumerate(own) if value in shown],
        [
            number
            for number, value in enumerate(leaves)
            if type(value) is Value
            and value not in own
            and not shown.isdisjoint(roots(value, views))
        ],
    )


# --- capture ----------------------------------------------------------------------------------------


def _drops(node: Node) -> bool:
    """Return whether a node is dropout, whose mask the derivative takes."""
    if node.op is not _DROPOUT:
        return False
    input, p, training = node.args
    return bool(training and p) and input.dtype.is_floating_point


def _captured(
    graph: Graph, inputs: list[Any]
) -> tuple[Graph, list[Value], list[Value], set[Value]]:
    """Return the joint graph, the results and gradients that come in, and which values are views.

    Its result is the program's values, what it writes, and the gradients of the inputs that require grad.
    """
    with fork_rng(), enable_grad():
        recorder = RecordedLevel(shapes_from_data=True)
        values = Values(graph)
        for value, tensor in zip(graph.inputs, inputs, strict=True):
            values[value] = tensor.detach().requires_grad_(tensor.requires_grad)
            recorder.add(value.name, values[value], "input")
        with recorder.active():
            for node in graph.nodes:
                recorder.part = node.part
                if _drops(node):
                    given = map_values(node.args, values.__getitem__)
                    with enable_grad() if node.records else no_grad():
                        values[node.output] = ops.dropout(*given[:2])[0]
                elif node.outputs:
                    values.run(node)
                else:  # which checks data
                    recorder.check(node, values)
            recorder.part = _FORMULAS
            results = dict.fromkeys(values_in(graph.result))
            wanted = [v for v in results if v.node is not None and values[v].requires_grad]
            outs = [values[value] for value in wanted]
            if any([values[new].requires_grad for _, new in graph.writes]):
                raise Uncapturable("what is written requires grad")
            if not outs:
                raise NothingRecorded
            with layers.isolated():
                given = [ones_like(out.detach()) for out in outs]
                gradients = [recorder.add("gradient", tensor, "input") for tensor in given]
            recorder.shapes_from_data = False
            sources = [values[value] for value in graph.inputs if values[value].requires_grad]
            found = grad(outs, sources, given, create_graph=True, allow_unused=True)
        leaves = [values[leaf] if type(leaf) is Value else leaf for leaf in graph.result]
        written = [values[new] for _, new in graph.writes]
        made = recorder.finished((leaves, written, list(found)))
        return made, wanted, gradients, recorder.shown()


def _simplify(joint: Graph, views: set[Value]) -> None:
    """Take out what tells autograd something, and copies of what only one call updates."""
    users = joint.users()
    detach = known_op("graph.detach")
    other: dict[Value, Value] = {}

    def stands_for(value: Value) -> Value:
        while value in other:
            value = other[value]
        return value

    returned = {*values_in(joint.result[:2])}
    for node in joint.nodes:
        if node.op is detach or (_shows_all(node) and node.output not in returned):
            other[node.output] = node.args[0]
    for node in joint.nodes:
        for position in node.updates:
            for value in values_in(node.args[position]):
                if value.node is not None and value.node.op is _CLONE and users[value] == [node]:
                    other[value] = value.node.args[0]
    joint.nodes = [
        node for node in joint.nodes if not any([value in other for value in node.outputs])
    ]
    for node in joint.nodes:
        node.args = map_values(node.args, stands_for)
    joint.result = map_values(joint.result, stands_for)
    merge_common(joint, memory_of(values_in(joint.result[:2]), views))
    _use_results(joint)


def _shows_all(node: Node) -> bool:
    """Return whether a node is a view in the shape that its argument has."""
    return node.op in (_VIEW, _RESHAPE) and node.output.shape == node.args[0].shape


def _use_results(joint: Graph) -> None:
    """Have the slope of what is cut off at both ends be told by the result, where the next op keeps that.

    What lies between the bounds is not changed, and what does not becomes a bound, if the dtype can hold it.
    """
    made: dict[Any, Value] = {}
    for node in joint.nodes:
        if node.op is _HARDTANH and node.output.dtype in (float32, float64):
            made[tuple(node.args)] = node.output
        elif node.op is _HARDTANH_BACKWARD:
            g, *given = node.args
            node.args = (g, made.get(tuple(given), given[0]), *given[1:])


# --- the cut ----------------------------------------------------------------------------------------


def _depending(joint: Graph, gradients: Iterable[Value]) -> set[Value]:
    """Return the values that depend on the gradients that come in, those included."""
    found = set(gradients)
    for node in joint.nodes:
        if not found.isdisjoint(node.values()):
            found.update(node.outputs)
    return found


def _expect_any_layout(joint: Graph, late: set[Value]) -> None:
    """Have what depends on the gradients that come in not depend on how those lie in memory."""
    for node in joint.nodes:
        if late.isdisjoint(node.outputs):
            continue
        if node.op is _VIEW:
            node.op = _RESHAPE
        elif node.op.reads_layout and not node.op.layout and node.op.view:
            raise Uncapturable(f"a derivative is {node.op.name}(), which depends on the layout")


def _ancestors(values: Iterable[Value]) -> set[Node]:
    """Return the nodes that make values, and what those take."""
    found: set[Node] = set()
    stack = [value.node for value in values if value.node is not None]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += [v.node for v in node.values() if v.node is not None]
    return found


def _again(joint: Graph, late: set[Value], results: Iterable[Value]) -> set[Value]:
    """Return the values within checkpoints, and what formulas make of those: none of them is saved.

    But for random numbers, what is updated, and what leaves its checkpoint: that is alive in any case.
    """
    leaving = set(results)
    for node in joint.nodes:
        if node.part != _FORMULAS:
            leaving.update([v for v in node.values() if v.node and v.node.part != node.part])
    found: set[Value] = set()
    for node in joint.nodes:
        if node.op.random or node.updates:
            continue
        if node.part > 0 or (node.part == _FORMULAS and not found.isdisjoint(node.values())):
            found.update([v for v in node.outputs if v not in leaving and v not in late])
    return found


def chosen(
    joint: Graph, demanded: list[Value], late: set[Value], early: set[Node], again: set[Value]
) -> list[Value]:
    """Return what to save so that the values that the backward half demands can be had: the fewest bytes.

    What only the backward half needs costs nothing to be left to it, and views cost nothing to make anew.
    What the forward half makes in any case is not made twice, but for values that are to be made `again`.
    """
    if not demanded:
        return []
    network = Network()
    source, sink = network.add(), network.add()
    into: dict[Value, int] = {}
    out: dict[Value, int] = {}
    for value in [*joint.inputs, *[v for node in joint.nodes for v in node.outputs]]:
        if value in late:
            continue
        into[value], out[value] = network.add(), network.add()
        network.join(into[value], out[value], INFINITE if value in again else _weight(value))
        if value.node is None or (value not in again and not _cheap(value.node, early)):
            network.join(source, into[value], INFINITE)
        else:
            for given in value.node.values():
                network.join(out[given], into[value], INFINITE)
    for value in demanded:
        network.join(out[value], sink, INFINITE)
    reached = network.cut(source, sink)
    return [value for value in into if into[value] in reached and out[value] not in reached]


def _weight(value: Value) -> int:
    """Return what it costs to save a value: its bytes, nothing for what is alive anyway."""
    if value.node is None:
        return 1
    size = value.dtype.itemsize
    for length in value.shape:
        size *= length
    return size + 2


def _cheap(node: Node, early: set[Node]) -> bool:
    """Return whether a node may run in the backward half."""
    op = node.op
    return not (op.random or node.updates) and (op.view or node not in early)


# --- the halves -------------------------------------------------------------------------------------


class _Part:
    """A graph of some of the nodes of another one."""

    def __init__(self, inputs: list[Value]) -> None:
        self.graph = Graph()
        self.known: dict[Value, Value] = {}
        for value in inputs:
            self.graph.inputs.append(self._copied(value, None))

    def _copied(self, value: Value, node: Node | None) -> Value:
        name = self.graph.name(value.name)
        made = Value(name, value.shape, value.dtype, value.device, node=node)
        self.known[value] = made
        return made

    def add(self, node: Node) -> None:
        """Add a node whose arguments are known."""
        twin = Node(
            node.op, map_values(node.args, self.known.__getitem__),
            updates=node.updates, records=node.records, source=node.source, part=node.part,
        )  # fmt: skip
        twin.outputs = [self._copied(value, twin) for value in node.outputs]
        twin.result = map_values(node.result, self.known.__getitem__)
        self.graph.nodes.append(twin)

    def make(self, value: Value) -> None:
        """Add what makes a value, unless it is known."""
        if value not in self.known:
            assert value.node is not None
            self.add_with_sources(value.node)

    def add_with_sources(self, node: Node) -> None:
        """Add a node, before it what makes its arguments."""
        stack = [node]
        while stack:
            missing = [v for v in stack[-1].values() if v not in self.known]
            if missing:
                stack += [v.node for v in missing if v.node is not None]
                continue
            last = stack.pop()
            if not last.outputs or last.outputs[0] not in self.known:
                self.add(last)
