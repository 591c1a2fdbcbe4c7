"""Calls that look like one before take what is remembered of it, and nothing that is wrong by now."""

import math
import warnings

import pytest

import tensorplug as tp
from tensorplug.core.dispatch import call_cache
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.nn.ops.rnn.cells import lstm_cell
from tensorplug.plugin import KernelTable, derivative, hookimpl
from tensorplug.testing.cases import samples_of, tensors_in
from tensorplug.testing.records import all_records


class Doubling:
    """Kernels and a derivative that can be told from the ones they stand above."""

    name = "doubling"

    @hookimpl
    def tensorplug_kernels(self):
        table = KernelTable("cpu", priority=1000)
        table.add("matmul", lambda a, b: (a @ b) * 2, dtypes=[tp.float32])
        table.add("linear", lambda x, w, b: (x @ w.T) * 2, dtypes=[tp.float32])
        return table

    @hookimpl
    def tensorplug_derivatives(self):
        return [
            derivative("matmul", priority=1000, input=lambda g, other: (g @ other.mT) * 3),
            derivative("linear", priority=1000, input=lambda g, weight: (g @ weight) * 3),
        ]


def product(x, w):
    return x @ w


def linear(x, w):
    return tp.nn.functional.linear(x, w.t())


def gradient(function, x, w):
    x = x.clone().requires_grad_()
    function(x, w).sum().backward()
    return x.grad.tolist()


@pytest.mark.parametrize("function", [product, linear])
def test_a_plugin_that_comes_and_goes_is_followed(function):
    x, w = tp.ones(1, 2), tp.full((2, 1), 0.5)
    for _ in range(3):  # the third time everything is remembered
        assert function(x, w).item() == 1
        assert gradient(function, x, w) == [[0.5, 0.5]]
    tp.plugins.register(Doubling())
    try:
        for _ in range(3):
            assert function(x, w).item() == 2
            assert gradient(function, x, w) == [[3, 3]]  # its product is doubled too
    finally:
        tp.plugins.unregister("doubling")
    assert function(x, w).item() == 1
    assert gradient(function, x, w) == [[0.5, 0.5]]


@pytest.mark.parametrize("function", [product, linear])
def test_a_saved_tensor_that_was_written_to_is_noticed(function):
    x, w = tp.ones(1, 2, requires_grad=True), tp.ones(2, 1)
    for _ in range(2):
        function(x, w).sum().backward()
    result = function(x, w)
    w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_hooks_on_saved_tensors_see_remembered_calls():
    x, w = tp.ones(1, 2, requires_grad=True), tp.ones(2, 1)
    (x @ w).sum().backward()
    packed = []
    with tp.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t * 2, lambda t: t):
        result = x @ w
    assert len(packed) == 1
    x.grad = None
    result.sum().backward()
    assert x.grad.tolist() == [[2, 2]]


def test_what_requires_grad_is_no_part_of_the_memory():
    x, w = tp.ones(1, 2), tp.full((2, 1), 2.0)
    for left, right in ((1, 1), (0, 1), (1, 0), (0, 0), (1, 1)):
        a = x.clone().requires_grad_(bool(left))
        b = w.clone().requires_grad_(bool(right))
        result = a @ b
        assert result.requires_grad == bool(left or right)
        if result.requires_grad:
            result.sum().backward()
        assert (a.grad is not None, b.grad is not None) == (bool(left), bool(right))
    with tp.no_grad():
        assert not (x.clone().requires_grad_() @ w).requires_grad


def test_one_tensor_given_twice_gets_both_gradients():
    x = tp.tensor([[2.0]], requires_grad=True)
    for _ in range(2):
        x.grad = None
        (x @ x).sum().backward()
        assert x.grad.item() == 4


def test_zeros_of_both_signs_and_numbers_of_other_types_are_told_apart():
    signs = [math.copysign(1, tp.full((1,), value).item()) for value in (0.0, -0.0, 0.0)]
    assert signs == [1, -1, 1]
    assert [tp.full((1,), value).dtype for value in (1, 1.0, True)] == [
        tp.int64,
        tp.float32,
        tp.bool,
    ]


def test_new_tensors_are_new_each_time():
    first = tp.zeros(2)
    first += 1
    assert tp.zeros(2).tolist() == [0, 0]
    assert tp.zeros(2).dtype is tp.float32
    tp.set_default_dtype(tp.float64)
    try:
        assert tp.zeros(2).dtype is tp.float64
    finally:
        tp.set_default_dtype(tp.float32)


