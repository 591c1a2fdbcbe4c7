"""Results of every op, used within a compiled program and outside of it, and what autograd does with both.

A program returns what an op makes and what it makes of that; its arguments are no leaves, and are used again
outside. What is done with these after the call is the same for the program itself and compiled. Hooks of a
result see what comes from outside of the program, so they are compared where nothing else goes through it.
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


def total(tensors):
    return sum([(t * t).sum() if inexact(t) else t.abs().sum() for t in tensors])


def gradients(loss, leaves, **options):
    if not isinstance(loss, tp.Tensor) or not loss.requires_grad:
        return []
    found = tp.autograd.grad(loss, leaves, allow_unused=True, **options)
    return [gradient for gradient in found if gradient is not None]


def first(given, made, further, leaves):
    return gradients(total(made), leaves)


def second(given, made, further, leaves):
    return gradients(total(further), leaves)


def both(given, made, further, leaves):
    return gradients(total(made) + 3 * total(further), leaves)


def arguments_too(given, made, further, leaves):
    return gradients(total(made) + total(further) + total(given), leaves)


def results_written(given, made, further, leaves):
    for tensor in made:
        tensor.mul_(2)
    return both(given, made, further, leaves)


def arguments_written(given, made, further, leaves):
    for tensor in given:
        tensor.mul_(2)
    return both(given, made, further, leaves)


def twice(given, made, further, leaves):
    loss = total(made) + total(further)
    return [*gradients(loss, leaves, retain_graph=True), *gradients(loss, leaves)]


def second_order(given, made, further, leaves):
    found = gradients(total(made) + total(further), leaves, create_graph=True)
    return [*found, *gradients(total([t for t in found if t.requires_grad]), leaves)]


def hooked(given, made, further, leaves):
    made, seen = made[:1], []

    def double(gradient):
        seen.append(gradient.clone())
        return gradient * 2

    for tensor in made:
        tensor.register_hook(double)
    return [*first(given, made, further, leaves), *seen]


def retained(given, made, further, leaves):
    made = made[:1]  # others may be made of it
    for tensor in made:
        tensor.retain_grad()
    loss = total(made)
    if isinstance(loss, tp.Tensor) and loss.requires_grad:
        loss.backward()
    return [t.grad for t in (*made, *leaves) if t.grad is not None]


WAYS = [
    first, second, both, arguments_too, results_written, arguments_written, twice, second_order,
    hooked, retained,
]  # fmt: skip


WRITING = (results_written, arguments_written)


def outcome(program, tensors, way):
    """Return numbers of the results, and what a way makes of them; or the type of the error."""
    tp.manual_seed(1)
    leaves = [t.detach().clone().requires_grad_() for t in tensors]
    given = [t * 1.0 for t in leaves]
    made, further = program(*given)
    found = [t.detach().clone() for t in (*made, *further)]
    tracked = [[t for t in every if t.requires_grad] for every in (given, made, further, leaves)]
    try:
        found += [t.detach() for t in way(*tracked)]
    except RuntimeError as error:  # what backward needs was written
        return type(error)
    return found


def compare(record):
    """Return how many calls were compared, and how many of them ran as graphs."""
    op = get_op(record.op)
    sample = cases.samples_of(record, "cpu", tp.float64)[0]
    every = list(cases.tensors_in((sample.args, sample.kwargs)))
    changes = [inexact(t) for t in every]
    changing = [t for t in every if inexact(t)]
    if not changing or any(isinstance(value, tp.Generator) for value in sample.kwargs.values()):
        return 0, 0

    def program(*tensors):
        rest, given = iter(tensors), iter(changes)
        args, kwargs = cases.map_tensors(
            (sample.args, sample.kwargs), lambda t: next(rest) if next(given) else t
        )
        made = list(cases.tensors_in(op.call(*args, **kwargs)))
        return made, [t * 2 for t in made if inexact(t)]

    compiled = tp.compile(program)
    for way in WAYS:
        wanted, found = (outcome(which, changing, way) for which in (program, compiled))
        if isinstance(found, type) or (isinstance(wanted, type) and way is results_written):
            # The two halves of a graph keep other values than eager mode: other writes are in their way.
            assert way in WRITING, way.__name__
            continue
        if isinstance(
            wanted, type
        ):  # the graph needs nothing of what was written: as if it were not
            assert way is arguments_written, way.__name__
            wanted = outcome(program, changing, both)
        for one, other in zip(wanted, found, strict=True):
            assert one.dtype is other.dtype
            whole = np.abs(np.nan_to_num(one.numpy(), posinf=0, neginf=0)).max(initial=1)
            np.testing.assert_allclose(
                other.numpy(), one.numpy(), 1e-8, 1e-10 * whole, err_msg=way.__name__
            )
    return len(WAYS), compiled.explain().calls


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_ways(part):
    found = [compare(record) for record in RECORDS[part::PARTS]]
    compared, by_graph = (sum(column) for column in zip(*found, strict=True))
    assert compared > 1000
    assert by_graph > 0.5 * compared
