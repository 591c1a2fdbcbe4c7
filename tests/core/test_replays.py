"""Bodies of composites are traced once, and replayed on raw arrays for calls that look the same."""

import weakref

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch import call_cache, programs, replay
from tensorplug.core.dispatch.layers import Layer
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.plugin import KernelTable, composite, hookimpl
from tensorplug.testing import cases
from tensorplug.testing.records import all_records

pytestmark = pytest.mark.usefixtures("nothing_looks_on")

functional = tp.nn.functional
COMPOSITES = [
    record
    for record in all_records()
    if get_op(record.op).kind == "composite" and "forward" not in record.skips
]
EVERY = 3  # of the samples of an op


class Watch(Layer):
    """Notes the ops it sees."""

    name, order, nested = "watch", 100, True

    def __init__(self):
        self.seen = []

    def __call__(self, op, args, kwargs, proceed):
        self.seen.append(op.name)
        return proceed(*args, **kwargs)


@pytest.fixture
def runs(monkeypatch):
    """Count the programs of bodies that are traced, by the op's name."""
    traced = []
    found = replay.trace_body

    def trace_body(body, tensors, device):
        made = found(body, tensors, device)
        traced.append(made[0])
        return made

    monkeypatch.setattr(replay, "trace_body", trace_body)
    call_cache.clear_call_caches()
    yield traced
    call_cache.clear_call_caches()


def assert_alike(expected, given, said):
    pairs = zip(cases.tensors_in(expected), cases.tensors_in(given), strict=True)
    for a, b in pairs:
        assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride()), said
        assert a.device == b.device, said
        assert a.requires_grad == b.requires_grad, said
        x, y = np.asarray(a), np.asarray(b)
        assert np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"), said


@pytest.mark.parametrize("start", range(4))
def test_a_third_call_gives_what_the_first_gave(start, runs):
    compared = 0
    for record in COMPOSITES[start::4]:
        op = get_op(record.op)
        if op.random or record.check is not None:
            continue
        dtype = next((d for d in (tp.float32, tp.int64) if d in record.dtypes), record.dtypes[0])
        with tp.no_grad():
            for sample in cases.samples_of(record, "cpu", dtype)[::EVERY]:
                before = len(runs)
                first, _, third = (cases.call(op, sample) for _ in range(3))
                if len(runs) == before:
                    continue
                compared += 1
                said = f"{record.op} {sample}"
                assert type(first) is type(third), said
                assert_alike(first, third, said)
                layout = cases.layouts_of(record)[-1]
                other = cases.call(op, sample, layout)
                with Watch().active():  # by the body
                    expected = cases.call(op, sample, layout)
                assert_alike(expected, other, f"{said} {layout}")
    assert compared > 30


def thrice(function, *args, **kwargs):
    return [function(*args, **kwargs) for _ in range(3)]


def test_a_call_of_lists_and_of_keywords_is_replayed(runs):
    x, y = tp.arange(4.0), tp.ones(2, 2)
    for result in thrice(tp.block_diag, x, y):
        assert result.shape == (3, 6)
    for result in thrice(functional.pad, input=y, pad=[1, 0]):
        assert result.tolist() == [[0, 1, 1], [0, 1, 1]]
    assert len(runs) == 4  # each twice


def test_a_call_of_a_size_and_of_a_format_of_memory_is_replayed(runs):
    y = tp.ones(2, 2)
    for result in thrice(functional.pad, y, tp.Size([1, 0])):
        assert result.tolist() == [[0, 1, 1], [0, 1, 1]]
    assert len(runs) == 2
    assert functional.pad(y, tp.Size([0, 1])).tolist() == [[1, 1, 0], [1, 1, 0]]
    images = tp.arange(48.0).reshape(1, 3, 4, 4)
    for result in thrice(tp.ones_like, images, memory_format=tp.channels_last):
        assert result.stride() == (48, 1, 12, 3)
    for result in thrice(tp.ones_like, images, memory_format=tp.contiguous_format):
        assert result.stride() == (48, 16, 4, 1)


