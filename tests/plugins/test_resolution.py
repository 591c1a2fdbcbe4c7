"""Which kernel runs: preference, priority, dtype, decomposition, fallback, and the errors."""

import logging
import logging.handlers
import queue
import re
import threading

import pytest

import tensorplug as tp
from tensorplug.core.dispatch import contracts
from tensorplug.core.dispatch.explain import explain
from tensorplug.core.dispatch.kernel_registry import kernels_for
from tensorplug.core.errors import FallbackWarning
from tensorplug.core.plugins import plugin_label
from tensorplug.plugin import Kernel, KernelContractError, KernelNotFoundError, composite

from .conftest import FLOAT32, FLOAT64, INT64, TOP, Plugin, ToyArray, toy_add, toy_fill_new, toy_mul


def times(factor):
    def kernel(input, other):
        return input * factor

    return kernel


def mul():
    return (tp.ones(1) * 1.0).item()


def test_the_highest_priority_wins(registry):
    for name, factor, above in (("low", 2, 1), ("high", 3, 7), ("middle", 4, 5)):
        kernel = Kernel("mul", "cpu", times(factor), {FLOAT32}, TOP + above)
        registry.register(Plugin(name, kernels=[kernel]))
    assert mul() == 3
    registry.unregister("high")
    assert mul() == 4


def test_a_kernel_for_the_dtype_goes_before_one_for_any(registry, cpu_numpy_alone):
    registry.register(Plugin("any", kernels=[Kernel("mul", "cpu", times(2), None, 100)]))
    assert mul() == 2
    registry.register(Plugin("exact", kernels=[Kernel("mul", "cpu", times(3), {FLOAT32}, 0)]))
    assert mul() == 3
    assert (tp.ones(1, dtype=FLOAT64) * 1.0).item() == 2


def test_accepts_decides_for_a_kernel_of_any_dtype(registry, cpu_numpy_alone):
    picky = Kernel("mul", "cpu", times(2), accepts=lambda dtype: dtype is FLOAT64, priority=9)
    registry.register(Plugin("picky", kernels=[picky]))
    assert mul() == 1
    assert (tp.ones(1, dtype=FLOAT64) * 1.0).item() == 2


# --- prefer -----------------------------------------------------------------------------------


def test_a_preferred_plugin_wins_within_its_block(registry):
    registry.register(Plugin("a", kernels=[Kernel("mul", "cpu", times(2), {FLOAT32}, TOP)]))
    registry.register(Plugin("b", kernels=[Kernel("mul", "cpu", times(3), {FLOAT32}, TOP + 1)]))
    assert mul() == 3
    with tp.prefer("a"):
        assert mul() == 2
        with tp.prefer("cpu_numpy"):
            assert mul() == 1
        with tp.prefer("b", "a"):
            assert mul() == 3
        assert mul() == 2
    assert mul() == 3


def test_prefer_for_one_call(registry):
    registry.register(Plugin("a", kernels=[Kernel("mul", "cpu", times(2), {FLOAT32}, TOP)]))
    one, two = tp.ones(1), tp.full((1,), 5.0)
    assert tp.prefer("cpu_numpy")(tp.mul)(one, two).item() == 5
    assert tp.mul(one, two).item() == 2


def test_prefer_is_the_threads_own(registry):
    registry.register(Plugin("a", kernels=[Kernel("mul", "cpu", times(2), {FLOAT32}, TOP)]))
    seen = []
    with tp.prefer("cpu_numpy"):
        thread = threading.Thread(target=lambda: seen.append(mul()))
        thread.start()
        thread.join()
        assert mul() == 1
    assert seen == [2]


def test_prefer_reaches_backward_and_in_place(registry):
    registry.register(Plugin("a", kernels=[Kernel("mul", "cpu", times(2), {FLOAT32}, TOP)]))
    x = tp.full((1,), 3.0, requires_grad=True)
    with tp.prefer("cpu_numpy"):
        (x * x).sum().backward()
        assert x.grad.item() == 6
        y = tp.full((1,), 3.0)
        y *= 3
        assert y.item() == 9


def test_prefer_falls_to_others_where_it_has_no_kernel(registry):
    registry.register(Plugin("a", kernels=[Kernel("mul", "cpu", times(2), {FLOAT32}, TOP)]))
    with tp.prefer("a"):
        assert (tp.ones(1) + 1).item() == 2
        assert (tp.ones(1, dtype=FLOAT64) * 1.0).item() == 1


def test_prefer_ends_with_an_exception(registry):
    registry.register(Plugin("a", kernels=[Kernel("mul", "cpu", times(2), {FLOAT32}, TOP)]))
    with pytest.raises(ZeroDivisionError), tp.prefer("cpu_numpy"):
        raise ZeroDivisionError
    assert mul() == 2


