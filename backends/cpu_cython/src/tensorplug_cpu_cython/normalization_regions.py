"""Runs batch norms of training with the activation after them: images are cut off as they are written.

relu, relu6 and hardtanh are such activations. Results are those of two kernels, bit for bit. (Their gradients
stay two passes: one that leaves elements out as it reads them, twice, is no faster.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, prod
from typing import Any

from tensorplug.plugin import FusedCall, Fuser, FusionProgram, FusionStep, Operand, Region

from .kernels import normalization
from .normalization_batch import batch_normalize
from .pointwise_regions import is_loop


class NormalizationFuser(Fuser):
    """Runs one batch norm and its activation in each region."""

    name = "batch_norm"
    device_type = "cpu"
    priority = 6

    def regions(self, program: FusionProgram) -> Iterable[Region]:
        """Return pairs of a batch norm and what alone takes its images, an activation."""
        for number in sorted(program.free):
            step = program.steps[number]
            if step is None or not _is_served(program, step):
                continue
            place = step.outputs[0]
            users = program.users(place)
            if len(users) != 1 or place in program.results or users[0] not in program.free:
                continue
            if _bounds(program, program.steps[users[0]]) is not None:
                yield Region((number, users[0]), 8.0 * prod(program.arrays[place].shape))

    def compile(
        self,
        program: FusionProgram,
        region: Region,
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> FusedCall | None:
        """Return both steps as one call."""
        step: Any = program.steps[region.steps[0]]
        activation: Any = program.steps[region.steps[1]]
        bounds = _bounds(program, activation)
        assert bounds is not None
        low, high = bounds
        *given, eps = step.arguments
        numbers = [list(inputs).index(operand.place) for operand in given]
        made = (*activation.outputs, *step.outputs[1:])
        chosen = [made.index(place) for place in outputs]

        def call(arrays: Sequence[Any]) -> Any:
            found = batch_normalize([arrays[number] for number in numbers], eps, low, high)
            return [found[number] for number in chosen]

        return call


def _is_served(program: FusionProgram, step: FusionStep) -> bool:
    """Return whether a step is a batch norm with weights, of a type that is computed in as it is."""
    if step.kernel is not normalization.native_batch_norm or len(step.arguments) != 4:
        return False
    if not all([isinstance(argument, Operand) for argument in step.arguments[:3]]):
        return False
    dtypes = {program.arrays[place].dtype.name for place in (*step.inputs, *step.outputs)}
    return dtypes == {"float32"} or dtypes == {"float64"}


def _bounds(program: FusionProgram, step: FusionStep | None) -> tuple[float, float] | None:
    """Return what an activation cuts off at; None if it does something else, or is another's kernel."""
    if step is None or step.op not in _ACTIVATIONS or not is_loop(program, step):
        return None
    if len(step.arguments) == 1:
        return 0.0, inf
    low, high = step.arguments[1:]
    return float(low), float(high)


_ACTIVATIONS = ("relu", "hardtanh")
