"""The engine: one backward pass over the graph.

A pass first counts, for every node it reaches, the paths that lead to it; then it runs each node once all
of its paths have arrived, and drops what the node saved. Nothing recurses.

In a plain pass the gradients are raw arrays and formulas run as programs. With ``create_graph``, or while a
layer such as a profiler is active, they are tensors and formulas run as ordinary ops.
"""

from __future__ import annotations

from typing import Any

from tensorplug.core.device import queues
from tensorplug.core.dispatch import layers, overrides
from tensorplug.core.dispatch.failed_calls import out_of_memory
from tensorplug.core.dispatch.keys import DispatchKey
from tensorplug.core.dispatch.layers import recording
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor.base import TensorBase, new_tensor
from tensorplug.core.tensor.tensor import Tensor

from ..graph import saved_tensors
from ..graph.nodes import FREED, MultiNode, Node, OpNode
from . import anomalies, backward_callbacks, backward_hooks, backward_queues, backward_ranges
from .accumulation import accumulate
from .arithmetic import add, shown
from .backward_callbacks import running
from .evaluation import evaluate, evaluate_all
from .formula_contracts import check_gradients


class _State:
    """The engine's working state of a node that another pass is using at the same time."""

    __slots__ = ("fresh", "gradient", "pending")

    def __init__(self) -> None:
        self.gradient: Any = None
        self.fresh = False
        self.pending = 0


def _reset_slots(roots: list[Node]) -> None:
    """Make the slots of a pass that broke off as they are between passes."""
    seen = set(roots)
    stack = list(roots)
    while stack:
        node = stack.pop()
        node.pending = 0
        node.gradient = None
        for edge in node.edges:
            if isinstance(edge, Node) and edge not in seen:
                seen.add(edge)
                stack.append(edge)


# Empty while a pass works in the nodes' own slots: a lock would be taken by a call. In a child that was
# forked meanwhile it stays empty, and so must it: the nodes have that pass's counts in them.
_FREE = (None,)
_slots: list[None] = list(_FREE)


def _within() -> None:
    """Stand for the end of a context while a pass runs; it has none of its own."""


