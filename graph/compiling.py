"""``tp.compile``: functions and modules that run as captured graphs, where those hold.

The first call with arguments of some shapes and dtypes is the program's own, while a
:class:`~.capture.Recorder` notes what it does and a :class:`~.guards.Watch` what that depends on. Later calls
for which all of that is the same run the graph: by kernels alone where nothing is recorded for
differentiation, op by op where it is. Whatever a graph does not hold stays eager.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, overload

from tensorplug.autograd.transforms.pytree import tree_flatten
from tensorplug.core import Tensor
from tensorplug.core.contexts import thread
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import DType, get_default_dtype
from tensorplug.core.dispatch import layers
from tensorplug.core.dispatch.keys import default_device
from tensorplug.core.tensor.base import TensorBase
from tensorplug.nn import Buffer, Module, Parameter

from .capture import Recorder, Uncapturable, memory_of, share, source_line
from .entries import Entry
from .graph import Graph, Value, values_in
from .guards import Watch, has_state
from .ops import Unexpected
from .parts import Parts, children, outermost
from .symbolic import Dynamic

__all__ = ["Break", "Compiled", "Explanation", "OptimizedModule", "compile"]

F = TypeVar("F", bound=Callable[..., Any])

#: How many graphs one kind of arguments may have, by what the program reads and depends on.
LIMIT = 8
#: How many calls of a kind may change Python state before those calls stay eager.
_SETTLING = 3
_CHANGES = "the program changes "
_PLAIN = (int, float, complex, bool, str, bytes, type(None), DType, Device)


class Break(NamedTuple):
    """Where a program could not be captured.

    Attributes
    ----------
    reason : str
        What it does.
    source : str
        The line, ``file:line``.
    """

    reason: str
    source: str


class Explanation(NamedTuple):
    """What :meth:`Compiled.explain` returns.

    Attributes
    ----------
    graphs : list of Graph
        What was captured, one for all sizes that it holds for.
    guards : list of str
        What the graphs hold for.
    breaks : list of Break
        Why calls stayed eager.
    captures, calls, eager : int
        How many calls were captured, were answered by a graph, and ran as they are.
    """

    graphs: list[Graph]
    guards: list[str]
    breaks: list[Break]
    captures: int
    calls: int
    eager: int

    def __str__(self) -> str:
        ran = f"{self.calls} calls ran as graphs, {self.eager} eagerly"
        lines = [f"{len(self.graphs)} graphs, {self.captures} captures; {ran}"]
        lines += [f"break: {reason} ({source})" for reason, source in self.breaks]
        lines += [f"guard: {guard}" for guard in self.guards]
        return "\n".join([*lines, *map(str, self.graphs)])


class Compiled:
    """A function that runs as captured graphs; what :func:`compile` returns of a function."""

    def __init__(
        self, function: Callable[..., Any], fullgraph: bool, dynamic: bool | None, enabled: bool
    ) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._fullgraph = fullgraph
        self._dynamic = Dynamic(dynamic)
        self._enabled = enabled
        self._entries: dict[Any, list[Entry]] = {}
        self._eager: dict[Any, Break] = {}
        # How often calls of a kind changed Python state: what is set up in the first ones stays then.
        self._unsettled: dict[Any, int] = {}
        self._breaks: list[Break] = []
        self._captures = self._calls = self._eager_calls = 0
        # The modules that the program reaches, and those compiled each by itself.
        self._reached: list[Module] = []
        self._parts: Parts | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if thread.stack or thread.modes or thread.preferred or not self._enabled:
            self._eager_calls += 1
            return self._function(*args, **kwargs)
        tensors: list[Any] = []
        key = self._key(args, kwargs, tensors)
        if key is None or key in self._eager:
            self._eager_calls += 1
            return self._in_parts(args, kwargs)
        entries = self._entries.setdefault(key, [])
        recorded = layers.recording.enabled
        for entry in entries:
            if entry.holds(tensors):
                try:
                    result = entry.run(tensors, recorded)
                except Unexpected:
                    continue
                except Exception as error:
                    if self._fullgraph or not entry.undo():
                        raise
                    self._note(Break(f"a graph raised {type(error).__name__}: {error}", ""))
                    self._eager_calls += 1
                    return self._function(*args, **kwargs)
                self._calls += 1
                return result
        if len(entries) >= LIMIT:
            self._stay_eager(key, Break(f"{LIMIT} graphs hold for no such call", ""))
            return self._in_parts(args, kwargs)
        return self._capture(key, args, kwargs, tensors)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _key(self, args: Any, kwargs: dict[str, Any], tensors: list[Any]) -> Any:
        """Return what calls alike have in common, and collect the tensors; None if that cannot be told."""
        parts: list[Any] = _modes()
        try:
            parts += [_part(value, tensors) for value in args]
            for name, value in kwargs.items():
                parts += (name, _part(value, tensors))
            key = tuple(parts)
            hash(key)
        except _Unknown as unknown:
            self._note(Break(str(unknown), source_line()))
            return None
        return key

    def _note(self, found: Break) -> None:
        if self._fullgraph:
            raise Uncapturable(found.reason, found.source)
        if found not in self._breaks:
            self._breaks.append(found)

    def _stay_eager(self, key: Any, found: Break) -> None:
        self._note(found)
        self._eager[key] = found
        self._entries.pop(key, None)
        self._eager_calls += 1

    def _in_parts(self, args: Any, kwargs: dict[str, Any]) -> Any:
        """Run the function as it is, its modules compiled each by itself."""
        if self._parts is None:
            owner = getattr(self._function, "__self__", self._function)
            modules = children(owner) if isinstance(owner, Module) else outermost(self._reached)
            self._parts = Parts(
                modules, lambda forward: Compiled(forward, False, self._dynamic.wanted, True)
            )
        with self._parts.running():
            return self._function(*args, **kwargs)

    def _capture(self, key: Any, args: Any, kwargs: dict[str, Any], tensors: list[Any]) -> Any:
        """Run the function and note what it does."""
        if sys.getprofile() is not None:  # someone measures; nothing could be watched
            return self._function(*args, **kwargs)
        function = self._function
        recorder = Recorder(follow=not self._fullgraph)
        recorder.add_state(getattr(function, "__self__", function))
        for number, tensor in enumerate(tensors):
            recorder.add(f"input{number or ''}", tensor, "input")
        watch = Watch()
        recorder.owners = watch.owners
        watch.add(function, "self")
        given = Watch()  # that a later call's are alike the key says
        given.add((args, kwargs), "an argument")
        for value in (*args, *kwargs.values()):
            if has_state(value) and not isinstance(value, TensorBase):
                recorder.add_state(value)
                watch.add(value, "an argument")
        modes = _modes()
        with watch.watching(lambda: recorder.inside), recorder.active():
            result = function(*args, **kwargs)
        self._captures += 1
        given.settle()
        watch.effects += given.effects
        if _modes() != modes:
            watch.effects.append("changes the default dtype or device, or what is recorded")
        if any([share(tensor, other) for tensor in tensors for other in watch.tensors.values()]):
            # Another call of the kind need not.
            self._note(Break("an argument shows memory of state", ""))
            return result
        entry = self._entry(recorder, watch, tensors, result)
        if isinstance(entry, Break) and entry.reason.startswith(_CHANGES):
            self._unsettled[key] = self._unsettled.get(key, 0) + 1
            if self._unsettled[key] < _SETTLING:
                self._note(entry)
                return result
        if isinstance(entry, Break):
            self._stay_eager(key, entry)
            self._reached = watch.modules()
        else:
            self._entries.setdefault(key, []).append(entry)
            self._dynamic.add(entry.graph)
        return result

    def _entry(
        self, recorder: Recorder, watch: Watch, tensors: list[Any], result: Any
    ) -> Entry | Break:
        if recorder.ended is not None:
            return Break(recorder.ended.reason, recorder.ended.source)
        watch.settle()
        changes = recorder.changes()
        if changes:
            watch.effects.append(changes)
        if watch.effects:
            return Break(f"the program {watch.effects[0]}", "")
        leaves, tree = tree_flatten(result)
        for leaf in leaves:
            if type(leaf) not in (Tensor, Parameter, Buffer):
                if isinstance(leaf, TensorBase) or not isinstance(leaf, _PLAIN):
                    return Break(f"the program returns a {type(leaf).__name__}", "")
            elif leaf.is_inference() and not thread.inference:
                return Break("the program returns a tensor of inference mode", "")
            elif leaf.requires_grad and not recorder.recorded and id(leaf) not in recorder.inputs:
                return Break("the program records gradients where its caller does not", "")
            elif recorder.shows_input(leaf):
                return Break("the program returns a view of an argument or of state", "")
        try:
            graph = recorder.finished(leaves)
        except Uncapturable as error:
            return Break(error.reason, error.source)
        if any([recorder.is_constant(leaf) for leaf in leaves]):
            return Break("the program returns a tensor that no op made", "")
        graph.remove_unused()
        if _draws_before_reading(graph):
            return Break("the program draws random numbers before it reads data", "")
        views = recorder.shown()
        if _is_apart(leaves, graph.result, views):
            return Break("the program returns views of memory that it has written", "")
        shared = recorder.shared(leaves, graph.result)
        numbers = {value: number for number, value in enumerate(graph.inputs)}
        same = {
            position: numbers[recorder.inputs[id(leaf)]]
            for position, leaf in enumerate(leaves)
            if id(leaf) in recorder.inputs
        }
        memory = memory_of(values_in(graph.result), views)
        known = {id(tensor) for tensor in graph.state.values()} | set(watch.tensors)
        fixed = {n: tensor for n, tensor in enumerate(tensors) if id(tensor) in known}
        return Entry(graph, watch, tree, same, shared, memory, fixed)

    def explain(self) -> Explanation:
        """Return what was captured so far, and what was not, and why."""
        guards = [
            f"{description} ({len(entries)} graphs){_gradients(entries)}"
            for description, entries in (
                (_described(key), entries) for key, entries in self._entries.items()
            )
        ]
        found = Explanation(
            self._dynamic.graphs(), guards, list(self._breaks),
            self._captures, self._calls, self._eager_calls,
        )  # fmt: skip
        for part in () if self._parts is None else self._parts.compiled:
            other = part.explain()
            found = Explanation(
                found.graphs + other.graphs, found.guards + other.guards, found.breaks + other.breaks,
                found.captures + other.captures, found.calls + other.calls, found.eager,
            )  # fmt: skip
        return found


def _modes() -> list[Any]:
    return [thread.enabled, thread.inference, get_default_dtype(), default_device()]


class _Unknown(Exception):
    """An argument whose meaning a key cannot hold."""


def _part(value: Any, tensors: list[Any]) -> Any:
    kind = type(value)
    if kind in (Tensor, Parameter, Buffer):
        for number, other in enumerate(tensors):
            if other is value:
                tensors.append(value)
                return ("again", number)
            if share(value, other):
                raise _Unknown("two arguments show the same memory")
        tensors.append(value)
        key, array, shape = value._key, value._array, value._shape
        runtime = key.runtime
        # Along a size of 1 steps may be any.
        plain = 1 not in shape and runtime.is_contiguous(array)
        layout = None if plain else runtime.strides(array)
        own = tuple([(name, _part(item, tensors)) for name, item in vars(value).items()])
        return (kind, key, shape, layout, value.requires_grad, *own)
    if kind in _HASHABLE:
        return (kind, repr(value) if kind is float or kind is complex else value)
    if kind is tuple or kind is list:
        return (kind, *[_part(item, tensors) for item in value])
    if kind is dict:
        return (kind, *[(key, _part(item, tensors)) for key, item in value.items()])
    if has_state(value):
        return (kind, id(value))  # which is watched, and so stays
    if kind is slice:
        return (kind, *[_part(part, tensors) for part in (value.start, value.stop, value.step)])
    raise _Unknown(f"an argument is of type {kind.__name__}")


_HASHABLE = frozenset(_PLAIN)


def _is_apart(tensors: list[Any], values: list[Any], views: set[Value]) -> bool:
    """Return whether two results show one memory, and what they stand for does not."""
    known: dict[int, frozenset[str]] = {}
    for tensor, value in zip(tensors, values, strict=True):
        if isinstance(tensor, TensorBase) and tensor._storage is not None:
            memory = memory_of([value], views)
            if known.setdefault(id(tensor._storage), memory) != memory:
                return True
    return False


def _gradients(entries: list[Entry]) -> str:
    """Return why gradients are left to the ops of graphs; "" where they are not."""
    reasons = [str(entry.refused) for entry in entries if entry.refused is not None]
    return f", gradients op by op: {reasons[0]}" if reasons else ""


def _draws_before_reading(graph: Graph) -> bool:
    """Return whether a run that turns out not to hold would have drawn random numbers."""
    drawn = False
    for node in graph.nodes:
        drawn = drawn or node.op.random
        if drawn and not node.outputs:
            return True
    return False


def _described(key: Any) -> str:
    parts = []
    for part in key[4:]:
        if isinstance(part, tuple) and len(part) >= 5 and hasattr(part[1], "dtype"):
            parts.append(f"{part[1].dtype.name}{list(part[2])}")
        else:
            parts.append(str(part))
    return ", ".join(parts) + ("" if key[0] else ", without recording")


class OptimizedModule(Module):
    """What :func:`compile` returns of a module: it runs as captured graphs, and has it as ``_orig_mod``.

    As in torch its state dict has the module's names behind ``_orig_mod.``, and other attributes are the
    module's.
    """

    _orig_mod: Module

    def __init__(self, module: Module, compiled: Compiled | None = None) -> None:
        super().__init__()
        self.__dict__["_compiled"] = compiled or Compiled(module, False, None, True)
        self._orig_mod = module
        self.training = module.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.__dict__["_compiled"](*args, **kwargs)

    def explain(self) -> Explanation:
        """Return what was captured so far, and what was not, and why."""
        found: Explanation = self.__dict__["_compiled"].explain()
        return found

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_orig_mod", "training") or "_orig_mod" not in self.__dict__.get(
            "_modules", ()
        ):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __reduce__(self) -> Any:
        compiled: Compiled = self.__dict__["_compiled"]
        return _compiled_again, (self._orig_mod, compiled._fullgraph, compiled._dynamic.wanted)

    def __deepcopy__(self, memo: Any) -> Any:
        import copy

        made, (module, *options) = self.__reduce__()
        return made(copy.deepcopy(module, memo), *options)


def _compiled_again(module: Module, fullgraph: bool, dynamic: bool | None) -> OptimizedModule:
    return OptimizedModule(module, Compiled(module, fullgraph, dynamic, True))


@overload
def compile(
    model: F, *, fullgraph: bool = ..., dynamic: bool | None = ..., backend: Any = ...,
    mode: str | None = ..., options: dict[str, Any] | None = ..., disable: bool = ...,
) -> F: ...  # fmt: skip


@overload
def compile(
    model: None = ..., *, fullgraph: bool = ..., dynamic: bool | None = ..., backend: Any = ...,
    mode: str | None = ..., options: dict[str, Any] | None = ..., disable: bool = ...,
) -> Callable[[F], F]: ...  # fmt: skip


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "default",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Return a function or module that runs as captured graphs of ops, and as it is where those do not hold.

    Parameters
    ----------
    model : callable or Module, optional
        What to compile; without it a decorator is returned. Of a module an :class:`OptimizedModule`.
    fullgraph : bool
        Raise :class:`~tensorplug.graph.Uncapturable` where the program reads the data of its tensors, or
        does something else that a graph does not hold, instead of running such calls as they are.
    dynamic : bool, optional
        False to count a graph for each size; by default sizes become symbols with the second one.
    backend : str or callable
        "default", or "eager" for the program itself. Of torch's, "inductor", "aot_eager" and "cudagraphs" are
        the default one.
    mode, options
        Accepted as torch has them; they change nothing.
    disable : bool
        Return what runs the program itself.

    Raises
    ------
    ValueError
        If the backend is not known.

    Notes
    -----
    The first call with tensors of some shapes and dtypes is the program's own. A graph serves a later one if
    arguments and state are alike: shapes, dtypes, strides and plain values of arguments; attributes of
    modules and objects, closures and globals that the program's functions name. A number or truth value that
    the program reads from a tensor belongs to that, too; up to eight graphs hold for different ones. Results
    are bit for bit those of the program, but where nothing is recorded and a batch norm follows a
    convolution of float32: its factors are multiplied into the weights, and results differ by rounding.

    Examples
    --------
    >>> import tensorplug as tp
    >>> @tp.compile
    ... def act(x):
    ...     return tp.exp(-x * x) if x.sum() > 0 else x
    >>> x = tp.tensor([1.0, -0.5])
    >>> act(x), act(x)
    (tensor([0.3679, 0.7788]), tensor([0.3679, 0.7788]))
    >>> act(-x)
    tensor([-1.0000,  0.5000])
    >>> found = act.explain()
    >>> len(found.graphs), found.captures, found.calls
    (2, 2, 1)
    """
    if backend not in _BACKENDS:
        raise ValueError(
            f"compile(): the backend is one of {', '.join(_BACKENDS)}, got {backend!r}; what runs fused "
            "regions comes from plugins"
        )
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, disable=disable
        )
    if isinstance(model, (Compiled, OptimizedModule)):
        return model
    if not callable(model):
        raise TypeError(f"compile() takes a function or a module, got {type(model).__name__}")
    compiled = Compiled(model, fullgraph, dynamic, not disable and backend != "eager")
    return OptimizedModule(model, compiled) if isinstance(model, Module) else compiled


_BACKENDS = ("default", "eager", "inductor", "aot_eager", "cudagraphs")
