"""Symbolic tracing: a module is run once on proxies, and its calls become a graph."""

from __future__ import annotations

import builtins
import copy
import inspect
import math
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from tensorplug import nn
from tensorplug.core import Tensor
from tensorplug.core.contexts import Context
from tensorplug.core.dispatch.counts import count_layers
from tensorplug.core.errors import warn

from .graph import Graph
from .graph_module import GraphModule
from .proxy import ParameterProxy, Proxy, TracerBase, proxies_in, recorded

#: Functions that a program asked to be nodes, by the names that hold them.
_wrapped: dict[tuple[int, str], dict[str, Any]] = {}


class _Tracing(Context):
    """Has calls of ops look for proxies."""

    __slots__ = ()

    def _changes(self) -> dict[str, Any]:
        return count_layers() | {"tracing": True}


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Have calls of a function of this module become nodes; called at module scope, or as a decorator.

    Parameters
    ----------
    fn_or_name : str or callable
        The function, or the name under which this module calls it, such as ``"len"``.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame: Any = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError unless a condition holds."""
    if not condition:
        raise AssertionError(message)


def _assert_is_none(value: Any, message: str) -> None:
    """Raise AssertionError unless a value is None."""
    if value is not None:
        raise AssertionError(message)


@contextmanager
def _patched(patches: list[tuple[Any, str, Any]]) -> Generator[None, None, None]:
    """Have names of dictionaries and classes hold other values within the block."""
    missing = object()
    before: list[tuple[Any, str, Any]] = []
    try:
        for holder, name, value in patches:
            if isinstance(holder, dict):
                before.append((holder, name, holder.get(name, missing)))
                holder[name] = value
            else:
                before.append((holder, name, holder.__dict__.get(name, missing)))
                setattr(holder, name, value)
        yield
    finally:
        for holder, name, value in reversed(before):
            if isinstance(holder, dict):
                if value is missing:
                    del holder[name]
                else:
                    holder[name] = value
            elif value is missing:
                delattr(holder, name)
            else:
                setattr(holder, name, value)


class Tracer(TracerBase):
    """Traces modules and functions; a subclass may decide what becomes of modules.

    Parameters
    ----------
    autowrap_modules : tuple of module
        Modules whose functions, called by their names, become nodes.
    autowrap_functions : tuple of callable
        Further such functions.
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap: set[int] = {
            id(value)
            for module in autowrap_modules
            for name, value in module.__dict__.items()
            if not name.startswith("_") and callable(value)
        } | {id(function) for function in autowrap_functions}
        self._autowrap_modules = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.root: Any = None
        self._paths: dict[Any, str] = {}
        self._constants: dict[int, str] = {}
        self._attributes: dict[str, Proxy] = {}

    def __deepcopy__(self, memo: Any) -> Tracer:
        made: Tracer = type(self).__new__(type(self))
        memo[id(self)] = made
        for name, value in vars(self).items():  # modules of Python are never copied
            shared = name == "_autowrap_modules"
            setattr(made, name, list(value) if shared else copy.deepcopy(value, memo))
        return made

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Return whether a call of a module becomes one node: those of ``nn`` but for containers."""
        return type(m).__module__.startswith("tensorplug.nn") and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: nn.Module) -> str:
        """Return the name of a module below the root.

        Raises
        ------
        NameError
            If it is not there.
        """
        found = self._paths.get(mod)
        if found is None:
            for name, module in self.root.named_modules():
                if module is mod:
                    return str(name)
            raise NameError("module is not installed as a submodule")
        return found

    def call_module(
        self,
        m: nn.Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Do what a call of a module does: add a node for a leaf, else run its ``forward``."""
        path = self.path_of_module(m)
        key = path
        while key in self.module_stack:  # a module that calls itself
            key = f"{key}@"
        self.module_stack[key] = (path, type(m))
        try:
            if not self.is_leaf_module(m, path):
                return forward(*args, **kwargs)
            return self.create_proxy("call_module", path, args, kwargs)
        finally:
            self.module_stack.pop(key, None)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Return what reading a module's attribute gives: of a parameter, its proxy."""
        if isinstance(attr_val, nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if parameter is attr_val:
                    if name not in parameter_proxy_cache:
                        parameter_proxy_cache[name] = self._parameter(name, parameter)
                    return parameter_proxy_cache[name]
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            for name, buffer in self.root.named_buffers():
                if buffer is attr_val:
                    if name not in parameter_proxy_cache:
                        parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
                    return parameter_proxy_cache[name]
        return attr_val

    def _parameter(self, name: str, parameter: Any) -> Any:
        if not self.param_shapes_constant:
            return self.create_proxy("get_attr", name, (), {})

        def proxy(node: Any) -> Any:
            return ParameterProxy(self, node, name, parameter)

        return self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=proxy)

    def create_arg(self, a: Any) -> Any:
        """Return an argument as nodes have it; a tensor becomes an attribute of the root."""
        if isinstance(a, nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if parameter is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, nn.Module):
            for name, module in self.root.named_modules():
                if module is a:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, Tensor):
            for name, buffer in self.root.named_buffers():
                if buffer is a:
                    return self.create_node("get_attr", name, (), {})
            name = self._constants.get(id(a)) or self._attribute_of(a)
            if name is None:
                number = 0
                while hasattr(self.root, f"_tensor_constant{number}"):
                    number += 1
                name = f"_tensor_constant{number}"
                self._constants[id(a)] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def _attribute_of(self, tensor: Any) -> str | None:
        for path, module in self.root.named_modules():
            for name, value in vars(module).items():
                if value is tensor:
                    return f"{path}.{name}" if path else name
        return None

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Return the graph of a module's ``forward``, or of a function.

        Parameters
        ----------
        root : Module or callable
            What is traced.
        concrete_args : dict, optional
            Values of arguments with which to trace, rather than with proxies.

        Raises
        ------
        TraceError
            Where what it does depends on the values of its arguments.
        """
        function: Any
        if isinstance(root, nn.Module):
            name = self.traced_func_name
            if not hasattr(type(root), name):
                raise AssertionError(
                    f"traced_func_name={name} doesn't exist in {type(root).__name__}"
                )
            self.root, function = root, getattr(type(root), name)
            self._paths = {module: name for name, module in root.named_modules()}
        else:
            self.root, function = nn.Module(), root
            self._paths = {}
        self.graph = Graph(tracer_cls=type(self))
        self._attributes = {}
        self._constants = {}
        self.module_stack = {}
        own_call, own_getattr = nn.Module.__call__, nn.Module.__getattr__

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return own_call(module, *args, **kwargs)

            if not proxies_in(args, kwargs) and module not in self._paths:
                return forward(*args, **kwargs)
            return self.call_module(module, forward, args, kwargs)

        def read(module: Any, name: str) -> Any:
            return self.getattr(name, own_getattr(module, name), self._attributes)

        patches: list[tuple[Any, str, Any]] = [
            (nn.Module, "__call__", call),
            (nn.Module, "__getattr__", read),
        ]
        scope = getattr(inspect.unwrap(function), "__globals__", {})
        patches += self._wrappers(scope)
        with _Tracing(), _patched(patches):
            positional, named = self._placeholders(
                function, isinstance(root, nn.Module), concrete_args or {}
            )
            result = function(*positional, **named)
            self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    def _wrappers(self, scope: dict[str, Any]) -> list[tuple[Any, str, Any]]:
        """Return what is to be patched for functions that become nodes."""
        found: list[tuple[Any, str, Any]] = []
        done: set[int] = set()
        scopes = [scope, *[vars(sys.modules[type(m).__module__]) for m in self._paths]]
        for names in scopes:
            if id(names) in done or names.get("__name__", "").startswith("tensorplug."):
                continue
            done.add(id(names))
            found += [
                (names, name, recorded(value))
                for name, value in list(names.items())
                if not name.startswith("_") and callable(value) and id(value) in self._autowrap
            ]
        for module in self._autowrap_modules:
            found += [
                (module.__dict__, name, recorded(value))
                for name, value in list(module.__dict__.items())
                if not name.startswith("_") and callable(value)
            ]
        for (_, name), names in _wrapped.items():
            value = names.get(name, getattr(builtins, name, None))
            if value is not None:
                found.append((names, name, recorded(value)))
        return found

    def _specialize(self, name: str, proxy: Any, value: Any) -> None:
        """Have the program check that it is called with the value for which it is traced."""
        text = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (proxy, text), {})
        elif isinstance(value, (bool, int, float, complex, str)):
            self.create_proxy("call_function", _assert, (proxy == value, text), {})
        else:
            warn(
                f"Was not able to add assertion to verify correct input {name} to specialized function. "
                "It is up to the user to make sure that your inputs match the inputs you specialized the "
                "function with.",
                UserWarning,
            )

    def _placeholders(
        self, function: Any, is_module: bool, concrete: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        code = inspect.unwrap(function)
        signature = inspect.signature(code)
        if code is GraphModule.forward:  # which takes what its graph does
            signature = self.root.signature(with_self=True)
        parameters = list(signature.parameters.values())
        positional: list[Any] = []
        named: dict[str, Any] = {}
        if is_module:
            positional.append(self.root)
            parameters = parameters[1:]
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise NotImplementedError(
                    f"{function.__qualname__} collects arguments in {parameter}: how many there are is "
                    "unknown while it is traced; trace a function that names them"
                )
            default = () if parameter.default is parameter.empty else (parameter.default,)
            value = proxy = self.create_proxy("placeholder", parameter.name, default, {})
            if parameter.name in concrete:
                value = concrete[parameter.name]
                self._specialize(parameter.name, proxy, value)
            if parameter.kind is parameter.KEYWORD_ONLY:
                named[parameter.name] = value
            else:
                positional.append(value)
        return positional, named


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Return a module that makes the calls which a module, or function, makes.

    Parameters
    ----------
    root : Module or callable
        What is traced. Its modules and parameters are shared.
    concrete_args : dict, optional
        Values of arguments with which to trace.

    Raises
    ------
    TraceError
        Where what it does depends on the values of its arguments.

    Examples
    --------
    >>> import tensorplug as tp
    >>> traced = symbolic_trace(lambda x: tp.relu(x) + 1)
    >>> [node.name for node in traced.graph.nodes]
    ['x', 'relu', 'add', 'output']
    >>> traced(tp.tensor([-1.0, 2.0]))
    tensor([1., 3.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
