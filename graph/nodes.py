"""Nodes: calls of ops with their arguments, and the values that these take and make."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any, Literal

from tensorplug.autograd.grad_mode import no_grad
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import DType
from tensorplug.core.device.generator import fork_rng
from tensorplug.core.device.meta import empty_meta
from tensorplug.core.dispatch import op_registry
from tensorplug.core.dispatch.layers import isolated
from tensorplug.core.dispatch.op import Op
from tensorplug.core.tensor.base import TensorBase

__all__ = ["Node", "Value"]

#: What an input of a graph is: an argument of the program, or state that the graph holds under a name.
Kind = Literal["input", "parameter", "buffer", "constant"]


class Value:
    """A tensor of a program: what is known of it before the program runs.

    Attributes
    ----------
    name : str
        Unique within the graph.
    shape : tuple of int
        The sizes when the graph was captured.
    dtype : DType
        The dtype.
    device : Device
        The device.
    node : Node or None
        The node that makes it; None of an input.
    kind : {"input", "parameter", "buffer", "constant"}
        Of an input: what it is. State is found by its name in :attr:`Graph.state`.
    requires_grad : bool
        Of an input: whether it required grad when the graph was captured.
    """

    __slots__ = ("device", "dtype", "kind", "name", "node", "requires_grad", "shape")

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: DType,
        device: Device,
        *,
        node: Node | None = None,
        kind: Kind = "input",
        requires_grad: bool = False,
    ) -> None:
        self.name = name
        self.shape: tuple[Any, ...] = tuple(shape)  # ints, or expressions of some
        self.dtype = dtype
        self.device = device
        self.node = node
        self.kind: Kind = kind
        self.requires_grad = requires_grad

    def __repr__(self) -> str:
        return f"%{self.name}"

    @property
    def type(self) -> str:
        """Dtype and shape as text: ``float32[2, 3]``, with the device unless that is "cpu"."""
        where = "" if self.device.type == "cpu" else f"@{self.device}"
        return f"{self.dtype.name}{list(self.shape)}{where}"

    def meta(self) -> Any:
        """Return a meta tensor of the shape and dtype."""
        return empty_meta(self.shape, self.dtype)


class Node:
    """A call of an op.

    Attributes
    ----------
    op : Op
        What is called.
    args : tuple
        One for each name in ``op.names``, defaults filled in: values, plain Python objects, and lists and
        tuples of both.
    result : object
        The values that the call returns, in the structure in which it returns them.
    updates : tuple of int
        The indices of the arguments that the op writes; their new values are among the outputs, after those
        in `result`.
    outputs : list of Value
        All values that the node makes.
    records : bool
        Whether the call was made where gradients are recorded, outside ``no_grad``.
    source : str
        The line of the program that made the call, ``file:line``; "" if unknown.
    part : int
        Which ``checkpoint`` of the program the call is in, by number; 0 for none. Its gradient computes
        again what it needs.
    """

    __slots__ = ("args", "op", "outputs", "part", "records", "result", "source", "updates")

    def __init__(
        self,
        op: Op,
        args: tuple[Any, ...],
        *,
        updates: tuple[int, ...] = (),
        records: bool = True,
        source: str = "",
        part: int = 0,
    ) -> None:
        self.op = op
        self.args = args
        self.result: Any = None
        self.updates = updates
        self.outputs: list[Value] = []
        self.records = records
        self.source = source
        self.part = part

    @property
    def name(self) -> str:
        """The op's name."""
        return self.op.name

    @property
    def output(self) -> Value:
        """The value of a node that makes one."""
        (value,) = self.outputs
        return value

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by the names in the op's declaration."""
        return dict(zip(self.op.names, self.args, strict=True))

    def values(self) -> Iterator[Value]:
        """Yield the values among the arguments, one that is given twice twice."""
        return values_in(self.args)

    def __repr__(self) -> str:
        made = ", ".join([f"%{value.name}: {value.type}" for value in self.outputs])
        given = ", ".join(
            [
                shown(arg) if position < _leading(self.op) else f"{name}={shown(arg)}"
                for position, (name, arg) in enumerate(zip(self.op.names, self.args, strict=True))
                if not self._is_default(name, arg)
            ]
        )
        return f"{made} = {self.op.name}({given})"

    def _is_default(self, name: str, arg: Any) -> bool:
        default = self.op.signature.parameters[name].default
        return default is arg or (
            type(default) is type(arg) and not list(values_in(arg)) and default == arg
        )

    def __getstate__(self) -> Any:
        return (
            self.op.name,
            self.args,
            self.result,
            self.updates,
            self.outputs,
            self.records,
            self.source,
        )

    def __setstate__(self, state: Any) -> None:
        name, self.args, self.result, self.updates, self.outputs, self.records, self.source = state
        self.op = known_op(name)


def run_node(node: Node, values: dict[Value, Any]) -> None:
    """Call a node's op on tensors, and put what it returns among them."""
    given = map_values(node.args, values.__getitem__)
    updated: list[Any] = []
    if node.updates:
        given = list(given)
        for position in node.updates:
            given[position] = map_leaves(given[position], lambda tensor: tensor.clone())
            updated += tensors_in(given[position])
        given = tuple(given)
    if node.records:
        result = call(node.op, given)
    else:
        with no_grad():
            result = call(node.op, given)
    made = [*tensors_in(result), *updated]
    values.update(zip(node.outputs, made, strict=True))


