"""Gradients for a batch of seeds at once, over all records: the same as for each seed alone."""

from __future__ import annotations

import pytest

import tensorplug as tp
from tensorplug.autograd import grad
from tensorplug.core.device.dtypes import complex128, float64
from tensorplug.testing import making
from tensorplug.testing.cases import gradient_cases
from tensorplug.testing.comparison import assert_close
from tensorplug.testing.records import all_records

tp.nn  # noqa: B018  # its ops have records too

CASES = [
    pytest.param(record, dtype, id=f"{record.op}-{dtype.name}")
    for record in all_records()
    if record.gradient
    for dtype in (float64, complex128)
    if dtype in record.dtypes
]


@pytest.mark.parametrize(("record", "dtype"), CASES)
def test_as_one_by_one(record, dtype):
    for sample, _, function, points in gradient_cases(record, "cpu", dtype, ("contiguous",)):
        live = [out for out in function(*points) if out.requires_grad]
        if not live:
            continue
        seeds = [making.make_tensor(3, *out.shape, dtype=out.dtype, low=-1, high=1) for out in live]
        options = {"retain_graph": True, "allow_unused": True}
        batched = grad(live, points, seeds, is_grads_batched=True, **options)
        for row in range(3):
            single = grad(live, points, [seed[row] for seed in seeds], **options)
            for ours, expected in zip(batched, single, strict=True):
                assert (ours is None) is (expected is None), sample
                if ours is not None:
                    assert_close(ours[row], expected, rtol=1e-7, atol=1e-9, equal_nan=True)
