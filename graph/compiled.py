"""Compiled functions: they run as captured graphs, where those hold.

The first call with arguments of some shapes and dtypes is the program's own, while a
:class:`~.capture.Recorder` notes what it does and a :class:`~.guards.Watch` what that depends on. Later calls
for which all of that is the same run the graph: by kernels alone where nothing is recorded for
differentiation, op by op where it is. Whatever a graph does not hold stays eager.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import nullcontext
from inspect import CO_GENERATOR
from types import MethodType
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.contexts import thread
from tensorplug.core.dispatch.layers import isolated
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor.base import TensorBase
from tensorplug.nn import Buffer, Module, Parameter

from .callees import Called
from .capture import Recorder
from .dividing import divided, written
from .entries import Entry
from .explanations import Break, Explanation
from .given import Given, Place
from .graph import Graph
from .guards import Watch
from .keys import (
    PLAIN,
    Unknown,
    around,
    call_key,
    classes_in,
    described,
    modes,
    objects_in,
    records,
)
from .memory import KEPT, Uncapturable, is_mirrored, is_seen_in, memory_of, source_line
from .nodes import Value, values_in
from .ops import Unexpected
from .parts import Parts, children, outermost
from .recorded_level import RecordedLevel, draws_by_seed
from .results import Part, Results, Unreturnable
from .slots import MOST, Attribute
from .stance import STANCE
from .symbolic import Dynamic

__all__ = ["Compiled"]

#: How many graphs one kind of arguments may have, by what the program reads and depends on.
LIMIT = 8
#: How many calls of a kind may change Python state before those calls stay eager.
_SETTLING = 3
#: How many captures a function may have while fewer calls run as graphs.
_MOST_CAPTURES = 64
#: How many kinds of calls that stay eager are known.
_MOST_KEYS = 1000
_CHANGES = "the program changes "
#: After how many captures that change what they are given, or get other objects, these count by contents.
_BY_IDENTITY = 2


class Compiled:
    """A function that runs as captured graphs; what :func:`compile` returns of a function."""

    def __init__(
        self,
        function: Callable[..., Any],
        fullgraph: bool,
        dynamic: bool | None,
        enabled: bool,
        mode: str = "default",
        of_variables: bool | None = None,
    ) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._fullgraph = fullgraph
        self._dynamic = Dynamic(dynamic)
        self._enabled = enabled
        self._mode = mode
        self._entries: dict[Any, list[Entry]] = {}
        self._eager: dict[Any, Break] = {}
        # How often calls of a kind changed Python state: what is set up in the first ones stays then.
        self._unsettled: dict[Any, int] = {}
        self._breaks: list[Break] = []
        self._captures = self._calls = self._eager_calls = 0
        # Whether the program computes gradients of ops that keep more than their arguments and results.
        self._differentiates = False
        # The composites, by name, that layers around them change within.
        self._apart: set[str] = set()
        # Whether what is given is known by contents; None if it must not be. How many captures asked for
        # that, which object of a class came last, and which attributes count, all if it is None.
        self._by_contents: bool | None = False
        self._asking = 0
        self._last: dict[type, int] = {}
        self._names: set[str] | None = set()
        # Attributes of state that the program sets to other tensors in each call.
        self._attributes: list[Attribute] = []
        # The modules that the program reaches, and those compiled each by itself.
        self._reached: list[Module] = []
        self._parts: Parts | None = None
        # What runs where nothing is captured whole: the function, or what it was divided into.
        self._divided: Callable[..., Any] | None = None
        self._line = self._read_line = 0
        # What the last call watched, if it changed state, and at which lines is to be found.
        self._changing: Watch | None = None
        # Of a part of a divided function: whether it returns variables, which others may hold, too.
        self._of_variables = of_variables

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if not self._enabled or STANCE.eager or _is_seen():
            self._eager_calls += 1
            return self._function(*args, **kwargs)
        tensors: list[Any] = []
        given = self._given(args, kwargs) if self._by_contents else None
        try:
            if given is not None:
                key, tensors = given.key, given.tensors
            else:
                key = call_key(args, kwargs, tensors)
        except Unknown as unknown:
            self._note(Break(str(unknown), source_line()))
            self._eager_calls += 1
            return self._in_parts(args, kwargs)
        entries = self._entries.get(key)
        if entries is None:
            if key in self._eager:
                self._eager_calls += 1
                return self._in_parts(args, kwargs)
            entries = []
        recorded = records()
        objects = None if given is None else given.objects
        for entry in entries:
            if entry.holds(tensors) and (objects is None or entry.is_apart(objects)):
                try:
                    result = self._run(entry, tensors, recorded, objects)
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
        if self._captures >= _MOST_CAPTURES and self._calls < self._captures:
            if len(self._eager) >= _MOST_KEYS:  # there may be ever others
                self._eager.clear()
            self._stay_eager(key, Break(f"{_MOST_CAPTURES} captures served fewer calls", ""))
            return self._function(*args, **kwargs)
        if len(entries) >= LIMIT:
            self._stay_eager(key, Break(f"{LIMIT} graphs hold for no such call", ""))
            self._line = self._line or self._read_line
            return self._in_parts(args, kwargs)
        if STANCE.missing != "capture":
            return self._without_capture(args, kwargs)
        return self._capture(key, args, kwargs, tensors, given)

    def _run(
        self, entry: Entry, tensors: list[Any], recorded: bool, objects: list[Any] | None
    ) -> Any:
        """Run an entry's graph, which holds what the layers around the call do."""
        if dispatch_state.layers_active and thread.stack:
            with isolated():
                return entry.run(tensors, recorded, objects)
        return entry.run(tensors, recorded, objects)

    def _without_capture(self, args: Any, kwargs: Any) -> Any:
        if STANCE.missing == "fail":
            raise RuntimeError(
                f"no graph of {getattr(self._function, '__name__', self._function)} holds for this call, "
                'and the stance is "fail_on_recompile"'
            )
        self._eager_calls += 1
        return self._function(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _note(self, found: Break) -> None:
        if self._fullgraph:
            raise Uncapturable(found.reason, found.source)
        others = [known for known in self._breaks if known != (found.reason, "")]
        if found.source or all([known.reason != found.reason for known in others]):
            self._breaks = others if found in others else [*others, found]

    def _stay_eager(self, key: Any, found: Break) -> None:
        self._note(found)
        self._eager[key] = found
        self._entries.pop(key, None)
        self._eager_calls += 1

    def _in_parts(self, args: Any, kwargs: dict[str, Any]) -> Any:
        """Run the function as it is, but what is beside the breaking line, and its modules, compiled."""
        if self._parts is None:
            owner = getattr(self._function, "__self__", self._function)
            modules = children(owner) if isinstance(owner, Module) else outermost(self._reached)
            self._parts = Parts(modules, self._part)
        if self._line and self._divided is None:
            self._divide(self._parts)
        with self._parts.running():
            return (self._divided or self._function)(*args, **kwargs)

    def _part(self, function: Callable[..., Any], of_variables: bool | None = None) -> Compiled:
        return Compiled(
            function, False, self._dynamic.wanted, True, self._mode, of_variables=of_variables
        )

    def _divide(self, parts: Parts) -> None:
        """Divide the function at the line that breaks it."""
        self._divided = self._function
        plain, owner = written(self._function)
        if plain is None:
            return
        made = parts.compiled
        changing, self._changing = self._changing, None

        def make(function: Any, ends: bool) -> Compiled:
            part = self._part(function, bool(self._of_variables) or not ends)
            part._changing = changing
            made.append(part)
            return part

        called = Called(lambda function: make(function, ends=False))
        found = divided(plain, self._line, make, owner, called.of)
        if found is None:
            return
        run = found if owner is None else MethodType(found, owner)
        if isinstance(self._function, Module):
            parts.place(self._function, run)
        else:
            self._divided = run

    def _capture(
        self, key: Any, args: Any, kwargs: dict[str, Any], tensors: list[Any], given: Given | None
    ) -> Any:
        """Run the function and note what it does."""
        if sys.getprofile() is not None:  # someone measures; nothing could be watched
            return self._function(*args, **kwargs)
        function = self._function
        kind = RecordedLevel if self._differentiates else Recorder
        recorder = kind(follow=not self._fullgraph)
        recorder.apart, apart = self._apart, len(self._apart)
        recorder.add_state(getattr(function, "__self__", function))
        for number, tensor in enumerate(tensors):
            recorder.add(f"input{number or ''}", tensor, "input")
        watch = Watch()
        for attribute in self._attributes if given is not None else ():
            watch.open(attribute)
        plain, _ = written(function)
        recorder.root = watch.root = None if plain is None else plain.__code__
        recorder.owners = watch.owners
        watch.add(function, "self")
        handed = Watch()  # that a later call's are alike the key says
        if given is None:
            others = [(value, "an argument") for value in objects_in([*args, *kwargs.values()])]
        else:
            others = given.others
            for value in given.objects:
                watch.leave(value)
                handed.leave(value)
            for value in given.instances():
                watch.add(type(value), type(value).__name__)
            for tensor in tensors:
                handed.add(tensor, "an argument")
        handed.add((args, kwargs), "an argument")
        for named in classes_in([*args, *kwargs.values()]):
            watch.add(named, named.__name__)
        for value, label in others:
            recorder.add_state(value)
            watch.add(value, label)
        objects = [value for value, _ in others]
        looked = given
        if self._by_contents is False:  # not yet
            looked = self._given(args, kwargs)
        contents = [] if looked is None else looked.contents()
        before = modes()
        earlier = None if self._line else self._changing
        by_lines = nullcontext() if earlier is None else earlier.by_lines(watch)
        with watch.watching(recorder), recorder.active(), by_lines:
            result = function(*args, **kwargs)
        self._captures += 1
        if len(self._apart) > apart:
            return result  # the next call takes an op apart
        for read in recorder.settings:
            watch.setting(read)
        changes = {} if looked is None else looked.changes(contents)
        if given is None and looked is not None and self._asks_for_contents(looked, changes):
            return result
        if given is not None and not self._are_known(given, watch):
            return result
        handed.settle()
        watch.effects += handed.effects
        if modes() != before:
            watch.effects.append("changes the default dtype or device, or what is recorded")
        state = watch.tensors.values()
        if any([is_seen_in(tensor, state) for tensor in tensors]):
            # Another call of the kind need not.
            self._note(Break("an argument shows memory of state", ""))
            return result
        if self._changing is not None:
            watch.line = watch.line or self._line
        entry = self._entry(recorder, watch, tensors, objects, handed.ids(), result, given, changes)
        if isinstance(entry, Break) and entry.reason == KEPT and not self._differentiates:
            self._differentiates = True  # the next call notes what autograd records
            return result
        if isinstance(entry, Break) and entry.reason.startswith(_CHANGES):
            self._unsettled[key] = self._unsettled.get(key, 0) + 1
            if self._unsettled[key] > 1 and self._counts_by_contents(watch.attributes):
                return result
            if self._unsettled[key] < _SETTLING and self._of_variables is None:
                if not self._fullgraph:  # which is refused only once the state does not settle
                    self._note(Break(entry.reason, ""))
                self._changing = watch
                self._line = self._line or watch.line
                return result
        if isinstance(entry, Break):
            self._stay_eager(key, entry)
            self._reached = watch.modules()
            self._line = self._line or recorder.line or watch.line
            if plain is not None and plain.__code__.co_flags & CO_GENERATOR:
                self._line = plain.__code__.co_firstlineno  # it breaks where it yields
            self._changing = watch if self._line and self._divided is None else None
        elif self._of_variables is not None and _is_little(entry.graph):
            self._enabled = False
            self._changing = None
        else:
            if self._of_variables is not None or key in self._unsettled:
                self._changing = None  # nothing is to be found any more, and it keeps state alive
            self._entries.setdefault(key, []).append(entry)
            self._dynamic.add(entry.graph)
            self._read_line = recorder.read_line
        return result

    def _given(self, args: Any, kwargs: dict[str, Any]) -> Given | None:
        """Return what is given by contents; None where these cannot be told."""
        try:
            return Given(args, kwargs, self._names if self._by_contents else None, self._attributes)
        except Unknown:
            return None

    def _asks_for_contents(self, given: Given, changes: dict[int, Any]) -> bool:
        """Return whether arguments are to be known by contents from now on."""
        asks = bool(changes)
        for value in given.instances():
            asks |= self._last.setdefault(type(value), id(value)) != id(value)
            self._last[type(value)] = id(value)
        self._asking += asks
        self._by_contents = self._asking >= _BY_IDENTITY
        return self._by_contents

    def _counts_by_contents(self, attributes: list[Attribute]) -> bool:
        """Have attributes count by contents that each call sets; return whether there is one more."""
        new = [each for each in attributes if not any(map(each.is_same, self._attributes))]
        if not new or self._by_contents is None or len(self._attributes) + len(new) > MOST:
            return False
        self._attributes += new
        self._by_contents = True
        self._entries.clear()
        self._changing, self._line = None, 0
        return True

    def _are_known(self, given: Given, watch: Watch) -> bool:
        """Return whether contents say all of what is given; learn which attributes count."""
        if watch.met:  # what is given is state as well, by its identity
            self._by_contents = None
            self._entries.clear()
            return False
        names = watch.names_read()
        missed = given.left_out if watch.reads_all else given.left_out & names
        if self._names is not None:
            self._names = None if watch.reads_all else self._names | names
        return not missed

    def _entry(
        self,
        recorder: Recorder,
        watch: Watch,
        tensors: list[Any],
        objects: list[Any],
        containers: set[int],
        result: Any,
        given: Given | None,
        changes: dict[int, Any],
    ) -> Entry | Break:
        if recorder.ended is not None:
            return Break(recorder.ended.reason, recorder.ended.source)
        watch.settle()
        of_tensors = recorder.changes()
        if of_tensors:
            watch.effects.append(of_tensors)
        if watch.effects:
            return Break(f"the program {watch.effects[0]}", watch.source())
        state = watch.reached()
        try:
            places = {} if given is None else given.numbers()
            whole = result if given is None else (result, [*changes.values()])
            found = Results(whole, state, containers, not self._of_variables, places)
        except Unreturnable as error:
            return Break(f"the program {error}", "")
        leaves, tree = found.leaves, found.tree
        if self._of_variables and _holds_container(result):
            return Break("a variable of a divided function is a container", "")
        for leaf in leaves:
            if type(leaf) in (Place, Part):
                continue
            if id(leaf) in watch.caches.keys:
                return Break("the program returns a tensor by which a cache keeps what it made", "")
            if type(leaf) not in (Tensor, Parameter, Buffer):
                # An object among the arguments is the same in all calls of the kind.
                is_given = any([leaf is value for value in objects])
                if isinstance(leaf, TensorBase) or not (is_given or isinstance(leaf, PLAIN)):
                    return Break(f"the program returns a {type(leaf).__name__}", "")
            elif vars(leaf) and id(leaf) not in recorder.inputs:
                return Break("the program sets attributes of a result", "")
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
        constants = [
            number
            for number, leaf in enumerate(leaves)
            if recorder.is_constant(leaf)
            and id(leaf) not in state  # which each call returns itself
        ]
        for number in constants:
            if not _is_made_of_numbers(leaves[number], watch, [leaves[n] for n in constants]):
                return Break("the program returns a tensor that no op made", "")
            value = graph.result[number]
            # The caller of this call gets the memory of the tensor itself.
            graph.state[value.name] = leaves[number].clone()
            graph.result[number] = graph.call("clone", value)
        tensors_returned = [leaf for leaf in leaves if isinstance(leaf, TensorBase)]
        if any([is_mirrored(leaf, *tensors_returned) for leaf in tensors_returned]):
            return Break("the program returns tensors that show each other's conjugates", "")
        graph.remove_unused()
        if any([new.node is not None and new.node.part for _, new in graph.writes]):
            return Break("a checkpoint, which runs twice, writes state", "")
        if draws_by_seed(graph):
            return Break("random numbers are drawn within an op", "")
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
            if id(leaf) in recorder.inputs and position not in constants
        }
        memory = memory_of(values_in(graph.result), views)
        read = {id(tensor) for tensor in graph.state.values()}
        known = read | set(watch.tensors)
        watch.narrow(read | watch.called)
        fixed = {n: tensor for n, tensor in enumerate(tensors) if id(tensor) in known}
        changed = None if given is None else [*changes]
        return Entry(
            graph, watch, tree, found.parts, same, shared, memory, fixed, self._mode, changed
        )

    def explain(self) -> Explanation:
        """Return what was captured so far, and what was not, and why."""
        guards = [
            f"{description} ({len(entries)} graphs){_gradients(entries)}"
            for description, entries in (
                (described(key), entries) for key, entries in self._entries.items()
            )
        ]
        found = Explanation(
            self._dynamic.graphs(), guards, list(self._breaks),
            self._captures, self._calls, self._eager_calls,
        )  # fmt: skip
        for compiled in () if self._parts is None else self._parts.compiled:
            other = compiled.explain()
            found = Explanation(
                found.graphs + other.graphs, found.guards + other.guards, found.breaks + other.breaks,
                found.captures + other.captures, found.calls + other.calls, found.eager,
            )  # fmt: skip
        return found