def call(op: Op, arguments: tuple[Any, ...]) -> Any:
    """Call an op with one argument for each name of its declaration."""
    signature = op.signature
    bound = inspect.BoundArguments(
        signature, OrderedDict(zip(signature.parameters, arguments, strict=True))
    )
    kwargs = bound.kwargs
    if kwargs:  # a default that is given is another form of the call to some ops
        parameters = signature.parameters
        kwargs = {  # custom ops are declared to take any names
            n: value
            for n, value in kwargs.items()
            if n not in parameters or not is_same(value, parameters[n].default)
        }
    return op.call(*bound.args, **kwargs)


def is_same(value: Any, default: Any) -> bool:
    """Return whether an argument is a parameter's default."""
    return value is default or (
        type(value) is type(default) and isinstance(value, (int, float, str)) and value == default
    )


def infer(op: Op, arguments: tuple[Any, ...]) -> Any:
    """Return meta tensors of what an op makes of values."""
    # What makes numbers of no tensor makes them on the device that it names.
    with isolated(), no_grad(), fork_rng() if op.random else nullcontext():
        return call(op, map_values(arguments, lambda value: value.meta()))


def known_op(name: str) -> Op:
    """Return the op of a name, which an installed extension may bring.

    Raises
    ------
    LookupError
        If there is none.
    """
    op = op_registry.handle(name)
    if not op.declared:
        op.index.__index__()  # loads the extension that registers it
    return op


def _leading(op: Op) -> int:
    """Return how many parameters of an op are shown without their names: the tensors at its beginning."""
    kinds = op.declaration.__annotations__
    for position, name in enumerate(op.names):
        if "Tensor" not in str(kinds.get(name, "")):
            return max(position, 1)
    return len(op.names)


# --- nested arguments -------------------------------------------------------------------------------


def map_values(nested: Any, function: Callable[[Any], Any]) -> Any:
    """Return nested arguments with a function's result in the place of each value."""
    kind = type(nested)
    if kind is Value:
        return function(nested)
    if kind is tuple or kind is list:
        return kind([map_values(item, function) for item in nested])
    if kind is dict:
        return {key: map_values(item, function) for key, item in nested.items()}
    if isinstance(nested, tuple) and hasattr(nested, "_fields"):
        return kind(*[map_values(item, function) for item in nested])
    return nested


def values_in(nested: Any) -> Iterator[Value]:
    """Yield the values among nested arguments."""
    if type(nested) is Value:
        yield nested
    elif isinstance(nested, (tuple, list)):
        for item in nested:
            yield from values_in(item)
    elif type(nested) is dict:
        for item in nested.values():
            yield from values_in(item)


def map_leaves(nested: Any, function: Callable[[Any], Any]) -> Any:
    """Return nested results with a function's result in the place of each tensor."""
    kind = type(nested)
    if isinstance(nested, TensorBase):
        return function(nested)
    if kind is tuple or kind is list:
        return kind([map_leaves(item, function) for item in nested])
    if kind is dict:
        return {key: map_leaves(item, function) for key, item in nested.items()}
    if isinstance(nested, tuple) and hasattr(nested, "_fields"):
        return kind(*[map_leaves(item, function) for item in nested])
    return nested


def tensors_in(nested: Any) -> list[Any]:
    """Return the tensors among nested results."""
    found: list[Any] = []
    map_leaves(nested, found.append)
    return found


def kind_of_call(op: Op, nested: Any) -> Any:
    """Return what calls of an op have in common whose tensors have the same shapes and dtypes.

    Raises
    ------
    TypeError
        If it is not hashable.
    """
    found = (op, _kind_of(nested))
    hash(found)
    return found


def _kind_of(nested: Any) -> Any:
    if isinstance(nested, TensorBase):
        return nested._shape, nested._key.dtype
    kind = type(nested)
    if isinstance(nested, (tuple, list)):
        return kind, *[_kind_of(item) for item in nested]
    if kind is dict:
        return kind, *[(name, _kind_of(item)) for name, item in nested.items()]
    if kind is slice:
        return kind, *[_kind_of(part) for part in (nested.start, nested.stop, nested.step)]
    return kind, nested


def shown(value: Any) -> str:
    """Return an argument as text."""
    if type(value) is Value:
        return f"%{value.name}"
    if isinstance(value, (tuple, list)):
        inside = ", ".join(map(shown, value))
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if type(value) is dict:
        return "{" + ", ".join([f"{key!r}: {shown(item)}" for key, item in value.items()]) + "}"
    if type(value) is slice:
        parts = (value.start, value.stop) + (() if value.step in (None, 1) else (value.step,))
        return ":".join(["" if part is None else shown(part) for part in parts])
    return repr(value)


def flat(nested: Iterable[Any]) -> list[Any]:
    """Return what is in nested lists and tuples, in order."""
    found: list[Any] = []
    for item in nested:
        found += flat(item) if isinstance(item, (list, tuple)) else [item]
    return found
