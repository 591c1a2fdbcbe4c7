"""Programs: formulas of derivatives and bodies of composites, traced to kernel calls on raw arrays.

Where nothing is recorded, in a plain backward say, ops need no tensors between them. A function of ops runs
once on meta tensors while a layer traces the ops it calls; the trace, a :class:`Program`, is replayed with
raw arrays through the kernel tables from then on. What cannot be traced (it looks at data, writes in place,
draws random numbers) runs as it is, on tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..device.device import META, Device
from ..device.dtypes import FLOATING, DType
from ..device.meta import results
from ..tensor.base import TensorBase, new_tensor
from . import execution, layers, op_registry
from .keys import DispatchKey, dispatch_key, made_key
from .layers import Layer
from .op import Delegated, Op
from .state import dispatch_state

NUMBERS = (bool, int, float, complex)
_MOST_STEPS = (
    300  # of a body, such as one that goes through a batch: to trace a step takes a millisecond
)


class Untraceable(Exception):
    """A function does what cannot be traced."""


class Program:
    """A sequence of kernel calls.

    Attributes
    ----------
    steps : list of (key, op index, operands, dead)
        The operands are indices into the list of values, or nested lists of indices; `dead` are the
        indices of what no later step needs.
    constants : list
        Plain values that follow the inputs in the list of values.
    result : int
        The index of the result, or a list of indices.
    fresh : bool or list of bool
        Whether the result's memory belongs to nobody else; of a list of results, each one's.
    reads_layout : bool
        Of a body: whether it holds for contiguous arrays alone.
    shape_free : bool
        Whether every step is pointwise, so that the program holds for all shapes.
    """

    __slots__ = (
        "constants", "fresh", "identity", "index", "kernels", "reads_layout", "result", "shape_free", "steps",
        "swap",
    )  # fmt: skip

    def __init__(self) -> None:
        self.steps: list[tuple[DispatchKey, int, Any, Any]] = []
        self.constants: list[Any] = []
        self.result: Any = None
        self.fresh: bool | list[bool] = False
        self.shape_free = True
        self.reads_layout = False
        # The two shapes of most programs have a shorter way: returning the first input, and one call
        # on the two inputs (in that order, or swapped).
        self.identity = False
        self.kernels: list[Any] | None = None
        self.index = 0
        self.swap = False

    def run(self, inputs: list[Any]) -> Any:
        """Return the result for raw arrays."""
        if self.identity:
            return inputs[0]
        if self.kernels is not None:
            a, b = inputs
            kernel = self.kernels[self.index]
            return kernel(b, a) if self.swap else kernel(a, b)
        values = [*inputs, *self.constants]
        for step in self.steps:
            key, index, operands, dead = step
            kernel = key.kernels[index]
            count = len(operands)
            if 0 < count < 4:  # spelt out, as a call with a list of arguments costs more
                a = operands[0]
                first = values[a] if type(a) is int else _gather(values, a)
                if count == 1:
                    made = kernel(first)
                else:
                    b = operands[1]
                    second = values[b] if type(b) is int else _gather(values, b)
                    if count == 2:
                        made = kernel(first, second)
                    else:
                        c = operands[2]
                        made = kernel(
                            first, second, values[c] if type(c) is int else _gather(values, c)
                        )
            else:
                made = kernel(
                    *[values[a] if type(a) is int else _gather(values, a) for a in operands]
                )
            values.append(made)
            for place in dead:
                values[place] = None
        result = self.result
        return values[result] if type(result) is int else _gather(values, result)


def _gather(values: list[Any], indices: Any) -> Any:
    if type(indices) is int:
        return values[indices]
    if type(indices) is OutputPlace:
        return values[indices.index][indices.number]
    return [_gather(values, index) for index in indices]


class OutputPlace:
    """The index of one output of a step that has several."""

    __slots__ = ("index", "number")

    def __init__(self, index: int, number: int) -> None:
        self.index = index
        self.number = number

    def __repr__(self) -> str:
        return f"{self.index}.{self.number}"


class Tracer(Layer):
    """Traces the ops that a function calls on meta tensors."""

    name = "tracer of programs"
    order = 1000
    nested = True

    def __init__(self, device: Device, body: bool = False) -> None:
        self.device = device
        self.body = body
        self.program = Program()
        self.told: list[Any] = []  # of each constant: what tells it from others
        self.tables: set[int] = set()  # the places of arrays among the constants
        # Of values whose memory may be another's: whose.
        self.shared: dict[int, frozenset[Any]] = {}
        self.places: dict[int, Any] = {}
        # The same by array, for detached tensors and those of autograd; None for what has two places.
        self.arrays: dict[int, Any] = {}
        self.recording = False  # whether gradients are traced, too
        self.kept: list[Any] = []
        self.count = 0
        # The indices of values whose memory is new, and nobody else's.
        self.fresh: set[int] = set()

    def __call__(
        self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], proceed: Callable[..., Any]
    ) -> Any:
        """Note a call, of a composite those of its body."""
        if "out" in kwargs or op.inplace_of is not None:
            raise Untraceable(op.name)
        if op.reads_layout and not op.layout:
            # A copy to another device is no kernel; as_strided counts from the start of the memory, and where
            # in it an array begins only the array tells. A copy in given strides is one.
            if op.view or not self.body:
                raise Untraceable(op.name)
            self.program.reads_layout = True
        if op.random or op.writes or op.updates or "seed" in op.names:
            raise Untraceable(op.name)
        if op.kind == "composite" and not self._served(op, args, kwargs):
            return proceed(*args, **kwargs)
        if op.kind == "composite":
            with self.active():
                return self._note_composite(op, args, kwargs)
        with self.active():
            spec = op.function(*args, **kwargs)
            if type(spec) is Delegated:  # maybe a call that is still to be made
                return spec.result
        if any(shape is None for shape, _ in spec.outputs):
            raise Untraceable(op.name)
        if spec.key.device is not META:  # a tensor of its own on another device
            raise Untraceable(op.name)
        key = dispatch_key(self.device, spec.key.dtype)
        raw, _ = execution.unwrap(op, spec.values, spec.key)
        arrays = results(op, spec, raw)
        outputs = [
            new_tensor(array, dispatch_key(META, dtype), array.shape)
            for array, (_, dtype) in zip(
                (arrays,) if len(spec.outputs) == 1 else arrays, spec.outputs, strict=True
            )
        ]
        self._note(op, key, spec.values, outputs)
        self._record(op, spec.values, outputs)
        if len(outputs) == 1:
            return outputs[0]
        return tuple(outputs) if op.named is None else op.named(*outputs)

    def _served(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if op.reads_layout:  # meta tensors do not share strides with the arrays to come
            return True
        values = (*args, *kwargs.values())
        first = op_registry.first_tensor(values)
        if first is None:  # what is made of numbers, of a dtype and on a device that are told
            made = made_key(values) if op.overridden else None
            return made is not None and dispatch_state.native_kernel(
                op, dispatch_key(self.device, made.dtype)
            )
        return (
            op.overridden
            and dispatch_state.native_kernel(op, dispatch_key(self.device, first._key.dtype))
            and (op.mixed or _of_one_dtype(values, first._key.dtype))
        )

    def _note_composite(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        values = op.arguments(args, kwargs)
        if type(values) is Delegated:
            return values.result
        with layers.isolated(), layers.gradient_off():
            output = op.decompose(values)
        first = op_registry.first_tensor(values)
        told = made_key(values) if first is None else first._key
        if first is None:
            values = tuple([self.device if value is META else value for value in values])
        outputs = list(output) if isinstance(output, tuple) else [output]
        fresh = [new_tensor(t._array, t._key, t._shape) for t in outputs]
        self._note(op, dispatch_key(self.device, told.dtype), values, fresh)
        self._record(op, values, fresh)
        if not isinstance(output, tuple):
            return fresh[0]
        return tuple(fresh) if op.named is None else op.named(*fresh)

    def _record(self, op: Op, values: tuple[Any, ...], outputs: list[Any]) -> None:
        if self.recording and layers.recording.enabled:
            dispatch_state.gradient.record(op, values, tuple(outputs))

    def know(self, tensor: Any, place: Any) -> None:
        """Note what a tensor stands for."""
        self.kept.append(tensor)
        self.places[id(tensor)] = place
        array = id(tensor._array)
        self.arrays[array] = None if array in self.arrays else place

    def _note(self, op: Op, key: DispatchKey, values: tuple[Any, ...], outputs: list[Any]) -> None:
        if self.body and len(self.program.steps) == _MOST_STEPS:
            raise Untraceable(f"{_MOST_STEPS} steps")
        numbers = op.pointwise
        operands = tuple([self._place(value, key, numbers) for value in values])
        program = self.program
        index = self.count
        self.count += 1
        program.steps.append((key, op.index, operands, ()))
        for number, output in enumerate(outputs):
            self.know(output, index if len(outputs) == 1 else OutputPlace(index, number))
        if not (op.pointwise or op.elementwise):
            program.shape_free = False
        if op.layout:
            fresh = operands[0] in self.fresh
        else:
            # What a kernel returns is its own, unless the op shows its argument.
            fresh = not (op.view or op.returns_argument)
        if fresh:
            self.fresh.add(index)
        if op.view or op.returns_argument or op.layout:
            self.shared[index] = frozenset().union(*[self.memory(one) for one in operands])

    def place_of(self, tensor: Any) -> Any:
        """Return the place of a tensor that was seen."""
        index = self.places.get(id(tensor))
        if index is None:
            index = self.arrays.get(id(tensor._array))
        if index is None:
            raise Untraceable("a tensor from outside")
        return index

    def own(self, item: Any, taken: frozenset[Any]) -> Any:
        """Return the place of a result, a tensor whose memory is new and none of what is taken."""
        place = self.places.get(id(item)) if isinstance(item, TensorBase) else None
        memory = taken if place is None else self.memory(place)
        if memory & taken or any(isinstance(one, int) and one < 0 for one in memory):
            raise Untraceable("returns what is not its own")
        return place

    def memory(self, place: Any) -> frozenset[Any]:
        """Return what tells whose memory a value may have: the places of values that were new."""
        if isinstance(place, list):
            return frozenset().union(*[self.memory(one) for one in place])
        if isinstance(place, OutputPlace):
            return self.shared.get(place.index, frozenset(((place.index, place.number),)))
        if place < 0 and place not in self.tables:
            return frozenset()
        return self.shared.get(place, frozenset((place,)))

    def on_hidden(self, what: str) -> None:
        """Refuse what tensors without data do not show."""
        raise Untraceable(what)

    on_opaque = on_hidden

    def on_layout(self) -> None:
        """Note that the body asked how an array lies in memory."""
        self.program.reads_layout = True

    def on_data(self, tensor: Any, array: Any, place: Callable[[Any], Any]) -> None:
        """Take a tensor that a body makes, of a table of indices say, as a constant."""
        if self.body and tensor._key.device is META:
            told = (tensor._key, array.shape, array.tobytes())
            index = self.constant(place(self.device)._array, told)
            self.know(tensor, index)
            self.tables.add(index)

    def _place(self, value: Any, key: DispatchKey, numbers: bool) -> Any:
        if isinstance(value, TensorBase):
            return self.place_of(value)
        if isinstance(value, (list, tuple)) and any(isinstance(v, TensorBase) for v in value):
            return [self._place(item, key, numbers) for item in value]
        if isinstance(value, Device) and value is not self.device:
            raise Untraceable("a device")
        told = (type(value), repr(value))
        if numbers and isinstance(value, NUMBERS):
            value = key.scalar(value)
        return self.constant(value, told)

    def constant(self, value: Any, told: Any = None) -> Any:
        """Return the (provisional, negative) place of a plain value or an array."""
        self.program.constants.append(value)
        self.told.append(told)
        return -len(self.program.constants)


def _of_one_dtype(values: Any, dtype: DType) -> bool:
    """Return whether all floating-point tensors among nested values are of a dtype."""
    for value in values:
        if isinstance(value, TensorBase):
            other = value._key.dtype
            if other is not dtype and other.category >= FLOATING:
                return False
        elif isinstance(value, (list, tuple)) and not _of_one_dtype(value, dtype):
            return False
    return True


def _traced(
    function: Callable[[], Any], tensors: Sequence[Any], device: Device, body: bool = False
) -> Any:
    """Return what a function returns, and the tracer of what it called, some tensors being the inputs."""
    tracer = Tracer(device, body)
    for index, tensor in enumerate(tensors):
        tracer.know(tensor, index)
    tracer.count = len(tensors)
    with layers.isolated(), tracer.active(), layers.gradient_off():
        return function(), tracer


def trace(function: Callable[..., Any], arguments: list[Any], device: Device) -> Program:
    """Trace the formula of a derivative on arguments like these.

    Parameters
    ----------
    arguments : list
        Meta tensors for the arrays of the program's inputs; plain values as they are.

    Raises
    ------
    Untraceable
        If it cannot be traced.
    """
    tensors = [a for a in arguments if isinstance(a, TensorBase)]
    result, tracer = _traced(lambda: function(*arguments), tensors, device)
    program: Program = tracer.program
    items = result if isinstance(result, list) else [result]
    indices: list[Any] = []
    for item in items:
        if item is None:
            indices.append(tracer.constant(None))
        elif isinstance(item, TensorBase) and id(item) in tracer.places:
            indices.append(tracer.places[id(item)])
        else:
            raise Untraceable(f"returns {type(item).__name__}")
    program.result = indices if isinstance(result, list) else indices[0]
    if isinstance(result, list):
        # A result that is in the list twice belongs to two arguments.
        program.fresh = [
            indices.count(index) == 1
            and (index.index if isinstance(index, OutputPlace) else index) in tracer.fresh
            for index in indices
        ]
    else:
        program.fresh = indices[0] in tracer.fresh
    settle(program, len(tensors))
    return program


def trace_body(
    body: Callable[[], Any], tensors: Sequence[Any], device: Device
) -> tuple[Program, Any, Any]:
    """Trace the body of a composite; return the program, what tells it from others, and the body's result.

    Raises
    ------
    Untraceable
        If it cannot be traced, or returns anything but new tensors, each with memory of its own.
    """
    result, tracer = _traced(body, tensors, device, body=True)
    single = isinstance(result, TensorBase)
    if not single and not isinstance(result, (tuple, list)):
        raise Untraceable(f"returns {type(result).__name__}")
    places: list[Any] = []
    taken: frozenset[Any] = frozenset(range(len(tensors)))
    for item in (result,) if single else result:
        place = tracer.own(item, taken)
        taken |= tracer.memory(place)
        places.append(place)
    program: Program = tracer.program
    program.result = places[0] if single else places
    settle(program, len(tensors))
    told = (repr(program.steps), repr(program.result), tracer.told)
    return program, told, result


def settle(program: Program, inputs: int, prune: bool = False) -> None:
    """Move the steps' results behind the constants, and constants behind the inputs.

    With `prune`, steps whose results nobody needs are left out: a formula may call a body again for its
    gradients alone.
    """
    constants = len(program.constants)
    if prune:
        _prune(program, inputs)

    def final(position: Any) -> Any:
        if isinstance(position, list):
            return [final(item) for item in position]
        if isinstance(position, OutputPlace):
            return OutputPlace(position.index + constants, position.number)
        if position < 0:
            return inputs - position - 1
        return position if position < inputs else position + constants

    program.result = final(program.result)
    needed = _used(program.result)
    steps: list[tuple[DispatchKey, int, Any, Any]] = []
    for number in reversed(range(len(program.steps))):
        key, index, operands, _ = program.steps[number]
        operands = tuple([final(position) for position in operands])
        used = _used(list(operands))
        made = inputs + constants + number
        dead = {place for place in used - needed if not inputs <= place < inputs + constants}
        if made not in needed:
            dead.add(made)
        needed |= used
        steps.append((key, index, operands, tuple(sorted(dead))))
    program.steps = steps[::-1]
    program.identity = not program.steps and program.result == 0
    if len(program.steps) == 1 and inputs == 2:
        key, index, operands, _ = program.steps[0]
        if operands in ((0, 1), (1, 0)) and program.result == 2:
            program.kernels, program.index, program.swap = key.kernels, index, operands[0] == 1


def _prune(program: Program, inputs: int) -> None:
    """Leave out the steps that do not lead to the result, before these are settled."""
    steps = program.steps
    needed = needed_places(steps, inputs, program.result)
    numbers: dict[int, int] = {}
    for number in range(len(steps)):
        if inputs + number in needed:
            numbers[inputs + number] = inputs + len(numbers)

    def moved(position: Any) -> Any:
        if isinstance(position, list):
            return [moved(item) for item in position]
        if isinstance(position, OutputPlace):
            return OutputPlace(numbers.get(position.index, position.index), position.number)
        return numbers.get(position, position)

    program.result = moved(program.result)
    program.steps = [
        (key, index, tuple([moved(position) for position in operands]), dead)
        for number, (key, index, operands, dead) in enumerate(steps)
        if inputs + number in needed
    ]


def needed_places(steps: list[Any], inputs: int, result: Any) -> set[int]:
    """Return the places of all that a result of steps, which follow `inputs` values, comes from."""
    needed = _used(result)
    for number in reversed(range(len(steps))):
        if inputs + number in needed:
            needed |= _used(list(steps[number][2]))
    return needed


def _used(position: Any) -> set[int]:
    """Return the indices of the values that a place takes."""
    if isinstance(position, list):
        return set().union(*[_used(item) for item in position])
    return {position.index if isinstance(position, OutputPlace) else position}
