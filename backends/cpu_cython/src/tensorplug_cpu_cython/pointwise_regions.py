"""Fuses pointwise ops of compiled programs: their loops run tile by tile, in the order of the program.

A kernel that is one loop is known by its object, whose method it is; others that come to one loop carry a
function `loop_of(*arguments)` that returns that object, the arrays and the numbers. The loops are those that
run op by op, so the results are the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorplug.plugin import (
    ArrayFacts,
    FusedCall,
    Fuser,
    FusionProgram,
    FusionStep,
    Operand,
    Region,
    is_dense,
    pointwise_regions,
)

from . import pointwise
from ._dtypes import NATIVES, NUMBERED
from .pointwise_fused import Fused
from .pointwise_tiles import ARRAYS, CALLS, DIMS, Tiles

_NUMBER_OF = {dtype: number for number, dtype in enumerate(NUMBERED)}
_TYPE_OF = {NATIVES[dtype]: number for number, dtype in enumerate(NUMBERED)}
_GRAIN = 16384


class _Loop(NamedTuple):
    """A loop of a step: its address and numbers, its arrays (Operand or 0-d array), and the result's type."""

    address: int
    numbers: tuple[float, ...]
    arrays: tuple[Any, ...]
    result: int
    grain: int


def with_loop(kernel: Any, loop_of: Any) -> Any:
    """Return a kernel that says which loop it comes to for some arguments."""
    kernel.loop_of = loop_of
    return kernel


