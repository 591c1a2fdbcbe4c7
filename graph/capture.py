"""Capture: a program runs once, on real or meta tensors, and the ops that it calls become a graph.

:class:`Recorder` is a layer: it sees each call of an op, passes it on and notes it. What a tensor stands for,
and what is written, :mod:`.memory` knows; what is read, :mod:`.reading`; nodes are made by :mod:`.noting`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tensorplug.autograd.transforms.pytree import tree_leaves
from tensorplug.core.contexts import thread
from tensorplug.core.device.dtypes import get_default_dtype
from tensorplug.core.device.generator import Generator, fork_rng
from tensorplug.core.device.meta import empty_meta
from tensorplug.core.dispatch import layers
from tensorplug.core.dispatch.keys import default_device
from tensorplug.core.dispatch.layers import Layer
from tensorplug.core.dispatch.op import Delegated, Op
from tensorplug.core.tensor.base import TensorBase, version_of

from .graph import Graph
from .memory import Uncapturable, gradient_of, line_in, source_line
from .nodes import (
    Node,
    Value,
    call,
    kind_of_call,
    known_op,
    map_leaves,
    map_values,
    run_node,
    tensors_in,
)
from .noting import Noting
from .reading import origins

if TYPE_CHECKING:
    from .data_sizes import DataSizes

__all__ = ["CHANGED", "Recorder", "Uncapturable", "called", "capture", "settled"]

#: Of an op that has to be taken apart.
CHANGED = "a layer changes calls within an op"

#: Decides whether a call of an op becomes a node; else what its body calls does.
Level = Callable[[Op, tuple[Any, ...], dict[str, Any]], bool]


def called(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Keep each op as the program calls it: the level at which graphs are captured."""
    return True


def capture(
    function: Callable[..., Any],
    *args: Any,
    level: Level | None = None,
    shapes_from_data: bool = False,
    data_sizes: DataSizes | None = None,
    asserted: bool = False,
    kwargs: dict[str, Any] | None = None,
) -> Graph:
    """Return the graph of what a function or module does with arguments.

    Parameters
    ----------
    function : callable
        A function of tensors, or a module, whose parameters and buffers then are state of the graph under
        their names. Other tensors that it uses become constants. It runs once; again for each op within
        which ``autocast`` casts, such as ``einsum``, and which is then captured by its body.
    *args
        Tensors, real ones or on "meta", in any nesting, and plain objects, which the graph holds for.
    level : callable, optional
        ``level(op, args, kwargs)`` says whether a call becomes a node; if not, the body of the op is
        captured in its place. By default ops are kept as they are called.
    shapes_from_data : bool
        Whether ops whose result's shape depends on data (``nonzero``) are captured. The program must then
        make no use of that shape, which differs from run to run.
    data_sizes : DataSizes, optional
        Takes in the sizes that depend on data, and sets them: several graphs together tell what follows from
        such a size.
    asserted : bool
        Whether the program may read data: the graph then holds for what was read, and checks it in each run.
    kwargs : dict, optional
        Further arguments by name.

    Raises
    ------
    Uncapturable
        If the program reads data (``item()``, ``if tensor``), since what it does then is no fixed sequence of
        ops, or does something else that a graph cannot hold. Up to 64 numbers that depend on nothing but its
        buffers and constants may be read: the graph checks these in each run.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.graph import capture
    >>> print(capture(tp.nn.Linear(2, 1), tp.ones(3, 2)))
    graph(%input: float32[3, 2]):
      parameter %weight: float32[1, 2]
      parameter %bias: float32[1]
      %linear: float32[3, 1] = linear(%input, %weight, %bias)
      return %linear
    """

    def run(recorder: Recorder) -> Graph:
        recorder.data_sizes = data_sizes and data_sizes.anew()
        recorder.add_state(function)
        recorder.add_arguments(function, args, kwargs or {})
        with recorder.active():
            result = function(*args, **(kwargs or {}))
        return recorder.finished(result)

    return settled(run, level or called, shapes_from_data, asserted)


def settled(
    run: Callable[[Recorder], Graph],
    level: Level = called,
    shapes_from_data: bool = False,
    asserted: bool = False,
) -> Graph:
    """Return what `run` makes of a recorder; of a further one where that has an op to take apart."""
    apart: set[str] = set()
    while True:
        known = len(apart)
        recorder = Recorder(level, shapes_from_data, asserted=asserted)
        recorder.apart = apart
        try:
            return run(recorder)
        except Uncapturable:
            if len(apart) == known:
                raise


