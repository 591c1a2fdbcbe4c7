"""The engine: one backward pass over the graph.

A pass first counts, for every node it reaches, the paths that lead to it; then it runs each node once all
of its paths have arrived, and drops what the node saved. Nothing recurses.

In a plain pass the gradients are raw arrays and formulas run as programs. With ``create_graph``, or while a
layer such as a profiler is active, they are tensors and formulas run as ordinary ops.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

from tensorplug.core import layers, operators
from tensorplug.core.current import current
from tensorplug.core.kinds import Kind
from tensorplug.core.layers import recording
from tensorplug.core.tensor import Tensor
from tensorplug.core.tensor_base import TensorBase, bump_version, extra_of, new_tensor

from . import backward_ranges, programs, saving
from .nodes import FREED, MultiNode, Node, OpNode, OutputNode
from .programs import add, evaluate, evaluate_all, normal
from .views import edge_of, requires_grad

ADD = operators.handle("add")
CAST = operators.handle("cast")
CLONE = operators.handle("clone")


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


class _Running(threading.local):
    """Whether the pass that this thread runs computes the gradients of some inputs only."""

    targets: bool = False


running = _Running()

# Held by the pass that works in the nodes' own slots.
_slots = threading.Lock()

# Held while a leaf's gradient is looked at and written to, so that none is lost where threads share leaves. A
# layer may run a pass of its own within, hence the R.
_accumulating = threading.RLock()


class Pass:
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
        self.raw = not create_graph and not (
            current.interposed and (current.preferences or layers.active_layers())
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
                if isinstance(edge, TensorBase):
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

    # --- running ---

    def run(self, roots: list[tuple[Any, Any]]) -> None:
        """Run the pass from (node or leaf, gradient) pairs."""
        nodes = list(dict.fromkeys([edge for edge, _ in roots if isinstance(edge, Node)]))
        first = roots[0][0]
        runtime = (first.kind if isinstance(first, Node) else first._kind).runtime
        self.alone = _slots.acquire(False)
        finished = False
        targets = self.targets is not None
        outer = running.targets
        if outer is not targets:
            running.targets = targets
        enabled, inference = recording.enabled, recording.inference
        recording.enabled, recording.inference = self.create_graph, False
        current.paused += 1
        try:
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
                if saving.profiled:
                    backward_ranges.run(self._step, ready)
                elif self.raw and self.alone and not targets and not saving.anomaly:
                    self._run_plain(ready)
                while ready:
                    self._step(ready.pop(), ready)
            finished = True
        finally:
            current.paused -= 1
            recording.enabled, recording.inference = enabled, inference
            if outer is not targets:
                running.targets = outer
            if self.alone:
                if not finished:
                    _reset_slots(nodes)
                _slots.release()

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
            formula = plan.formulas[0]
            kind = simple.kind
            program = formula.programs.get(kind)
            value = None
            fresh = False
            if program is not None:
                if program.identity:
                    value = gradient
                elif (
                    program.kernels is not None
                    and len(saved) == 1
                    and isinstance(saved[0], TensorBase)
                    and saved[0]._kind is kind
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
            if not retain_graph:
                simple.saved = None
            if value is None or isinstance(edge, TensorBase):
                self._deliver(edge, value, fresh, ready)
                gradient = saved = kept = value = None
                continue
            after = edge
            after.pending -= 1
            if after.gradient is None:
                after.gradient = value
                after.fresh = fresh
            else:
                after.gradient = add(after.gradient, value, after.kind, True, after.fresh, fresh)
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
        if not self.retain_graph:
            node.saved = None
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
            gradient = self._tensor_hooks(node, extra, gradient)
        targets = self.targets
        if targets is not None and node in targets:
            self.captured[node] = gradient
        edges = node.edges
        needed = self.needed
        if needed is not None and not any([edge in needed for edge in edges]):
            return
        if gradient is None:
            for edge in edges:
                if edge is not None and (needed is None or edge in needed):
                    self._deliver(edge, None, False, ready)
            return
        hooked = extra is not None and (extra.pre_hooks or extra.post_hooks)
        results = self._hooked(node, gradient) if hooked else node.apply(gradient, self.raw)
        del gradient
        if saving.anomaly:
            self._check_nan(node, results)
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
                    entry[1] = add(entry[1], value, leaf._kind, self.raw, entry[2], fresh)
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
                state.gradient = add(known, value, edge.kind, self.raw, state.fresh, fresh)
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
        kind: Kind = leaf._kind
        if self.raw:
            array = normal(gradient, kind)
            tensor = new_tensor(array, kind, array.shape)
        else:
            tensor = gradient
        if extra is not None and extra.backward_hooks:
            fresh = False  # a hook may keep what it sees, and that must not become the leaf's own
            for hook in list(extra.backward_hooks.values()):
                replaced = hook(tensor)
                if replaced is not None:
                    check_replacement(tensor, replaced)
                    tensor = replaced
        if self.targets is not None:
            if leaf in self.targets:
                self.captured[leaf] = tensor
            if self.targets.get(leaf) is not ACCUMULATE:
                return
        self.accumulate(leaf, tensor, fresh)

    def accumulate(self, leaf: Any, tensor: Any, fresh: bool) -> None:
        """Add a gradient to a leaf's ``grad``."""
        with _accumulating:
            extra = extra_of(leaf)
            known = extra.grad
            if known is None:
                if self.create_graph:
                    extra.grad = tensor if fresh else tensor.clone()
                elif fresh and leaf._kind.runtime.is_contiguous(tensor._array):
                    extra.grad = tensor
                else:
                    array = normal(tensor._kind.kernels[CLONE.index](tensor._array), tensor._kind)
                    extra.grad = new_tensor(array, tensor._kind, tensor._shape)
            elif self.create_graph or known.requires_grad:
                extra.grad = known + tensor
            # In place: whoever holds ``grad`` sees the sum, as in torch.
            elif not self.raw or not _added(known, tensor):
                known.add_(tensor)
        if extra.post_accumulate_hooks:
            for hook in list(extra.post_accumulate_hooks.values()):
                hook(leaf)

    # --- hooks ---

    def _tensor(self, gradient: Any, kind: Kind) -> Any:
        if not self.raw or gradient is None:
            return gradient
        array = normal(gradient, kind)
        return new_tensor(array, kind, array.shape)

    def _value(self, tensor: Any) -> Any:
        return tensor._array if self.raw and tensor is not None else tensor

    def _tensor_hooks(self, node: Node, extra: Any, gradient: Any) -> Any:
        if not extra.tensor_hooks and extra.retains is None:
            return gradient
        tensor = self._tensor(gradient, node.kind)
        for hook in list(extra.tensor_hooks.values()):
            replaced = hook(tensor)
            if replaced is not None:
                check_replacement(tensor, replaced)
                tensor = replaced
        owner = None if extra.retains is None else extra.retains()
        if owner is not None:
            self.accumulate(owner, tensor, False)
        return self._value(tensor)

    def _hooked(self, node: Node, gradient: Any) -> list[tuple[Any, bool]]:
        """Run a node between its own hooks."""
        extra = node.extra
        assert extra is not None
        if isinstance(node, MultiNode):
            outputs = tuple(
                [
                    self._tensor(gradient.get(number), kind)
                    for number, (kind, _) in enumerate(node.outputs)
                ]
            )
        else:
            outputs = (self._tensor(gradient, node.kind),)
        for hook in list(extra.pre_hooks.values()):
            replaced = hook(outputs)
            if replaced is not None:
                outputs = replaced if isinstance(replaced, tuple) else (replaced,)
        if isinstance(node, MultiNode):
            gradient = {n: self._value(t) for n, t in enumerate(outputs) if t is not None}
        else:
            gradient = self._value(outputs[0])
        results = node.apply(gradient, self.raw)
        if not extra.post_hooks:
            return results
        inputs = tuple(
            [
                self._tensor(value, edge._kind if isinstance(edge, Tensor) else edge.kind)
                if edge is not None and not isinstance(node, OutputNode)
                else value
                for (value, _), edge in zip(results, node.edges, strict=True)
            ]
        )
        for hook in list(extra.post_hooks.values()):
            replaced = hook(inputs, outputs)
            if replaced is not None:
                inputs = replaced if isinstance(replaced, tuple) else (replaced,)
                if len(inputs) != len(results):
                    raise RuntimeError(
                        f"a hook of {node.name()} returned {len(inputs)} gradients, expected {len(results)}"
                    )
        return [(self._value(tensor), False) for tensor in inputs]

    def _check_nan(self, node: Node, results: list[tuple[Any, bool]]) -> None:
        if isinstance(node, OutputNode):
            return
        for position, ((value, _), edge) in enumerate(zip(results, node.edges, strict=True)):
            if value is None or edge is None:
                continue
            tensor = self._tensor(value, edge._kind if isinstance(edge, Tensor) else edge.kind)
            if bool((tensor != tensor).any()):
                trace = "" if node.extra is None else f"\n{node.extra.forward_trace or ''}"
                raise RuntimeError(
                    f"Function '{node.name()}' returned nan values in its {position}th output.{trace}"
                )


