"""Writes in place inside of transforms: what comes out is what the program without the write gives."""

import os
import random

import pytest
from tests.autograd.test_random_programs import ERRORS, PLAIN, VIEWS, WRITES, made, step

import tensorplug as tp
from tensorplug.autograd.forward import forward_mode
from tensorplug.core.device.dtypes import float64
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.func import grad, hessian, jacfwd, jacrev, jvp, vmap
from tensorplug.testing import cases, making
from tensorplug.testing.comparison import assert_close
from tensorplug.testing.records import all_records

tp.nn  # noqa: B018  # its ops have records too

RECORDS = [
    record for record in all_records() if float64 in record.dtypes and not get_op(record.op).random
]
SLICES = 6
LARGEST = 24  # elements of all points


def drawn(record, count):
    """Yield samples of float64 with the tensors to differentiate for, `count` at most."""
    for sample in cases.samples_of(record, "cpu", float64):
        found = cases.tensors_in((sample.args, sample.kwargs))
        points = [t for t in {id(t): t for t in found}.values() if t.is_floating_point()]
        if points and 0 < sum(point.numel() for point in points) <= LARGEST and count:
            count -= 1
            yield (
                sample,
                [point.detach() for point in points],
                {id(p): n for n, p in enumerate(points)},
            )


def with_values(sample, places, values):
    def swap(tensor):
        return tensor.detach() if (number := places.get(id(tensor))) is None else values[number]

    return cases.map_tensors((sample.args, sample.kwargs), swap)


def programs(op, sample, places):
    """Return two functions: one writes the op's result into a tensor that the first argument gave."""

    def plain(*values):
        args, kwargs = with_values(sample, places, values)
        return op.call(*args, **kwargs)

    def writing(*values):
        args, kwargs = with_values(sample, places, values)
        target = args[0] * 1
        getattr(target, op.inplace)(*args[1:], **kwargs)
        return target

    return plain, writing


def weighted(function):
    def total(*values):
        result = function(*values)
        return (result * (tp.arange(result.numel(), dtype=float64) + 1).reshape(result.shape)).sum()

    return total


def transforms(count):
    every = tuple(range(count))
    return {
        "vmap": vmap,
        "jvp": lambda f: lambda *x: jvp(f, x, x),
        "jacfwd": lambda f: jacfwd(f, every),
        "vmap of grad": lambda f: vmap(grad(weighted(f), every)),
        "jvp of grad": lambda f: lambda *x: jvp(grad(weighted(f), every), x, x)[1],
        "grad of jvp": lambda f: grad(lambda *x: jvp(weighted(f), x, x)[1], every),
        "vmap of jvp of grad": lambda f: vmap(lambda *x: jvp(grad(weighted(f), every), x, x)[1]),
        "vmap of jacfwd": lambda f: vmap(jacfwd(f, every)),
        "hessian": lambda f: hessian(weighted(f), every),
        "jacrev of jacfwd": lambda f: jacrev(jacfwd(weighted(f), every), every),
    }


