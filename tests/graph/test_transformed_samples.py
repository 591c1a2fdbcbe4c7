"""Samples of all ops in programs that differentiate them: gradients, jvp and vmap within what is compiled.

A derivative takes what its op kept, which other data make another one: each graph runs with data that it was
not captured with.
"""

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing import cases
from tensorplug.testing.records import all_records

RECORDS = sorted(
    [r for r in all_records() if r.gradient and tp.float64 in r.dtypes],
    key=lambda record: record.op,
)
PARTS = 4


def inexact(tensor):
    return tensor.dtype.is_floating_point


def taking(op, sample):
    """Return a function of the floating-point tensors among a call's arguments, and these."""
    given = [t for t in cases.tensors_in((sample.args, sample.kwargs)) if inexact(t)]

    def function(*tensors):
        rest = iter(tensors)
        args, kwargs = cases.map_tensors(
            (sample.args, sample.kwargs), lambda t: next(rest) if inexact(t) else t
        )
        results = [t for t in cases.tensors_in(op.call(*args, **kwargs)) if inexact(t)]
        return tuple(results)

    return function, given


def total(results):
    return sum([(t * t).sum() for t in results], tp.zeros((), dtype=tp.float64))


def gradient(function):
    return lambda *tensors: tp.func.grad(
        lambda *points: total(function(*points)), tuple(range(len(tensors)))
    )(*tensors)


def forward(function):
    return lambda *tensors: tp.func.jvp(function, tensors, tuple([t * 0.5 for t in tensors]))


def batched(function):
    return lambda *tensors: tp.vmap(function)(*[tp.stack([t, t * 0.5]) for t in tensors])


TRANSFORMS = {"gradient": gradient, "forward": forward, "batched": batched}


def same(wanted, found):
    wanted, found = (list(cases.tensors_in(value)) for value in (wanted, found))
    assert len(wanted) == len(found)
    for one, other in zip(wanted, found, strict=True):
        assert one.dtype is other.dtype
        np.testing.assert_allclose(
            other.detach().numpy(), one.detach().numpy(), rtol=1e-9, atol=1e-12
        )


def compare(record, transform):
    """Return how many calls were compared, and how many of them ran as graphs."""
    op = get_op(record.op)
    sample = cases.samples_of(record, "cpu", tp.float64)[0]
    function, given = taking(op, sample)
    if not given or any(isinstance(value, tp.Generator) for value in sample.kwargs.values()):
        return 0, 0
    program = TRANSFORMS[transform](function)
    compiled = tp.compile(program)
    compared = 0
    for scale in (1.0, 1.0, 0.75, 0.5):
        tensors = [(t.detach() * scale).requires_grad_(t.requires_grad) for t in given]
        tp.manual_seed(1)
        try:
            wanted = program(*tensors)
        except (RuntimeError, NotImplementedError, ValueError):  # not every op has each transform
            continue
        tp.manual_seed(1)
        same(wanted, compiled(*tensors))
        compared += 1
    return compared, compiled.explain().calls


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_samples(transform, part):
    found = [compare(record, transform) for record in RECORDS[part::PARTS]]
    compared, by_graph = (sum(column) for column in zip(*found, strict=True))
    assert compared > 200
    assert by_graph > 0.5 * compared
