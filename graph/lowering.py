"""Lowering: from a graph to the kernels that its ops come to, for tensors of given shapes and dtypes.

The graph runs once while a layer notes which kernels are called: rules have checked the arguments,
decompositions were taken where no kernel serves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from tensorplug.autograd.grad_mode import no_grad
from tensorplug.core.device.meta import empty_meta
from tensorplug.core.dispatch import layers
from tensorplug.core.dispatch.execution import call_kernel, overlaps, unwrap
from tensorplug.core.dispatch.keys import DispatchKey
from tensorplug.core.dispatch.layers import Layer
from tensorplug.core.dispatch.op import Delegated, Op, first_tensor
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor.base import TensorBase, new_tensor

from .fusing import fuse
from .graph import Graph
from .joining import join_in_order
from .nodes import Node, Value, map_leaves, map_values, run_node, tensors_in
from .program import Program
from .steps import CallStep, FusedStep, KernelStep, Step, WriteStep

__all__ = ["lower"]


class Unlowerable(Exception):
    """A node does what no kernel alone does."""


class _Tracer(Layer):
    """Notes which kernels are called on which arrays."""

    name = "kernel tracer"
    order = 1000
    nested = True

    def __init__(self) -> None:
        self.program = Program()
        self.op: Op | None = None  # of the node that is lowered
        self.places: dict[int, int] = {}
        # Tensors and arrays whose ids are known stay alive.
        self.kept: list[Any] = []
        # For each place: where memory of its own begins, -1 for that of inputs; and the strides.
        self.roots: list[int] = []
        self.strides: list[Any] = []
        self.arrays: list[Any] = []

    def add(self, tensor: Any, root: int | None = None) -> int:
        """Give a tensor a place; `root` is whose memory it shows, by default its own."""
        place = len(self.program.keys)
        key = tensor._key
        self.program.keys.append(key)
        self.places[id(tensor)] = place
        self.places.setdefault(id(tensor._array), place)
        self.kept += (tensor, tensor._array)
        self.roots.append(place if root is None else root)
        self.strides.append((tensor._shape, key.runtime.strides(tensor._array)))
        self.arrays.append(tensor._array)
        return place

    def place(self, tensor: Any) -> int:
        """Return the place of a tensor; one that a rule made of numbers is a constant."""
        found = self.places.get(id(tensor))
        if found is None:
            found = self.places.get(id(tensor._array))
            if found is not None and self.program.keys[found] is not tensor._key:
                found = None
        if found is None:
            if tensor._storage is not None:
                raise Unlowerable("a view that no op made")
            found = self.add(tensor, -1)
            self.program.constants[found] = tensor._array
        return found

    def on_read(self, tensor: Any, how: str) -> None:
        """Give up: what follows depends on data."""
        raise Unlowerable(how)

    def __call__(
        self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], proceed: Callable[..., Any]
    ) -> Any:
        if op.inplace_of is not None or op.random or op.writes or "out" in kwargs:
            raise Unlowerable(op.name)
        if dispatch_state.gradient.enabled() and any(
            [tensor.requires_grad for tensor in tensors_in((args, kwargs))]
        ):
            raise Unlowerable("a body that differentiates")  # kernels record nothing
        if op.kind == "composite":
            values = None if op.view else self._served(op, args, kwargs)
            if values is None and not op.pure:
                raise Unlowerable(op.name)  # its body may do something else next time
            if values is None:
                return proceed(*args, **kwargs)
            if type(values) is Delegated:
                with self.active():  # a delegation may be a call that is still to be made
                    return values.result
            first = first_tensor(values)
            assert first is not None
            key, outputs = first._key, None
        else:
            with self.active():
                spec = op.function(*args, **kwargs)
                if type(spec) is Delegated:
                    return spec.result
            values, key, outputs = spec.values, spec.key, spec.outputs
        if any([shape is None for shape, _ in outputs or ()]) or (
            outputs is None and op is not self.op and not _shaped(op, values)
        ):
            raise Unlowerable(f"the shape of what {op.name} returns")  # which the rest may look at
        with layers.isolated():
            return self.note(op, key, values, outputs)

    def _served(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the canonical arguments of a composite that a kernel serves, else None."""
        tensor = first_tensor((*args, *kwargs.values()))
        if tensor is None or not op.overridden or op.updates:
            return None
        if not dispatch_state.native_kernel(op, tensor._key):
            return None
        with self.active():
            values = op.arguments(args, kwargs)
            if type(values) is Delegated:
                return values
        first = first_tensor(values)
        if first is None or not dispatch_state.native_kernel(op, first._key):
            return None
        return values if _of_one_key(values, first._key, op.mixed) else None

    def note(self, op: Op, key: DispatchKey, values: tuple[Any, ...], outputs: Any) -> Any:
        """Call a kernel with canonical arguments, and note that as a step; return what it makes."""
        raw, _ = unwrap(op, values, key)
        step = KernelStep(op, key, list(raw))
        for index, value in enumerate(values):
            if isinstance(value, TensorBase):
                step.slots.append((index, self.place(value)))
                step.template[index] = None
            elif isinstance(value, (list, tuple)) and any(
                [isinstance(v, TensorBase) for v in value]
            ):
                if any([v is not None and not isinstance(v, TensorBase) for v in value]):
                    raise Unlowerable("numbers beside tensors")
                places = [None if item is None else self.place(item) for item in value]
                step.slots.append((index, tuple(places)))
                step.template[index] = None
        results = call_kernel(op, key, raw)
        arrays = list(results) if isinstance(results, (tuple, list)) else [results]
        if outputs is not None and len(outputs) != len(arrays):
            raise Unlowerable("other results than declared")
        made: list[Any] = []
        for number, array in enumerate(arrays):
            if isinstance(array, (tuple, list)):
                raise Unlowerable("nested results")
            dtype = key.runtime.dtype(array) if outputs is None else outputs[number][1]
            own = key.with_dtype(dtype)
            if type(array) is not own.array_type:
                array = own.as_array(array)
            tensor = new_tensor(array, own, tuple(array.shape))
            shown = op.view or op.layout or op.returns_argument or id(array) in self.places
            root = self.roots[step.places()[0]] if shown and step.slots else None
            step.out.append(self.add(tensor, root))
            made.append(tensor)
        self.program.steps.append(step)
        if not isinstance(results, (tuple, list)):
            return made[0]
        named: Any = op.named
        return tuple(made) if named is None else named(*made)


