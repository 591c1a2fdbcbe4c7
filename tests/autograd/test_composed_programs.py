"""Programs of three to six ops, drawn from the whole table: second derivatives, by every way there is.

A step moves one or two tensors of an op's sample by what the steps before gave, so that it stays where the op
is defined; complex samples by its halves. The gradient, the product of the Hessian with a direction, and the
Hessian are made by ``jvp``, ``vjp``, ``jacfwd``, ``jacrev``, ``hessian`` and ``vmap`` of each other, and held
to what backward passes give, sample by sample, and those to measured slopes.
"""

import os
import random
from functools import cache

import pytest

import tensorplug as tp
from tensorplug.core.device.dtypes import complex128, float64
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from tensorplug.testing import cases, making
from tensorplug.testing.comparison import assert_close
from tensorplug.testing.records import all_records

tp.nn  # noqa: B018  # its ops have records too

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "120"))
SLICES = 6
SIZE, WIDEST, LARGEST = 3, 6, 40  # of the input, of what a step hands on, of a sample's tensors
POINTS = 2
TRIED = 4  # of the ways, for a program
RECORDS = [
    record
    for record in all_records()
    if (op := get_op(record.op)) and record.gradient and not op.random and not op.writes
]


@cache
def samples_of(op, dtype):
    record = next(record for record in RECORDS if record.op == op)
    if dtype not in record.dtypes:
        return ()
    making.seed(f"composed {op}")
    return tuple(
        [
            sample
            for sample in cases.samples_of(record, "cpu", dtype)
            if 0 < sum(t.numel() for t in cases.tensors_in((sample.args, sample.kwargs))) <= LARGEST
        ]
    )


def drawn_steps(source):
    """Return the calls of a program: an op, its sample, and which of its tensors move."""
    steps = []
    while len(steps) < source.randint(3, 6):
        record = source.choice(RECORDS)
        dtype = float64 if source.random() < 0.75 else complex128
        samples = samples_of(record.op, dtype)
        if not samples:
            continue
        sample = source.choice(samples)
        found = {
            id(t): t for t in cases.tensors_in((sample.args, sample.kwargs)) if t.dtype is dtype
        }
        if found:
            moved = source.sample(sorted(found), min(len(found), source.randint(1, 2)))
            steps.append((get_op(record.op), sample, {key: found[key] for key in moved}))
    return steps


