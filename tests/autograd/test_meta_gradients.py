"""Backward on the meta device, over all records: gradients of the shapes and dtypes that real ones have."""

from __future__ import annotations

import pytest

import tensorplug as tp
from tensorplug.core.device.device import META
from tensorplug.core.device.dtypes import complex128, float64
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing.cases import map_tensors, samples_of, tensors_in
from tensorplug.testing.records import all_records

tp.nn  # noqa: B018  # its ops have records too

CASES = [
    pytest.param(record, dtype, id=f"{record.op}-{dtype.name}")
    for record in all_records()
    if record.gradient and "meta" not in record.skips
    for dtype in (float64, complex128)
    if dtype in record.dtypes
]


def gradients(op, sample, device):
    def put(tensor):
        moved = tensor.detach().to(device)
        return moved.requires_grad_() if moved.dtype in (float64, complex128) else moved

    args, kwargs = map_tensors(sample.args, put), map_tensors(sample.kwargs, put)
    points = [t for t in tensors_in((args, kwargs)) if t.requires_grad]
    results = [out for out in tensors_in((op.call(*args, **kwargs),)) if out.requires_grad]
    if not points or not results:
        return [None] * len(points)
    seeds = [tp.ones_like(out) for out in results]
    return tp.autograd.grad(results, points, seeds, allow_unused=True)


@pytest.mark.parametrize(("record", "dtype"), CASES)
def test_shapes(record, dtype):
    op = get_op(record.op)
    for sample in samples_of(record, "cpu", dtype)[:6]:
        real, meta = (gradients(op, sample, device) for device in ("cpu", META))
        assert len(real) == len(meta)
        for wanted, got in zip(real, meta, strict=True):
            assert (got is None) is (wanted is None), sample
            if got is not None:
                found, expected = (got.shape, got.dtype), (wanted.shape, wanted.dtype)
                assert found == expected, sample
                assert got.is_meta


def test_leaves_of_repeated_passes():
    weight = tp.ones(4, 3, device="meta", requires_grad=True)
    for _ in range(4):
        x = tp.ones(2, 3, device="meta")
        tp.nn.functional.linear(x, weight).reshape(8).sum().backward()
        assert weight.grad.shape == (4, 3)
        assert weight.grad.is_meta
