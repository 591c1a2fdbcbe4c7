"""Fuses networks of convolutions by oneDNN: arrays stay in its layouts, weights are laid out once.

Activations and sums with a shortcut are done by the convolution that they follow, so
are convolutions of each channel by a 1×1 one before them. Products are added up in
another order than by the kernels. oneDNN's functions take NaN for a number, so what has NaN or infinity in
what goes in, or in weights, runs by the kernels.
"""

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
    is_dense,
    step_groups,
)

from . import (
    convolution,
    convolution_few_channels,
    onednn_network as dnn,
    pooling_average,
    pooling_max,
)
from .pointwise_regions import is_loop

#: Products below which a call of a primitive is not worth it.
_LEAST = 1e6
_STEPS, _ARRAYS = 4096, 24

# By the op: oneDNN's function, and its two numbers.
_FUNCTIONS: dict[str, tuple[int, float, float]] = {
    "relu": (dnn.RELU, 0.0, 0.0),
    "hardswish": (dnn.HARDSWISH, 1 / 6, 0.5),
    "hardsigmoid": (dnn.HARDSIGMOID, 1 / 6, 0.5),
    "silu": (dnn.SWISH, 1.0, 0.0),
    "sigmoid": (dnn.LOGISTIC, 0.0, 0.0),
}
_BOUNDED = frozenset(["clamp", "hardtanh"])
#: What pools by the largest element.
_MAXIMA = (pooling_max.max_pool, pooling_max.max_pool_values)
_SUM = "add"

_Post = tuple[int, float, float, int, bool]


