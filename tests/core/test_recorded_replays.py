"""Bodies of composites are replayed in recorded calls, too: one node with a program of its gradients."""

import gc
import os
import weakref

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.autograd.graph.bodies import BodyNode
from tensorplug.core.dispatch import call_cache
from tensorplug.core.dispatch.layers import Layer
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.plugin import KernelTable, hookimpl
from tensorplug.testing import cases
from tensorplug.testing.records import all_records

pytestmark = pytest.mark.usefixtures("nothing_looks_on")

functional = tp.nn.functional
EVERY = 1 if "TENSORPLUG_FUZZ" in os.environ else 6  # of the samples of an op
CALLS = 6  # of which the last ones are replayed
RECORDS = [
    record
    for record in all_records()
    if get_op(record.op).kind == "composite"
    and get_op(record.op).derivative is None
    and not get_op(record.op).random
    and tp.float32 in record.dtypes
    and "forward" not in record.skips
]


@pytest.fixture(autouse=True)
def _nothing_cached():
    call_cache.clear_call_caches()
    yield
    call_cache.clear_call_caches()


class Watch(Layer):
    """Looks on, so that nothing is replayed."""

    name, order, nested = "watch", 100, True


def leaf(tensor, layout):
    made = cases.with_layout(tensor.detach().clone(), layout)
    return made.requires_grad_(made.dtype.is_floating_point or made.dtype.is_complex)


def differentiated(op, given, again=False):
    """Return a call's results, the gradients of its arguments or of their squares, and the result's node."""
    args, kwargs = given
    leaves = [t for t in cases.tensors_in((args, kwargs)) if t.requires_grad]
    outputs = [t for t in cases.tensors_in(op.call(*args, **kwargs)) if t.requires_grad]
    if not outputs or not leaves:
        return None
    weights = [tp.ones_like(output.detach()) * 0.75 for output in outputs]
    options = {"allow_unused": True, "create_graph": again}
    found = tp.autograd.grad(outputs, leaves, weights, **options)
    if again:
        sums = [(g * g.conj()).real.sum() for g in found if g is not None and g.requires_grad]
        found = tp.autograd.grad(sum(sums), leaves, allow_unused=True) if sums else ()
    return outputs, found, outputs[0].grad_fn


def assert_alike(expected, got, said, exact=True):
    for a, b in zip(expected, got, strict=True):
        if a is None or b is None:
            assert a is b, said
            continue
        assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride()), said
        x, y = np.asarray(a.detach()), np.asarray(b.detach())
        if exact:
            assert np.array_equal(x, y, equal_nan=True), said
        else:
            assert np.allclose(x, y, 1e-4, 1e-5, equal_nan=True), said


def alone(function, *args):
    """Return what a function comes to where nothing is cached, so by its body."""
    call_cache.clear_call_caches()
    return function(*args)


@pytest.mark.slow
def test_gradients_of_replays_are_those_of_bodies():
    ops, calls = set(), 0
    for record in RECORDS:
        op = get_op(record.op)
        for sample in cases.samples_of(record, "cpu", tp.float32)[::EVERY]:
            layouts = (cases.layouts_of(record)[0], cases.layouts_of(record)[-1])
            given = [
                cases.map_tensors((sample.args, sample.kwargs), lambda t, to=layout: leaf(t, to))
                for layout in layouts
            ]
            try:
                expected = [alone(differentiated, op, one) for one in given]
                again = alone(differentiated, op, given[0], True)
                call_cache.clear_call_caches()
                for _ in range(CALLS):
                    differentiated(op, given[0])
            except (RuntimeError, NotImplementedError, TypeError, ValueError):
                continue  # not differentiable
            for layout, one, wanted in zip(layouts, given, expected, strict=True):
                said = f"{record.op} {sample} {layout}"
                got = differentiated(op, one)
                if got is None or not isinstance(got[2], BodyNode):
                    break
                calls += 1
                ops.add(record.op)
                assert_alike(wanted[0], got[0], said)
                assert_alike(wanted[1], got[1], said)
                if layout == layouts[0]:
                    got = differentiated(op, one, True)
                    assert_alike(again[1], got[1], said, exact=False)
    assert len(ops) > 100
    assert calls > 200


def written(op, given, which):
    """Return a call's gradients, or None where they raise, after a write to its inputs or its results."""
    args, kwargs = cases.map_tensors(given, lambda t: t * 1 if t.requires_grad else t)
    leaves = [t for t in cases.tensors_in(given) if t.requires_grad]
    inputs = [t for t in cases.tensors_in((args, kwargs)) if t.requires_grad]
    outputs = [t for t in cases.tensors_in(op.call(*args, **kwargs)) if t.requires_grad]
    if not outputs or not leaves:
        return None, None
    node = outputs[0].grad_fn
    weights = [tp.ones_like(output.detach()) * 0.75 for output in outputs]
    with tp.no_grad():
        for tensor in {"inputs": inputs, "results": outputs, "none": []}[which]:
            tensor.mul_(0.5)
    try:
        return tp.autograd.grad(outputs, leaves, weights, allow_unused=True), node
    except RuntimeError:
        return None, node


