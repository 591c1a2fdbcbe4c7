"""A seed gives the same numbers by these kernels as by those below, from every op that draws."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import get_op, kernel_below
from tensorplug.testing.cases import Maker
from tensorplug.testing.records import OpRecord, Sample, all_records

# Logarithm and cosine are rounded, and sums of what they give.
NEAR = {"float64": 1e-12, "complex128": 1e-12, "float16": 2e-3, "bfloat16": 2e-2}
RECORDS = [record for record in all_records() if get_op(record.op).random]


def drawn(record: OpRecord, sample: Sample) -> tuple[list[Any], list[int]]:
    """Return what a call gives from a seed on, and where that leaves the generator."""
    generator = tp.manual_seed(7)
    if "generator" in sample.kwargs:
        generator = sample.kwargs["generator"].manual_seed(7)
    tp.rand(3, generator=generator)
    found = get_op(record.op).call(*sample.args, **sample.kwargs)
    tensors = [t for t in (found if isinstance(found, tuple) else (found,)) if t is not None]
    return tensors, generator.get_state().tolist()


def samples(record: OpRecord) -> Iterator[tuple[Any, Sample]]:
    for dtype in record.dtypes:
        for sample in record.samples(Maker("cpu", dtype), dtype):
            yield dtype, sample


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.op)
def test_a_seed_gives_the_same_numbers_below(record: OpRecord) -> None:
    count = 0
    for dtype, sample in samples(record):
        ours, ours_left = drawn(record, sample)
        with tp.prefer("cpu_numpy"):
            theirs, theirs_left = drawn(record, sample)
        assert ours_left == theirs_left, (dtype, sample)
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape), sample
            near = NEAR.get(dtype.name, 1e-5)
            a, b = (np.asarray(t.detach().cpu().tolist()) for t in (one, other))
            np.testing.assert_allclose(a, b, near, near, err_msg=f"{dtype.name} {sample}")
        count += 1
    assert count > 2


def test_all_that_draw_are_looked_at() -> None:
    names = {record.op for record in RECORDS}
    assert {"rand", "randint", "normal", "bernoulli", "multinomial", "random.uniform"} <= names
    assert {"uniform_new", "normal_new", "integers_new", "bernoulli_new"} <= names


@pytest.mark.parametrize("offset", [0, 2**64 - (1 << 20) - 2, 2**70])
@pytest.mark.parametrize("dtype", [tp.float32, tp.float64], ids=str)
def test_pieces_of_many_numbers_begin_where_the_last_one_ended(dtype: Any, offset: int) -> None:
    count, cpu = (1 << 22) + 1001, tp.device("cpu")
    for name, more in (("uniform_new", ()), ("normal_new", ()), ("bernoulli_new", (0.3,))):
        values = ((count,), 3, offset, dtype, cpu, *more)
        found = get_op(name).call(*values)
        body = kernel_below(name, "cpu", dtype, "cpu_cython")
        np.testing.assert_allclose(found.numpy(), body(*values), 1e-5, 1e-5, err_msg=name)