def _repeats(shape: Any, strides: Any) -> bool:
    """Return whether elements share memory, as in what ``expand`` returns: nobody may add to them."""
    return any([n > 1 and step == 0 for n, step in zip(shape, strides, strict=True)])


def _shaped(op: Op, values: Any) -> bool:
    """Return whether the shapes of a composite's results follow from those of its arguments."""
    try:
        with layers.isolated():
            op.decompose(map_leaves(tuple(values), lambda t: empty_meta(t._shape, t._key.dtype)))
    except Exception:  # on meta tensors no data can be read
        return False
    return True


def _of_one_key(values: Any, key: DispatchKey, mixed: bool) -> bool:
    """Return whether all tensors are of one device, and, unless `mixed`, all floats of one dtype."""
    for value in values:
        if isinstance(value, TensorBase):
            other = value._key
            inexact = other.dtype.is_floating_point or other.dtype.is_complex
            if other is not key and (other.device is not key.device or (inexact and not mixed)):
                return False
        elif isinstance(value, (list, tuple)) and not _of_one_key(value, key, mixed):
            return False
    return True


def lower(
    graph: Graph, inputs: list[Any], mode: str, frozen: frozenset[str] = frozenset()
) -> tuple[Program, list[Any]]:
    """Return the program of a graph for tensors like these, and what the graph makes of these.

    Parameters
    ----------
    graph : Graph
        Its values to be returned are :meth:`Graph.outputs`.
    inputs : list of Tensor
        One for each of the graph's inputs, state too.
    mode : str
        What `tp.compile` was told, for the fusers.
    frozen : frozenset of str
        The names of state whose values may be in the program, which then holds until that is written.
    """
    tracer = _Tracer()
    program = tracer.program
    tensors: dict[Value, Any] = {}
    with layers.isolated(), no_grad():
        for value, tensor in zip(graph.inputs, inputs, strict=True):
            plain = tensor.detach()
            tracer.add(plain, -1)
            tensors[value] = plain
        for node in graph.nodes:
            _lower_node(tracer, node, tensors)
        program.outputs = [tracer.place(tensors[value]) for value in graph.outputs()]
        written = {target for target, _ in graph.writes}
        state = {
            place
            for place, value in enumerate(graph.inputs)
            if value.name in frozen and value not in written
        }
        join_in_order(tracer)
        _fold(tracer, state)
        constants = {*state, *program.constants}
        program.state |= fuse(program, tracer.arrays, tracer.strides, constants, mode) & state
    _settle(tracer)
    return program, [tensors[value] for value in graph.outputs()]


def _lower_node(tracer: _Tracer, node: Node, tensors: dict[Value, Any]) -> None:
    program = tracer.program
    steps, count, known = len(program.steps), len(program.keys), len(tracer.places)
    if not node.op.random:
        try:
            tracer.op = node.op
            if node.updates:
                _lower_write(tracer, node, tensors)
            else:
                with tracer.active():
                    run_node(node, tensors)
            for value in node.outputs:
                tracer.place(tensors[value])
            if (
                not any([place >= count for place in program.constants])
                or len(program.steps) > steps
            ):
                return
        except Unlowerable:
            pass
        del (
            program.steps[steps:],
            program.keys[count:],
            tracer.roots[count:],
            tracer.strides[count:],
            tracer.arrays[count:],
        )
        program.constants = {p: array for p, array in program.constants.items() if p < count}
        for added in list(tracer.places)[known:]:
            del tracer.places[added]
    given = {value: tracer.place(tensors[value]) for value in dict.fromkeys(node.values())}
    run_node(node, tensors)
    # What an op returns may be an argument, or show one: neither is anybody's to write into.
    shown = {tracer.roots[place] for place in given.values()}
    tracer.roots = [-1 if root in shown else root for root in tracer.roots]
    out = [tracer.add(tensors[value], -1) for value in node.outputs]
    program.steps.append(CallStep(node, given, out))


