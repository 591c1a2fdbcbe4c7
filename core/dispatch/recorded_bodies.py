"""Programs of a composite's body and of its gradients.

A body whose arguments require grad is traced with the formulas that differentiate it: the ops that the engine
calls are those of an ordinary backward pass, in its order. What does not depend on the gradient that comes in
is the forward program; what the rest needs of it is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from ..device.device import META, Device
from ..device.meta import MetaArray
from ..tensor.base import TensorBase, new_tensor
from . import layers
from .keys import dispatch_key
from .op import Op
from .programs import OutputPlace, Program, Tracer, Untraceable, needed_places, settle


class _Tensor:
    """What stands for a tensor."""

    __slots__ = ()


TENSOR = _Tensor()


def replaced(value: Any, known: Callable[[Any], Any]) -> Any:
    """Return nested arguments with what stands for them in place of tensors, or these again."""
    if isinstance(value, (TensorBase, _Tensor)):
        return known(value)
    if isinstance(value, (list, tuple)):
        kind: Any = type(value)
        return kind([replaced(item, known) for item in value])
    if isinstance(value, dict):
        return {name: replaced(item, known) for name, item in value.items()}
    return value


class RecordedBody:
    """How a call of a composite is recorded as a whole.

    Attributes
    ----------
    forward : Program
        For the call's arrays, and None: the result, then what is saved.
    backward : Program
        For what is saved and the gradient of the result: those of the tensors that require grad.
    tracked : tuple of int
        Which of the call's tensors require grad.
    shown : tuple of int
        The tensors whose memory saved arrays show.
    shows_result : bool
        Whether one shows the result's.
    name : str
        Of the node that the body itself would end with.
    call : tuple
        The op and its arguments, in which :data:`TENSOR` stands for the tensors.
    """

    __slots__ = (
        "backward", "call", "forward", "name", "shown", "shows_result", "tracked",
    )  # fmt: skip

    def __init__(self, forward: Program, backward: Program) -> None:
        self.forward = forward
        self.backward = backward
        self.call: tuple[Op, tuple[Any, ...], dict[str, Any]] | None = None
        self.tracked: tuple[int, ...] = ()
        self.shown: tuple[int, ...] = ()
        self.shows_result = False
        self.name = ""


Differentiate: TypeAlias = Callable[[list[Any], list[Any]], Sequence[Any]]


def _jointly(
    tracer: Tracer,
    body: Callable[[], Any],
    tensors: Sequence[Any],
    chosen: Callable[[Any], list[Any]],
    differentiate: Differentiate,
    count: int,
) -> tuple[Any, int, bool, list[Any]]:
    """Trace a body and the gradients of those of its results that `chosen` picks, `count` of them.

    The places of their gradients follow those of `tensors`. Returns the result, how many steps the body has,
    whether it read a layout, and the places of the gradients.
    """
    tracer.recording = True
    for index, tensor in enumerate(tensors):
        tracer.know(tensor, index)
    tracer.count = len(tensors) + count
    with layers.isolated(), tracer.active():
        result = body()
        outputs = chosen(result)
        ahead = len(tracer.program.steps)
        reads_layout = tracer.program.reads_layout
        tracer.body = False  # what follows is formulas
        incoming = []
        for place, output in enumerate(outputs, len(tensors)):
            dtype = output._key.dtype
            meta = MetaArray(output._shape, dtype)
            incoming.append(new_tensor(meta, dispatch_key(META, dtype), output._shape))
            tracer.know(incoming[-1], place)
        gradients = [
            tracer.constant(None) if found is None else tracer.place_of(found)
            for found in differentiate(outputs, incoming)
        ]
    return result, ahead, reads_layout, gradients


def trace_gradients(
    body: Callable[[], Any],
    tensors: Sequence[Any],
    device: Device,
    differentiate: Differentiate,
    wanted: Sequence[int],
) -> tuple[Program, Any]:
    """Trace a body and the gradients of the results whose numbers are wanted, as one program.

    It takes the arrays of `tensors` and the gradients of these results, and returns the gradients of those
    that require grad. Returns also what tells it from others.

    Raises
    ------
    Untraceable
        If it cannot be traced.
    """
    tracer = Tracer(device, body=True)

    def chosen(result: Any) -> list[Any]:
        results = result if isinstance(result, tuple) else (result,)
        return [results[number] for number in wanted]

    _, _, reads_layout, gradients = _jointly(
        tracer, body, tensors, chosen, differentiate, len(wanted)
    )
    program = tracer.program
    told = (repr(program.steps), repr(gradients), tracer.told)
    program.result = gradients
    program.fresh = _fresh(tracer, gradients)
    program.reads_layout = reads_layout
    settle(program, len(tensors) + len(wanted), prune=True)
    return program, told


def _fresh(tracer: Tracer, places: list[Any]) -> list[bool]:
    """Return of which values the memory belongs to nobody else."""
    return [
        places.count(place) == 1
        and (place.index if isinstance(place, OutputPlace) else place) in tracer.fresh
        for place in places
    ]


def trace_recorded(
    body: Callable[[], Any],
    tensors: Sequence[Any],
    device: Device,
    differentiate: Differentiate,
) -> tuple[RecordedBody, Any, Any]:
    """Trace a body with its gradients.

    Returns how it is recorded, what tells that from others, and the body's result.

    Parameters
    ----------
    body : callable
        It takes `tensors`, meta tensors of which some require grad, and returns one new tensor.
    differentiate : callable
        It takes a list with the result and one with its gradient, and returns the gradients of those that
        require grad.

    Raises
    ------
    Untraceable
        If either cannot be traced.
    """
    tracer = Tracer(device, body=True)
    program = tracer.program
    incoming = len(tensors)  # the place of the gradient
    first = incoming + 1

    def one(result: Any) -> list[Any]:
        if not isinstance(result, TensorBase) or not result._state:
            raise Untraceable("does not return one tensor that requires grad")
        tracer.own(result, frozenset(range(incoming)))
        return [result]

    result, ahead, reads_layout, gradients = _jointly(tracer, body, tensors, one, differentiate, 1)
    place = tracer.place_of(result)
    told = (repr(program.steps), repr(place), repr(gradients), tracer.told)

    begin = first + ahead  # the place of the first step that is left to the backward program

    def is_early(position: Any) -> bool:
        index = position.index if isinstance(position, OutputPlace) else position
        return 0 <= index < begin and index != incoming

    late = program.steps[ahead:]
    needed = needed_places(program.steps, first, gradients)
    used = [
        position
        for number, step in enumerate(late, begin)
        if number in needed
        for position in _leaves(list(step[2]))
    ]
    saved = {_told(position): position for position in [*used, *gradients] if is_early(position)}
    numbers = {key: number for number, key in enumerate(saved)}

    def moved(position: Any) -> Any:
        if isinstance(position, list):
            return [moved(item) for item in position]
        number = numbers.get(_told(position))
        if number is not None:
            return number
        if isinstance(position, OutputPlace):
            return OutputPlace(position.index - begin + len(saved) + 1, position.number)
        if position == incoming:
            return len(saved)
        return position if position < 0 else position - begin + len(saved) + 1

    forward, backward = Program(), Program()
    forward.constants, backward.constants = list(program.constants), list(program.constants)
    forward.steps = program.steps[:ahead]
    forward.result = [place, *saved.values()]
    forward.reads_layout = reads_layout
    backward.steps = [
        (key, index, tuple([moved(position) for position in operands]), ())
        for key, index, operands, _ in late
    ]
    backward.result = [moved(position) for position in gradients]
    backward.fresh = [
        fresh and not is_early(position)
        for position, fresh in zip(gradients, _fresh(tracer, gradients), strict=True)
    ]
    settle(forward, first)
    settle(backward, len(saved) + 1, prune=True)
    made = RecordedBody(forward, backward)
    made.tracked = tuple([index for index, tensor in enumerate(tensors) if tensor._state])
    memory = frozenset().union(*[tracer.memory(position) for position in saved.values()])
    made.shown = tuple([index for index in range(incoming) if index in memory])
    made.shows_result = bool(memory & tracer.memory(place))
    made.name = result._node.name()
    return made, told, result


def _leaves(position: Any) -> Iterator[Any]:
    if isinstance(position, list):
        for item in position:
            yield from _leaves(item)
    else:
        yield position


def _told(position: Any) -> Any:
    return (position.index, position.number) if isinstance(position, OutputPlace) else position
