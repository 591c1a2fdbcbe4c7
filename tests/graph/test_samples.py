"""Every op's samples: captured, and run again on the same and on other data, bit for bit as the op itself.

By default each sixth op; with TENSORPLUG_FUZZ in the environment all.
"""

import os

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.graph import Uncapturable, capture
from tensorplug.testing import cases, making
from tensorplug.testing.records import all_records

#: Ops whose results no two calls share: memory as it is found, and results that only data shapes.
UNDEFINED = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}

RECORDS = sorted([r for r in all_records() if r.op not in UNDEFINED], key=lambda record: record.op)
SHARES = 6
FUZZ = bool(os.environ.get("TENSORPLUG_FUZZ"))


def same(a, b):
    a, b = (list(cases.tensors_in(value)) for value in (a, b))
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert x.dtype is y.dtype
        x, y = x.detach().numpy(), y.detach().numpy()
        assert x.shape == y.shape
        assert x.tobytes() == y.tobytes() or np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")


def signature(sample):
    return [(t.shape, t.dtype) for t in cases.tensors_in((sample.args, sample.kwargs))]


def copies(sample):
    return cases.map_tensors((sample.args, sample.kwargs), lambda tensor: tensor.clone())


def compare(record):
    """Return (compared, refused)."""
    op = get_op(record.op)
    dtype = tp.float32 if tp.float32 in record.dtypes else record.dtypes[0]
    samples = cases.samples_of(record, "cpu", dtype)
    making.seed(f"other {record.op}")
    others = record.samples(cases.Maker("cpu", dtype), dtype)
    compared = refused = 0
    for sample, other in zip(samples, others, strict=True):
        if any(isinstance(value, tp.Generator) for value in sample.kwargs.values()):
            continue  # its state is not the sample's
        try:
            args, kwargs = copies(sample)
            graph = capture(
                lambda args, kwargs: op.call(*args, **kwargs), args, kwargs, shapes_from_data=True
            )
        except Uncapturable:
            refused += 1
            continue
        graph.check()
        for each in (sample, other) if signature(sample) == signature(other) else (sample,):
            given, again = copies(each), copies(each)
            tp.manual_seed(1)
            try:
                wanted = op.call(*given[0], **given[1])
            except (
                RuntimeError
            ):  # other data does not fit, such as a matrix that has to be definite
                continue
            tp.manual_seed(1)
            same(wanted, graph(*cases.tensors_in(again)))
            same(given, again)
            compared += 1
    return compared, refused


@pytest.mark.parametrize("share", range(SHARES if FUZZ else 1))
def test_samples(share):
    found = {record.op: compare(record) for record in RECORDS[share::SHARES]}
    assert sum([compared for compared, _ in found.values()]) > 900
    assert {op for op, (_, refused) in found.items() if refused} <= {"allclose", "equal"}
