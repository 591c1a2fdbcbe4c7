"""Memory: what the tensors of a program stand for in its graph, which show one memory, and what is written.

What writes in place is noted as the op that computes the new value, and from then on the tensor, and all that
show the same memory, stand for that; so the graph itself writes nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from types import CodeType
from typing import Any, NamedTuple, NoReturn

from tensorplug.core import Tensor
from tensorplug.core.contexts import thread
from tensorplug.core.dispatch import layers
from tensorplug.core.dispatch.op import Op
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.exposure import are_one, taken_in
from tensorplug.nn import Buffer, Parameter

from .graph import Graph
from .nodes import (
    Kind,
    Node,
    Value,
    infer,
    known_op,
    map_leaves,
    values_in,
)

__all__ = [
    "Memory",
    "Uncapturable",
    "gradient_of",
    "is_mirrored",
    "is_seen_in",
    "line_in",
    "memory_of",
    "roots",
    "share",
    "source_line",
]

#: A view: the op, its arguments after the first, and which of several results it is.
_How = tuple[str, Any, int | None]


class Uncapturable(RuntimeError):
    """A program does what a graph cannot hold: the message says what, and at which line.

    Attributes
    ----------
    source : str
        The program's line, ``file:line``.
    """

    def __init__(self, reason: str, source: str = "") -> None:
        super().__init__(f"{reason} ({source})" if source else reason)
        self.reason = reason
        self.source = source


class Memory:
    """The tensors of a program that runs, and their values in a graph.

    Attributes
    ----------
    graph : Graph
        What was captured so far.
    """

    def __init__(self) -> None:
        self.graph = Graph()
        # What tensors stand for, by id; they stay alive, so that no other tensor gets an id.
        self.values: dict[int, Value] = {}
        self.kept: dict[int, Any] = {}
        self.inputs: dict[int, Value] = {}
        self.written: dict[int, Any] = {}
        self.views: dict[int, _View] = {}
        self.arrays: dict[int, Any] = {}
        # State that the program may use, by the ids of arrays.
        self.owners: dict[int, Any] = {}
        # How often the memory of a tensor that is no view was written, and how often when a tensor's value
        # was made.
        self.writes: dict[int, int] = {}
        self.seen: dict[int, int] = {}
        self.recorded = layers.recording.enabled
        # Which part of a program, of those that are computed again, runs by its graph.
        self.part = 0
        # Whether autograd recorded several ops, which are not recorded themselves, as one.
        self.as_one = False
        # What no op changes of inputs, by id.
        self.facts: dict[int, tuple[Any, Any]] = {}

    def add(self, name: str, tensor: Any, kind: Kind) -> Value:
        """Make a tensor an input."""
        self.facts.setdefault(id(tensor), (tensor, _facts(tensor)))
        known = self.inputs.get(id(tensor))
        if known is not None and kind != "input":
            return known
        value = self.graph.add_input(name, tensor, kind)
        if known is None:
            self._keep(tensor, value)
            self.inputs[id(tensor)] = value
        return value

    def _keep(self, tensor: Any, value: Value) -> None:
        self.values[id(tensor)] = value
        self.kept[id(tensor)] = tensor
        self.arrays.setdefault(id(tensor._array), tensor)

    def value_of(self, tensor: Any) -> Value:
        """Return what a tensor stands for; one that is not known becomes a constant."""
        known = self.values.get(id(tensor))
        if known is not None:
            made = known.node
            if made is not None and self.recorded and not made.records:
                self.as_one |= tensor._node is not None
            if (
                id(tensor) in self.views
                and self.seen[id(tensor)] != self.writes[id(self._root(tensor))]
            ):
                return self._show_again(tensor)
            return known
        if type(tensor) not in (Tensor, Parameter, Buffer):
            self._refuse(f"a tensor of class {type(tensor).__name__} is used")
        same = self.arrays.get(id(tensor._array))
        owner = self.owners.get(id(tensor._array))
        if same is None and owner is not None and owner is not tensor:
            same = owner  # state that is used detached before it is used itself
            self.value_of(owner)
        if same is not None and same._shape != tensor._shape:
            self._refuse("a tensor shows memory as another one did before")
        if same is not None and tensor.requires_grad and not same.requires_grad:
            self._refuse("a tensor that requires grad is used after what was detached from it")
        if same is not None:  # detached, or a tensor as autograd kept it
            return self._detached(tensor, same)
        if shares_any(
            tensor,
            [
                t
                for number, t in self.kept.items()
                if number not in self.inputs or number in self.written
            ],
        ):
            self._refuse("a tensor shows memory of another one, and no op says how")
        if thread.differentiating:  # which other data would make another one
            self._refuse(KEPT)
        return self.add("constant", tensor, "constant")

    def _detached(self, tensor: Any, source: Any) -> Value:
        """Note that a tensor is another one, detached; return what it stands for."""
        node = self._node(known_op("graph.detach"), (self.value_of(source),))
        node.result = self.graph.add_output(node, tensor)
        self._keep(tensor, node.output)
        self._show(tensor, source, ("graph.detach", (), None))
        return node.output

    def _show(self, tensor: Any, source: Any, how: _How | None) -> None:
        self.views[id(tensor)] = _View(source, how)
        self.seen[id(tensor)] = self.writes.setdefault(id(self._root(source)), 0)

    def _is_shown(self, tensor: Any) -> bool:
        """Return whether a tensor is a view, has one, or is the caller's."""
        number = id(tensor)
        return (
            number not in self.values
            or number in self.inputs
            or number in self.views
            or any([view.source is tensor for view in self.views.values()])
        )

    def _root(self, tensor: Any) -> Any:
        """Return the tensor whose memory one shows, itself if it is no view."""
        while id(tensor) in self.views:
            tensor = self.views[id(tensor)].source
        return tensor

    def _show_again(self, tensor: Any) -> Value:
        """Note the view that a tensor is once more, of memory that was written since."""
        source, how = self.views[id(tensor)]
        if how is None:
            self._refuse("memory is written that a view of several tensors shows")
        name, rest, number = how
        node = self._node(known_op(name), (self.value_of(source), *rest))
        if number is None:
            node.result = self.graph.add_output(node, tensor)
        else:
            made = infer(node.op, node.args)
            node.result = map_leaves(made, lambda like: self.graph.add_output(node, like))
            for value in node.outputs:
                value.device = tensor._key.device
        value = self.values[id(tensor)] = node.outputs[number or 0]
        self.seen[id(tensor)] = self.writes[id(self._root(tensor))]
        return value

    def _shown_again(self, tensor: Any) -> Value:
        """Return what a result stands for: of a view that was written the view, not what was written."""
        value = self.value_of(tensor)
        view = self.views.get(id(tensor))
        if view is None or view.how is None or value in self.shown():
            return value
        return self._show_again(tensor)

    def _write(self, target: Any, value: Value) -> None:
        """Have a tensor, and what shows its memory, stand for a new value."""
        self.value_of(target)  # makes it known
        chain: list[_How] = []
        root = target
        while id(root) in self.views:
            root, how = self.views[id(root)]
            if how is None:
                self._refuse("a view is written that takes several tensors")
            chain.insert(0, how)
        if any(values_in(chain)):
            self._refuse("a view that takes a tensor as an argument is written")
        if _overlaps(target) or _overlaps(root):
            self._refuse("a tensor is written whose elements share memory")
        quiet = not layers.recording.enabled or any([name == "graph.detach" for name, *_ in chain])
        if self.recorded and quiet and root.requires_grad:
            self._refuse("a tensor that requires grad is written, and that is not recorded")
        if shares_any(root, [self.kept[number] for number in self.inputs]):
            self._refuse("a tensor is written whose memory another input shows")
        new = value
        if chain:
            before = self.value_of(root)
            node = self._node(known_op("graph.write_view"), (before, value, tuple(chain)))
            new = node.result = self.graph.add_output(node, root)
        self.values[id(root)] = new
        self.writes[id(root)] = self.writes.get(id(root), 0) + 1
        if chain:
            self.values[id(target)] = value
            self.seen[id(target)] = self.writes[id(root)]
        if id(root) in self.inputs:
            self.written[id(root)] = root

    def shown(self) -> set[Value]:
        """Return the values of tensors that show memory of others."""
        return {
            value
            for value, view in [(self.values[n], view) for n, view in self.views.items()]
            if view.how is None or (value.node is not None and value.node.op.name == view.how[0])
        }

    def shows_input(self, tensor: Any) -> bool:
        """Return whether a tensor that is no input shows the memory of one."""
        if id(tensor) in self.inputs:
            return False
        root = self._root(tensor)
        if id(root) in self.inputs:
            return True
        return is_seen_in(root, [self.kept[number] for number in self.inputs])

    def is_constant(self, tensor: Any) -> bool:
        """Return whether a tensor is neither an argument, nor state of a module, nor made by an op."""
        value = self.inputs.get(id(tensor))
        return value is not None and value.kind == "constant"

    def changes(self) -> str:
        """Return what the program did to inputs that no op does; "" if nothing."""
        for number, (tensor, before) in self.facts.items():
            # What is written by a recorded op requires grad.
            ends = 4 if number in self.written and self.recorded else 5
            for what, a, b in zip(_FACTS[:ends], _facts(tensor), before, strict=False):
                if a is not b and (what != _FACTS[2] or a != b):
                    return f"changes {what} of {self.inputs[number]}"
        return ""

    def shared(self, tensors: list[Any], values: list[Any]) -> dict[Value, int]:
        """Return which of the values that tensors stand for show the same memory, by a number for each."""
        found: dict[Value, int] = {}
        for tensor, value in zip(tensors, values, strict=True):
            if isinstance(tensor, TensorBase) and tensor._storage is not None:
                found[value] = id(tensor._storage)
        return found

    def _node(self, op: Op, arguments: tuple[Any, ...], updates: tuple[int, ...] = ()) -> Node:
        node = Node(
            op,
            arguments,
            updates=updates,
            records=layers.recording.enabled or not self.recorded,
            source=source_line(),
            part=self.part or thread.recomputed,
        )
        self.graph.nodes.append(node)
        return node

    def _refuse(self, reason: str) -> NoReturn:
        raise Uncapturable(reason, source_line())