@pytest.mark.parametrize("op", ["addmm", "addbmm", "baddbmm", "addmv", "addr"])
@pytest.mark.parametrize("tracked", [False, True], ids=["plain", "recorded"])
def test_a_call_of_complex_numbers_is_replayed_for_these_alone(op, tracked, runs):
    """Signs of zeros tell numbers apart that are equal."""
    left, right = {
        "addmm": ((2, 2), (2, 2)), "addbmm": ((2, 2, 2), (2, 2, 2)), "baddbmm": ((2, 2, 2), (2, 2, 2)),
        "addmv": ((2, 2), (2,)), "addr": ((2,), (2,)),
    }[op]  # fmt: skip
    a, b = (tp.randn(shape, dtype=tp.complex64) for shape in (left, right))
    product = getattr(tp, op)(tp.zeros(1, dtype=tp.complex64), a, b)
    start = tp.randn(product.shape, dtype=tp.complex64, requires_grad=tracked)
    numbers = [2 + 3j, complex(1.5, 0.0), complex(1.5, -0.0), complex(-0.0, 2), complex(0.0, 2)]
    for number in numbers:
        once = start * number + product * (1 - number)
        for _ in range(6):
            found = getattr(tp, op)(start, a, b, beta=number, alpha=1 - number)
            tp.testing.assert_close(found, once)
            if tracked:
                found.abs().sum().backward()
    assert tracked or len(runs) >= 2 * len(numbers)


def test_numbers_that_fill_are_replayed(runs):
    index = tp.tensor([0, 2])
    for dtype in (tp.float32, tp.bfloat16, tp.int64, tp.bool, tp.complex64):
        for start in (tp.ones(3, dtype=dtype), tp.ones(3, 2, dtype=dtype)):
            before = len(runs)
            for value in (0, 0, 0, 1, 1, 1, 0, 1):
                found = start.index_fill(0, index, value)
                assert found.select(0, 0).tolist() == (start.select(0, 0) * value).tolist()
                assert found.select(0, 1).tolist() == start.select(0, 1).tolist()
            assert len(runs) - before >= 4


def test_a_body_of_many_steps_is_not_traced_whole(runs, monkeypatch):
    called = []
    noted = programs.Tracer._note
    if hasattr(noted, "__code__"):  # compiled, its calls cannot be counted
        monkeypatch.setattr(
            programs.Tracer, "_note", lambda *args: called.append(1) or noted(*args)
        )
    x = tp.arange(2000.0)
    for result in thrice(tp.block_diag, *x.split(1)) + thrice(tp.unbind, x):
        assert len(result) == 2000
    assert not runs
    assert len(called) < 2000


def test_one_tensor_twice_and_two_that_are_alike_are_told_apart(runs):
    x, y = tp.tensor([1.0, 0.0]), tp.tensor([0.0, 1.0])
    assert [r.item() for r in thrice(functional.pairwise_distance, x, x, eps=0.0)] == [0, 0, 0]
    assert functional.pairwise_distance(x, y, eps=0.0).item() == pytest.approx(2**0.5)
    assert runs


class Inner:
    """A kernel for an op that bodies call."""

    name = "inner"
    fails = False

    @hookimpl
    def tensorplug_kernels(self):
        table = KernelTable("cpu", priority=1000)
        table.add("mul", self.mul, dtypes=[tp.float32])
        return table

    def mul(self, input, other):
        if self.fails:
            raise ValueError("it fails")
        return input * other + 1


class Whole:
    """A kernel for a composite itself."""

    name = "whole"

    @hookimpl
    def tensorplug_kernels(self):
        table = KernelTable("cpu", priority=1000)
        table.add("vander", lambda x, N: np.repeat(x[:, None], N, 1) + 7, dtypes=[tp.float32])
        return table


def test_kernels_of_plugins_are_called_in_replays_and_not_after_they_are_gone(runs):
    x = tp.tensor([1.0, 2.0])
    expected = tp.vander(x, 2).tolist()
    assert [r.tolist() for r in thrice(tp.vander, x, 2)] == [expected] * 3
    tp.plugins.register(Whole())
    try:
        assert [r.tolist() for r in thrice(tp.vander, x, 2)] == [[[8, 8], [9, 9]]] * 3
    finally:
        tp.plugins.unregister("whole")
    assert [r.tolist() for r in thrice(tp.vander, x, 2)] == [expected] * 3
    before = functional.cosine_similarity(x, x, 0).item()
    thrice(functional.cosine_similarity, x, x, 0)
    tp.plugins.register(Inner())
    try:
        results = [r.item() for r in thrice(functional.cosine_similarity, x, x, 0)]
        assert results[0] == results[2] != before
    finally:
        tp.plugins.unregister("inner")
    assert functional.cosine_similarity(x, x, 0).item() == before


