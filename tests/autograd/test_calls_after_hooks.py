"""What calls leave in caches under hooks of saved tensors changes no later call, on other values."""

import os

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch import call_cache
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing import cases
from tensorplug.testing.records import all_records

EVERY = 1 if "TENSORPLUG_FUZZ" in os.environ else 6  # of the samples of an op
CALLS = 3  # of which the last ones come from caches
RECORDS = [
    record
    for record in all_records()
    if not get_op(record.op).random
    and tp.float32 in record.dtypes
    and "forward" not in record.skips
]


@pytest.fixture(autouse=True)
def _nothing_cached():
    call_cache.clear_call_caches()
    yield
    call_cache.clear_call_caches()


def leaves_of(sample, factor):
    """Return a sample's arguments as leaves."""
    return cases.map_tensors(
        (sample.args, sample.kwargs),
        lambda t: (
            (t.detach() * factor).requires_grad_() if t.dtype.is_floating_point else t.detach()
        ),
    )


def gradients(op, given):
    """Return the gradients of a call's arguments as arrays, None where it has none."""
    args, kwargs = given
    leaves = [t for t in cases.tensors_in(given) if t.requires_grad]
    outputs = [t for t in cases.tensors_in(op.call(*args, **kwargs)) if t.requires_grad]
    if not outputs or not leaves:
        return None
    weights = [tp.ones_like(output.detach()) * 0.75 for output in outputs]
    found = tp.autograd.grad(outputs, leaves, weights, allow_unused=True)
    return [None if g is None else np.asarray(g) for g in found]


def turned(tensor):
    """Return a tensor that lies in memory in another order, as what was on a disk may."""
    return tensor.transpose(0, -1).contiguous().transpose(0, -1) if tensor.ndim > 1 else tensor


@pytest.mark.slow
def test_gradients_of_calls_after_hooks():
    ops = set()
    for record in RECORDS:
        op = get_op(record.op)
        for sample in cases.samples_of(record, "cpu", tp.float32)[::EVERY]:
            first, then = (leaves_of(sample, factor) for factor in (1.0, 0.75))
            call_cache.clear_call_caches()
            try:
                wanted = gradients(op, then)
                gradients(op, first)
            except (RuntimeError, NotImplementedError, TypeError, ValueError):
                continue  # not differentiable, or not there
            if wanted is None:
                continue
            call_cache.clear_call_caches()
            with tp.autograd.graph.saved_tensors_hooks(lambda t: t, turned):
                for _ in range(CALLS):
                    gradients(op, first)
            ops.add(record.op)
            for expected, got in zip(wanted, gradients(op, then), strict=True):
                assert (expected is None) == (got is None), f"{record.op} {sample}"
                if got is not None:
                    assert np.allclose(expected, got, 1e-4, 1e-5, equal_nan=True), (
                        f"{record.op} {sample}"
                    )
    assert len(ops) > 300
