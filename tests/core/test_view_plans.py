"""Views that come from a plan are the ones that the op's rule, or its body, would make.

Over the samples of all view ops: whichever layout the plan was made for, in whichever mode it is used.
"""

import itertools
import os
from types import SimpleNamespace

import pytest

import tensorplug as tp
from tensorplug.core.dispatch import call_cache, view_calls
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing.cases import map_tensors, samples_of, tensors_in, with_layout
from tensorplug.testing.records import all_records

LAYOUTS = ("contiguous", "transposed", "behind the start", "expanded")
FUZZ = "TENSORPLUG_FUZZ" in os.environ
RECORDS = [record for record in all_records() if get_op(record.op).view]
MODES = {"plain": tp.enable_grad, "no_grad": tp.no_grad, "inference": tp.inference_mode}


def laid_out(tensor, layout):
    """Return a tensor in a layout.

    In one it begins behind the first element of its storage, in another its first numbers are all there are.
    """
    if layout == "expanded" and tensor.numel() and tensor.ndim:
        return tensor[:1].expand(tensor.shape)
    if layout != "behind the start":
        return with_layout(tensor, "contiguous" if layout == "expanded" else layout)
    storage = tp.cat([tp.zeros(1, dtype=tensor.dtype), tensor.reshape(-1)])
    return storage[1:].view(tensor.shape).detach()


def facts(op, sample, layout, mode, recorded):
    """Return all that can be seen of a call: values, layout, whose memory, versions, gradients."""
    args = map_tensors(sample.args, lambda t: laid_out(t.detach().clone(), layout))
    kwargs = map_tensors(sample.kwargs, lambda t: laid_out(t.detach().clone(), layout))
    leaves = [t for t in tensors_in([args, kwargs]) if recorded and t._key.is_differentiable]
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
            output.grad_fn and output.grad_fn.name(), output.output_nr,
        ]  # fmt: skip
        if output._base is source and output.numel():
            found.append(output.data_ptr() - source.data_ptr())
    if mode != "inference" and not recorded and layout != "expanded":
        source.detach().fill_(1)
        found += [(output._version, output.tolist()) for output in outputs]
    tracked = [output for output in outputs if output.requires_grad]
    if tracked:
        weights = [tp.arange(1.0, o.numel() + 1).reshape(o.shape) for o in tracked]
        sum([(o * w).abs().sum() for o, w in zip(tracked, weights, strict=True)]).backward()
        found += [leaf.grad.tolist() for leaf in leaves if leaf.grad is not None]
    return found


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.op)
def test_a_planned_view_is_the_view(record):
    op = get_op(record.op)
    ways = list(itertools.product(LAYOUTS, MODES, (False, True)))
    samples = samples_of(record, "cpu", tp.float32) or samples_of(record, "cpu", tp.complex64)
    assert samples
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


KEYS = [
    slice(1, 3), slice(None, None, 2), slice(3, 1), slice(-2, None), None, ..., (1, 2), (-1, slice(0, 4, 3)),
    (slice(None), 0), (..., None, 1), (slice(1, 2), None, ...), (None, 3), (),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_a_planned_index_is_the_index(key):
    op = SimpleNamespace(call=lambda x: x[key])
    sample = SimpleNamespace(args=(tp.rand(4, 6),), kwargs={})
    for first, way in itertools.product(itertools.product(LAYOUTS, MODES, (False, True)), repeat=2):
        call_cache.clear_call_caches()
        cold = facts(op, sample, *way)
        facts(op, sample, *first)
        assert facts(op, sample, *way) == cold, (first, way)


def test_what_only_equals_a_planned_key_is_no_such_key():
    x = tp.arange(12).reshape(3, 4)
    assert x[1:2].shape == (1, 4)
    assert x[True:2].shape == (1, 4)
    assert x[(slice(None), 1)].shape == (3,)
    assert x[(slice(None), True)].shape == (3, 1, 4)
    with pytest.raises(TypeError):
        x[1.0:2]


def test_views_that_one_node_made_are_not_written_to():
    """Neither those of the first call, nor of one that follows the plan of it."""
    for split in (lambda x: x.split(2), lambda x: x.unbind(), lambda x: x.chunk(2)):
        call_cache.clear_call_caches()
        for _ in range(3):
            x = tp.rand(4, 6).requires_grad_() * 1
            parts = split(x)
            with pytest.raises(RuntimeError, match="returns multiple views"):
                parts[1].mul_(2)


def test_a_loop_over_many_positions_keeps_few_plans():
    x = tp.arange(3000)
    call_cache.clear_call_caches()
    for start in range(2990):
        assert x[start : start + 2].tolist() == [start, start + 1]
        assert x.narrow(0, start, 1).item() == start
    assert max(len(cache.calls) for cache in call_cache._caches) <= call_cache._KEPT


def test_plans_are_followed(monkeypatch):
    x = tp.rand(4, 6)
    y = tp.rand(4, 6, requires_grad=True)
    z = tp.rand(4, 6, dtype=tp.complex64, requires_grad=True)
    pairs = tp.rand(3, 2)
    calls = {
        "reshape": lambda: x.reshape(3, 8), "view": lambda: x.view(-1), "flatten": lambda: x.flatten(),
        "transpose": lambda: x.transpose(0, 1), "permute": lambda: x.permute((1, 0)),
        "split": lambda: x.split(2, dim=1), "select": lambda: x.select(0, -1),
        "split, recorded": lambda: y.split(2, dim=1), "sections": lambda: y.split([1, 3]),
        "chunk": lambda: y.chunk(2), "unbind": lambda: y.unbind(), "tensor_split": lambda: x.tensor_split(2),
        "of pairs": lambda: tp.view_as_complex(pairs), "by strides": lambda: tp.as_strided(x, (2, 2), (1, 2)),
        "by strides, recorded": lambda: y.as_strided((2, 2), (1, 2), 3), "pairs": lambda: tp.view_as_real(z),
        "real": lambda: tp.real(z), "imag": lambda: tp.imag(z), "bytes": lambda: x.view(tp.int32),
        "itself": lambda: x.contiguous(), "recorded itself": lambda: y.reshape(4, 6),
        "real itself": lambda: tp.real(x),
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
    with pytest.raises(AssertionError, match="planned anew"):
        tp.as_strided(
            tp.rand(5, 6)[1:], (2, 2), (1, 2)
        )  # begins behind the storage's first element


@pytest.mark.parametrize("name", ["tensor_split", "hsplit", "vsplit", "dsplit"])
def test_parts_that_are_views_by_themselves_are_written_to(name):
    for _ in range(2):
        x = tp.ones(2, 2, 2, requires_grad=True)
        y = x * 1
        getattr(y, name)(2)[0].mul_(3)
        (y * y).sum().backward()
        assert sorted(x.grad.flatten().tolist()) == [2] * 4 + [18] * 4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64", "complex128"])
def test_ldexp_keeps_the_dtype(dtype):
    for shape in ((), (2,)):
        x = tp.full(shape, 0.5, dtype=getattr(tp, dtype))
        result = tp.ldexp(x, tp.tensor([1, 3]))
        assert result.dtype is x.dtype
        assert result.tolist() == [1, 4]