def test_layers_see_the_ops_of_a_body_that_was_replayed_before(runs):
    x = tp.rand(3, 4)
    thrice(tp.trapezoid, x)
    assert runs
    watch = Watch()
    with watch.active():
        tp.trapezoid(x)
    assert watch.seen[0] == "trapezoid"
    assert len(watch.seen) > 2


def test_what_draws_random_numbers_is_not_replayed(runs):
    x = tp.zeros(50) + 0.5
    for function in (tp.rand_like, tp.bernoulli, functional.dropout, tp.normal):
        tp.manual_seed(0)
        first = thrice(function, x) + thrice(function, x)
        assert len({tuple(r.tolist()) for r in first}) == 6, function
        tp.manual_seed(0)
        again = thrice(function, x) + thrice(function, x)
        assert [r.tolist() for r in first] == [r.tolist() for r in again], function


def test_a_generator_is_where_it_would_be_without(runs):
    x = tp.rand(4, 4)
    tp.manual_seed(3)
    thrice(tp.trapezoid, x)
    after = tp.get_rng_state().tolist()
    tp.manual_seed(3)
    assert tp.get_rng_state().tolist() == after


def test_a_body_that_is_not_a_function_of_its_arguments_is_not_replayed(runs):
    state = iter(range(100))

    @composite(name="replays.counted", pure=True)
    def counted(x: tp.Tensor) -> tp.Tensor:
        """Return twice as much, and more each time."""
        return (x + x) * next(state)

    class Counting:
        name = "counting"

        @hookimpl
        def tensorplug_ops(self):
            return [counted]

    tp.plugins.register(Counting())
    try:
        results = [counted(tp.ones(2)).tolist()[0] for _ in range(8)]
    finally:
        tp.plugins.unregister("counting")
    assert runs
    assert results == sorted(set(results))


def test_a_strangers_body_that_reads_a_setting_is_not_replayed():
    setting = [1]

    @composite(name="replays.scaled")
    def scaled(x: tp.Tensor) -> tp.Tensor:
        """Return x times the setting."""
        return (x + x) * setting[0]

    class Scaling:
        name = "scaling"

        @hookimpl
        def tensorplug_ops(self):
            return [scaled]

    tp.plugins.register(Scaling())
    try:
        assert {scaled(tp.ones(2))[0].item() for _ in range(4)} == {2}
        setting[0] = 2
        assert scaled(tp.ones(2))[0].item() == 4
    finally:
        tp.plugins.unregister("scaling")


def test_a_body_that_warns_does_so_each_time():
    x, y = tp.ones(3), tp.ones(3, 1)
    for function in (functional.mse_loss, functional.huber_loss, functional.smooth_l1_loss):
        for _ in range(4):
            with pytest.warns(UserWarning, match="target size"):
                function(x, y)


def test_a_tensor_without_arguments_is_made_on_the_default_device(runs):
    for _ in range(4):
        assert tp.eye(3).device == tp.device("cpu")
    assert runs
    tp.set_default_device("meta")
    try:
        assert tp.eye(3).is_meta
    finally:
        tp.set_default_device(None)
    assert tp.eye(3, requires_grad=True).requires_grad
    for result in [tp.linspace(0, 1, 3) for _ in range(4)]:
        assert result.tolist() == [0, 0.5, 1]
        result.zero_()


def test_checks_of_data_are_made_each_time(runs):
    good, bad = tp.eye(3), -tp.eye(3)
    thrice(tp.linalg.cholesky, good)
    with pytest.raises(tp.linalg.LinAlgError):
        tp.linalg.cholesky(bad)
    half = tp.full((3,), 0.5)
    thrice(functional.binary_cross_entropy, half, half)
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        functional.binary_cross_entropy(half + 1, half)
    q = tp.tensor([0.5])
    thrice(tp.quantile, tp.rand(5), q)
    with pytest.raises(RuntimeError, match="range"):
        tp.quantile(tp.rand(5), q + 1)


def test_an_error_of_a_kernel_is_the_one_that_the_body_raises(runs):
    x = tp.tensor([1.0, 2.0])
    plugin = Inner()
    tp.plugins.register(plugin)
    try:
        expected = thrice(functional.cosine_similarity, x, x, 0)[2].item()
        assert runs
        plugin.fails = True
        for _ in range(6):
            with pytest.raises(ValueError, match="fails"):
                functional.cosine_similarity(x, x, 0)
        plugin.fails = False
        assert functional.cosine_similarity(x, x, 0).item() == expected
    finally:
        tp.plugins.unregister("inner")