class BackwardPass:
    """One backward pass.

    Parameters
    ----------
    create_graph : bool
        Record the pass itself.
    retain_graph : bool
        Keep what nodes saved.
    targets : dict, optional
        For ``autograd.grad`` and ``backward(inputs=…)``: the nodes and leaves whose gradients are wanted;
        nothing else is computed or accumulated.
    """

    def __init__(
        self, create_graph: bool, retain_graph: bool, targets: dict[Any, Any] | None = None
    ) -> None:
        self.create_graph = create_graph
        self.retain_graph = retain_graph
        self.raw = not (create_graph or overrides.recorded) and not (
            dispatch_state.layers_active and (dispatch_state.preferences or layers.active_layers())
        )
        self.targets = targets
        self.captured: dict[Any, Any] = {}
        # Of each leaf: [paths still to come, sum so far, whether nobody else holds it]
        self.leaves: dict[Any, list[Any]] = {}
        self.states: dict[Node, _State] = {}
        self.needed: set[Any] | None = None
        # The nodes' own slots serve the first pass; one that starts while it runs, in another thread
        # or from a hook, keeps its counts apart.
        self.alone = False

    # --- counting ---

    def count(self, roots: list[Node]) -> None:
        """Count the paths to every node and leaf that the roots lead to."""
        if self.targets is not None:
            self.needed = self._needed(roots)
        if self.alone:
            self._count_in_slots(roots)
        else:
            self._count_apart(roots)

    def _count_in_slots(self, roots: list[Node]) -> None:
        """Count in the nodes' own slots, which are 0 between passes."""
        stack = list(roots)
        for root in roots:
            root.pending = 1  # so that a path from another root does not visit it again
            root.gradient = None
        leaves = self.leaves
        needed = self.needed
        while stack:
            node = stack.pop()
            for edge in node.edges:
                if edge is None or (needed is not None and edge not in needed):
                    continue
                # The type of most edges first: as Python, isinstance takes longer to say no.
                if type(edge) is not OpNode and isinstance(edge, TensorBase):
                    entry = leaves.get(edge)
                    if entry is None:
                        leaves[edge] = [1, None, False]
                    else:
                        entry[0] += 1
                    continue
                after = edge
                if after.pending:
                    after.pending += 1
                else:
                    after.pending = 1
                    after.gradient = None
                    stack.append(after)
        for root in roots:
            root.pending -= 1

    def _count_apart(self, roots: list[Node]) -> None:
        """Count in a dictionary of this pass's own."""
        states = self.states
        states.update({root: _State() for root in roots})
        stack = list(states)
        needed = self.needed
        while stack:
            for edge in stack.pop().edges:
                if edge is None or (needed is not None and edge not in needed):
                    continue
                if isinstance(edge, Tensor):
                    self.leaves.setdefault(edge, [0, None, False])[0] += 1
                else:
                    if edge not in states:
                        states[edge] = _State()
                        stack.append(edge)
                    states[edge].pending += 1

    def _state(self, node: Node) -> Any:
        return node if self.alone else self.states[node]

    def _needed(self, roots: list[Node]) -> set[Any]:
        """Return the nodes and leaves from which a target can be reached, targets included."""
        assert self.targets is not None
        parents: dict[Any, list[Node]] = {}
        seen = set(roots)
        stack = list(seen)
        while stack:
            node = stack.pop()
            for edge in node.edges:
                if edge is None:
                    continue
                parents.setdefault(edge, []).append(node)
                if edge not in seen:
                    seen.add(edge)
                    if isinstance(edge, Node):
                        stack.append(edge)
        needed = set(self.targets)
        stack = list(needed)
        while stack:
            for parent in parents.get(stack.pop(), ()):
                if parent not in needed:
                    needed.add(parent)
                    stack.append(parent)
        return needed

    def comes_to(self, tensor: Any) -> bool:
        """Return whether the gradient of a tensor is still to be computed; hooks ask it."""
        node = tensor._node
        if node is None:
            return tensor in self.leaves and self.leaves[tensor][0] > 0
        state = node if self.alone else self.states.get(node)
        if state is None:
            return False
        try:
            return state.pending > 0 or state.gradient is not None
        except AttributeError:  # never set: no pass came to the node
            return False

    # --- running ---

    def run(self, roots: list[tuple[Any, Any]]) -> None:
        """Run the pass from (node or leaf, gradient) pairs."""
        nodes = list(dict.fromkeys([edge for edge, _ in roots if isinstance(edge, Node)]))
        first = roots[0][0]
        key = first.key if isinstance(first, Node) else first._key
        runtime = key.runtime
        around = runtime.current_queue(key.device.index or 0) if queues.ever else None
        finished = False
        targets = self.targets is not None
        outer = running.current
        enabled, inference, close = recording.enabled, recording.inference, recording.close
        # No call stands between a change and the `try` that takes it back: an interrupt might come with it.
        dispatch_state.grad_disabled += 1
        recording.enabled, recording.inference, recording.close = self.create_graph, False, _within
        running.current = self
        try:
            try:
                del _slots[0]
                self.alone = True
            except IndexError:
                self.alone = False
            self.count(nodes)
            for edge, _ in roots:
                if isinstance(edge, Node):
                    self._state(edge).pending += 1
                else:
                    self.leaves.setdefault(edge, [0, None, False])[0] += 1
            ready: list[Node] = []
            for edge, gradient in roots:
                self._deliver(edge, gradient, False, ready)
            del roots
            with runtime.quiet():
                if saved_tensors.profiled:
                    backward_ranges.run(self._step, ready)
                elif around is not None and backward_queues.needed(nodes, around):
                    backward_queues.run(self, ready, around)
                elif self.raw and self.alone and not targets and not saved_tensors.anomaly:
                    self._run_plain(ready)
                while ready:
                    self._step(ready.pop(), ready)
            finished = True
        except MemoryError as error:
            raise out_of_memory("backward", error) from None
        finally:
            dispatch_state.grad_disabled -= 1
            recording.enabled, recording.inference, recording.close = enabled, inference, close
            running.current = outer
            if self.alone:
                if not finished:
                    _reset_slots(nodes)
                _slots[:] = _FREE
            if backward_callbacks.queued and outer is None:
                backward_callbacks.end(finished)

    def _run_plain(self, ready: list[Node]) -> None:
        """Run nodes; the common cases, ops that nothing is hooked to, inline."""
        retain_graph = self.retain_graph
        while ready:
            node = ready.pop()
            if type(node) is not OpNode or node.extra is not None:
                self._step(node, ready)
                continue
            simple = node
            if len(simple.edges) != 1 or simple.sizes is not None:
                self._step_plain(simple, ready)
                continue
            gradient = simple.gradient
            simple.gradient = None
            edge = simple.edges[0]
            if gradient is None:
                self._deliver(edge, None, False, ready)
                continue
            saved = simple.saved
            if saved is None:
                raise RuntimeError(FREED)
            plan = simple.plan
            key = simple.key
            latest = plan.latest  # as Python quicker than a look-up
            if latest[0] is key:
                program = latest[1]
            else:
                program = plan.formulas[0].programs.get(key)
                if program is not None:
                    plan.latest = (key, program)
            value = None
            fresh = False
            if program is not None:
                if program.identity:
                    value = gradient
                elif (
                    program.kernels is not None
                    and len(saved) == 1
                    and isinstance(saved[0], TensorBase)
                    and saved[0]._key is key
                ):
                    kept: Any = saved[0]
                    storage = kept._storage
                    version = kept._writes if storage is None else storage.version
                    if simple.versions[0] != version:
                        raise simple.modified(kept, simple.versions[0])
                    if program.swap is (plan.gradients[0][0] < 0):
                        value = program.kernels[program.index](kept._array, gradient)
                    else:
                        value = program.kernels[program.index](gradient, kept._array)
                    fresh = program.fresh
            if value is None:
                value, fresh = evaluate(simple, 0, (gradient,))
                if type(value) is list:
                    value, fresh = value[0], False
                if not plan.checked:
                    check_gradients(simple, [(value, fresh)])
            if saved and not retain_graph:
                if isinstance(saved[0], TensorBase):
                    simple.saved = None
                else:
                    simple.release()
            if value is None or (type(edge) is not OpNode and isinstance(edge, TensorBase)):
                self._deliver(edge, value, fresh, ready)
                gradient = saved = kept = value = None
                continue
            after = edge
            after.pending -= 1
            if after.gradient is None:
                after.gradient = value
                after.fresh = fresh
            else:
                after.gradient = add(after.gradient, value, after.key, True, after.fresh, fresh)
                after.fresh = True
            if not after.pending:
                ready.append(after)
            # What this round worked on must not outlast it while the next one needs memory.
            gradient = saved = kept = value = None

    def _step_plain(self, node: OpNode, ready: list[Node]) -> None:
        """Run a node with several edges, or whose inputs were broadcast."""
        gradient = node.gradient
        node.gradient = None
        edges = node.edges
        if gradient is None:
            for edge in edges:
                if edge is not None:
                    self._deliver(edge, None, False, ready)
            return
        if node.saved is None:
            raise RuntimeError(FREED)
        results = evaluate_all(node, gradient)
        del gradient
        if not self.retain_graph and node.saved:
            node.release()
        for position, edge in enumerate(edges):
            if edge is not None:
                value, fresh = results[position]
                self._deliver(edge, value, fresh, ready)

    def _step(self, node: Node, ready: list[Node]) -> None:
        state = self._state(node)
        gradient = state.gradient
        state.gradient = None
        extra = node.extra
        if extra is not None and gradient is not None:
            gradient = backward_hooks.call_tensor_hooks(self, node, extra, gradient)
        targets = self.targets
        if targets is not None and node in targets:
            self.captured[node] = gradient
        edges = node.edges
        needed = self.needed
        hooked = extra is not None and (extra.pre_hooks or extra.post_hooks)
        if needed is not None and not any([edge in needed for edge in edges]):
            if hooked and gradient is not None and targets is not None and targets.get(node):
                # It is one of backward(inputs=…): for its hooks.
                backward_hooks.apply_hooked(self, node, gradient)
            return
        if gradient is None:
            for edge in edges:
                if edge is not None and (needed is None or edge in needed):
                    self._deliver(edge, None, False, ready)
            return
        if saved_tensors.anomaly:
            results = anomalies.apply_watched(self, node, gradient, bool(hooked))
        elif hooked:
            results = backward_hooks.apply_hooked(self, node, gradient)
        else:
            results = node.apply(gradient, self.raw)
        del gradient
        if not self.retain_graph:
            node.release()
        for position, edge in enumerate(edges):
            if edge is not None and (needed is None or edge in needed):
                value, fresh = results[position]
                self._deliver(edge, value, fresh, ready)

    def _deliver(self, edge: Any, value: Any, fresh: bool, ready: list[Node]) -> None:
        """Add a gradient to what has arrived at an edge's end; schedule it if that was the last."""
        if isinstance(edge, TensorBase):
            leaf = edge
            entry = self.leaves[leaf]
            entry[0] -= 1
            if value is not None:
                if entry[1] is None:
                    entry[1], entry[2] = value, fresh
                else:
                    entry[1] = add(entry[1], value, leaf._key, self.raw, entry[2], fresh)
                    entry[2] = True
            if not entry[0]:
                del self.leaves[leaf]
                if entry[1] is not None:
                    self._finish_leaf(leaf, entry[1], entry[2])
            return
        state = edge if self.alone else self.states[edge]
        state.pending -= 1
        if value is not None:
            known = state.gradient
            if known is None:
                state.gradient = value
                state.fresh = fresh
            elif isinstance(edge, MultiNode):
                self._merge(edge, known, value)
            else:
                state.gradient = add(known, value, edge.key, self.raw, state.fresh, fresh)
                state.fresh = True
        if not state.pending:
            ready.append(edge)

    def _merge(self, node: MultiNode, known: dict[int, Any], value: dict[int, Any]) -> None:
        for number, gradient in value.items():
            if known.get(number) is None:
                known[number] = gradient
            elif gradient is not None:
                known[number] = add(known[number], gradient, node.outputs[number][0], self.raw)

    # --- leaves ---

    def _finish_leaf(self, leaf: Any, gradient: Any, fresh: bool) -> None:
        extra = leaf._extra
        key: DispatchKey = leaf._key
        seen = self.targets is not None or (
            extra is not None and (extra.backward_hooks or extra.accumulation_hooks is not None)
        )
        if type(gradient) is key.array_type:
            tensor = shown(gradient, key) if seen else new_tensor(gradient, key, gradient.shape)
        elif isinstance(gradient, TensorBase):  # with create_graph, or of a layout without an array
            tensor = gradient
        else:
            array = key.as_array(gradient)
            tensor = new_tensor(array, key, array.shape)
        if extra is not None and extra.backward_hooks:
            fresh = False  # a hook may keep what it sees, and that must not become the leaf's own
            for hook in list(extra.backward_hooks.values()):
                replaced = hook(tensor)
                if replaced is not None:
                    backward_hooks.check_replacement(tensor, replaced)
                    tensor = replaced
        if self.targets is not None:
            if leaf in self.targets:
                self.captured[leaf] = tensor
            if self.targets.get(leaf) is not ACCUMULATE:
                return
        if extra is not None and extra.accumulation_hooks is not None:
            backward_hooks.accumulate_hooked(self, leaf, tensor)
            return
        accumulate(leaf, tensor, fresh, self.create_graph, self.raw)


ACCUMULATE = object()


# As Python, isinstance is quickest with an object's own class; compiled, this name is the C type.
globals()["TensorBase"] = Tensor
