"""What is joined, turned and copied is one step of a compiled program, and the program's bit for bit."""

import itertools
import random

import pytest

import tensorplug as tp
from tensorplug.core.plugins import manager
from tensorplug.graph.steps import FusedStep


def ops_of(compiled):
    """Return the names of the ops of the one program of a compiled function."""
    (entry,) = [e for entries in compiled._entries.values() for e in entries]
    found = []
    for step in entry.program.steps:
        parts = step.steps if isinstance(step, FusedStep) else [step]
        found += [part.op.name for part in parts if hasattr(part, "op")]
    return found


def compared(program, *shapes):
    """Compare a program with itself compiled, in three calls; return the ops."""
    compiled = tp.compile(program)
    for seed in range(3):
        tp.manual_seed(seed)
        given = [tp.randn(shape) for shape in shapes]
        with tp.no_grad():
            copies = [x.clone() for x in given]
            a, b = program(*given), compiled(*copies)
        assert a.stride() == b.stride()
        assert tp.equal(a, b)
        assert all(map(tp.equal, given, copies))
    return ops_of(compiled)


def cases():
    drawn = random.Random(0)
    for name, rank in itertools.product(("stack", "cat"), (2, 3, 4)):
        for _ in range(4):
            sizes = [drawn.randint(2, 4) for _ in range(rank - (name == "stack"))]
            dims = drawn.sample(range(rank), rank)
            if dims == sorted(dims):
                dims.reverse()
            yield name, drawn.randrange(rank), tuple(sizes), tuple(dims)


@pytest.mark.parametrize(("name", "dim", "sizes", "dims"), [*cases()])
def test_joined_in_order(name, dim, sizes, dims):
    join = getattr(tp, name)
    ops = compared(
        lambda x, y: join([x, y * 2, x.exp()], dim).permute(dims).contiguous().flatten(),
        sizes,
        sizes,
    )
    assert ops.count(name) == 1
    if manager.fusers_of("cpu"):  # NumPy joins what lies turned in that order
        assert "clone" not in ops


@pytest.mark.parametrize(
    "program",
    [
        lambda x, y: (s := tp.stack([x, y])).permute(1, 2, 0).contiguous() + s.sum(),
        lambda x, y: (t := tp.stack([x, y]).permute(1, 2, 0)).contiguous() + t,
        lambda x, y: (s := tp.cat([x, y])).t().contiguous() * s[:1, :1],
        lambda x, y: tp.stack([x, y]).permute(1, 2, 0).clone(),  # in the order that it has
        lambda x, y: tp.stack([x, y]).permute(1, 2, 0),
        lambda x, y: tp.cat([x, x], 1).t().contiguous(),
        lambda x, y: tp.stack([x, x.t().contiguous().t()]).permute(2, 0, 1).contiguous(),
    ],
)
def test_what_others_use_stays(program):
    compared(program, (3, 4), (3, 4))


def test_what_is_written_before_the_copy():
    def program(x, y):
        x = x * 1
        joined = tp.stack([x, y]).permute(1, 2, 0)
        x.add_(1)
        x.bernoulli_(0.5, generator=None)
        return joined.contiguous()

    compared(program, (3, 4), (3, 4))


def test_gradients_of_what_was_taken_apart():
    def program(x, weight):
        q, k, v = (x @ weight).reshape(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        return (q * k.tanh() + v.sigmoid()).square().sum()

    compiled = tp.compile(program)
    for seed in range(3):
        tp.manual_seed(seed)
        found = []
        given = tp.randn(2, 5, 8), tp.randn(8, 24)
        for run in (program, compiled):
            sources = [x.clone().requires_grad_() for x in given]
            run(*sources).backward()
            found.append([x.grad for x in sources])
        for a, b in zip(*found, strict=True):
            assert a.stride() == b.stride()
            tp.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)
    (entry,) = [e for entries in compiled._entries.values() for e in entries]
    (training,) = entry.trainings.values()
    (backward,) = training.backward.values()
    steps = [s for step in backward.steps for s in getattr(step, "steps", [step])]
    names = [step.op.name for step in steps]
    assert "stack" in names
    assert "clone" not in names
