"""Compiled programs and ``autocast``, around a call or within it: graphs hold its casts, by its settings."""

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.core.dispatch.layers import Layer
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.graph import capture
from tensorplug.testing import cases
from tensorplug.testing.records import all_records

RECORDS = sorted(
    [r for r in all_records() if tp.float32 in r.dtypes and "empty" not in r.op],
    key=lambda record: record.op,
)
PARTS = 4
CONTEXTS = {
    "plain": lambda: tp.autocast("cpu", enabled=False),
    "bfloat16": lambda: tp.autocast("cpu", tp.bfloat16),
    "float16": lambda: tp.autocast("cpu", tp.float16),
    "not kept": lambda: tp.autocast("cpu", tp.bfloat16, cache_enabled=False),
}


def within(program):
    """Return a program that has autocast on for itself."""

    def casting(*tensors):
        with tp.autocast("cpu", tp.bfloat16):
            return program(*tensors)

    return casting


def differentiating(program):
    """Return a program that computes gradients, of what autocast converts."""

    def gradients(*tensors):
        def total(*points):
            results = cases.tensors_in(program(*points))
            return sum([t.float().square().sum() for t in results if t.is_floating_point()])

        return tp.func.grad(total, tuple(range(len(tensors))))(*tensors)

    return gradients


PLACES = {"around": lambda program: program, "within": within, "gradients": differentiating}


def numbers(tensor):
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype in (tp.bfloat16, tp.float16) else tensor).numpy()


def same(wanted, found, rtol=0.0):
    for one, other in zip(wanted, found, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.dtype is other.dtype
            np.testing.assert_allclose(numbers(other), numbers(one), rtol, atol=0.1 * rtol)


def outcome(program, tensors, context):
    """Return the results of a call within a context, and the gradients of their sum."""
    tp.manual_seed(1)
    given = [
        t.detach().clone().requires_grad_() if t.requires_grad else t.detach().clone()
        for t in tensors
    ]
    with context():
        found = list(cases.tensors_in(program(*given)))
    sums = [t.abs().sum().float() for t in found if t.requires_grad]
    needed = [t for t in given if t.requires_grad]
    return found, tp.autograd.grad(sum(sums), needed, allow_unused=True) if sums else ()


def compare(record, place):
    """Return how many calls were compared, and how many of them ran as graphs."""
    op = get_op(record.op)
    sample = cases.samples_of(record, "cpu", tp.float32)[0]
    if any(isinstance(value, tp.Generator) for value in sample.kwargs.values()):
        return 0, 0
    every = [
        t.detach().clone().requires_grad_(t.is_floating_point() and place != "gradients")
        for t in cases.tensors_in((sample.args, sample.kwargs))
    ]
    changes = [place != "gradients" or t.is_floating_point() for t in every]
    changing = [t for t, its in zip(every, changes, strict=True) if its]
    if not changing:
        return 0, 0

    def program(*tensors):
        rest, given = iter(tensors), iter(changes)
        args, kwargs = cases.map_tensors(
            (sample.args, sample.kwargs), lambda t: next(rest) if next(given) else t
        )
        return op.call(*args, **kwargs)

    program = PLACES[place](program)
    compiled = tp.compile(program)
    compared = 0
    for name in ("bfloat16", "plain", "bfloat16", "bfloat16", "float16", "float16"):
        try:
            results, gradients = outcome(program, changing, CONTEXTS[name])
        except (RuntimeError, ValueError, TypeError):
            continue  # what autocast refuses, and what has no gradient
        others, other_gradients = outcome(compiled, changing, CONTEXTS[name])
        rtol = 1e-5 if place == "gradients" else 0.0  # sums in another order
        if record.op == "linalg_pinv":
            rtol = 0.05  # in half precision, of what it consists of rather than by its formula
        same(results, others, rtol)
        same(gradients, other_gradients, rtol)
        compared += 1
    return compared, compiled.explain().calls


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of deprecated ops
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("place", PLACES)
def test_samples(place, part):
    found = [compare(record, place) for record in RECORDS[part::PARTS]]
    compared, by_graph = (sum(column) for column in zip(*found, strict=True))
    assert compared > 700
    assert by_graph > 0.4 * compared


def network():
    tp.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 8), nn.Linear(8, 2)
    )


def test_each_context_has_a_graph():
    model = network()
    compiled = tp.compile(model)
    x = tp.rand(4, 6)
    for name in [*CONTEXTS, *reversed(CONTEXTS), *CONTEXTS]:
        with CONTEXTS[name]():
            wanted, found = model(x), compiled(x)
        assert found.dtype is wanted.dtype
        assert tp.equal(found, wanted)
    explained = compiled.explain()
    assert len(explained.graphs) == explained.captures == len(CONTEXTS)
    assert not explained.eager
    assert "within autocast cpu tensorplug.float16" in str(explained)


def test_casts_made_before_are_not_constants():
    model = network()
    compiled = tp.compile(model)
    x = tp.rand(4, 6)
    for step in range(4):
        with tp.autocast("cpu", tp.bfloat16):
            wanted = model(x)  # whose casts of parameters are kept
            found = compiled(x)
            assert tp.equal(model(x), wanted)
        assert tp.equal(found, wanted)
        with tp.no_grad():
            for parameter in model.parameters():
                parameter.mul_(0.5 + step)


def test_training_with_scaled_losses():
    def trained(compiled):
        model = network()
        run = tp.compile(model) if compiled else model
        optimizer = tp.optim.AdamW(model.parameters(), lr=0.05)
        scaler = tp.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=2)
        losses = []
        for step in range(8):
            optimizer.zero_grad()
            x = tp.full((4, 6), 0.1 * step)
            with tp.autocast("cpu", tp.float16):
                loss = nn.functional.mse_loss(run(x), tp.ones(4, 2))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append((loss.item(), scaler.get_scale()))
        return losses, list(model.parameters())

    losses, parameters = trained(compiled=False)
    others, other_parameters = trained(compiled=True)
    assert losses == others
    same(parameters, other_parameters)


@pytest.mark.parametrize("operands", [2, 3])
def test_ops_within_which_is_cast(operands):
    equation = {2: "ij,jk->ik", 3: "ij,jk,kl->il"}[operands]

    def program(*tensors):
        with tp.autocast("cpu", tp.bfloat16):
            return tp.einsum(equation, *tensors)

    tensors = [tp.rand(3, 3) for _ in range(operands)]
    compiled = tp.compile(program)
    for _ in range(4):
        same([program(*tensors)], [compiled(*tensors)])
    assert compiled.explain().calls > 1
    graph = capture(program, *tensors)
    same([program(*tensors)], [graph(*tensors)])


class Seen(Layer):
    name = "seen"

    def __init__(self):
        self.ops = []

    def __call__(self, op, args, kwargs, proceed):
        self.ops.append(op.name)
        return proceed(*args, **kwargs)


def test_other_layers_see_the_ops():
    compiled = tp.compile(lambda x: x.sin() + 1)
    for _ in range(3):
        compiled(tp.ones(3))
    x, seen = tp.ones(3), Seen()
    with seen.active():
        compiled(x)
    assert seen.ops == ["sin", "add"]