ACCUMULATE = object()


def _added(known: Any, tensor: Any) -> bool:
    """Add to a gradient in place, if that takes no more than a kernel."""
    kind = known._kind
    writer = kind.writers[ADD.index]
    if (
        writer is None
        or known._extra is not None
        or tensor._kind is not kind
        or known._shape != tensor._shape
        or not kind.runtime.is_contiguous(known._array)
    ):
        return False
    writer(known._array, tensor._array, out=known._array)
    bump_version(known)
    return True


def check_replacement(tensor: Any, replaced: Any) -> None:
    """Refuse what a hook returned if it cannot stand for the gradient."""
    if not isinstance(replaced, TensorBase):
        raise TypeError(f"a hook must return a Tensor or None, got {type(replaced).__name__}")
    if replaced._shape != tensor._shape or replaced._kind is not tensor._kind:
        raise RuntimeError(
            f"a hook changed the gradient from {list(tensor._shape)} of {tensor._kind} to "
            f"{list(replaced._shape)} of {replaced._kind}"
        )


# --- what users call --------------------------------------------------------------------------


def _as_tuple(value: Any, name: str) -> tuple[Any, ...]:
    if isinstance(value, TensorBase):
        return (value,)
    if isinstance(value, Sequence) or hasattr(value, "__iter__"):
        return tuple(value)
    raise TypeError(f"{name} must be a Tensor or a sequence of Tensors, got {type(value).__name__}")


