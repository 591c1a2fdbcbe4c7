"""Views that come from a plan are the ones that the op's rule, or its body, would make.

Over the samples of all view ops: whichever layout the plan was made for, in whichever mode it is used.
"""

import itertools
import os

import pytest

import tensorplug as tp
from tensorplug.core.dispatch import call_cache, view_calls
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing.cases import map_tensors, samples_of, tensors_in, with_layout
from tensorplug.testing.records import all_records

LAYOUTS = ("contiguous", "transposed")
FUZZ = "TENSORPLUG_FUZZ" in os.environ
RECORDS = [record for record in all_records() if get_op(record.op).view]
MODES = {"plain": tp.enable_grad, "no_grad": tp.no_grad, "inference": tp.inference_mode}


def facts(op, sample, layout, mode, recorded):
    """Return all that can be seen of a call: values, layout, whose memory, versions, gradients."""
    args = map_tensors(sample.args, lambda t: with_layout(t.detach().clone(), layout))
    kwargs = map_tensors(sample.kwargs, lambda t: with_layout(t.detach().clone(), layout))
    leaves = [t for t in tensors_in([args, kwargs]) if recorded and t.dtype.is_floating_point]
    for leaf in leaves:
        leaf.requires_grad_()
    with MODES[mode]():
        try:
            result = op.call(*args, **kwargs)
        except RuntimeError as error:
            return str(error)
    source = next(tensors_in([args, kwargs]))
    outputs = list(tensors_in(result))
    found = []
    for output in outputs:
        found += [
            output.tolist(), output.shape, output.stride(), output.requires_grad,
            output.is_inference(), output is source, output._base is source,
            output.grad_fn and type(output.grad_fn),
        ]  # fmt: skip
        if output._base is source and output.numel():
            found.append(output.data_ptr() - source.data_ptr())
    if mode != "inference" and not recorded:
        source.detach().fill_(1)
        found += [(output._version, output.tolist()) for output in outputs]
    tracked = [output for output in outputs if output.requires_grad]
    if tracked:
        weights = [tp.arange(1.0, o.numel() + 1).reshape(o.shape) for o in tracked]
        sum([(o * w).sum().abs() for o, w in zip(tracked, weights, strict=True)]).backward()
        found += [leaf.grad.tolist() for leaf in leaves if leaf.grad is not None]
    return found


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.op)
def test_a_planned_view_is_the_view(record):
    op = get_op(record.op)
    ways = list(itertools.product(LAYOUTS, MODES, (False, True)))
    samples = samples_of(record, "cpu", tp.float32)
    for sample in samples if FUZZ else samples[:: max(1, len(samples) // 3)]:
        cold = {}
        for way in ways:
            call_cache.clear_call_caches()
            cold[way] = facts(op, sample, *way)
        for first in ways if FUZZ else (ways[0], ways[-2]):
            call_cache.clear_call_caches()
            facts(op, sample, *first)
            for way in ways:
                assert facts(op, sample, *way) == cold[way], (sample, first, way)


def test_plans_are_followed(monkeypatch):
    x = tp.rand(4, 6)
    calls = {
        "reshape": lambda: x.reshape(3, 8), "view": lambda: x.view(-1), "flatten": lambda: x.flatten(),
        "transpose": lambda: x.transpose(0, 1), "permute": lambda: x.permute((1, 0)),
        "split": lambda: x.split(2, dim=1), "select": lambda: x.select(0, -1),
    }  # fmt: skip
    for call in calls.values():
        call()
        call()
    if tp.compiled():
        pytest.skip("what is compiled cannot be watched")

    def refused(*_):
        raise AssertionError("planned anew")

    monkeypatch.setattr(view_calls, "_run", refused)
    for call in calls.values():
        call()
    with pytest.raises(AssertionError, match="planned anew"):
        x.t().reshape(3, 8)  # not contiguous: a copy
