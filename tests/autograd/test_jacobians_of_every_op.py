"""The Jacobian of every op by columns beside that by rows, and that derivatives keep no graph of their own.

A sample of each op; all of them where TENSORPLUG_FUZZ is set.
"""

import os

import pytest

import tensorplug as tp
from tensorplug.core.device.dtypes import float64
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.func import jacfwd, jacrev, jvp, vjp, vmap
from tensorplug.testing import cases
from tensorplug.testing.comparison import assert_close
from tensorplug.testing.records import all_records

tp.nn  # noqa: B018  # its ops have records too

SAMPLES = 1000 if "TENSORPLUG_FUZZ" in os.environ else 2
SLICES = 4
LARGEST = 30  # elements of all points
RECORDS = [
    record
    for record in all_records()
    if record.gradient and float64 in record.dtypes and not get_op(record.op).random
]


def programs(record):
    """Yield functions of the tensors of a sample, with these."""
    op, count = get_op(record.op), 0
    for sample in cases.samples_of(record, "cpu", float64):
        found = {
            id(t): t for t in cases.tensors_in((sample.args, sample.kwargs)) if t.dtype is float64
        }
        points = tuple([t.detach() for t in found.values()])
        if not 0 < sum(point.numel() for point in points) <= LARGEST or count == SAMPLES:
            continue
        count += 1
        places = {key: number for number, key in enumerate(found)}

        def function(*values, sample=sample, places=places):
            def moved(tensor):
                number = places.get(id(tensor))
                return tensor.detach() if number is None else values[number]

            args, kwargs = cases.map_tensors((sample.args, sample.kwargs), moved)
            results = tuple(cases.tensors_in((op.call(*args, **kwargs),)))
            return tuple([result for result in results if result.dtype is float64])

        yield str(sample), function, points


def flat(value):
    return list(cases.tensors_in((value,)))


def refused(error):
    return isinstance(error, NotImplementedError) or "vmap" in str(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(SLICES))
def test_columns_are_those_of_the_rows(part):
    wrong, count = [], 0
    for record in RECORDS[part::SLICES]:
        for sample, function, points in programs(record):
            every = tuple(range(len(points)))
            try:
                rows = flat(jacrev(function, every)(*points))
            except RuntimeError:  # nothing to differentiate
                continue
            both = [tp.stack([point, point]) for point in points]
            ways = {
                "jacfwd": lambda f=function, n=every, p=points: jacfwd(f, n)(*p),
                "vmap of jacfwd": lambda f=function, n=every, b=both: vmap(jacfwd(f, n))(*b),
            }
            for name, way in ways.items():
                try:
                    columns = [c[0] if "vmap" in name else c for c in flat(way())]
                    for got, known in zip(columns, rows, strict=True):
                        assert_close(got, known, rtol=1e-6, atol=1e-9, equal_nan=True)
                    count += 1
                except Exception as error:
                    if not refused(error):
                        wrong.append(
                            f"{name} of {record.op}{sample}: {type(error).__name__} {error}"[:300]
                        )
    assert not wrong, "\n".join(wrong)
    assert count > 100


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(SLICES))
def test_derivatives_of_constants_require_no_grad(part):
    kept, count = [], 0
    for record in RECORDS[part::SLICES]:
        for sample, function, points in programs(record):

            def pushed(*values, function=function):
                return jvp(function, values, values)[1]

            def pulled(*values, function=function):
                output, back = vjp(function, *values)
                return output, back(output)

            ways = {"jvp": pushed, "vjp": pulled, "jvp of jvp": lambda *v, f=pushed: jvp(f, v, v)}
            for name, way in ways.items():
                try:
                    found = flat(way(*points))
                except (RuntimeError, NotImplementedError):
                    continue
                count += 1
                if any(tensor.requires_grad for tensor in found):
                    kept.append(f"{name} of {record.op}{sample}")
    assert not kept, "\n".join(kept)
    assert count > 150
