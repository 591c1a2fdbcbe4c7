"""Gradients under autocast: formulas run in the dtypes of the calls, whatever is on in the pass."""

import os
import warnings

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing import cases
from tensorplug.testing.records import all_records

EVERY = 1 if "TENSORPLUG_FUZZ" in os.environ else 4  # of the samples of an op
RECORDS = [
    record
    for record in all_records()
    if record.gradient and tp.float32 in record.dtypes and not get_op(record.op).random
]


def leaf(tensor):
    return tensor.detach().clone().requires_grad_(tensor.dtype.is_floating_point)


def gradients(outputs, leaves, enabled, again):
    weights = [tp.ones_like(output) for output in outputs]
    with tp.autocast("cpu", tp.bfloat16, enabled=enabled):
        return tp.autograd.grad(
            outputs, leaves, weights, retain_graph=True, create_graph=again, allow_unused=True
        )


@pytest.mark.slow
def test_gradients_have_the_dtypes_of_their_tensors():
    count = 0
    for record in RECORDS:
        for sample in cases.samples_of(record, "cpu", tp.float32)[::EVERY]:
            args, kwargs = cases.map_tensors((sample.args, sample.kwargs), leaf)
            leaves = [t for t in cases.tensors_in((args, kwargs)) if t.requires_grad]
            with warnings.catch_warnings(), tp.autocast("cpu", tp.bfloat16):
                warnings.simplefilter("ignore")
                outputs = list(cases.tensors_in((get_op(record.op).call(*args, **kwargs),)))
            outputs = [output for output in outputs if output.requires_grad]
            if not outputs:
                continue
            count += 1
            expected = gradients(outputs, leaves, False, False)
            for enabled, again in ((True, False), (False, True), (True, True)):
                found = gradients(outputs, leaves, enabled, again)
                for one, other, tensor in zip(expected, found, leaves, strict=True):
                    said = f"{record.op} {sample}, autocast {enabled}, create_graph {again}"
                    assert (one is None) is (other is None), said
                    if one is None:
                        continue
                    assert one.dtype == other.dtype == tensor.dtype, said
                    a, b = np.asarray(one.detach()), np.asarray(other.detach())
                    assert np.allclose(a, b, 1e-2, 1e-2, equal_nan=True), said
    assert count > 400


def test_a_tensor_that_is_recomputed_follows_autocast():
    """What a checkpoint calls in backward is the forward pass, not a formula."""
    x = tp.rand(4, 4, requires_grad=True)
    dtypes = []

    def function(x):
        y = x @ x
        dtypes.append(y.dtype)
        return y.sin().sum()

    with tp.autocast("cpu", tp.bfloat16):
        result = tp.utils.checkpoint.checkpoint(function, x, use_reentrant=False)
    result.backward()
    assert dtypes == [tp.bfloat16, tp.bfloat16]
    assert x.grad.dtype == tp.float32