@pytest.mark.slow
def test_replays_let_through_the_writes_that_bodies_do():
    calls = 0
    for record in RECORDS:
        op = get_op(record.op)
        for sample in cases.samples_of(record, "cpu", tp.float32)[::EVERY]:
            layout = cases.layouts_of(record)[0]
            given = cases.map_tensors((sample.args, sample.kwargs), lambda t: leaf(t, layout))  # noqa: B023
            for which in ("inputs", "results"):
                said = f"{record.op} {sample} {which}"
                try:
                    untouched, _ = alone(written, op, given, "none")
                    by_body, _ = alone(written, op, given, which)
                    call_cache.clear_call_caches()
                    for _ in range(CALLS):
                        got, node = written(op, given, which)
                except (RuntimeError, NotImplementedError, TypeError, ValueError):
                    break
                if not isinstance(node, BodyNode):
                    continue
                calls += 1
                assert got is not None or by_body is None, said
                if got is not None:
                    assert_alike(untouched, got, said, exact=False)
    assert calls > 200


def distance(x, y):
    return functional.pairwise_distance(x, y)


def replayed(x, y, function=distance):
    """Return the result of a call that is replayed."""
    for _ in range(CALLS):
        result = function(x, y)
    assert isinstance(result.grad_fn, BodyNode)
    return result


@pytest.fixture
def pair():
    tp.manual_seed(0)
    return tp.rand(4, 3, requires_grad=True), tp.rand(4, 3, requires_grad=True)


def test_only_what_requires_grad_gets_a_gradient(pair):
    x, y = pair
    replayed(x, y)
    both_wanted = tp.autograd.grad(distance(x, y).sum(), (x, y))
    result = replayed(x, y.detach())
    assert result.grad_fn.name() == "LinalgVectorNormBackward0"
    assert len(result.grad_fn.next_functions) == 1
    (one,) = tp.autograd.grad(result.sum(), x)
    assert tp.equal(one, both_wanted[0])
    assert not distance(x.detach(), y.detach()).requires_grad


def test_a_write_before_backward_is_found(pair):
    x, y = pair
    for function, target in ((distance, 0), (tp.vdot, 0), (functional.softmin, 0)):
        args = [t.detach().clone().requires_grad_() * 1 for t in (x, y)]
        if function is tp.vdot:
            args = [t.flatten() for t in args]
        if function is functional.softmin:
            args = [args[0], 1]
        result = replayed(*args, function=function)
        if function is functional.softmin:
            result.detach().mul_(2)  # saved itself
        else:
            args[1].detach().mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
            result.sum().backward(create_graph=function is distance)
        assert result.grad_fn.name() in str(caught.value), target


def test_what_was_freed_says_so(pair):
    result = replayed(*pair).sum()
    result.backward(retain_graph=True)
    result.backward()
    with pytest.raises(RuntimeError, match="second time"):
        result.backward()


def test_hooks_and_layers_see_what_a_body_calls(pair):
    x, y = pair
    replayed(x, y)
    packed = []
    with tp.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        result = distance(x, y)
    assert packed
    assert not isinstance(result.grad_fn, BodyNode)
    with Watch().active():
        assert not isinstance(distance(x, y).grad_fn, BodyNode)
    with tp.autograd.set_detect_anomaly(True):
        assert not isinstance(distance(x, y).grad_fn, BodyNode)
    seen = []
    result = distance(x, y)
    assert isinstance(result.grad_fn, BodyNode)
    result.grad_fn.register_hook(lambda inputs, outputs: seen.append((len(inputs), len(outputs))))
    result.sum().backward()
    assert seen == [(2, 1)]


def test_a_pass_under_a_layer_runs_the_body(pair):
    expected = tp.autograd.grad(replayed(*pair).sum(), pair)
    result = distance(*pair)
    with Watch().active():
        found = tp.autograd.grad(result.sum(), pair)
    assert_alike(expected, found, "under a layer", exact=False)


class Division:
    """A kernel for an op that bodies and their gradients call."""

    name = "division"

    def __init__(self):
        self.calls = 0

    @hookimpl
    def tensorplug_kernels(self):
        table = KernelTable("cpu", priority=1000)
        table.add("div", self.div, dtypes=[tp.float32])
        return table

    def div(self, input, other):
        self.calls += 1
        return np.true_divide(input, other)


def test_a_plugins_kernel_serves_bodies_and_their_gradients():
    x = tp.rand(5).add(1).requires_grad_()

    def call(x):
        return functional.softsign(x)

    expected = tp.autograd.grad(replayed_unary(call, x).sum(), x)[0]
    plugin = Division()
    tp.plugins.register(plugin)
    try:
        result = replayed_unary(call, x)
        forward = plugin.calls
        assert forward >= CALLS
        (found,) = tp.autograd.grad(result.sum(), x)
        assert plugin.calls > forward
        assert np.allclose(np.asarray(found), np.asarray(expected))
    finally:
        tp.plugins.unregister("division")


def replayed_unary(function, x):
    return replayed(x, None, function=lambda x, _: function(x))


def test_no_cycle_keeps_a_graph_alive(pair):
    x, y = (t * 1 for t in pair)
    replayed(x, y)
    gc.disable()
    try:
        result = distance(x, y)
        node = weakref.ref(result.grad_fn)
        x.mul_(result.sum())  # which makes the node part of what x comes from
        del result, x, y
        assert node() is None
    finally:
        gc.enable()


def test_large_tensors_and_those_of_inference_are_not_kept():
    x = tp.rand(200, 100, requires_grad=True)
    for _ in range(CALLS):
        assert not isinstance(distance(x, x.detach()).grad_fn, BodyNode)
    with tp.inference_mode():
        other = tp.rand(4)
    x = tp.rand(4, requires_grad=True)
    for _ in range(CALLS):
        with pytest.raises(RuntimeError, match="Inference tensors cannot"):
            tp.vdot(x, other).backward()
