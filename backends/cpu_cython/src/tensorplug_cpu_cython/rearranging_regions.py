"""Makes views that follow each other in one call; those that only lead to others are left out.

How an array lies is known before a program runs, and with that how its views, and the views of these, lie
in it.
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
)

from ._dtypes import NATIVES
from .rearranging_views import Views


class ViewFuser(Fuser):
    """Runs steps that are views and follow each other in one go."""

    name = "views"
    device_type = "cpu"
    priority = -10  # after those that look for views beside other steps

    def regions(self, program: FusionProgram) -> Iterable[Region]:
        """Return runs of at least two steps."""
        run: list[int] = []
        for number, step in enumerate(program.steps):
            if number in program.free and step is not None and _offset(program, step) is not None:
                run.append(number)
                continue
            yield from _long(run)
            run = []
        yield from _long(run)

    def compile(
        self,
        program: FusionProgram,
        region: Region,
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> FusedCall | None:
        """Return the views that are needed as one call."""
        shown = {place: (number, 0) for number, place in enumerate(inputs)}
        for number in region.steps:
            step: Any = program.steps[number]
            offset: Any = _offset(program, step)
            source, before = shown[step.inputs[0]]
            shown[step.outputs[0]] = source, before + offset
        places = [_Place.of(program.arrays[place]) for place in (*inputs, *outputs)]
        sources = [(place.shape, place.strides) for place in places[: len(inputs)]]
        views = [
            (*shown[place], facts.shape, facts.strides)
            for place, facts in zip(outputs, places[len(inputs) :], strict=True)
        ]
        return Views(sources, views)


class _Place(NamedTuple):
    """How an array lies, in bytes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, facts: ArrayFacts) -> _Place:
        item = NATIVES[facts.dtype].itemsize
        return cls(tuple(facts.shape), tuple([stride * item for stride in facts.strides]))


def _long(run: Sequence[int]) -> Iterable[Region]:
    if len(run) > 1:
        yield Region(tuple(run), 8.0 * len(run))


def _offset(program: FusionProgram, step: FusionStep) -> int | None:
    """Return how many bytes behind the first element of its argument a view begins; None if it is not one.

    The kernel tells, of memory that nobody writes or reads.
    """
    if not step.view or len(step.inputs) != 1 or len(step.outputs) != 1:
        return None
    given, made = program.arrays[step.inputs[0]], program.arrays[step.outputs[0]]
    native = NATIVES.get(given.dtype)
    if native is None or given.dtype is not made.dtype or 0 in given.shape or 0 in made.shape:
        return None
    source, result = _Place.of(given), _Place.of(made)
    if min(source.strides, default=0) < 0 or min(result.strides, default=0) < 0:
        return None
    extent = sum([(n - 1) * s for n, s in zip(given.shape, given.strides, strict=True)]) + 1
    blank = np.ndarray(source.shape, native, np.empty(extent, native), 0, source.strides)
    found = step.kernel(*[blank if isinstance(a, Operand) else a for a in step.arguments])
    if type(found) is not np.ndarray or not np.may_share_memory(found, blank):
        return None
    if (found.shape, found.strides) != (result.shape, result.strides):
        return None
    return int(found.ctypes.data - blank.ctypes.data)