#: Of a gradient that the program computes: an op in it keeps what is no argument and no result.
KEPT = "a derivative keeps a tensor that no op of the program made"
#: What only ops change of inputs, but for `grad`, which none does.
_FACTS = ("the memory", "the dtype or device", "the shape", "the gradient", "requires_grad")


def _facts(tensor: Any) -> tuple[Any, ...]:
    return tensor._array, tensor._key, tensor._shape, gradient_of(tensor), tensor.requires_grad


def gradient_of(tensor: Any) -> Any:
    """Return the gradient that a tensor has accumulated, which layers are not told of."""
    extra = tensor._extra
    return None if extra is None else extra.grad


def _overlaps(tensor: Any) -> bool:
    """Return whether elements of a tensor share memory, as in what `expand` returns."""
    strides = tensor._key.runtime.strides(tensor._array)
    return any(
        [size > 1 and stride == 0 for size, stride in zip(tensor._shape, strides, strict=True)]
    )


class _View(NamedTuple):
    """What a tensor shows, and how; None if that takes more than the tensor as the first argument."""

    source: Any
    how: _How | None


def share(tensor: Any, other: Any) -> bool:
    """Return whether two tensors are of one storage, or the same array."""
    storage = tensor._storage
    return tensor is not other and (
        (storage is not None and storage is other._storage)
        or tensor._array is other._array
        or (len(taken_in) > 0 and are_one(tensor._array, other._array))
    )


