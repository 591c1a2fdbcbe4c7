"""Fuses pointwise ops of compiled programs: one kernel of CUDA C++ for each region, by NVRTC.

A region's kernel takes each element through all ops in registers. What is needed outside is written, the
rest is neither made nor read. The source depends on the ops, the dtypes and on which arrays lie row by row or
are spread, but on no size, so that other sizes need no other kernel. CuPy keeps what was compiled on disk, by
a hash of the source.

Sums are not contracted with products, as they are not across the ops' own kernels, and halves are rounded
after each op. So results are those of these kernels, but for rounding within an op such as `gelu`, whose own
kernel contracts, and for the sign of a zero that is the maximum of two halves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import cache
from itertools import count
from math import prod
from typing import Any

import numpy as np

from tensorplug.plugin import (
    ArrayFacts,
    FusedCall,
    Fuser,
    FusionProgram,
    FusionStep,
    Operand,
    Region,
    broadcast_shapes,
    contiguous_strides,
    is_dense,
    pointwise_regions,
)

from .. import sources
from .._cupy import cp
from ..dtypes import DTYPES, NATIVES
from .expressions import expression
from .pointwise_source import Line, Place, text

_STEPS, _ARRAYS, _DIMS = 64, 24, 8
_INT_MAX = 2**31 - 1
OPTIONS = (*sources.OPTIONS, "--fmad=false")


class PointwiseFuser(Fuser):
    """Runs pointwise ops whose results have one shape as one kernel.

    Parameters
    ----------
    is_own : callable
        ``is_own(op, kernel)`` says whether a kernel is one of this plugin's; others are left alone.
    """

    name = "cuda_pointwise"
    device_type = "cuda"
    priority = 0

    def __init__(self, is_own: Callable[[str, Any], bool]) -> None:
        self._is_own = is_own

    def regions(self, program: FusionProgram) -> Iterable[Region]:
        """Return groups of at least two steps."""
        steps = [(number, program.steps[number]) for number in sorted(program.free)]
        numbers = [number for number, step in steps if self._line(program, step) is not None]
        # Numbers that are arguments are arrays, too.
        return pointwise_regions(program, numbers, _STEPS, _ARRAYS - 8)

    def compile(
        self,
        program: FusionProgram,
        region: Region,
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> FusedCall | None:
        """Return the ops as one kernel."""
        facts = program.arrays
        counter = count()
        registers = {place: next(counter) for place in inputs}
        numbers: dict[int, tuple[int, Any]] = {}  # by their ids: those that are arguments
        lines: list[Line] = []
        for number in sorted(region.steps):
            step: Any = program.steps[number]
            used = []
            for argument in _arrays(step):
                if isinstance(argument, Operand):
                    used.append(registers[argument.place])
                else:
                    if id(argument) not in numbers:
                        numbers[id(argument)] = next(counter), argument
                    used.append(numbers[id(argument)][0])
            (output,) = step.outputs
            registers[output] = next(counter)
            line = self._line(program, step)
            assert line is not None
            lines.append(line._replace(registers=(*used, registers[output])))
        arrays = [array for _, array in numbers.values()]
        given = [(registers[place], facts[place]) for place in inputs]
        given += [(register, _facts_of(array)) for register, array in numbers.values()]
        made = [(registers[place], facts[place]) for place in outputs]
        return _Fused(given, made, lines, arrays) if len(given) + len(made) <= _ARRAYS else None

    def _line(self, program: FusionProgram, step: FusionStep | None) -> Line | None:
        """Return a step's expression, without registers; None where it has none."""
        if step is None or step.view or len(step.outputs) != 1:
            return None
        if not self._is_own(step.op, step.registered):
            return None
        result = program.arrays[step.outputs[0]]
        arrays = _arrays(step)
        facts = [
            program.arrays[array.place] if isinstance(array, Operand) else _facts_of(array)
            for array in arrays
        ]
        options = () if step.op == "cast" else step.arguments[len(arrays) :]
        dtypes = (*[known.dtype.name for known in facts], result.dtype.name)
        found = expression(step.op, dtypes[:-1], dtypes[-1], options)
        if not found or len(result.shape) > _DIMS or not is_dense(result.shape, result.strides):
            return None
        if broadcast_shapes(*[known.shape for known in facts]) != result.shape:
            return None  # written into an argument that is larger
        return Line(found, dtypes, ())


def _arrays(step: FusionStep) -> list[Any]:
    """Return a step's arguments up to the first that is no array."""
    found = []
    for argument in step.arguments:
        if not isinstance(argument, (Operand, cp.ndarray)):
            break
        found.append(argument)
    return found