def test_prefer_refuses_a_name_that_nobody_has():
    with (
        pytest.raises(ValueError, match=r"no plugin is named 'nobody'; registered are .*cpu_numpy"),
        tp.prefer("nobody"),
    ):
        pass


# --- composites -------------------------------------------------------------------------------


def test_a_kernel_stands_in_for_a_composite(registry):
    @composite(name="test.twice")
    def twice(input):
        """Return twice the input."""
        return input + input

    registry.register(Plugin("op", ops=[twice]))
    assert twice(tp.ones(1)).item() == 2
    fused = Kernel("test.twice", "cpu", lambda input: input * 20, {FLOAT32})
    registry.register(Plugin("fused", kernels=[fused]))
    assert twice(tp.ones(1)).item() == 20
    assert twice(tp.ones(1, dtype=FLOAT64)).item() == 2
    tracked = tp.ones(1, requires_grad=True)
    result = twice(tracked)
    assert result.item() == 20, "a kernel serves training, too"
    result.backward()
    assert tracked.grad.item() == 2, "without a derivative of its own the body is differentiated"
    registry.unregister("fused")
    assert twice(tp.ones(1)).item() == 2


# --- fallback ---------------------------------------------------------------------------------


def test_the_default_is_an_error(toy):
    x = tp.ones(2, device="toy")
    with pytest.raises(KernelNotFoundError):
        x - x


def test_fallback_computes_and_counts(toy):
    x = tp.full((2,), 3.0, device="toy")
    tp.set_fallback("allow")
    y = x - 1
    assert (y.tolist(), y.device.type) == ([2.0, 2.0], "toy")
    counts = tp.fallback_counts()["sub", "toy"]
    assert (counts.calls, counts.bytes) == (1, 8 + 4 + 8)
    assert x.sum().item() == 6
    tp.set_fallback("error")
    with pytest.raises(KernelNotFoundError):
        x - 1


def test_fallback_warns_once_per_op(toy):
    x = tp.ones(2, device="toy")
    tp.set_fallback("warn")
    with pytest.warns(
        FallbackWarning, match=r"'sub' has no kernel on 'toy' for float32.*24 bytes"
    ) as seen:
        x - x
    assert seen[0].filename == __file__
    x - x
    assert tp.fallback_counts()["sub", "toy"].calls == 2


def test_fallback_warns_of_what_was_allowed_before(toy):
    x = tp.ones(2, device="toy")
    tp.set_fallback("allow")
    x - x
    tp.set_fallback("warn")
    with pytest.warns(FallbackWarning, match="moved 24 bytes this time"):
        x - x
    tp.set_fallback("warn")  # no change: what was told is known
    x - x
    assert tp.fallback_counts()["sub", "toy"].bytes == 3 * 24


def test_fallback_has_derivatives(toy):
    tp.set_fallback("allow")
    x = tp.full((2,), 3.0, device="toy", requires_grad=True)
    (x - x * 4).exp().sum().backward()
    assert x.grad.device.type == "toy"
    assert x.grad.tolist() == pytest.approx([-3 * 2.718281828**-9] * 2)


def test_fallback_mutes_what_the_cpu_mutes(toy):
    tp.set_fallback("allow")
    assert tp.full((1,), -1.0, device="toy").sqrt().isnan().item()


def test_a_view_does_not_fall_back(toy):
    """A copy in its place would not share the memory."""
    tp.set_fallback("allow")
    x = tp.ones(2, 2, device="toy")
    with pytest.raises(KernelNotFoundError, match="a view cannot fall back"):
        x.permute(1, 0)


def test_an_unknown_policy():
    with pytest.raises(ValueError, match="expected 'error', 'warn' or 'allow', got 'maybe'"):
        tp.set_fallback("maybe")


# --- errors -----------------------------------------------------------------------------------


def test_a_missing_kernel_names_what_is_near(toy):
    x = tp.ones(2, device="toy", dtype=INT64)
    with pytest.raises(KernelNotFoundError) as caught:
        x * x
    text = str(caught.value)
    assert "no kernel for op 'mul' on device 'toy' with dtype int64" in text
    assert "on 'toy' for float32, float64: toy_plugin" in text
    assert "on 'cpu': cpu_numpy (tensorplug" in text
    assert "convert to a dtype named above" in text
    assert '.to("cpu")' in text
    assert 'tp.set_fallback("warn")' in text


def test_a_missing_kernel_of_a_package_names_the_command(toy, monkeypatch):
    from tensorplug.core.plugins import discovery

    toy.package, toy.version = "tensorplug-toy", "1.0"
    x = tp.ones(2, device="toy")
    with pytest.raises(KernelNotFoundError, match="`pip install --upgrade tensorplug-toy`"):
        x.exp()
    monkeypatch.setitem(discovery.install_hints, "toy", lambda: "pip install 'tensorplug[toy]'")
    with pytest.raises(KernelNotFoundError, match=r"`pip install 'tensorplug\[toy\]'`"):
        x.exp()