def _root_gradients(outputs: tuple[Any, ...], gradients: Any, name: str) -> list[Any]:
    """Return the gradient to begin with at each output; ones for a single element."""
    given = (None,) * len(outputs) if gradients is None else gradients
    given = (given,) if isinstance(given, TensorBase) else tuple(given)
    if len(given) != len(outputs):
        raise RuntimeError(f"{name}: got {len(outputs)} tensors and {len(given)} gradients")
    return [
        _root_gradient(output, gradient, number, name)
        for number, (output, gradient) in enumerate(zip(outputs, given, strict=True))
    ]


def _root_gradient(output: Any, gradient: Any, number: int, name: str) -> Any:
    """Return the gradient to begin with at one output."""
    if not isinstance(output, TensorBase):
        raise TypeError(f"{name}: expected Tensors, got {type(output).__name__}")
    root = output
    kind = root._kind
    if not root._state or not requires_grad(root):
        raise RuntimeError(
            f"element {number} of tensors does not require grad and does not have a grad_fn"
        )
    if gradient is None:
        if root._shape and math.prod(root._shape) != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if not kind.dtype.is_floating_point:
            raise RuntimeError(
                f"grad can be implicitly created only for real scalar outputs but got {kind.dtype}"
            )
        if root._shape:
            array = kind.kernels[programs.FILL_NEW.index](root._shape, 1, kind.dtype)
            array = normal(array, kind)
        else:
            array = kind.scalar(1.0)  # shared: gradients that arrive are never written to
        return new_tensor(array, kind, root._shape)
    if not isinstance(gradient, TensorBase):
        raise TypeError(f"{name}: gradients must be Tensors or None, got {gradient!r}")
    if gradient._shape != root._shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{number}] has a shape of {list(gradient._shape)} and "
            f"output[{number}] has a shape of {list(root._shape)}."
        )
    return gradient if gradient._kind is kind else gradient.to(output)  # type: ignore[attr-defined]


def _start(pass_: Pass, outputs: tuple[Any, ...], gradients: list[Any]) -> None:
    """Run a pass from tensors and their gradients."""
    pass_.run(
        [
            (edge_of(output), gradient._array if pass_.raw else gradient)
            for output, gradient in zip(outputs, gradients, strict=True)
        ]
    )