def _facts_of(array: Any) -> ArrayFacts:
    """Return the facts of a number on the device."""
    strides = tuple([step // array.itemsize for step in array.strides])
    return ArrayFacts(tuple(array.shape), strides, DTYPES[array.dtype], True)


class _Fused:
    """A region's kernel, with what it needs to know of its arrays."""

    def __init__(
        self,
        given: Sequence[tuple[int, ArrayFacts]],
        made: Sequence[tuple[int, ArrayFacts]],
        lines: Sequence[Line],
        numbers: Sequence[Any],
    ) -> None:
        first = made[0][1]
        shape = self._shape = first.shape
        self._numbers = numbers
        self._size = prod(shape)
        self._blocks = sources.blocks_for(self._size)
        self._made = [(NATIVES[facts.dtype], _in_bytes(facts, facts.strides)) for _, facts in made]
        self._given = [_in_bytes(facts, _spread(facts, shape)) for _, facts in given]
        arrays = [*given, *made]
        spread = [_spread(facts, shape) for _, facts in arrays]
        sizes, strides = collapsed(shape, first.strides, spread)
        rows = contiguous_strides(sizes)
        layouts = ["one" if not any(s) else "rows" if s == rows else "strided" for s in strides]
        wide = self._size > _INT_MAX - (1 << 25)
        index = np.int64 if wide else np.int32
        self._rest: list[Any] = [index(self._size)]
        if "strided" in layouts:
            self._rest += [index(size) for size in sizes[1:]]
        for steps, layout in zip(strides, layouts, strict=True):
            if layout == "strided":
                self._rest += [np.int64(step) for step in steps]
        places = [
            Place(facts.dtype.name, register, layout)
            for (register, facts), layout in zip(arrays, layouts, strict=True)
        ]
        source = text(places[: len(given)], places[len(given) :], lines, len(sizes), wide)
        self._kernel = _compiled(source)

    def __call__(self, arrays: Sequence[Any]) -> list[Any] | None:
        """Return the results; None where the arrays lie in another way than they did."""
        given = [*arrays, *self._numbers]
        shape = self._shape
        for array, steps in zip(given, self._given, strict=True):
            if array.strides != steps and not _lies(array, steps, shape):
                return None
        device = next((array.device for array in arrays), None)
        with nullcontext() if device is None else device:
            results = [
                cp.ndarray(
                    shape, dtype, strides=strides, memptr=cp.cuda.alloc(self._size * dtype.itemsize)
                )
                for dtype, strides in self._made
            ]
            if self._size:
                self._kernel((self._blocks,), (sources.THREADS,), (*given, *results, *self._rest))
        return results


def _in_bytes(facts: ArrayFacts, strides: Sequence[int]) -> tuple[int, ...]:
    itemsize = NATIVES[facts.dtype].itemsize
    return tuple([stride * itemsize for stride in strides])


def _spread(facts: ArrayFacts, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of an array that is broadcast to a shape."""
    missing = len(shape) - len(facts.shape)
    own = zip(facts.shape, facts.strides, strict=True)
    return (*[0] * missing, *[0 if size == 1 else stride for size, stride in own])


def _lies(array: Any, steps: Sequence[int], shape: Sequence[int]) -> bool:
    """Return whether an array's strides, broadcast to a shape, are `steps` where they matter."""
    missing = len(shape) - array.ndim
    found = [0] * missing + [
        0 if size == 1 else stride for size, stride in zip(array.shape, array.strides, strict=True)
    ]
    return all([a == b or size < 2 for a, b, size in zip(found, steps, shape, strict=True)])


def collapsed(
    shape: Sequence[int], order: Sequence[int], strides: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Return a shape and strides with as few dimensions as show the same elements.

    Parameters
    ----------
    shape : sequence of int
    order : sequence of int
        Strides by which the dimensions are ordered, the longest first.
    strides : sequence of (sequence of int)
        Of several arrays.
    """
    dims = sorted([d for d, size in enumerate(shape) if size != 1], key=lambda d: (-order[d], d))
    sizes: list[int] = []
    kept: list[list[int]] = [[] for _ in strides]
    for d in dims:
        if sizes and all([k[-1] == s[d] * shape[d] for k, s in zip(kept, strides, strict=True)]):
            sizes[-1] *= shape[d]
            for k, s in zip(kept, strides, strict=True):
                k[-1] = s[d]
            continue
        sizes.append(shape[d])
        for k, s in zip(kept, strides, strict=True):
            k.append(s[d])
    return tuple(sizes), [tuple(k) for k in kept]


@cache
def _compiled(code: str) -> Any:
    return cp.RawModule(code=code, options=OPTIONS).get_function("region")
