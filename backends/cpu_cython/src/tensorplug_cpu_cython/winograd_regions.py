"""Runs convolutions whose weights change by Winograd's way, where that is clearly faster.

In training that is the convolutions and both of their gradients. Images have to lie channels last; what has
NaN or infinity in its result runs by the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, TypeAlias

from tensorplug.plugin import (
    ArrayFacts,
    FusedCall,
    Fuser,
    FusionProgram,
    FusionStep,
    Operand,
    Region,
)

from . import convolution
from .convolution_winograd import Convolution, WeightGradient

_Found: TypeAlias = Convolution | WeightGradient


class WinogradFuser(Fuser):
    """Runs one convolution, or one of its adjoints, in each region."""

    name = "winograd"
    device_type = "cpu"
    priority = 8

    def regions(self, program: FusionProgram) -> Iterable[Region]:
        """Return the convolutions where it pays."""
        for number in sorted(program.free):
            step = program.steps[number]
            if step is not None and _served(program, step) is not None:
                size = prod(program.arrays[step.outputs[0]].shape)
                yield Region((number,), 4.0 * size)

    def compile(
        self,
        program: FusionProgram,
        region: Region,
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> FusedCall | None:
        """Return the convolution."""
        step: Any = program.steps[region.steps[0]]
        found: Any = _served(program, step)
        given = [argument for argument in step.arguments if type(argument) is Operand]
        numbers = [list(inputs).index(operand.place) for operand in given]

        def call(arrays: Sequence[Any]) -> Any:
            made = found(*[arrays[number] for number in numbers])
            return None if made is None else [made]

        return call


def _served(program: FusionProgram, step: FusionStep) -> _Found | None:
    """Return what computes a step; None where it does not pay."""
    make = _MAKERS.get(step.kernel)
    if make is None:
        return None
    facts = program.arrays
    if (*step.arguments[3], *step.arguments[5], step.arguments[6]) != (1, 1, 1, 1, 1):
        return None
    if any([facts[place].dtype.name != "float32" for place in (*step.inputs, *step.outputs)]):
        return None
    found = make(program, step)
    return found if found is not None and found.pays else None


def _convolution(program: FusionProgram, step: FusionStep) -> Convolution | None:
    images, weight = (program.arrays[operand.place] for operand in step.arguments[:2])
    result = program.arrays[step.outputs[0]]
    _, _, height, width = weight.shape
    if height != width or weight.constant or not _are_channels_last(images, result):
        return None
    adjoint = step.kernel is convolution.convolution_input
    return Convolution(
        tuple(images.shape), tuple(result.shape), height, tuple(step.arguments[4]), adjoint
    )


def _weight_gradient(program: FusionProgram, step: FusionStep) -> WeightGradient | None:
    images, gradient = (program.arrays[operand.place] for operand in step.arguments[:2])
    height, width = step.arguments[2]
    if height != width or not _are_channels_last(images, gradient):
        return None
    return WeightGradient(
        tuple(images.shape), tuple(gradient.shape), height, tuple(step.arguments[4])
    )


_MAKERS: dict[Any, Callable[[FusionProgram, FusionStep], _Found | None]] = {
    convolution.convolution: _convolution,
    convolution.convolution_input: _convolution,
    convolution.convolution_weight: _weight_gradient,
}


def _are_channels_last(*arrays: ArrayFacts) -> bool:
    for shape, strides, *_ in arrays:
        _, c, h, w = shape
        if not prod(shape) or tuple(strides) != (h * w * c, 1, w * c, c):
            return False
    return True