def backward_from(
    tensor: Any, gradient: Any, retain_graph: bool | None, create_graph: bool
) -> None:
    """Do what :func:`backward` does for one tensor and all leaves."""
    gradient = _root_gradient(tensor, gradient, 0, "backward()")
    pass_ = Pass(create_graph, create_graph if retain_graph is None else retain_graph)
    pass_.run([(edge_of(tensor), gradient._array if pass_.raw else gradient)])


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the derivatives of the sum of `tensors` to the ``grad`` of the leaves.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
        What to differentiate.
    grad_tensors : Tensor or sequence of (Tensor or None), optional
        The gradient to begin with at each; ones where left out, for a single element.
    retain_graph : bool, optional
        Keep what the graph saved; by default the value of `create_graph`.
    create_graph : bool
        Record the pass itself, for higher derivatives.
    inputs : Tensor or sequence of Tensor, optional
        Accumulate into these only.

    Raises
    ------
    RuntimeError
        If a tensor does not require grad, a gradient is missing or has another shape, or the graph was
        freed by an earlier pass.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor(3.0, requires_grad=True)
    >>> tp.autograd.backward(x * x)
    >>> x.grad
    tensor(6.)
    """
    outputs = _as_tuple(tensors, "tensors")
    if grad_tensors is None:
        grad_tensors = grad_variables
    targets = None
    wanted = () if inputs is None else _as_tuple(inputs, "inputs")
    if inputs is not None:
        if not wanted:
            raise RuntimeError("'inputs' argument to backward() cannot be empty.")
        targets = _targets(wanted, ACCUMULATE)
    gradients = _root_gradients(outputs, grad_tensors, "backward()")
    retain = create_graph if retain_graph is None else retain_graph
    pass_ = Pass(create_graph, retain, targets)
    _start(pass_, outputs, gradients)
    for tensor in wanted:
        edge = edge_of(tensor)
        if tensor._extra is not None and tensor._extra.retains_grad:
            continue  # it has its gradient already
        if isinstance(edge, Node) and edge in pass_.captured:
            gradient = pass_._tensor(pass_.captured[edge], edge.kind)
            if gradient is not None:
                pass_.accumulate(tensor, gradient, False)


def _targets(inputs: tuple[Any, ...], mark: Any) -> dict[Any, Any]:
    targets = {}
    for number, tensor in enumerate(inputs):
        if not isinstance(tensor, TensorBase):
            raise TypeError(f"inputs must be Tensors, got {type(tensor).__name__}")
        if not requires_grad(tensor):
            raise RuntimeError(
                f"One of the differentiated Tensors does not require grad (input {number})"
            )
        targets[edge_of(tensor)] = mark
    return targets


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Return the derivatives of the sum of `outputs` with respect to `inputs`.

    Parameters
    ----------
    outputs, inputs : Tensor or sequence of Tensor
        What to differentiate, and with respect to what.
    grad_outputs : Tensor or sequence of (Tensor or None), optional
        The gradient to begin with at each output.
    retain_graph, create_graph : bool
        As for :func:`backward`.
    allow_unused : bool, optional
        Return None for an input that the outputs do not depend on, rather than raise.
    is_grads_batched : bool
        Whether `grad_outputs` have a leading dimension of independent gradients.
    materialize_grads : bool
        Return zeros instead of None.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([1.0, 2.0], requires_grad=True)
    >>> tp.autograd.grad((x**3).sum(), x)
    (tensor([ 3., 12.]),)
    """
    roots = _as_tuple(outputs, "outputs")
    wanted = _as_tuple(inputs, "inputs")
    if not wanted:
        raise RuntimeError("grad(): `inputs` argument cannot be empty.")
    if not roots:
        raise RuntimeError("grad(): `outputs` argument cannot be empty.")
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: False."
        )
    if is_grads_batched:
        return _batched(
            roots, wanted, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads
        )
    targets = _targets(wanted, None)
    gradients = _root_gradients(roots, grad_outputs, "grad()")
    retain = create_graph if retain_graph is None else retain_graph
    pass_ = Pass(create_graph, retain, targets)
    _start(pass_, roots, gradients)
    results = []
    for tensor in wanted:
        edge = edge_of(tensor)
        value = pass_.captured.get(edge)
        if value is None:
            if materialize_grads:
                value = programs.zeros(tensor._kind, tensor._shape, False)
            elif not allow_unused:
                raise RuntimeError(
                    "One of the differentiated Tensors appears to not have been used in the graph. Set "
                    "allow_unused=True if this is the desired behavior."
                )
        elif isinstance(edge, Node):
            if isinstance(edge, MultiNode):
                value = value.get(0)
            value = pass_._tensor(value, edge.kind)
        results.append(value)
    return tuple(results)


def _batched(
    outputs: tuple[Any, ...],
    inputs: tuple[Any, ...],
    grad_outputs: Any,
    retain_graph: bool | None,
    create_graph: bool,
    allow_unused: bool | None,
    materialize_grads: bool,
) -> tuple[Any, ...]:
    """Differentiate for all leading indices of the gradients at once."""
    from .batching.vmap import vmap

    given = _as_tuple(grad_outputs, "grad_outputs")
    if not any(g is not None for g in given):
        raise RuntimeError("grad(): is_grads_batched needs grad_outputs")
    used: list[bool] = []

    def one(*gradients: Any) -> tuple[Any, ...]:
        rest = iter(gradients)
        found = grad(
            outputs,
            inputs,
            tuple([None if g is None else next(rest) for g in given]),
            True if retain_graph is None else retain_graph,
            create_graph,
            True,
            allow_unused,
            False,
            materialize_grads,
        )
        used[:] = [value is not None for value in found]
        return tuple([value for value in found if value is not None])

    found = iter(vmap(one)(*[g for g in given if g is not None]))
    return tuple([next(found) if is_used else None for is_used in used])