class Recorder(Noting, Layer):
    """The layer that makes a graph of the calls it sees.

    Attributes
    ----------
    graph : Graph
        What was captured so far.
    """

    name = "graph capture"
    order = 100
    nested = True

    def __init__(
        self,
        level: Level = called,
        shapes_from_data: bool = False,
        follow: bool = False,
        asserted: bool = False,
    ) -> None:
        super().__init__(follow, asserted)
        # Why the capture ended before the program did, and at which line.
        self.ended: Uncapturable | None = None
        self.line = 0
        self.level = level
        self.shapes_from_data = shapes_from_data
        self.data_sizes: DataSizes | None = None
        # Whether those of the latest call are among them, or depend on nothing but state and are asserted.
        self.is_sized = self.is_asserted = False
        # What tells the settings that were read.
        self.settings: list[Callable[[], Any]] = []
        # Where new tensors are made, of which dtype.
        self.defaults = get_default_dtype(), default_device()
        # Within a call that becomes a node, what is called is its own affair; unless a layer above changes
        # it: such composites, by name, are taken apart when the program is captured again.
        self.inside = False
        self.is_changed = False
        self.apart: set[str] = set()
        self.noting = False
        self.reads: list[str] = []
        # The profile function by which the program is watched, which leaves out all that an op does.
        self.profile: Callable[..., Any] | None = None
        # Of kinds of calls whether the shapes of results follow from those of arguments.
        self.known_shapes: dict[Any, bool] = {}

    # --- what goes in ---

    def add_state(self, function: Any) -> None:
        """Make the parameters and buffers of a module, or a graph's state, state of the graph."""
        if isinstance(function, Graph):
            for value in function.inputs:
                if value.kind != "input":
                    self.add(value.name, function.state[value.name], value.kind)
        elif hasattr(type(function), "named_parameters"):
            for name, tensor in function.named_parameters():
                self.add(name, tensor, "parameter")
            for name, tensor in function.named_buffers():
                self.add(name, tensor, "buffer")

    def add_arguments(self, function: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """Make the tensors among the arguments inputs; of two for one tensor the first serves."""
        for name, tensor in named_tensors(function, args, kwargs):
            self.add(name, tensor, "input")

    # --- calls ---

    def stand_in(self) -> Layer | None:
        """Return a layer that passes calls on; where calls are taken apart none, and capture ends."""
        if self.level is called and not self.apart:
            return layers.PASSING
        self.on_opaque("a checkpoint of ops that are taken apart")
        return None

    def is_new(self, tensor: Any) -> bool:
        """Return whether a tensor is one that an op of the program made, another one in each run."""
        value = self.values.get(id(tensor))
        return value is not None and value.node is not None and id(tensor) not in self.inputs

    def is_busy(self) -> bool:
        """Return whether an op runs, or the recorder itself, rather than the program."""
        return self.inside or self.noting

    def __call__(
        self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], proceed: Callable[..., Any]
    ) -> Any:
        """Pass a call on and note it."""
        entered = thread.entered
        if self.inside:
            return proceed(*args, **kwargs)
        if self.ended is not None:
            self.inside = True
            try:
                return proceed(*args, **kwargs)
            finally:
                self.inside = False
        if self._is_apart(op, args, kwargs):
            with layers.going_in(entered):
                return self._taken_apart(op, args, dict(kwargs))
        if op.name in self.apart:
            with layers.going_in(entered):
                args, kwargs = map_leaves((args, kwargs), self._number)
        if self.profile is None:
            return self._passed_on(op, args, kwargs, proceed)
        self.noting = True
        sys.setprofile(None)  # to be called for nothing would take half of the time
        try:
            return self._passed_on(op, args, kwargs, proceed)
        finally:
            self.noting = False
            sys.setprofile(self.profile)

    def _passed_on(
        self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], proceed: Callable[..., Any]
    ) -> Any:
        before = [(t, version_of(t), t._shape) for t in tensors_in((args, kwargs))]
        self.reads = []
        self.is_sized = self.is_asserted = False
        self.inside = True
        try:
            result = proceed(*args, **kwargs)
        finally:
            self.inside = False
        self.noting = True
        try:
            if self.is_changed:
                self.is_changed = False
                self.apart.add(op.name)
                self._refuse(CHANGED)
            result = self._sized(op, args, kwargs, result)
            self._noted(op, args, kwargs, result, before)
        except Uncapturable as error:
            self._end(error)
        except Exception as error:  # the program itself runs
            self._end(Uncapturable(f"{op.name}() is not captured: {error}", source_line()))
        finally:
            self.noting = False
        return result

    def _sized(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        """Return a result, with another size where that depends on data and is set."""
        sizes = self.data_sizes
        if sizes is None or kwargs.get("out") is not None:
            return result
        with layers.isolated():
            arguments = op.bind(args, kwargs)
            deciding = sizes.deciding(op, arguments)
            if not deciding:
                return result
            if all([origins(self.value_of(tensor)) is not None for tensor in deciding]):
                self.is_asserted = True
                return result
            self.is_sized = True
            return sizes.resized(op, arguments, deciding, result, self.value_of)

    def _noted(
        self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, before: list[Any]
    ) -> None:
        if not op.declared:  # a primitive's canonical call, which only its transform can make
            self._refuse(f"{op.name}() is called by a functional transform")
        if any([isinstance(value, Generator) for value in (*args, *kwargs.values())]):
            self._refuse(f"{op.name}() draws from a generator of its own")
        made = tensors_in(result)
        shaped = self.shapes_from_data or self.is_sized or self._shaped(op, args, kwargs)
        if not shaped and not self.reads:
            self.reads = ["the shape of what it returns"]
        if self.reads and not (made and (shaped or self.follow or self.is_asserted)):
            given = () if self.follow else tensors_in((args, kwargs))
            if any([self._may_read(tensor) for tensor in given]):
                self.apart.add(op.name)  # its body tells what is read, or it gets numbers
            self._refuse(f"{op.name}() depends on data: {self.reads[0]}")
        if (get_default_dtype(), default_device()) != self.defaults:
            self._refuse("the program sets the default dtype or device")
        changed = [tensor for tensor, version, _ in before if version_of(tensor) != version]
        turned = op.inplace_of is not None and op.inplace_of.view
        if not turned and any([tensor._shape != shape for tensor, _, shape in before]):
            self._refuse(f"{op.name}() resizes the tensor that it writes")
        if op.random and op.inplace_of is not None and self.recorded and args[0].requires_grad:
            self._check_gradient(op.inplace_of, args, kwargs)
        if not made and not changed:
            return  # a fact of shapes and dtypes
        with layers.isolated():
            if op.inplace_of is not None:
                if turned and self._is_shown(args[0]):
                    self._refuse(f"{op.name}() changes how a tensor shows memory that others show")
                self._compute(op.inplace_of, args, kwargs, [args[0]])
            elif kwargs.get("out") is not None:
                self._note_out(op, args, dict(kwargs))
            else:
                self._note(op, op.bind(args, kwargs), result, changed)
            if self.is_sized and self.data_sizes is not None:
                self.data_sizes.nodes.append(self.graph.nodes[-1])
            for tensor in () if shaped else made:
                self._node(known_op("graph.expect_shape"), (self.value_of(tensor), tensor._shape))

    def _check_gradient(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Refuse numbers that take the place of what requires grad, and do not depend on it."""
        with layers.isolated(), fork_rng():
            given = map_leaves((args, kwargs), lambda t: t.detach().requires_grad_(t.requires_grad))
            if not op.call(*given[0], **given[1]).requires_grad:
                self._refuse("random numbers are written into what requires grad")

    def _shaped(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether shapes of results follow from those of arguments."""
        if op.inplace_of is not None or op.inplace is not None:
            return True  # as large as what it would write, whatever it reads (masks)
        if not self.reads and (op.kind == "primitive" or op.view):
            return True  # a primitive's rule says so where they do not
        options = {name: value for name, value in kwargs.items() if name != "out"}
        try:
            kind = kind_of_call(op, (args, options))
            known = self.known_shapes.get(kind)
        except TypeError:  # an argument that cannot be hashed
            kind = known = None
        if known is not None:
            return known
        try:
            with layers.isolated(), layers.gradient_off(), fork_rng():
                arguments = op.bind(args, options)
                call(op, map_leaves(arguments, lambda t: empty_meta(t._shape, t._key.dtype)))
            known = True
        except Exception:  # on meta tensors nothing can be read
            known = False
        if kind is not None:
            self.known_shapes[kind] = known
        return known

    def _is_apart(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether not a call, but what its body calls is captured."""
        if op.kind != "composite" or op.inplace_of is not None:
            return False
        return op.name in self.apart or not self.level(op, args, kwargs)

    def _taken_apart(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the body of a composite, which a kernel may stand in for elsewhere."""
        out = kwargs.pop("out", None)
        values: Any = op.arguments(args, kwargs)
        result = values.result if type(values) is Delegated else op.decompose(values)
        if out is None:
            return result
        made = result if isinstance(result, tuple) else (result,)
        for target, tensor in zip(
            out if isinstance(out, (tuple, list)) else (out,), made, strict=True
        ):
            target.copy_(tensor)
        return out

    def on_read(self, tensor: Any, how: str) -> None:
        """Note that data is read: within an op by itself, elsewhere by the program."""
        if self.inside:
            self.reads.append(how)
        elif self.ended is None:
            try:
                self.note_read(tensor, how)
            except Uncapturable as error:
                self._end(error)

    def on_changed(self) -> None:
        """Note that what an op consists of is not what it is without the layers around it."""
        self.is_changed = self.inside

    def on_setting(self, read: Callable[[], Any]) -> None:
        """Keep what tells a setting that the program, or an op of it, looks at."""
        if self.ended is None:
            self.settings.append(read)

    def on_opaque(self, what: str) -> None:
        """Refuse what computes, and is no op."""
        if not self.inside and self.ended is None:
            self._end(Uncapturable(f"{what} is no op", source_line()))

    def on_grad(self, tensor: Any) -> None:
        """Keep what gradient state has; of arguments, and of what the program made, nothing is compared."""
        if self.inside or self.ended is not None:
            return
        value = self.values.get(id(tensor))
        known = value is not None and (value.node is not None or value.kind == "input")
        if known or tensor._node is not None or tensor._view is not None:
            self.on_opaque("reading grad")
        else:
            self.settings.append(partial(gradient_of, tensor))

    def on_requires_grad(self, tensor: Any) -> None:
        """Refuse it of all tensors but new ones where nothing is recorded, of which nobody can tell."""
        if self.recorded or layers.recording.enabled or not self.is_new(tensor):
            self.on_opaque("requires_grad_()")

    def on_point(self, tensor: Any, source: Any) -> None:
        """Have a tensor stand for another one, detached: it requires grad for a transform alone."""
        if self.is_busy() or self.ended is not None:
            return
        try:
            with layers.isolated():
                self._detached(tensor, source)
        except Uncapturable as error:
            self._end(error)

    def on_hidden(self, what: str) -> None:
        """Refuse what the body of a composite does beside its ops, where a transform takes it apart."""
        if (thread.batches or thread.tangents) and not self.is_busy() and self.ended is None:
            self._end(Uncapturable(f"{what} within a functional transform", source_line()))

    def _end(self, error: Uncapturable) -> None:
        """End the capture; the program itself goes on if it may."""
        if not self.follow:
            raise error
        self.ended = error
        self.line = line_in(self.root)
        # The rest is the program's own: nothing of it is seen.
        rest = (layers.PASSING,) if thread.recomputed else ()
        thread.stack = (*rest, *[layer for layer in thread.stack if layer is not self])

    # --- values ---

    def check(self, node: Node, values: dict[Value, Any]) -> None:
        """Run a node of a graph that checks data, and note it."""
        with layers.isolated():
            run_node(node, values)
            self._node(node.op, map_values(node.args, lambda value: self.value_of(values[value])))

    # --- the end ---

    def finished(self, result: Any) -> Graph:
        """Return the graph, given what the program returned."""
        with layers.isolated():
            self.graph.result = map_leaves(result, self._shown_again)
            self.graph.writes = [
                (self.inputs[number], self.value_of(tensor))
                for number, tensor in self.written.items()
            ]
        if self.as_one and any([tensor.requires_grad for tensor in tensors_in(result)]):
            self._refuse("gradients of several ops are recorded as those of one")
        for target, new in self.graph.writes:
            if target.shape != new.shape:
                self._refuse(f"{target} is resized")
            if target in self.read_state:
                self._refuse(f"the program reads data: {target}, which it writes")
        return self.graph


# --- names ------------------------------------------------------------------------------------------


def named_tensors(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[str, Any]]:
    """Return the tensors among a call's arguments, with names after the function's parameters."""
    target = getattr(function, "forward", function)
    try:
        bound = inspect.signature(target).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {f"arg{number}": arg for number, arg in enumerate(args)} | kwargs
    found: list[tuple[str, Any]] = []
    for name, value in bound.items():
        tensors = [leaf for leaf in tree_leaves(value) if isinstance(leaf, TensorBase)]
        if isinstance(value, TensorBase):
            found.append((name, value))
        else:
            found += [(f"{name}_{number}", tensor) for number, tensor in enumerate(tensors)]
    return found
