"""Proxies: what a program is run on to see which calls it makes."""

from __future__ import annotations

import dataclasses
import dis
import functools
import inspect
import operator
import sys
from collections.abc import Callable
from typing import Any

from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import DType
from tensorplug.core.ops import einsum
from tensorplug.overrides import is_tensor_method_or_property

from .graph import MAGIC, Graph
from .node import Node, base_types, writes


class TraceError(ValueError):
    """Raised where a program cannot be traced: what it does depends on values."""


def _place() -> str:
    """Return the line of the program that is traced."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("tensorplug."):
        frame = frame.f_back
    if frame is None:
        return ""
    import linecache

    code = frame.f_code
    line = linecache.getline(code.co_filename, frame.f_lineno).strip()
    return f"\n  File {code.co_filename!r}, line {frame.f_lineno}, in {code.co_name}\n    {line}"


class TracerBase:
    """What makes nodes of calls on proxies."""

    graph: Graph
    record_stack_traces = False
    #: Whether an attribute of a proxy that is called becomes a call of a method.
    proxy_buffer_attributes = False
    #: Whether calls of functions that write into their arguments are refused.
    check_mutable_operations = False
    #: The method of a module that is traced.
    traced_func_name = "forward"
    #: The modules whose call is traced at present: their names, and name and class.
    module_stack: dict[str, tuple[str, Any]]

    def __init__(self) -> None:
        self.module_stack = {}

    def create_node(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node to the graph.

        Raises
        ------
        RuntimeError
            If it writes, and the tracer checks that.
        """
        if kind == "call_function" and self.check_mutable_operations and writes(target, kwargs):
            name = f"aten::{target.__name__}" + (".out" if "out" in kwargs else "")
            raise RuntimeError(
                f"Tried to trace mutable operation {name}. FX only supports functional code, so operations "
                "that mutate operands in-place (e.g. via `out` arguments) are not supported"
            )
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if self.module_stack:
            node.meta["nn_module_stack"] = dict(self.module_stack)
        return node

    def proxy(self, node: Node) -> Proxy:
        """Return the proxy of a node's value."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Add a node of a call with proxies among its arguments; return its proxy."""
        given, named = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, given, named, name, type_expr)
        if self.record_stack_traces:
            node.stack_trace = _place()
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: Any) -> Any:
        """Return an argument as nodes have it.

        Raises
        ------
        NotImplementedError
            If a value cannot be an argument.
        RuntimeError
            If a proxy is the key of a dictionary.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            for key in a:
                if proxies_in(key):
                    raise RuntimeError(
                        f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}"
                    )
            return {key: self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(*[self.create_arg(part) for part in (a.start, a.stop, a.step)])
        if isinstance(a, range):
            return range(*[self.create_arg(part) for part in (a.start, a.stop, a.step)])
        if isinstance(a, (*base_types, Node, DType, Device)) or callable(a) or _is_constant(a):
            return a
        if dataclasses.is_dataclass(a):
            parts = {
                field.name: self.create_arg(getattr(a, field.name))
                for field in dataclasses.fields(a)
            }
            return self.create_node("call_function", type(a), (), parts)
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """Raise: which way a program goes must not depend on a value."""
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow" + _place()
        )

    def iter(self, obj: Proxy) -> Any:
        """Return the items where a program unpacks a proxy into names; otherwise raise TraceError."""
        frame = inspect.currentframe()
        caller = None if frame is None or frame.f_back is None else frame.f_back.f_back
        if caller is not None:
            found = next(
                (
                    step
                    for step in dis.get_instructions(caller.f_code)
                    if step.offset == caller.f_lasti
                ),
                None,
            )
            if found is not None and found.opname == "UNPACK_SEQUENCE":
                return (obj[position] for position in range(found.arg or 0))
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a "
            "*args or **kwargs function argument. Unpack it into names, or make the loop's module a leaf"
            + _place()
        )

    def keys(self, obj: Proxy) -> Any:
        """Return what a program gets that unpacks a proxy as a dictionary."""
        return Attribute(obj, "keys")()


def _is_constant(value: Any) -> bool:
    import enum

    return isinstance(value, (enum.Enum, bytes)) or type(value).__module__.startswith(
        "tensorplug.core"
    )


class Proxy:
    """Stands for the value of a node; what is done with it becomes nodes."""

    def __init__(self, node: Node, tracer: Any = None) -> None:
        if tracer is None:
            tracer = GraphAppendingTracer(node.graph)
        self.tracer = tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the value."""
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Any:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return bool(self.tracer.to_bool(self))

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, "
            "please call tensorplug.fx.wrap('len') at module scope" + _place()
        )

    def __index__(self) -> int:
        raise TraceError("a symbolically traced value cannot be used as an int" + _place())

    __int__ = __float__ = __complex__ = __index__

    def __contains__(self, item: Any) -> bool:
        raise TraceError(
            "whether a symbolically traced value contains another is unknown" + _place()
        )

    def __getitem__(self, key: Any) -> Any:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, key), {})

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("'Proxy' object does not support item assignment" + _place())

    def __deepcopy__(self, memo: Any) -> Any:
        raise TraceError("a symbolically traced value cannot be copied" + _place())

    def keys(self) -> Any:
        """Return the keys of a dictionary."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Make a node of a call."""
        kwargs = kwargs or {}
        found: list[Any] = []
        _proxies((args, kwargs), found)
        tracer = found[0].tracer
        if orig_method is einsum and len(args) == 2 and isinstance(args[1], (tuple, list)):
            args = (args[0], *args[1])  # one node, however the operands are given
        if is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