def _is_made_of_numbers(tensor: Any, watch: Watch, others: list[Any]) -> bool:
    """Return whether a result that no op made is a new tensor of the same numbers at each call."""
    return (
        type(tensor) is Tensor
        and not tensor.requires_grad
        and tensor._storage is None
        and id(tensor) not in watch.tensors
        and sum([tensor is other for other in others]) == 1
    )


def _is_seen() -> bool:
    """Return whether something of this thread is to see the ops of a call, or what they save."""
    if dispatch_state.layers_active and (thread.modes or thread.preferred or None in around()):
        return True
    # Hooks, such as a checkpoint's, are for what the ops of the program save.
    return dispatch_state.gradient.watched and bool(thread.saved_hooks)


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


def _holds_container(result: Any) -> bool:
    """Return whether tuples hold a list or dictionary; of one with two names a graph would make two."""
    if isinstance(result, tuple):
        return any([_holds_container(item) for item in result])
    return isinstance(result, (list, dict))


def _is_little(graph: Graph) -> bool:
    """Return whether a graph has nothing to gain by: one op at most."""
    return sum([bool(node.outputs) for node in graph.nodes]) < 2


def _draws_before_reading(graph: Graph) -> bool:
    """Return whether a run that turns out not to hold would have drawn random numbers."""
    drawn = False
    for node in graph.nodes:
        drawn = drawn or node.op.random
        if drawn and not node.outputs:
            return True
    return False