class PointwiseFuser(Fuser):
    """Runs pointwise ops whose results have one shape in one go."""

    name = "pointwise"
    device_type = "cpu"
    priority = 0

    def regions(self, program: FusionProgram) -> Iterable[Region]:
        """Return groups of at least two steps."""
        steps = [(number, program.steps[number]) for number in sorted(program.free)]
        numbers = [number for number, step in steps if step and is_loop(program, step)]
        # Numbers that are arguments take registers, too.
        return pointwise_regions(program, numbers, CALLS, ARRAYS - 8)

    def compile(
        self,
        program: FusionProgram,
        region: Region,
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> FusedCall | None:
        """Return the loops as one call."""
        steps: list[Any] = [program.steps[number] for number in sorted(region.steps)]
        loops: list[Any] = [_loop(program, step) for step in steps]
        facts = program.arrays
        shape = facts[outputs[0]].shape
        numbers: list[Any] = []
        register: dict[int, int] = {place: k for k, place in enumerate(inputs)}
        known: dict[int, int] = {}
        for loop in loops:
            for array in loop.arrays:
                if not isinstance(array, Operand) and id(array) not in known:
                    known[id(array)] = len(inputs) + len(numbers)
                    numbers.append(array)
        if len(inputs) + len(numbers) + len(outputs) > ARRAYS:
            return None
        given = [(_NUMBER_OF[facts[p].dtype], facts[p].shape) for p in inputs]
        given += [(_TYPE_OF[array.dtype], ()) for array in numbers]
        order = _order(facts[outputs[0]].shape, facts[outputs[0]].strides)
        for place in outputs:
            register[place] = len(register) + len(numbers)
        made = [(_NUMBER_OF[facts[p].dtype], _strides(facts[p])) for p in outputs]
        last = {place: k for k, step in enumerate(steps) for place in step.inputs}
        between: list[tuple[int, int]] = []
        free: list[int] = []
        slots = 0
        slot_of: dict[int, int] = {}
        calls: list[tuple[int, tuple[float, ...], tuple[int, ...]]] = []
        base = len(given) + len(made)
        for k, (step, loop) in enumerate(zip(steps, loops, strict=True)):
            registers = [
                register[array.place] if isinstance(array, Operand) else known[id(array)]
                for array in loop.arrays
            ]
            (out,) = step.outputs
            if out not in register:
                if not free:
                    free.append(slots)
                    slots += 1
                slot_of[out] = free.pop()
                register[out] = base + len(between)
                between.append((loop.result, slot_of[out]))
            calls.append((loop.address, loop.numbers, (*registers, register[out])))
            done = [p for p in (*step.inputs, out) if p in slot_of and last.get(p, k) == k]
            free += map(slot_of.pop, done)
        grain = max(min([loop.grain for loop in loops]) // len(loops), 1024)
        tiles = Tiles(tuple(shape), order, given, made, calls, between, grain)
        if not numbers:
            return tiles
        return lambda arrays: tiles([*arrays, *numbers])


def is_loop(program: FusionProgram, step: FusionStep) -> bool:
    """Return whether a step is one of the compiled loops."""
    return _loop(program, step) is not None


def _loop(program: FusionProgram, step: FusionStep) -> _Loop | None:
    """Return the loop of a step; None if it is not one."""
    if step.view or len(step.outputs) != 1:
        return None
    result = _NUMBER_OF.get(program.arrays[step.outputs[0]].dtype, -1)
    shape, strides = program.arrays[step.outputs[0]][:2]
    if result < 0 or len(shape) > DIMS or not is_dense(shape, strides):
        return None
    kernel, arguments = step.kernel, step.arguments
    owner: Any
    numbers: tuple[float, ...]
    if kernel is pointwise.choose:
        if _type(program, arguments[0]) != _BOOL:
            return None
        address = pointwise.choosing_loop(result)
        found = _Loop(address, (), arguments, result, _GRAIN)
        types = [_type(program, array) for array in arguments[1:]]
        return found if address and all([number == result for number in types]) else None
    if kernel is pointwise.clone:
        address = pointwise.casting_loop(result, result)
        fits = address and _type(program, arguments[0]) == result
        return _Loop(address, (), arguments[:1], result, _GRAIN) if fits else None
    loop_of = getattr(kernel, "loop_of", None)
    if loop_of is not None:
        found_ = loop_of(*arguments)
        if found_ is None:
            return None
        owner, arrays, numbers = found_
        if owner is pointwise.cast:
            number = _type(program, arrays[0])
            address = 0 if number is None else pointwise.casting_loop(number, result)
            return _Loop(address, (), arrays, result, _GRAIN) if address else None
    else:
        owner, arrays, numbers = getattr(kernel, "__self__", kernel), arguments, ()
    if type(owner) not in (pointwise.Unary, pointwise.Binary, Fused):
        return None
    types = [_type(program, array) for array in arrays]
    if not types or types[0] is None or any([number != types[0] for number in types]):
        return None
    address, made, own, grain = owner.loop(types[0])
    if (
        not address
        or made != result
        or len(arrays) != (2 if type(owner) is pointwise.Binary else len(arrays))
    ):
        return None
    if address == _POWER.loop(types[0])[0] and _is_two(arrays[1]):
        # What the loop of powers does for that exponent, and can be part of a chain.
        address, _, own, grain = _SQUARE.loop(types[0])
        arrays = arrays[:1]
    return _Loop(address, tuple(map(float, numbers)) or own, tuple(arrays), result, grain)


def _is_two(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.size == 1 and bool(array == 2)


_POWER, _SQUARE = pointwise.Binary("pow"), pointwise.Unary("square")
_BOOL = [dtype.name for dtype in NUMBERED].index("bool")


def _type(program: FusionProgram, array: Any) -> int | None:
    """Return the number of an argument's type; None if it is no array, or one of another size than one."""
    if isinstance(array, Operand):
        return _NUMBER_OF.get(program.arrays[array.place].dtype)
    if isinstance(array, np.ndarray) and not array.ndim:
        return _TYPE_OF.get(array.dtype)
    return None


def _order(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Return the dimensions, the one with the longest steps first."""
    return tuple(sorted(range(len(shape)), key=lambda d: (-strides[d], d)))


def _strides(facts: ArrayFacts) -> tuple[int, ...]:
    itemsize = NATIVES[facts.dtype].itemsize
    return tuple([stride * itemsize for stride in facts.strides])
