"""The graph: nodes, what they save, and how they compute gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from tensorplug.core.dispatch.keys import DispatchKey
from tensorplug.core.dispatch.layers import recording
from tensorplug.core.dispatch.overrides import in_formula
from tensorplug.core.dispatch.torch_dispatch import alias
from tensorplug.core.tensor.base import TRACKED, TensorBase, extra_of, new_tensor
from tensorplug.core.tensor.shapes import Shape

from ..engine import arithmetic, evaluation
from ..engine.derivatives import ARGUMENT, OUTPUT, Plan
from ..engine.formula_contracts import check_broadcast, check_gradients
from .handles import RemovableHandle

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they "
    "have already been freed). Saved intermediate values of the graph are freed when you call .backward() "
    "or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time "
    "or if you need to access saved tensors after calling backward."
)

_sequence = itertools.count()


class Node:
    """One recorded operation.

    Attributes
    ----------
    edges : tuple
        Where the gradients go, in the order of :meth:`apply`'s results: a Node, a leaf tensor, or None.
    key, shape : DispatchKey, tuple of int
        Of the output, and so of the gradient that arrives.
    pending, gradient, fresh
        The engine's working state: paths still to come (0 outside a backward pass), the sum so far, and
        whether nobody else holds that sum's memory.
    """

    __slots__ = (
        "__weakref__", "edges", "extra", "fresh", "gradient", "key", "pending", "shape",
    )  # fmt: skip

    edges: tuple[Any, ...]
    key: DispatchKey
    shape: Shape
    extra: NodeExtra | None
    pending: int
    # Set by the engine when a pass reaches the node.
    gradient: Any
    fresh: bool

    # No __init__: recording sets the slots of a new object itself, which takes half the time.

    def begin(self, edges: tuple[Any, ...], key: DispatchKey, shape: Shape) -> None:
        """Set what every node has."""
        self.edges = edges
        self.key = key
        self.shape = shape
        self.pending = 0
        self.extra = None

    # --- what nodes do ---

    def apply(self, gradient: Any, raw: bool) -> list[tuple[Any, bool]]:
        """Return (gradient, fresh) for each edge.

        `gradient` and the results are raw arrays if `raw`, tensors otherwise. None stands for zero.
        """
        raise NotImplementedError

    def release(self) -> None:
        """Drop what was saved; a second backward raises."""

    # --- what users see ---

    def name(self) -> str:
        """Return the name, such as ``"MulBackward0"``."""
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes that the gradients go to, each with the number of its output."""
        return tuple(
            [
                (AccumulateGrad(edge), 0)
                if isinstance(edge, TensorBase)
                else (edge.parent, edge.number)
                if isinstance(edge, OutputNode)
                else (edge, 0)
                for edge in self.edges
            ]
        )

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for users."""
        return node_extra(self).metadata

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after the node; its result replaces grad_inputs."""
        return RemovableHandle.register(node_extra(self).post_hooks, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` before the node; its result replaces grad_outputs."""
        return RemovableHandle.register(node_extra(self).pre_hooks, fn)


class NodeExtra:
    """Attributes of a node that most nodes never have."""

    __slots__ = (
        "forward_trace", "induced_by", "metadata", "post_hooks", "pre_hooks", "queue", "ranges",
        "retains", "tensor_hooks",
    )  # fmt: skip

    def __init__(self) -> None:
        self.metadata: dict[Any, Any] = {}
        self.pre_hooks: dict[int, Callable[..., Any]] = {}
        self.post_hooks: dict[int, Callable[..., Any]] = {}
        self.tensor_hooks: dict[int, Callable[..., Any]] = {}
        self.retains: Any = None  # weak reference to the tensor that keeps its gradient
        self.forward_trace: str | None = None  # in anomaly mode
        self.induced_by: Any = None  # in anomaly mode: the node whose backward recorded this one
        self.ranges: tuple[str, ...] = ()  # of a profile, around the forward op
        self.queue: Any = None  # on which the forward op ran, if the usual one was not the only one


def node_extra(node: Node) -> NodeExtra:
    """Return the node's extra attributes, made now if need be."""
    if node.extra is None:
        node.extra = NodeExtra()
    return node.extra


class AccumulateGrad(Node):
    """What ``next_functions`` shows for a leaf: the step that adds to its ``grad``."""

    __slots__ = ("variable",)

    def __init__(self, variable: Any) -> None:
        self.variable = variable

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccumulateGrad) and other.variable is self.variable

    def __hash__(self) -> int:
        return hash(("AccumulateGrad", id(self.variable)))

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self.variable):#x}>"

    def name(self) -> str:
        """Return "AccumulateGrad"."""
        return "AccumulateGrad"

    @property
    def next_functions(self) -> tuple[Any, ...]:
        """Nothing: a leaf is where gradients end."""
        return ()

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for users."""
        extra = extra_of(self.variable)
        if extra.accumulation_metadata is None:
            extra.accumulation_metadata = {}
        return extra.accumulation_metadata

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook((gradient,))`` before it is added to ``grad``; its result replaces that tuple."""
        return RemovableHandle.register(self._hooks()[0], fn)

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook((), (gradient,))`` after it was added to ``grad``."""
        return RemovableHandle.register(self._hooks()[1], fn)

    def _hooks(self) -> tuple[dict[int, Any], dict[int, Any]]:
        extra = extra_of(self.variable)
        if extra.accumulation_hooks is None:
            extra.accumulation_hooks = {}, {}
        return extra.accumulation_hooks


class OpNode(Node):
    """A recorded op: its derivative's formulas over what they saved."""

    __slots__ = ("plan", "saved", "sizes", "versions")

    plan: Plan
    saved: tuple[Any, ...] | None
    versions: tuple[Any, ...]
    # The shapes of the inputs, where broadcasting has to be undone.
    sizes: tuple[Shape, ...] | None

    def fill(
        self,
        output: Any,
        edges: tuple[Any, ...],
        plan: Plan,
        saved: tuple[Any, ...],
        versions: tuple[Any, ...],
        sizes: tuple[Shape, ...] | None,
    ) -> None:
        """Set all slots of a new node, of whose outputs `output` is the first."""
        self.edges = edges
        self.key = output._key
        self.shape = output._shape
        self.pending = 0
        self.extra = None
        self.plan = plan
        self.saved = saved
        self.versions = versions
        self.sizes = sizes

    def name(self) -> str:
        """Return the op's name in the form of a class, such as ``"MulBackward0"``."""
        return self.plan.rule.name

    def release(self) -> None:
        """Drop the tensors that were saved; what needs none can run again."""
        if self.saved and not _plain(self.saved):
            self.saved = None

    def output_kind(self, number: int) -> tuple[DispatchKey, Shape]:
        """Return the key and the shape of an output."""
        return self.key, self.shape

    def __getattr__(self, name: str) -> Any:
        """Return what was saved of an argument or output: ``_saved_self``, ``_saved_result``.

        As ``_raw_saved_self`` it is a ``SavedTensor``, which takes hooks.
        """
        raw = name.startswith("_raw_saved_")
        # Compiled, this is asked before the method of a subclass, whose nodes may have no plan.
        plan: Any = self.plan
        if plan is not None and (raw or name.startswith("_saved_")):
            rule = self.plan.rule
            wanted = name.removeprefix("_raw").removeprefix("_saved_")
            wanted = "input" if wanted == "self" else wanted
            for index, (_, origin, position) in enumerate(self.plan.saves):
                names = rule.op.parameters if origin == ARGUMENT else rule.op.outputs
                if origin in (ARGUMENT, OUTPUT) and names[position] == wanted:
                    if raw:
                        from .raw_saved import shown  # on first use: it imports this module

                        return shown(self, index)
                    if self.saved is None:
                        raise RuntimeError(FREED)
                    return self.unpack(index)
        raise AttributeError(f"{self.name()!r} has no attribute {name!r}")

    def apply(self, gradient: Any, raw: bool) -> list[tuple[Any, bool]]:
        """Evaluate the formulas; undo broadcasting."""
        if self.saved is None:
            raise RuntimeError(FREED)
        if raw:
            return evaluation.evaluate_all(self, gradient)
        plan = self.plan
        sizes = self.sizes
        results: list[tuple[Any, bool]] = []
        for index, formula in enumerate(plan.formulas):
            arguments = self.arguments(plan.gradients[index], (gradient,))
            with in_formula():
                value = formula.function(*arguments)
            if not plan.checked:
                check_broadcast(self, index, value)
            if sizes is not None and sizes[index] != self.shape and value is not None:
                value = value.sum_to_size(sizes[index])
            if type(value) is list:
                results.extend([(item, False) for item in value])
            else:
                results.append((value, False))
        if not plan.checked:
            check_gradients(self, results)
        return results

    def arguments(self, references: tuple[Any, ...], gradients: tuple[Any, ...]) -> list[Any]:
        """Return a formula's arguments as tensors and plain values."""
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        values: list[Any] = []
        for reference in references:
            if reference is True or reference is False:
                values.append(reference)
            elif reference is None:
                values.append(list(gradients))
            elif reference < 0:
                values.append(gradients[-1 - reference])
            else:
                values.append(self.unpack(reference))
        return values

    def unpack(self, place: int) -> Any:
        """Return a saved value; a tensor is checked against in-place changes since."""
        assert self.saved is not None
        value = self.saved[place]
        if isinstance(value, SavedByHook):
            value = value.unpack()
        elif isinstance(value, list):
            value = [v.unpack() if isinstance(v, SavedByHook) else v for v in value]
        version = self.versions[place]
        if isinstance(value, TensorBase):
            if version is not None and _version(value) != version:
                raise self.modified(value, version)
            _, origin, position = self.plan.saves[place]
            if origin == OUTPUT and value._node is None:
                return self.output(value, position)
            if origin == ARGUMENT and not value._state and value is self.saved[place]:
                self._refuse_detached(position)
        elif version is not None:
            for item, known in zip(value, version, strict=True):
                if isinstance(item, TensorBase) and known not in (None, _version(item)):
                    raise self.modified(item, known)
        return value

    def output(self, saved: Any, number: int) -> Any:
        """Return a saved output, the one of that number, as a tensor that this node made."""
        if saved._key.intercepts:
            result = alias(saved)
        else:
            result = new_tensor(saved._array, saved._key, saved._shape)
            result._storage = saved._storage
        if saved._tangents is not None:
            result._tangents = saved._tangents
        if saved._key.dtype.category >= 2:
            result._state = TRACKED
            result._node = self
        return result

    def _refuse_detached(self, position: int) -> None:
        """Refuse a saved argument without history if it had some when it was saved."""
        for formula, edge in zip(self.plan.formulas, self.edges, strict=False):
            if formula.positions == (position,) and isinstance(edge, Node):
                raise RuntimeError(
                    f"{self.name()}: Trying to use a saved tensor that has been detached in-place, i.e. with "
                    ".detach_(). The gradient would leave out its history; use detach(), which leaves the "
                    "tensor as it is"
                )

    def modified(self, tensor: Any, version: int) -> RuntimeError:
        """Return the error for a saved tensor that was written to."""
        return modified(self, tensor, version)


def modified(node: Node, tensor: Any, version: int) -> RuntimeError:
    """Return the error for a tensor that a node saved and that was written to."""
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{tensor.device} {tensor.dtype.name} {list(tensor._shape)}], saved by "
        f"{node.name()}, is at version {_version(tensor)}; expected version {version} instead. Hint: "
        "enable anomaly detection to find the operation that failed to compute its gradient, with "
        "tp.autograd.set_detect_anomaly(True)."
    )


def new_node() -> OpNode:
    """Return a node whose slots are still to be set; compiled this is quicker than calling the class."""
    return OpNode.__new__(OpNode)


if isinstance(new_node, FunctionType):  # as Python, the class is quicker
    globals()["new_node"] = OpNode


class MultiNode(OpNode):
    """A recorded op with several outputs; each output has an :class:`OutputNode` in front of it."""

    __slots__ = ("outputs",)

    # (key, shape) of each output
    outputs: tuple[tuple[DispatchKey, Shape], ...]

    def output_kind(self, number: int) -> tuple[DispatchKey, Shape]:
        """Return the key and the shape of an output."""
        return self.outputs[number]

    def apply(self, gradient: Any, raw: bool) -> list[tuple[Any, bool]]:
        """Evaluate the formulas with the gradients of all outputs, zeros for those without."""
        if self.saved is None:
            raise RuntimeError(FREED)
        gradients: list[Any] = []
        blank: Any = None  # zeros, which nobody writes to, and of what
        of = None
        for number, kind in enumerate(self.outputs):
            given = gradient.get(number)
            if given is None:
                if blank is None or of != kind:
                    of, blank = kind, arithmetic.zeros(kind[0], kind[1], raw)
                given = blank
            gradients.append(given)
        results: list[tuple[Any, bool]] = []
        for index, formula in enumerate(self.plan.formulas):
            references = self.plan.gradients[index]
            if raw:
                value, fresh = evaluation.evaluate(self, index, tuple(gradients))
            else:
                arguments = self.arguments(references, tuple(gradients))
                with in_formula():
                    value = formula.function(*arguments)
                fresh = False
            if type(value) is list:
                results.extend(evaluation.paired(value, fresh))
            else:
                results.append((value, fresh))
        if not self.plan.checked:
            check_gradients(self, results)
        return results

    def output(self, saved: Any, number: int) -> Any:
        """Return a saved output, as a tensor that this node made if gradients go through that one."""
        connected = self.plan.rule.connected
        if connected is not None and not connected[number]:
            return saved
        result = OpNode.output(self, saved, number)
        if result._node is not None:
            result._node = OutputNode(self, number)
        return result


class OutputNode(Node):
    """Stands before a node with several outputs and hands it the gradient of one."""

    __slots__ = ("number", "parent")

    def __init__(self, parent: MultiNode, number: int) -> None:
        key, shape = parent.outputs[number]
        self.begin((parent,), key, shape)
        self.parent = parent
        self.number = number

    def name(self) -> str:
        """Return the name of the node behind."""
        return self.parent.name()

    def apply(self, gradient: Any, raw: bool) -> list[tuple[Any, bool]]:
        """Pass the gradient on, marked with the output's number."""
        return [({self.number: gradient}, False)]


class SavedByHook:
    """A saved tensor in the form that ``saved_tensors_hooks`` packed it."""

    __slots__ = ("edge", "packed", "unpack_hook")

    def __init__(self, packed: Any, unpack_hook: Callable[[Any], Any], edge: Any = None) -> None:
        self.packed = packed
        self.unpack_hook = unpack_hook
        # Where the gradient of the packed tensor goes; the unpacked one replaces it.
        self.edge = edge

    def unpack(self) -> Any:
        """Return the tensor."""
        tensor = self.unpack_hook(self.packed)
        if not isinstance(tensor, TensorBase):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(tensor).__name__}"
            )
        if self.edge is None or not recording.enabled:
            return tensor
        again = new_tensor(tensor._array, tensor._key, tensor._shape)
        again._node = Identity(self.edge, tensor._key, tensor._shape)
        again._state = TRACKED
        return again


class Identity(Node):
    """Passes the gradient on as it is."""

    __slots__ = ()

    def __init__(self, edge: Any, key: DispatchKey, shape: Shape) -> None:
        self.begin((edge,), key, shape)

    def apply(self, gradient: Any, raw: bool) -> list[tuple[Any, bool]]:
        """Return the gradient."""
        return [(gradient, False)]


def _plain(value: Any) -> bool:
    """Return whether a saved value holds no tensor."""
    if isinstance(value, (list, tuple)):
        return all([_plain(item) for item in value])
    return not isinstance(value, (TensorBase, SavedByHook))


def _version(tensor: Any) -> int:
    storage = tensor._storage
    return tensor._writes if storage is None else storage.version
