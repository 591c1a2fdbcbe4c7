"""Writes in place inside of transforms: what comes out is what the program without the write gives."""

import pytest

import tensorplug as tp
from tensorplug.core.device.dtypes import float64
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.func import grad, hessian, jacfwd, jacrev, jvp, vmap
from tensorplug.testing import cases
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
                except (
                    NotImplementedError,
                    RuntimeError,
                ):  # not to be had without the write either
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