def _proxies(value: Any, found: list[Any]) -> None:
    if isinstance(value, Proxy):
        found.append(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            _proxies(item, found)
    elif isinstance(value, dict):
        _proxies(list(value.values()), found)
    elif isinstance(value, slice):
        _proxies([value.start, value.stop, value.step], found)


def proxies_in(*values: Any) -> list[Any]:
    """Return the proxies among values, and lists and dictionaries of them."""
    found: list[Any] = []
    _proxies(list(values), found)
    return found


def recorded(function: Any) -> Any:
    """Return a function whose calls with proxies become nodes."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = proxies_in(args, kwargs)
        if found:
            return found[0].tracer.create_proxy("call_function", function, args, kwargs)
        return function(*args, **kwargs)

    wrapped.__fx_wrapped__ = True  # type: ignore[attr-defined]
    return wrapped


class Attribute(Proxy):
    """An attribute of a proxy: a node of its own if it is used, or else the method that is called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node, made now if need be."""
        node = self._node
        if node is None:
            made = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            node = self._node = made.node
        return node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method."""
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """Stands for a parameter whose shape the program may look at."""

    def __init__(self, tracer: Any, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.name = name
        self.param = param

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The parameter's shape."""
        return self.param.shape

    @property
    def ndim(self) -> int:
        """Of how many dimensions it is."""
        return int(self.param.ndim)

    def size(self, dim: int | None = None) -> Any:
        """Return the parameter's shape, or one of its sizes."""
        return self.param.size() if dim is None else self.param.size(dim)

    def dim(self) -> int:
        """Return of how many dimensions it is."""
        return int(self.param.dim())

    def numel(self) -> int:
        """Return how many elements it has."""
        return int(self.param.numel())

    nelement = numel


class GraphAppendingTracer(TracerBase):
    """Adds nodes to a graph that is there already."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph


_REFLECTED = (
    "add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor",
    "matmul",
)  # fmt: skip


def _add_operators() -> None:
    def operated(function: Any) -> Any:
        def method(self: Any, *args: Any) -> Any:
            return self.tracer.create_proxy("call_function", function, (self, *args), {})

        return method

    def reflected(function: Any) -> Any:
        def method(self: Any, other: Any) -> Any:
            return self.tracer.create_proxy("call_function", function, (other, self), {})

        return method

    for name in (*MAGIC, "abs"):
        if name == "getitem":
            continue
        function = getattr(operator, name)
        short = name.rstrip("_")
        setattr(Proxy, f"__{short}__", operated(function))
        if name in _REFLECTED:
            setattr(Proxy, f"__r{short}__", reflected(function))
    Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]  # lost with __eq__


_add_operators()
__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "TraceError",
    "TracerBase",
    "proxies_in",
    "recorded",
]