def flat(value):
    return list(cases.tensors_in(value if isinstance(value, tuple) else (value,)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(SLICES))
def test_what_is_written_has_the_derivatives_of_what_is_returned(part):
    wrong, count = [], 0
    for record in RECORDS[part::SLICES]:
        op = get_op(record.op)
        if op.inplace is None or op.layout or not record.gradient:
            continue
        for sample, points, places in drawn(record, 1):
            first = sample.args[0]
            plain, writing = programs(op, sample, places)
            if not isinstance(first, tp.Tensor) or plain(*points).shape != first.shape:
                continue
            for name, transform in transforms(len(points)).items():
                given = [tp.stack([p, p * 0.9]) for p in points] if "vmap" in name else points
                try:
                    expected = flat(transform(plain)(*given))
                except RuntimeError:  # not to be had without the write either
                    continue
                try:
                    for got, known in zip(flat(transform(writing)(*given)), expected, strict=True):
                        assert_close(got, known, equal_nan=True)
                    count += 1
                except Exception as error:
                    wrong.append(
                        f"{name} of {op.inplace} {sample}: {type(error).__name__} {error}"[:300]
                    )
    assert not wrong, "\n".join(wrong)
    assert count >= 100


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(SLICES))
def test_a_write_to_a_result_reaches_no_other_tangent(part):
    wrong, count = [], 0
    for record in RECORDS[part::SLICES]:
        op = get_op(record.op)
        if op.view or op.writes or not record.gradient:
            continue
        for sample, points, places in drawn(record, 2):

            def function(*values, op=op, sample=sample, places=places):
                kept = [value * 1 for value in values]
                args, kwargs = with_values(sample, places, kept)
                for result in flat(op.call(*args, **kwargs)):
                    if (
                        result._view is None
                        and result.is_floating_point()
                        and not any(result is k for k in kept)
                    ):
                        result.zero_()
                return tuple(kept)

            try:
                for pushed, point in zip(
                    jvp(function, tuple(points), tuple(points))[1], points, strict=True
                ):
                    assert_close(pushed, point)
                count += 1
            except NotImplementedError:
                continue
            except Exception as error:
                wrong.append(f"{op.name} {sample}: {type(error).__name__} {error}"[:300])
    assert not wrong, "\n".join(wrong)
    assert count >= 80


def test_a_column_s_write_into_a_tensor_that_is_not_batched():
    def function(x, zeros=tp.zeros):
        out = zeros(3, dtype=float64)
        out[0] = x[0] * 2
        shown = out[1:]
        shown.copy_(x[1:] ** 2)
        out[2].mul_(x[0])
        return out

    x = tp.tensor([2.0, 3.0, 4.0], dtype=float64)
    expected = [[2.0, 0.0, 0.0], [0.0, 6.0, 0.0], [16.0, 0.0, 16.0]]
    assert jacfwd(function)(x).tolist() == expected
    assert jacrev(function)(x).tolist() == expected
    batched = vmap(jacfwd(lambda x: function(x, x.new_zeros)))
    assert batched(tp.stack([x, x])).tolist() == [expected] * 2
    assert hessian(lambda x: function(x).sum())(x).tolist() == [
        [0.0, 0.0, 8.0], [0.0, 2.0, 0.0], [8.0, 0.0, 4.0]
    ]  # fmt: skip


def test_jacfwd_calls_the_function_on_tensors_that_are_not_batched():
    seen = []

    def function(x):
        seen.append(x.tolist())
        return x.exp() if x.sum().item() > 0 else x

    x = tp.tensor([1.0, 2.0], dtype=float64)
    assert_close(jacfwd(function)(x), tp.diag(x.exp()))
    assert seen == [[1.0, 2.0]]


# --- random programs -----------------------------------------------------------------------------

