"""What every record of samples has to cover."""

import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing import cases
from tensorplug.testing.records import all_records


@pytest.mark.parametrize("record", [pytest.param(r, id=r.op) for r in all_records()])
def test_an_empty_tensor_is_among_the_samples(record):
    """Given to the op or returned by it; else the record says why there is none."""
    dtype = tp.float64 if tp.float64 in record.dtypes else record.dtypes[-1]
    samples = cases.samples_of(record, "cpu", dtype)
    empty = any(
        tensor.numel() == 0
        for sample in samples
        for tensor in cases.tensors_in([sample.args, sample.kwargs])
    ) or any(
        tensor.numel() == 0
        for sample in samples
        for tensor in cases.tensors_in([cases.call(get_op(record.op), sample)])
    )
    if empty:
        assert record.never_empty is None, "the reason is out of date"
    else:
        assert record.never_empty, (
            "add a sample with an empty tensor, or the reason for having none"
        )
