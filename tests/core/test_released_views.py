"""What an op returns is a view of its arguments, or of nothing, and tells so.

Over the samples of all ops: the first call, cached and replayed ones, recorded or not, with each plugin's
kernels.
"""

import contextlib
import itertools

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch import call_cache
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing.cases import layouts_of, map_tensors, samples_of, tensors_in, with_layout
from tensorplug.testing.records import all_records

RECORDS = [record for record in all_records() if not get_op(record.op).writes]
PARTS = 6
CALLS = 4  # by then a recorded call is replayed, too
LAYOUTS = ("contiguous", "transposed")
# Bytes shown as other numbers: such a tensor has no history, and no base.
SAME_BYTES = {"view_dtype"}


def laid_out(sample, layout, recorded=False):
    """Return a call's arguments as new tensors, leaves that require grad if it is to be recorded."""
    return map_tensors(
        (sample.args, sample.kwargs),
        lambda t: with_layout(t.detach().clone(), layout).detach().requires_grad_(
            recorded and t._key.is_differentiable
        ),
    )  # fmt: skip


def memory(tensor):
    return np.asarray(tensor.detach())


def assert_told(outputs, given, said):
    """Check that memory is shared with an argument by its views alone, and with other results by none."""
    bases = [tensor if tensor._base is None else tensor._base for tensor in given]
    for number, output in enumerate(outputs):
        if any(output is tensor for tensor in given):
            continue
        base = output._base
        assert output._is_view() == (base is not None), said
        if base is not None:
            assert any(base is known for known in bases), f"{said}: a view of a tensor of nobody's"
            continue
        assert output.is_leaf == (output.grad_fn is None), said
        for other in (*given, *outputs[:number]):
            if output is not other:
                shared = np.shares_memory(memory(output), memory(other))
                assert not shared, f"{said}: shares memory, but is no view"


def called(op, record, dtype, recorded):
    """Call an op on its samples, in several layouts and several times each, and check what it returns."""
    for sample in samples_of(record, "cpu", dtype):
        for layout in LAYOUTS[: len(layouts_of(record))]:
            args, kwargs = laid_out(sample, layout, recorded)
            given = list(tensors_in((args, kwargs)))
            for call in range(CALLS):
                result = op.call(*args, **kwargs)
                said = f"{op.name} {sample} {layout}, call {call}, recorded: {recorded}"
                if op.name not in SAME_BYTES:
                    assert_told(list(tensors_in(result)), given, said)


def kernels_of():
    """Return the plugins that bring kernels for the CPU, the one that serves most calls as None."""
    tp.ones(1).add(1)
    names = [
        record.name
        for record in tp.plugins.registered()
        if any(kernel.device == "cpu" for kernel in record.kernels)
    ]
    return [None, *names] if len(names) > 1 else [None]


@pytest.mark.slow
@pytest.mark.parametrize("plugin", kernels_of())
@pytest.mark.parametrize("start", range(PARTS))
def test_views_are_of_arguments(start, plugin):
    call_cache.clear_call_caches()
    with contextlib.nullcontext() if plugin is None else tp.prefer(plugin):
        for record in itertools.islice(RECORDS, start, None, PARTS):
            known = [d for d in (tp.float32, tp.complex64, tp.int64) if d in record.dtypes]
            for dtype in known[:2]:
                called(get_op(record.op), record, dtype, False)
            if record.gradient and known:
                called(get_op(record.op), record, known[0], True)


def gradients(op, sample, in_place):
    """Return the gradients of twice what an op returns, and those of their sum; None where there are none."""
    args, kwargs = laid_out(sample, "contiguous", True)
    given = [t for t in tensors_in((args, kwargs)) if t.requires_grad]
    made = list(tensors_in(op.call(*args, **kwargs)))
    outputs = [t for t in made if t.grad_fn is not None and t._base is None]
    if not outputs:
        return None
    doubled = [t.mul_(2) if in_place else t * 2 for t in outputs]
    total = sum(t.real.square().sum() for t in doubled)
    first = tp.autograd.grad(total, given, create_graph=True, allow_unused=True)
    known = [t for t in first if t is not None and t.requires_grad]
    second = []
    if known and op.name not in ONCE:
        again = sum(t.real.sum() for t in known)
        second = tp.autograd.grad(again, given, allow_unused=True) if again.requires_grad else []
    return [None if t is None else memory(t) for t in (*first, *second)]


ONCE = {record.op for record in RECORDS if "gradgrad" in record.skips}


@pytest.mark.slow
@pytest.mark.parametrize("start", range(PARTS))
def test_what_was_released_may_be_written(start):
    compared = 0
    for record in itertools.islice(RECORDS, start, None, PARTS):
        op = get_op(record.op)
        if not record.gradient or op.view or op.random or tp.float64 not in record.dtypes:
            continue
        for sample in list(samples_of(record, "cpu", tp.float64))[:3]:
            expected = gradients(op, sample, False)
            if expected is None:
                continue
            said = f"{record.op} {sample}"
            try:
                found = gradients(op, sample, True)
            except RuntimeError as error:
                if "modified by an inplace operation" not in str(error):
                    raise
                continue  # a formula needs the result as it was
            compared += 1
            for one, other in zip(expected, found, strict=True):
                assert (one is None) == (other is None), said
                if one is not None:
                    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=said)
    assert compared > 50