# --- what a kernel promises -------------------------------------------------------------------

BROKEN = {
    "pointwise, wrong shape": ("add", lambda input, other: ToyArray(input.data[:1]), "shape"),
    "pointwise, wrong dtype": (
        "add",
        lambda input, other: ToyArray(input.data.astype("float64")),
        "dtype float64, .* says float32",
    ),
    "pointwise, no array": ("add", lambda input, other: input.data, "ndarray .*ToyArray"),
    "pointwise, nothing": ("add", lambda input, other: None, "NoneType None.*ToyArray"),
    "reduction, wrong shape": (
        "sum",
        lambda input, dim, keepdim: input,
        r"shape \[2\].* says \[\]",
    ),
    "reduction, wrong dtype": (
        "sum",
        lambda input, dim, keepdim: ToyArray(input.data.sum().astype("int32")),
        "dtype int32, .* says float32",
    ),
}


@pytest.mark.parametrize(("op", "function", "message"), BROKEN.values(), ids=BROKEN)
def test_a_kernel_that_breaks_its_promise_is_named(registry, toy, op, function, message):
    record = registry.register(Plugin("bad", kernels=[Kernel(op, "toy", function, {FLOAT32}, 5)]))
    record.package, record.version = "tensorplug-bad", "0.3"
    x = tp.ones(2, device="toy")
    with pytest.raises(KernelContractError, match=message) as caught:
        x + x if op == "add" else x.sum()
    text = str(caught.value)
    assert text.startswith(f"{op}: the kernel of bad (tensorplug-bad 0.3) (")
    assert "test_resolution.py:" in text


def test_a_composites_kernel_is_held_to_its_body(registry):
    @composite(name="test.triple")
    def triple(input):
        """Return three times the input."""
        return input * 3

    wrong = Kernel("test.triple", "cpu", lambda input: input.sum(), {FLOAT32})
    registry.register(Plugin("triple", ops=[triple], kernels=[wrong]))
    with pytest.raises(KernelContractError, match=r"plugin|triple.*shape \[\].* says \[2\]"):
        triple(tp.ones(2))


def test_every_call_can_be_checked(registry, toy):
    state = {"good": True}

    def moody(input, other):
        return toy_mul(input, other) if state["good"] else input.data

    registry.register(Plugin("moody", kernels=[Kernel("sub", "toy", moody)]))
    contracts.check_every_call()
    try:
        x = tp.ones(2, device="toy")
        x - x
        state["good"] = False
        with pytest.raises(KernelContractError, match="kernel of moody"):
            x - x
    finally:
        contracts.check_every_call(False)


def test_what_a_kernel_raises_comes_through(registry, toy):
    def raising(input, other):
        raise ZeroDivisionError("by the toy")

    registry.register(Plugin("raising", kernels=[Kernel("sub", "toy", raising)]))
    with pytest.raises(ZeroDivisionError, match="by the toy"):
        tp.ones(2, device="toy") - 1


# --- explain ----------------------------------------------------------------------------------


def test_explain_names_the_winner_and_every_loser(registry):
    tp.zeros(1)
    registry.register(Plugin("fast", kernels=[Kernel("mul", "cpu", times(1), {FLOAT32}, TOP + 7)]))
    registry.register(Plugin("slow", kernels=[Kernel("mul", "cpu", times(1), {FLOAT32}, TOP + 3)]))
    registry.register(Plugin("other", kernels=[Kernel("mul", "cpu", times(1), {INT64}, TOP + 9)]))
    choice = explain("mul", dtype=tp.float32)
    assert choice.way == "kernel"
    assert choice.kernel.plugin == "fast"
    text = str(choice)
    assert repr(choice) == text
    head, *rest = text.splitlines()
    assert head.startswith("mul on cpu, float32: kernel of fast, priority 1007, ")
    assert "test_resolution.py:" in head
    reasons = {line.split(",")[0].strip(): line.rpartition(": ")[2] for line in rest[1:]}
    assert reasons.pop("other") == "does not take float32"
    assert reasons.pop("slow") == "priority 1003 is below 1007"
    (name,) = [name for name in reasons if name.startswith("cpu_numpy (tensorplug ")]
    assert reasons.pop(name) == "takes any dtype, fast names float32"
    assert all(re.fullmatch(r"priority \d+ is below 1007", why) for why in reasons.values())
    assert len(rest) == len(kernels_for("mul", "cpu"))  # the head of the list, no winner
    with tp.prefer("slow"):
        assert "fast is" not in str(explain("mul"))
        assert "slow is preferred here" in str(explain("mul"))