def shares_any(tensor: Any, others: Iterable[Any]) -> bool:
    """Return whether :func:`share` holds of a tensor and one of many."""
    array, storage = tensor._array, tensor._storage
    for other in others:
        one = other._array is array or (storage is not None and other._storage is storage)
        if other is not tensor and (one or (taken_in and share(tensor, other))):
            return True
    return False


def is_seen_in(tensor: Any, others: Collection[Any]) -> bool:
    """Return whether a write to a tensor is seen in one of others, or the other way round."""
    return is_mirrored(tensor, *others) or shares_any(tensor, others)


def is_mirrored(tensor: Any, *others: Any) -> bool:
    """Return whether a tensor's memory shows the conjugate of another one's, or the other way round."""
    mirror = None if tensor._storage is None else tensor._storage.mirror
    if mirror is None:
        return False
    memories = mirror.others()
    return any([other._storage in memories for other in others if other._storage is not None])


def roots(value: Value, views: set[Value]) -> set[Value]:
    """Return the values whose memory a value may show."""
    found: set[Value] = set()
    stack = [value]
    while stack:
        value = stack.pop()
        if value in views and value.node is not None:
            stack += value.node.values()
        else:
            found.add(value)
    return found


def memory_of(values: Iterable[Value], views: set[Value]) -> frozenset[str]:
    """Return the names of the values whose memory given ones show."""
    return frozenset([root.name for value in values for root in roots(value, views)])


def source_line() -> str:
    """Return the innermost line that is not this library's: ``file:line``."""
    frame: Any = sys._getframe(1)
    outside = (__name__.partition(".")[0] + ".",)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(outside):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def line_in(code: CodeType | None) -> int:
    """Return the line at which a function of this thread is; 0 if it does not run."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return 0 if frame is None else int(frame.f_lineno)