class ConvolutionFuser(Fuser):
    """Runs convolutions, and what lies between them, as one call of oneDNN."""

    name = "convolutions"
    device_type = "cpu"
    priority = 10

    def regions(self, program: FusionProgram) -> Iterable[Region]:
        """Return groups with at least one convolution."""
        numbers = [number for number in sorted(program.free) if _is_served(program, number)]
        for group in step_groups(program, numbers, lambda *_: True, _STEPS, _ARRAYS, False):
            kept = _from_convolutions(program, group.steps)
            steps: list[Any] = [program.steps[number] for number in kept]
            work = sum([_work(program, step) for step in steps if _is_convolution(step)])
            if work >= _LEAST and len(steps) > 1:
                yield Region(tuple(kept), work)

    def compile(
        self,
        program: FusionProgram,
        region: Region,
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> FusedCall | None:
        """Return the network; None if oneDNN does not have it."""
        facts = program.arrays
        if not all([is_dense(*facts[place][:2]) for place in outputs]):
            return None
        network = dnn.Network()
        try:
            _Builder(program, region, network).build(inputs, outputs)
        except dnn.Unsupported:
            return None
        network.finish()
        taken = [
            number for number, place in enumerate(inputs) if not _is_weight(program, region, place)
        ]
        if len(taken) == len(inputs):
            return network.__call__
        return lambda arrays: network([arrays[number] for number in taken])


class _Builder:
    def __init__(self, program: FusionProgram, region: Region, network: dnn.Network) -> None:
        self.program = program
        self.region = region
        self.inside = frozenset(region.steps)
        self.network = network
        self.values: dict[int, int] = {}
        self.given: set[int] = set()
        self.done: set[int] = set()

    def build(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        facts = self.program.arrays
        for place in inputs:
            if _is_weight(self.program, self.region, place):
                continue
            if not is_dense(*facts[place][:2]):
                raise dnn.Unsupported
            self.values[place] = self.network.input(
                tuple(facts[place].shape), tuple(facts[place].strides)
            )
            self.given.add(place)
        for number in sorted(self.region.steps):
            if number not in self.done:
                self.done.add(number)
                self._add(self._step(number))
        for place in outputs:
            self.network.output(
                self.values[place], tuple(facts[place].shape), tuple(facts[place].strides)
            )

    def _step(self, number: int) -> FusionStep:
        step = self.program.steps[number]
        assert step is not None
        return step

    def _add(self, step: FusionStep) -> None:
        program, arguments, values, network = (
            self.program,
            step.arguments,
            self.values,
            self.network,
        )
        place = arguments[0].place
        source, out = values[place], step.outputs[0]
        shape, result = tuple(program.arrays[place].shape), tuple(program.arrays[out].shape)
        if _is_convolution(step):
            self._convolve(step, source, shape, result)
        elif step.kernel in _MAXIMA:
            kernel, stride, padding, dilation, _ = map(_tuple, arguments[1:])
            values[out] = network.pool(
                source, dnn.MAX, shape, result, kernel, stride, padding, dilation
            )
        elif step.kernel is pooling_average.avg_pool:
            kernel, stride, padding = map(tuple, arguments[1:4])
            kind = dnn.MEAN if arguments[5] else dnn.MEAN_WITHOUT_PADDING
            ones = (1,) * len(kernel)
            values[out] = network.pool(source, kind, shape, result, kernel, stride, padding, ones)
        elif step.op == _SUM:
            values[out] = network.sum(source, values[arguments[1].place])
        else:
            found = _function(step)
            assert found is not None
            values[out] = network.function(source, *found)

    def _convolve(
        self, step: FusionStep, source: int, shape: tuple[int, ...], result: tuple[int, ...]
    ) -> None:
        _, weight, bias, stride, padding, dilation, count = step.arguments
        out, place, done = step.outputs[0], step.arguments[0].place, self.done.copy()
        for with_depthwise in (True, False) if _is_pointwise(self.program, step) else (False,):
            self.done = done.copy()
            last, posts, more = self._follow(out, place, with_depthwise)
            try:
                self.values[last] = self.network.convolution(
                    source, shape, self._constant(weight), self._constant(bias), result,
                    tuple(stride), tuple(padding), tuple(dilation), count, posts, more,
                )  # fmt: skip
            except dnn.Unsupported:
                if not more:
                    raise
            else:
                return

    def _constant(self, operand: Operand | None) -> Any:
        return None if operand is None else self.program.constant(operand.place)

    def _follow(
        self, out: int, source: int, with_depthwise: bool
    ) -> tuple[int, list[_Post], tuple[Any, ...]]:
        """Return what a convolution can do with its result, and the place of what comes of that."""
        program = self.program
        posts: list[_Post] = []
        depthwise: tuple[Any, ...] = ()
        while out not in program.results and len(posts) < 6:
            users = program.users(out)
            if len(users) != 1 or users[0] not in self.inside:
                break
            step = self._step(users[0])
            found = _function(step)
            if found is not None:
                posts.append((*found, 0, False))
            elif (
                with_depthwise
                and not depthwise
                and all([kind != dnn.ADD for kind, *_ in posts])
                and _is_depthwise(program, step)
            ):
                depthwise = (
                    self._constant(step.arguments[1]),
                    self._constant(step.arguments[2]),
                    step.arguments[3][0],
                )
                posts.append((dnn.DEPTHWISE, 0.0, 0.0, 0, False))
            elif step.op == _SUM and not depthwise:
                places = [operand.place for operand in step.arguments]
                other = places[1] if places[0] == out else places[0]
                if other == out or other not in self.values:
                    break
                done = {*self.done, users[0]}
                over = (
                    not posts
                    and other
                    not in {source, *self.given}  # it reads the one, others are the caller's
                    and other not in program.results
                    and done.issuperset(program.users(other))
                )
                posts.append((dnn.ADD, 0.0, 0.0, self.values[other], over))
            else:
                break
            self.done.add(users[0])
            out = step.outputs[0]
        return out, posts, depthwise


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, (tuple, list)) else value


def _is_convolution(step: FusionStep) -> bool:
    return step.kernel is convolution.convolution


def _is_pointwise(program: FusionProgram, step: FusionStep) -> bool:
    """Return whether a convolution is 1×1, and of all channels."""
    _, weight, _, stride, padding, _, count = step.arguments
    plain = (*stride, *padding, count) == (1, 1, 0, 0, 1)
    return plain and tuple(program.arrays[weight.place].shape[2:]) == (1, 1)


def _is_depthwise(program: FusionProgram, step: FusionStep) -> bool:
    """Return whether a step is a convolution of each channel that oneDNN can do with a 1×1 one."""
    if not _is_convolution(step):
        return False
    _, weight, _, stride, padding, dilation, count = step.arguments
    filters, *rest = program.arrays[weight.place].shape
    return (
        (filters, rest) == (count, [1, 3, 3])
        and tuple(stride) in ((1, 1), (2, 2))
        and (*padding, *dilation) == (1, 1, 1, 1)
    )


def _from_convolutions(program: FusionProgram, steps: Iterable[int]) -> list[int]:
    """Return the steps but those before the first convolution: outside of its layouts oneDNN pools slowly."""
    kept: list[int] = []
    made: set[int] = set()
    for number in sorted(steps):
        step = program.steps[number]
        assert step is not None
        if _is_convolution(step) or not made.isdisjoint(step.inputs):
            kept.append(number)
            made.update(step.outputs)
    return kept


def _is_served(program: FusionProgram, number: int) -> bool:
    """Return whether a step is a primitive of oneDNN, on float32 images."""
    step = program.steps[number]
    assert step is not None
    facts = program.arrays
    if step.view or not step.inputs or not isinstance(step.arguments[0], Operand):
        return False
    shape = facts[step.outputs[0]].shape
    if not 3 <= len(shape) <= 5 or not prod(shape):
        return False
    if any([facts[place].dtype.name != "float32" for place in (*step.inputs, step.outputs[0])]):
        return False
    if _is_convolution(step):
        _, weight, bias = step.arguments[:3]
        if convolution_few_channels.is_without_layout(facts[weight.place].shape):
            return False
        return facts[weight.place].constant and (bias is None or facts[bias.place].constant)
    if step.kernel in _MAXIMA:
        return not any([program.users(o) or o in program.results for o in step.outputs[1:]])
    if step.kernel is pooling_average.avg_pool:
        _, _, _, _, ceil_mode, _, divisor = step.arguments
        return divisor is None and not ceil_mode
    if not is_loop(program, step):
        return False
    if step.op == _SUM:
        return len(step.inputs) == 2 and all([facts[place].shape == shape for place in step.inputs])
    return _function(step) is not None


def _function(step: FusionStep) -> tuple[int, float, float] | None:
    """Return oneDNN's function for a step, with its numbers."""
    if step.op in _BOUNDED:
        low, high = step.arguments[1:]
        numbers = isinstance(low, (int, float)) and isinstance(high, (int, float)) and low <= high
        return (dnn.CLIP, float(low), float(high)) if numbers else None
    return _FUNCTIONS.get(step.op)


def _is_weight(program: FusionProgram, region: Region, place: int) -> bool:
    """Return whether an array goes into convolutions of a region only as weight or bias."""
    users = [program.steps[number] for number in program.users(place) if number in region.steps]
    return program.arrays[place].constant and all(
        [
            step is not None and _is_convolution(step) and step.arguments[0] != Operand(place)
            for step in users
        ]
    )


def _work(program: FusionProgram, step: FusionStep) -> float:
    """Return how many products a convolution takes."""
    weight = program.arrays[step.arguments[1].place].shape
    return float(prod(program.arrays[step.outputs[0]].shape)) * prod(weight[1:])