@pytest.mark.parametrize("op", ["mul", tp.mul, tp.Tensor.mul, tp.mul.op])
def test_explain_takes_names_and_functions(op):
    assert explain(op).op == "mul"


def test_explain_tells_of_every_way(toy):
    assert explain("mul", device="meta").way == "meta"
    assert "rule alone" in str(explain("mul", device="meta"))
    assert explain("zeros").way == "decomposition"
    assert "decomposition into other ops, " in str(explain("zeros"))
    assert "creation.py:" in str(explain("zeros"))
    assert explain("sub", device="toy").way == "none"
    assert "nothing runs it" in str(explain("sub", device="toy:0"))
    assert "on 'cpu': cpu_numpy" in str(explain("sub", device="toy"))
    tp.set_fallback("allow")
    assert explain("sub", device="toy").way == "fallback"
    tp.ones(2, device="toy") - 1
    assert "so far 1 calls, 20 bytes" in str(explain("sub", device="toy"))


def test_explain_tells_the_dtype_of_the_computation():
    choice = explain("exp", dtype=tp.int64)
    winner = explain("exp", dtype=tp.float32).kernel.plugin
    assert str(choice).startswith(f"exp on cpu, int64 (computed in float32): kernel of {winner}")
    refused = explain("bitwise_and", dtype=tp.float32)
    assert refused.way == "none"
    assert "does not take this dtype" in str(refused)


def test_explain_needs_no_hardware(registry):
    from .conftest import ToyRuntime

    class Absent(ToyRuntime):
        reason = "no driver"

    registry.register(Plugin("absent", devices=[Absent()], kernels=[Kernel("add", "toy", toy_add)]))
    assert explain("add", device="toy").kernel.plugin == "absent"


def test_explain_refuses_what_it_does_not_know():
    with pytest.raises(KeyError, match="no op 'mull'; did you mean mul"):
        explain("mull")
    with pytest.raises(TypeError, match="expected an op or the name of one, got <built-in"):
        explain(len)
    with pytest.raises(RuntimeError, match="no plugin provides device 'slide_rule'"):
        explain("mul", device="slide_rule")


def test_the_log_tells_each_choice_once():
    from tensorplug.core.dispatch.explain import log_dispatch

    told: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    handler = logging.handlers.QueueHandler(told)
    logging.getLogger("tensorplug.dispatch").addHandler(handler)
    log_dispatch()
    try:
        x = tp.ones(2)
        x * x
        x * x
        tp.set_fallback("allow")  # resolves everything anew
        x * x
    finally:
        log_dispatch(False)
    x * x
    logging.getLogger("tensorplug.dispatch").removeHandler(handler)
    records = [told.get() for _ in range(told.qsize())]
    records = [record for record in records if record.getMessage().startswith("mul ")]
    assert len(records) == 1
    assert (records[0].name, records[0].levelname) == ("tensorplug.dispatch", "INFO")
    winner = plugin_label(explain("mul").kernel.plugin)
    assert records[0].getMessage().startswith(f"mul on cpu, float32: kernel of {winner}, priority ")


def test_kernels_say_where_they_come_from():
    assert Kernel("add", "cpu", toy_add).source().rpartition(":")[0].endswith("conftest.py")
    import functools

    partial = functools.partial(toy_add, 1)
    assert "conftest.py" in Kernel("add", "cpu", partial).source()
    import numpy as np

    assert Kernel("add", "cpu", np.add).source() == "numpy.add (compiled)"


# --- several devices of one type --------------------------------------------------------------


def test_kernels_run_on_the_device_of_their_tensors(registry):
    """Also those that make arrays and are given none."""
    from contextlib import contextmanager

    from .conftest import ToyRuntime

    current = [0]
    seen = []

    class Two(ToyRuntime):
        def device_count(self):
            return 2

        @contextmanager
        def device_guard(self, index):
            current.append(index)
            yield
            current.pop()

    def make(shape, value, dtype):
        seen.append(("fill_new", current[-1]))
        return toy_fill_new(shape, value, dtype)

    def add(input, other, out=None):
        seen.append(("add", current[-1]))
        return toy_add(input, other)

    kernels = [Kernel("fill_new", "toy", make), Kernel("add", "toy", add)]
    registry.register(Plugin("two", devices=[Two()], kernels=kernels))
    first, second = tp.ones(2, device="toy"), tp.ones(2, device="toy:1")
    assert (first.device.index, second.device.index) == (0, 1)
    second + second
    first + first
    assert seen == [("fill_new", 0), ("fill_new", 1), ("add", 1), ("add", 0)]
    assert current == [0]
    with pytest.raises(RuntimeError, match="found toy:0 and toy:1"):
        first + second