def spread(value, tensor, number):
    """Return small numbers of a tensor's shape and dtype, made of a vector."""
    count = tensor.numel()
    wide = (value * (1 + 0.1 * number)).repeat(-(-2 * count // value.numel()))
    small = 0.05 * tp.sin(wide + tp.arange(wide.numel(), dtype=float64))
    real = small[:count].reshape(tensor.shape)
    if not tensor.is_complex():
        return real
    return tp.complex(real, small[count : 2 * count].reshape(tensor.shape))


def taken(call, value):
    """Return the vector that a step hands on."""
    op, sample, moved = call
    places = {key: number for number, key in enumerate(moved)}

    def moving(tensor):
        number = places.get(id(tensor))
        return (
            tensor.detach() if number is None else tensor.detach() + spread(value, tensor, number)
        )

    args, kwargs = cases.map_tensors((sample.args, sample.kwargs), moving)
    parts = []
    for result in cases.tensors_in((op.call(*args, **kwargs),)):
        if result.is_complex():
            parts += [result.real.reshape(-1)[:WIDEST], result.imag.reshape(-1)[:WIDEST]]
        elif result.is_floating_point():
            parts.append(result.reshape(-1)[:WIDEST].double())
    parts = [part for part in parts if part.numel()]
    if not parts:
        return value
    whole = tp.cat(parts)[:WIDEST]
    return whole * (1 + whole * whole).rsqrt()


def program_of(steps):
    def function(x):
        value = x
        for step in steps:
            value = taken(step, value) + 0.3 * x.sum()
        return (value * (tp.arange(value.numel(), dtype=float64) + 1).cos()).sum()

    return function


def slopes(function, x, direction):
    """Return the gradient, and the Hessian's product with a direction, by two backward passes."""
    leaf = x.clone().requires_grad_()
    (first,) = tp.autograd.grad(function(leaf), leaf, create_graph=True)
    second = tp.zeros_like(x)
    if first.requires_grad:
        (second,) = tp.autograd.grad(first @ direction, leaf, materialize_grads=True)
    return first.detach(), second


def one():
    return tp.ones((), dtype=float64)


def pushed_twice(f, x, v):
    rows = tp.eye(SIZE, dtype=float64)
    return tp.stack([jvp(lambda x: jvp(f, (x,), (v,))[1], (x,), (row,))[1] for row in rows])


FIRST = {
    "grad": lambda f: lambda x, v: (grad(f)(x),),
    "vjp": lambda f: lambda x, v: (vjp(f, x)[1](one())[0],),
    "jacfwd": lambda f: lambda x, v: (jacfwd(f)(x),),
}
WAYS = {
    **FIRST,
    "jvp of grad": lambda f: lambda x, v: jvp(grad(f), (x,), (v,)),
    "jvp of vjp": lambda f: lambda x, v: jvp(lambda x: vjp(f, x)[1](one())[0], (x,), (v,)),
    "grad of jvp": lambda f: lambda x, v: (grad(lambda x: jvp(f, (x,), (v,))[1])(x),),
    "vjp of grad": lambda f: lambda x, v: (vjp(grad(f), x)[1](v)[0],),
    "jvp of jvp": lambda f: lambda x, v: (pushed_twice(f, x, v),),
    "hessian": lambda f: lambda x, v: (hessian(f)(x) @ v,),
    "jacrev of jacfwd": lambda f: lambda x, v: (jacrev(jacfwd(f))(x) @ v,),
    "jacrev of jacrev": lambda f: lambda x, v: (jacrev(jacrev(f))(x) @ v,),
    "jacfwd of jacfwd": lambda f: lambda x, v: (jacfwd(jacfwd(f))(x) @ v,),
}


def refused(error):
    """Return whether an error says that there is no such derivative, or none of batched values."""
    return isinstance(error, NotImplementedError) or "vmap" in str(error)


def check(seed):
    """Return what is wrong with a program's derivatives, and how many were compared."""
    source = random.Random(f"composed {seed}")
    steps = drawn_steps(source)
    said = " → ".join(f"{op.name}{str(sample)[:60]}" for op, sample, _ in steps)
    function = program_of(steps)
    making.seed(f"composed {seed}")
    xs, vs = (tp.rand(POINTS, SIZE, dtype=float64) - 0.5 for _ in range(2))
    try:
        known = [slopes(function, x, v) for x, v in zip(xs, vs, strict=True)]
    except RuntimeError:  # no derivative of such an order, or integers where numbers are asked for
        return [], 0
    if not all(t.isfinite().all() for pair in known for t in pair):
        return [], 0
    wrong, count = [], 0
    for (first, _), x, v in zip(known, xs, vs, strict=True):
        step = 1e-6
        measured = (function(x + step * v) - function(x - step * v)) / (2 * step)
        if abs(measured - first @ v) > 1e-4 * (1 + abs(measured)):
            wrong.append(f"slope {measured.item()} for {(first @ v).item()}: {said}")
    expected = [tp.stack(parts) for parts in zip(*known, strict=True)]
    for name in source.sample(sorted(WAYS), TRIED):
        way, batched = WAYS[name](function), source.random() < 0.5
        try:
            if batched:
                found = vmap(way)(xs, vs)
            else:
                each = [way(x, v) for x, v in zip(xs, vs, strict=True)]
                found = [tp.stack(parts) for parts in zip(*each, strict=True)]
            # The last is the product with the direction, unless the way makes gradients alone.
            wanted = expected[: len(found)] if name in FIRST else expected[-len(found) :]
            for got, value in zip(found, wanted, strict=True):
                assert_close(got, value, rtol=1e-6, atol=1e-8)
                count += 1
        except Exception as error:
            if not refused(error):
                kind = "" if isinstance(error, AssertionError) else type(error).__name__
                where = f"{name}{' in vmap' * batched}"
                wrong.append(f"{where}: {kind} {str(error)[-300:]}: {said}")
    return wrong, count


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(SLICES))
def test_derivatives_of_second_order(part):
    wrong, count = [], 0
    for seed in range(part, COUNT, SLICES):
        found, compared = check(seed)
        wrong += found
        count += compared
    assert not wrong, "\n".join(wrong)
    assert count > COUNT // SLICES