def test_events_of_floating_point_arithmetic_are_no_warnings():
    one, zero, large = tp.ones(3), tp.zeros(3), tp.full((3,), 1e38)
    x = tp.zeros(3, requires_grad=True)
    with warnings.catch_warnings(record=True) as seen:
        warnings.filters.append(("always", None, Warning, None, 0))
        for _ in range(2):
            assert (one / zero).tolist() == [math.inf] * 3
            assert (1 / zero).tolist() == zero.reciprocal().tolist() == [math.inf] * 3
            assert (large * large).tolist() == [math.inf] * 3
            assert zero.log().tolist() == tp.log(zero).tolist() == [-math.inf] * 3
            assert all(math.isnan(value) for value in (zero / zero).tolist())
            (1 / x).sum().backward()
    assert [str(warning.message) for warning in seen] == []


def test_calls_with_a_seed_are_not_remembered():
    before = sum(len(cache.calls) for cache in call_cache._caches)
    for _ in range(5):
        tp.rand(3)
        tp.nn.functional.dropout(tp.ones(3))
    after = sum(len(cache.calls) for cache in call_cache._caches)
    assert after - before < 5  # what else the bodies call, once


@pytest.mark.parametrize(
    "call",
    [
        lambda x, dim: x.cumsum(dim),
        lambda x, dim: x.cumsum(dim=dim),
        lambda x, dim: x.softmax(dim),
        lambda x, dim: tp.sort(x, dim)[1],
        lambda x, dim: tp.cat([x, x], dim),
        lambda x, dim: tp.stack([x, x], dim=dim),
        lambda x, dim: x.select(dim, 0),
    ],
)
def test_a_dimension_given_as_a_tensor_is_read_each_time(call):
    x = tp.arange(6.0).reshape(2, 3)
    for dim in (0, 1, 0, 1):
        assert call(x, tp.tensor(dim)).tolist() == call(x, dim).tolist()


class Counting:
    """Counts the calls of a kernel of a list, with two outputs."""

    name = "counting"

    def __init__(self):
        self.calls = 0

    @hookimpl
    def tensorplug_kernels(self):
        def lstm_cell(inputs):
            self.calls += 1
            return inputs[2] * 2, inputs[2] * 3

        table = KernelTable("cpu", priority=1000)
        table.add("lstm_cell", lstm_cell, dtypes=[tp.float32])
        return table


@pytest.mark.parametrize("recorded", [False, True])
def test_a_kernel_of_several_outputs_runs_once_per_call(recorded):
    inputs = [tp.ones(1, 4), tp.ones(1, 4), tp.ones(1, 1, requires_grad=recorded)]
    counting = Counting()
    tp.plugins.register(counting)
    try:
        for number in range(1, 5):
            hidden, state = lstm_cell(inputs)
            assert (hidden.item(), state.item(), counting.calls) == (2, 3, number)
    finally:
        tp.plugins.unregister("counting")


def of_lists(values):
    """Return plain arguments with lists of their own in place of tuples and lists of ints."""
    return [
        list(value)
        if type(value) in (tuple, list) and value and all(type(item) is int for item in value)
        else value
        for value in values
    ]


def list_calls():
    """Return, for each op, its first sample that has a tuple of ints, as a call with lists."""
    found = {}
    for record in all_records():
        for sample in samples_of(record, "cpu", tp.float32) if tp.float32 in record.dtypes else ():
            rest = of_lists(sample.args[1:])
            named = dict(zip(sample.kwargs, of_lists(sample.kwargs.values()), strict=True))
            lists = [value for value in (*rest, *named.values()) if type(value) is list]
            pure = get_op(record.op).pure and not get_op(record.op).writes
            tensor = sample.args and isinstance(sample.args[0], tp.Tensor)
            if lists and pure and tensor:
                found.setdefault(record.op, (sample, rest, named, lists))
    return found


@pytest.mark.filterwarnings("ignore")
def test_a_list_of_ints_is_read_at_every_call():
    calls = list_calls()
    assert len(calls) > 40
    for name, (sample, rest, named, lists) in calls.items():
        call, first = get_op(name).call, sample.args[0]

        def made(call=call, first=first, rest=rest, named=named):
            try:
                result = call(first, *rest, **named)
            except (RuntimeError, IndexError, ValueError, TypeError) as error:
                return type(error)
            return [part.tolist() for part in tensors_in((result,))]

        contents = [list(values) for values in lists]
        others = [[*reversed(values)] for values in contents], [values[:1] for values in contents]
        expected = []
        for chosen in (contents, *others):
            for values, items in zip(lists, chosen, strict=True):
                values[:] = items
            call_cache.clear_call_caches()
            expected.append(made())
        if isinstance(expected[0], type):  # takes no list
            continue
        call_cache.clear_call_caches()
        for turn in range(9):  # twice each, and in turn
            which = turn // 2 if turn < 6 else turn % 3
            for values, items in zip(lists, (contents, *others)[which], strict=True):
                values[:] = items
            assert repr(made()) == repr(expected[which]), (name, rest, named)