def test_what_requires_grad_is_recorded_and_numbers_of_either_sign_are_two(runs):
    x = tp.rand(3, 4)
    thrice(tp.trapezoid, x)
    leaf = x.clone().requires_grad_()
    tp.trapezoid(leaf).sum().backward()
    assert leaf.grad.tolist() == [[0.5, 1, 1, 0.5]] * 3
    with tp.inference_mode():
        assert tp.trapezoid(x).is_inference()
    assert not tp.trapezoid(x).is_inference()


def test_results_own_their_memory(runs):
    x = tp.rand(3, 3)
    for function in (tp.trapezoid, tp.cov, tp.vander, tp.block_diag):
        given = x[0].clone() if function is tp.vander else x.clone()
        kept = given.clone()
        for result in thrice(function, given):
            result.zero_()
        assert given.tolist() == kept.tolist()


def test_what_no_later_step_needs_is_freed():
    watched = []

    class Array(np.ndarray):
        """An array that can be watched."""

    def make(array):
        made = array.copy().view(Array)
        watched.append(weakref.ref(made))
        return made

    def look(array):
        return watched[0]() is None

    kernels = tp.zeros(1)._key.kernels
    key, place = tp.zeros(1)._key, len(kernels)
    kernels.extend([make, look])
    try:
        program = programs.Program()
        program.steps = [(key, place, (0,), ()), (key, place, (1,), ()), (key, place + 1, (2,), ())]
        program.result = 3
        programs.settle(program, 1)
        assert program.run([np.zeros(3)]) is True
    finally:
        del kernels[place:]


def test_a_rule_that_makes_calls_of_other_ops_is_replayed(runs):
    matrix, row, values = tp.eye(3) * 4, tp.arange(5.0), tp.tensor([0.5, 3.5])
    for function, expected in (
        (lambda: tp.linalg.cholesky_ex(matrix, upper=True).L, (tp.eye(3) * 2).tolist()),
        (lambda: tp.searchsorted(row, values, out_int32=True), [1, 4]),
        (lambda: tp.tensor(2.0).sort().values, 2.0),
    ):
        before = len(runs)
        for _ in range(5):
            assert function().tolist() == expected
        assert len(runs) > before
    with pytest.raises(tp.linalg.LinAlgError):
        tp.linalg.cholesky_ex(-matrix, upper=True, check_errors=True)


def test_a_detached_tensor_is_the_one_it_shows(runs):
    @composite(name="replays.detached", pure=True)
    def detached(x: tp.Tensor) -> tp.Tensor:
        """Return `x` and what it shows, one of which is cut off."""
        return (x.detach() * 2).exp() + x

    class Detaching:
        name = "detaching"

        @hookimpl
        def tensorplug_ops(self):
            return [detached]

    tp.plugins.register(Detaching())
    try:
        x = tp.rand(2, 3)
        results = [detached(x) for _ in range(5)]
        assert any(len(program.steps) == 3 for program in runs)
        assert tp.equal(results[0], results[-1])
    finally:
        tp.plugins.unregister("detaching")


FACTORIES = {
    "arange": (4,), "asarray": ([1.0],), "bartlett_window": (4,), "blackman_window": (4,), "empty": ((2,),),
    "empty_strided": ((2,), (1,)), "eye": (3,), "full": ((2,), 1.5), "hamming_window": (4,),
    "hann_window": (4,), "kaiser_window": (4,), "linspace": (0, 1, 4), "logspace": (0, 1, 4),
    "ones": ((2, 3),), "rand": (2,), "randint": (3, (2,)), "randn": (2,), "randperm": (4,),
    "scalar_tensor": (1.0,), "tensor": ([1.0],), "tril_indices": (3, 3), "triu_indices": (3, 3),
    "zeros": ((2, 3),),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTORIES)
def test_what_is_made_on_a_device_again_is_made_there(name):
    call_cache.clear_call_caches()
    make = getattr(tp, name)
    for device in ("meta", tp.device("meta"), "cpu", "meta"):
        for _ in range(5):
            assert make(*FACTORIES[name], device=device).device == tp.device(device)
    with tp.device("meta"):
        for _ in range(5):
            assert make(*FACTORIES[name]).device.type == "meta"
    assert make(*FACTORIES[name]).device.type == "cpu"
