"""Runs the gradients of recurrent layers without those of their results that nobody takes.

Of most layers only the output is used. Zeros stand for the gradients of the cell states and of the gates
then, as constants of the program: here they are neither read nor added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from tensorplug.plugin import FusedCall, Fuser, FusionProgram, FusionStep, Operand, Region

from .kernels import rnn

#: For each kernel the arguments that may be zeros.
_GIVEN = {rnn.lstm_layer_backward: (1, 2), rnn.gru_layer_backward: (1,)}


class RecurrentFuser(Fuser):
    """Runs the gradient of one layer in each region."""

    name = "recurrent"
    device_type = "cpu"
    priority = 4

    def regions(self, program: FusionProgram) -> Iterable[Region]:
        """Return the gradients of layers, given zeros for some of their results."""
        for number in sorted(program.free):
            step = program.steps[number]
            zeros = () if step is None else _zeros(program, step)
            if step is not None and zeros:
                places = [step.arguments[index].place for index in zeros]
                yield Region((number,), sum([4.0 * prod(program.arrays[p].shape) for p in places]))

    def compile(
        self,
        program: FusionProgram,
        region: Region,
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> FusedCall | None:
        """Return the gradient without what is zero."""
        step: Any = program.steps[region.steps[0]]
        number_of = {place: number for number, place in enumerate(inputs)}
        zeros = _zeros(program, step)
        kernel = step.kernel
        template = [None if n in zeros else a for n, a in enumerate(step.arguments)]
        chosen = [step.outputs.index(place) for place in outputs]

        def filled(argument: Any, arrays: Sequence[Any]) -> Any:
            if isinstance(argument, Operand):
                return arrays[number_of[argument.place]]
            return [filled(a, arrays) for a in argument] if type(argument) is list else argument

        def call(arrays: Sequence[Any]) -> Any:
            found = kernel(*[filled(argument, arrays) for argument in template])
            return [found[number] for number in chosen]

        return call


def _zeros(program: FusionProgram, step: FusionStep) -> tuple[int, ...]:
    """Return which arguments of a step are constants of zeros that it need not have."""
    found = []
    for index in _GIVEN.get(step.kernel, ()):
        given = step.arguments[index]
        if not isinstance(given, Operand) or not program.arrays[given.place].constant:
            continue
        if not program.constant(given.place).any():
            found.append(index)
    return tuple(found)
