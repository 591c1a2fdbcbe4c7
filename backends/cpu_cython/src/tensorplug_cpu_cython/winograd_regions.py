"""Runs convolutions whose weights change by Winograd's way, where that is clearly faster: in training, forward and backward.

What has NaN or infinity in its result runs by the kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from tensorplug.plugin import FusedCall, Fuser, FusionProgram, FusionStep, Operand, Region

from . import convolution, convolution_winograd


class WinogradFuser(Fuser):
    """Runs one convolution, or its adjoint with respect to the input, in each region."""

    name = "winograd"
    device_type = "cpu"
    priority = 8

    def regions(self, program: FusionProgram) -> Iterable[Region]:
        """Return the convolutions where it pays."""
        for number in sorted(program.free):
            step = program.steps[number]
            if step is not None and _convolution(program, step) is not None:
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
        found = _convolution(program, step)
        given = [argument for argument in step.arguments if type(argument) is Operand]
        places = [list(inputs).index(operand.place) for operand in given]

        def call(arrays: Sequence[Any]) -> Any:
            made = found(*[arrays[place] for place in places])
            return None if made is None else [made]

        return None if found is None else call


def _convolution(
    program: FusionProgram, step: FusionStep
) -> convolution_winograd.Convolution | None:
    """Return what computes a step; None where it does not pay."""
    if step.kernel is convolution.convolution:
        adjoint, (stride, padding, dilation, groups) = False, step.arguments[3:]
    elif step.kernel is convolution.convolution_input:
        adjoint, (stride, padding, dilation, groups) = True, step.arguments[3:]
    else:
        return None
    facts = program.arrays
    images, weight = (facts[operand.place] for operand in step.arguments[:2])
    result = facts[step.outputs[0]]
    kernel = tuple(weight.shape[2:])
    if len(kernel) != 2 or kernel[0] != kernel[1] or weight.constant:
        return None
    if (*stride, *dilation, groups) != (1, 1, 1, 1, 1):
        return None
    if not all([_is_channels_last(array.shape, array.strides) for array in (images, result)]):
        return None
    if any([facts[place].dtype.name != "float32" for place in (*step.inputs, *step.outputs)]):
        return None
    found = convolution_winograd.Convolution(
        tuple(images.shape), tuple(result.shape), kernel[0], tuple(padding), adjoint
    )
    return found if found.pays else None


def _is_channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    n, c, h, w = shape
    return n * c * h * w > 0 and tuple(strides) == (h * w * c, 1, w * c, c)
