"""Runs linear layers with constant weights by oneDNN: the weights are laid out once, not in each call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from tensorplug.plugin import (
    FusedCall,
    Fuser,
    FusionProgram,
    FusionStep,
    Operand,
    Region,
    contiguous_strides,
)

from . import cpu_features, matmul, onednn_network as dnn

#: Of one row a product with the weight as it lies is faster, of many rows, or long ones, it is as fast.
_ROWS, _FEW, _LONG = range(2, 1025), 64, 1024
#: From how many weights on 3 rows and more are as fast with them as they lie, where there is no AVX-512.
_LARGE = 1 << 23


class LinearFuser(Fuser):
    """Runs one linear layer in each region."""

    name = "linear"
    device_type = "cpu"
    priority = 5

    def regions(self, program: FusionProgram) -> Iterable[Region]:
        """Return the layers where it pays."""
        for number in sorted(program.free):
            step = program.steps[number]
            if step is not None and _is_served(program, step):
                weight = program.arrays[step.arguments[1].place].shape
                yield Region((number,), 4.0 * prod(weight))

    def compile(
        self,
        program: FusionProgram,
        region: Region,
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> FusedCall | None:
        """Return the layer; None if oneDNN does not have it."""
        step: Any = program.steps[region.steps[0]]
        source, weight, bias = step.arguments
        shape, result = program.arrays[source.place].shape, tuple(program.arrays[outputs[0]].shape)
        rows, size = prod(shape[:-1]), shape[-1]
        place = list(inputs).index(source.place)
        network = dnn.Network()
        try:
            value = network.linear(
                network.input((rows, size), (size, 1)), rows, program.constant(weight.place),
                None if bias is None else program.constant(bias.place),
            )  # fmt: skip
            network.output(value, (rows, result[-1]), (result[-1], 1))
        except dnn.Unsupported:
            return None
        network.finish()
        if len(result) == 2:
            return lambda arrays: network([arrays[place]])

        def call(arrays: Sequence[Any]) -> Any:
            made = network([arrays[place].reshape(rows, size)])
            return made and [made[0].reshape(result)]

        return call


def _is_served(program: FusionProgram, step: FusionStep) -> bool:
    if step.kernel is not matmul.linear or len(step.arguments) != 3:
        return False
    facts = program.arrays
    source, weight, bias = step.arguments
    constants = [operand for operand in (weight, bias) if operand is not None]
    if not all([isinstance(o, Operand) and facts[o.place].constant for o in constants]):
        return False
    shape = facts[weight.place].shape
    if len(shape) != 2 or not prod(shape) or facts[source.place].constant:
        return False
    given, strides = facts[source.place][:2]
    rows = prod(given[:-1])
    if rows > 2 and prod(shape) >= _LARGE and cpu_features.level() != "v4":
        return False
    in_rows = strides == contiguous_strides(given)
    return in_rows and rows in _ROWS and (rows <= _FEW or shape[1] <= _LONG)