COUNT = max(25, int(os.environ.get("TENSORPLUG_FUZZ", "0")) // 20)
# Results whose tangents are those of their arguments.
SHIFTS = {
    "shifted": lambda x: x + 0.5,
    "spread": lambda x: x + tp.zeros(2, *x.shape, dtype=float64),
}
NAMES = (*VIEWS, *VIEWS, *PLAIN, *WRITES, *WRITES, *SHIFTS, *SHIFTS)
SHAPES = [(2, 3), (3,), (2, 2), (), (4,), (1, 3)]


def program_of(seed, trace):
    """Return a function of two tensors that views and writes what it makes.

    The first call notes which instructions fit; all others have to be able to do the same.
    """
    program = made(seed, NAMES)

    def function(x, y):
        constant = tp.arange(6.0, dtype=float64).sin().reshape(2, 3) + x.sum() * 0
        registers = [x * 1, y * 1, constant, x.new_zeros(x.shape) + x * 0]
        memory = list(range(4))
        for position, (name, a, b, number) in enumerate(program):
            i, j = a % len(registers), b % len(registers)
            one, other = registers[i], registers[j]
            if len(trace) > position and not trace[position]:
                continue
            if memory[i] == memory[j]:
                other = other.clone()
            try:
                new = (
                    SHIFTS[name](one)
                    if name in SHIFTS
                    else step(tp, name, one, other, number, [], [])
                )
            except ERRORS:
                if len(trace) > position:
                    raise
                trace.append(False)
                continue
            if len(trace) == position:
                trace.append(True)
            if new is not None:
                registers.append(new)
                memory.append(memory[i] if name in VIEWS else len(memory))
        chosen = random.Random(seed)
        live = [r for r in registers if r.numel() and chosen.random() < 0.6]
        return sum(((r.double() * (1 + n)).cos().sum() for n, r in enumerate(live)), x.sum() * 0)

    return function


def slopes(function, points, directions):
    """Return the value, the gradient and the Hessian's product with directions, by backward passes."""
    leaves = [point.clone().requires_grad_() for point in points]
    value = function(*leaves)
    first = tp.autograd.grad(value, leaves, create_graph=True, materialize_grads=True)
    along = sum((g * d).sum() for g, d in zip(first, directions, strict=True))
    second = [tp.zeros_like(point) for point in points]
    if along.requires_grad:
        second = tp.autograd.grad(along, leaves, materialize_grads=True)
    return value.detach(), [g.detach() for g in first], [g.detach() for g in second]


def product(rows, directions):
    """Return what a Hessian in blocks gives of directions."""
    return [
        sum(tp.tensordot(block, d, d.ndim) for block, d in zip(row, directions, strict=True))
        for row in rows
    ]


def check(seed):
    """Compare a program's transforms with its backward passes; return whether it has any."""
    source = random.Random(f"shapes {seed}")
    shapes = [source.choice(SHAPES) for _ in range(2)]
    making.seed(f"programs {seed}")
    batch = [tp.rand(2, *shape, dtype=float64) * 3 - 1.5 for shape in shapes]
    directions = [tp.rand(2, *shape, dtype=float64) for shape in shapes]
    function = program_of(seed, [])
    both = (0, 1)
    try:
        expected = [
            slopes(function, [x[n] for x in batch], [d[n] for d in directions]) for n in range(2)
        ]
    except RuntimeError as error:
        if "modified by an inplace operation" in str(error):  # it writes to what was saved
            return False
        raise

    def pushed(*given):
        return jvp(grad(function, both), given[:2], given[2:])[1]

    def by_hessian(*given):
        return product(hessian(function, both)(*given[:2]), given[2:])

    given = (*batch, *directions)
    values = vmap(function)(*batch)
    first_order = [vmap(transform(function, both))(*batch) for transform in (grad, jacfwd)]
    second_order = [vmap(function)(*given) for function in (pushed, by_hessian)]
    for n, (value, first, second) in enumerate(expected):
        assert_close(values[n], value)
        plain = [value[n] for value in given]
        for k in both:
            for found in first_order:
                assert_close(found[k][n], first[k], rtol=1e-6, atol=1e-9)
            for found in second_order:
                assert_close(found[k][n], second[k], rtol=1e-6, atol=1e-9)
            for found in (pushed(*plain), by_hessian(*plain)):
                assert_close(found[k], second[k], rtol=1e-6, atol=1e-9)
    return True


@pytest.mark.parametrize("part", range(5))
def test_random_programs(part):
    assert sum(map(check, range(part, COUNT, 5)))


@pytest.mark.parametrize("fault", ["storage_of", "without_target"])
def test_planted_faults_are_found(monkeypatch, fault):
    """Tangents that share memory; targets that nodes save, and that are written to then."""
    replaced = {"storage_of": lambda tensor: object(), "without_target": lambda args, kwargs: args}
    monkeypatch.setattr(forward_mode, fault, replaced[fault])
    with pytest.raises((AssertionError, RuntimeError)):
        list(map(check, range(COUNT)))