def _lower_write(tracer: _Tracer, node: Node, tensors: dict[Value, Any]) -> None:
    """Lower a call that does nothing but write tensors to its kernel, on copies of these."""
    op = node.op
    given = list(map_values(node.args, tensors.__getitem__))
    first = first_tensor(given)
    nested = any([isinstance(value, (list, tuple)) for value in given])
    if op.writes != node.updates or not op.overridden or nested or first is None:
        raise Unlowerable(op.name)
    key = first._key
    if not dispatch_state.native_kernel(op, key) or not _of_one_key(given, key, op.mixed):
        raise Unlowerable(op.name)
    for index in op.writes:
        with tracer.active():
            given[index] = given[index].clone()
        if overlaps(given[index]):
            raise Unlowerable(op.name)
    values = op.arguments(tuple(given), {})
    if type(values) is Delegated or any([a is not b for a, b in zip(values, given, strict=True)]):
        raise Unlowerable(op.name)
    raw, _ = unwrap(op, values, key)
    step = WriteStep(node, op, key, list(raw))
    for index, value in enumerate(given):
        if isinstance(value, TensorBase):
            step.slots.append((index, tracer.place(value)))
            step.template[index] = None
    with key.runtime.quiet():
        key.kernels[op.index](*raw)
    for index, output in zip(op.writes, node.outputs, strict=True):
        place = tracer.place(given[index])
        step.written.append(place)
        tensors[output] = given[index].detach()
        step.out.append(tracer.add(tensors[output], tracer.roots[place]))
    tracer.program.steps.append(step)


#: Up to how many elements what no argument goes into is kept rather than made in each run.
_KEPT = 1 << 24


def _fold(tracer: _Tracer, state: Iterable[int]) -> None:
    """Keep what the kernels made of state alone, or of nothing, in the place of calling them."""
    program = tracer.program
    # What is returned, or may be, is memory of the caller's.
    outputs = set(program.outputs)
    for step in program.steps:
        if isinstance(step, CallStep):
            outputs.update(step.places())
    outputs |= {tracer.roots[place] for place in outputs}
    behind: dict[int, set[int]] = {place: {place} for place in state}
    kept: list[Step] = []
    for step in program.steps:
        places = step.places()
        if (
            not isinstance(step, KernelStep)
            or not all([place in behind or place in program.constants for place in places])
            or not outputs.isdisjoint(step.out)
            or sum([math.prod(tracer.arrays[place].shape) for place in step.out]) > _KEPT
        ):
            kept.append(step)
            continue
        source = set().union(*[behind.get(place, ()) for place in places])
        for place in step.out:
            program.constants[place] = tracer.arrays[place]
            behind[place] = source
            tracer.roots[place] = -1
        program.state |= source
    program.steps = kept


def _settle(tracer: _Tracer) -> None:
    """Find out when arrays are no longer needed, and which results can be written into arguments."""
    program = tracer.program
    for step in program.steps:
        if isinstance(step, FusedStep):
            # What showed memory that is no longer made is nobody's to write into.
            own = {place for place in step.out if tracer.roots[place] == place}
            gone = {place for part in step.steps for place in part.out} - own
            tracer.roots = [-1 if root in gone else root for root in tracer.roots]
    last: dict[int, int] = {}
    for number, step in enumerate(program.steps):
        for place in (*step.out, *step.places()):
            last[place] = number
    kept = set(program.outputs)
    of_root: dict[int, list[int]] = {}
    for place, root in enumerate(tracer.roots):
        of_root.setdefault(root, []).append(place)
    free: list[list[int]] = [[] for _ in program.steps]
    first_step = len(program.keys)
    for place, number in last.items():
        if place not in kept:
            free[number].append(place)
    for number, step in enumerate(program.steps):
        if not isinstance(step, KernelStep) or not step.op.pointwise or len(step.out) != 1:
            continue
        (out,) = step.out
        if tracer.roots[out] != out:
            continue
        for place in step.places():
            family = of_root[tracer.roots[place]] if tracer.roots[place] == place else []
            alone = family and all(
                [p not in kept and last.get(p, first_step) <= number for p in family]
            )
            if (
                alone
                and program.keys[place] is program.keys[out]
                and tracer.strides[place] == tracer.strides[out]
                and not any([p != place and tracer.roots[p] == place for p in step.places()])
            ):
                step.into = place
                # The array lives on as the result.
                for other in of_root.get(out, []):
                    tracer.roots[other] = out
                break
    program.free = [tuple(places) for places in free]
    for step in program.steps:
        if isinstance(step, KernelStep):
            step.settle()
    roots = [tracer.roots[place] for place in program.outputs]
    program.fresh = [
        root >= 0 and roots.count(root) == 1 and not _repeats(*tracer.strides[place])
        for place, root in zip(program.outputs, roots, strict=True)
    ]
