"""Plugins come and go while tensors live and threads compute."""

import sys
import threading

import pytest

import tensorplug as tp
from tensorplug.core.dispatch import keys
from tensorplug.core.dispatch.kernel_registry import kernels_for
from tensorplug.plugin import DeviceNotAvailableError, Kernel, PluginError

from .conftest import FLOAT32, TOP, Plugin, ToyRuntime, toy_plugin


def test_tables_follow(registry):
    def wrong(input, other):
        return input

    x = tp.tensor([2.0, 3.0])
    assert (x * x).tolist() == [4.0, 9.0]
    registry.register(Plugin("wrong", kernels=[Kernel("mul", "cpu", wrong, {FLOAT32}, TOP)]))
    assert (x * x).tolist() == [2.0, 3.0]
    assert (x.to(tp.float64) * x.to(tp.float64)).tolist() == [4.0, 9.0]
    registry.unregister("wrong")
    assert (x * x).tolist() == [4.0, 9.0]


def test_tables_follow_in_backward_and_for_composites(registry):
    def zero(input, other):
        return input * 0

    def gradient():
        x = tp.tensor([2.0, 3.0], requires_grad=True)
        (x * x).sum().backward()
        return x.grad.tolist()

    def constant(input, shape):
        return input.reshape(shape) * 0

    assert gradient() == [4.0, 6.0]
    registry.register(Plugin("zero", kernels=[Kernel("mul", "cpu", zero, {FLOAT32}, TOP)]))
    assert gradient() == [0.0, 0.0]
    registry.unregister("zero")
    assert gradient() == [4.0, 6.0]


def test_a_name_that_is_not_registered(registry):
    with pytest.raises(
        PluginError, match=r"no plugin 'nobody' is registered; registered are .*cpu"
    ):
        registry.unregister("nobody")


def test_a_tensor_on_a_removed_device_says_so(registry, toy):
    x = tp.tensor([1.0, 2.0], device="toy")
    registry.unregister("toy_plugin")
    assert (x.shape, x.dtype, x.device.type) == ((2,), tp.float32, "toy")
    match = "'toy',? .*went away when plugin toy_plugin was unregistered"
    for use in (
        lambda: x + x,
        lambda: x + 1,
        lambda: -x,
        lambda: x.sum(),
        lambda: x.tolist(),
        lambda: x.cpu(),
        lambda: x.add_(1),
        lambda: x.reshape(2, 1),
        lambda: repr(x),
    ):
        with pytest.raises(DeviceNotAvailableError, match=match):
            use()
    with pytest.raises(DeviceNotAvailableError, match="'toy' went away when plugin toy_plugin was"):
        tp.zeros(2, device="toy")


def test_backward_on_a_removed_device_says_so(registry, toy):
    x = tp.tensor([1.0, 2.0], device="toy", requires_grad=True)
    y = x * x
    registry.unregister("toy_plugin")
    with pytest.raises(DeviceNotAvailableError, match="went away"):
        y.backward(y)


def test_a_device_can_come_back(registry, toy):
    old = tp.tensor([1.0], device="toy")
    registry.unregister("toy_plugin")
    registry.register(toy_plugin("toy_again"))
    new = tp.tensor([2.0], device="toy")
    assert (new + new).tolist() == [4.0]
    assert new.device is tp.device("toy", 0)
    for mix in (lambda: new + old, lambda: old + new):
        with pytest.raises(DeviceNotAvailableError, match="went away when plugin toy_plugin"):
            mix()


def test_other_devices_do_not_notice(registry, toy):
    x = tp.tensor([1.0])
    key = keys.dispatch_key(tp.device("cpu"), FLOAT32)
    registry.unregister("toy_plugin")
    assert (x + x).tolist() == [2.0]
    assert keys.dispatch_key(tp.device("cpu"), FLOAT32) is key


def test_a_device_without_hardware_gives_its_reason(registry):
    class Absent(ToyRuntime):
        reason = "no driver was found; install version 1.2 or later"

    registry.register(Plugin("absent", devices=[Absent()]))
    with pytest.raises(
        DeviceNotAvailableError, match="toy cannot be used: no driver was found; ins"
    ):
        tp.zeros(2, device="toy")


def test_a_device_that_cannot_tell_is_not_available(registry):
    class Confused(ToyRuntime):
        def unavailable_reason(self):
            raise OSError("libtoy.so: cannot open")

    registry.register(Plugin("confused", devices=[Confused()]))
    with pytest.raises(DeviceNotAvailableError, match=r"raised OSError: libtoy.so"):
        tp.zeros(2, device="toy")


@pytest.mark.parametrize(("count", "message"), [(0, "no device was found"), (2, "numbered 0 to 1")])
def test_a_device_that_is_not_there(registry, count, message):
    class Some(ToyRuntime):
        def device_count(self):
            return count

    registry.register(Plugin("some", devices=[Some()]))
    with pytest.raises(DeviceNotAvailableError, match=message):
        tp.zeros(2, device="toy:2")


def test_an_unknown_device_names_the_known_and_the_command(monkeypatch):
    from tensorplug.core.plugins import discovery

    with pytest.raises(DeviceNotAvailableError, match=r"'abacus'.*choose one of: .*cpu.*meta"):
        tp.zeros(2, device="abacus")
    monkeypatch.setitem(
        discovery.install_hints, "abacus", lambda: "pip install 'tensorplug[abacus]'"
    )
    with pytest.raises(DeviceNotAvailableError, match=r"pip install 'tensorplug\[abacus\]'"):
        tp.zeros(2, device="abacus")


# --- threads ----------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def frequent_switches():
    """Let threads take turns a hundred times as often, so that they meet in odd places."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(interval)


def run_threads(*targets):
    errors = []

    def guarded(target):
        try:
            target()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "deadlock"
    if errors:
        raise errors[0]


@pytest.mark.slow
def test_plugins_may_come_and_go_while_others_compute(registry):
    """Each result is that of one kernel or the other, never of a wrong op or of none."""
    done = threading.Event()

    def register():
        try:
            for number in range(40):
                fast = Kernel("mul", "cpu", lambda input, other: input * other, {FLOAT32}, TOP)
                registry.register(Plugin(f"fast{number}", kernels=[fast]))
                registry.register(toy_plugin("coming_and_going"))
                tp.zeros(1, device="toy")
                registry.unregister("coming_and_going")
                registry.unregister(f"fast{number}")
        finally:
            done.set()

    def compute(dtype):
        def work():
            while not done.is_set():
                x = tp.full((3,), 2.0, dtype=dtype, requires_grad=True)
                y = x * x + x
                assert y.tolist() == [6.0, 6.0, 6.0]
                y.sum().backward()
                assert x.grad.tolist() == [5.0, 5.0, 5.0]

        return work

    def prefer():
        while not done.is_set():
            with tp.prefer("cpu_numpy"):
                assert (tp.full((2,), 3.0) * 2).tolist() == [6.0, 6.0]

    run_threads(register, compute(tp.float32), compute(tp.float64), compute(tp.float32), prefer)


def test_many_threads_meet_a_device_at_once(registry, toy):
    barrier = threading.Barrier(8)

    def first_use():
        barrier.wait()
        for dtype in (tp.float32, tp.float64):
            x = tp.ones(2, dtype=dtype, device="toy")
            assert (x + x * x).tolist() == [2.0, 2.0]

    run_threads(*[first_use] * 8)
    lengths = {len(kind.kernels) for kind in keys.all_keys()}
    assert lengths == {len(keys.ops)}


@pytest.mark.slow
def test_two_threads_that_register_and_resolve_do_not_lock_each_other(registry, toy):
    """The registry, the loader and the tables are changed under one lock, in whatever order."""

    def register():
        for number in range(30):
            extra = Kernel("sub", "toy", lambda input, other: input, priority=number)
            registry.register(Plugin(f"p{number}", kernels=[extra]))

    def resolve():
        for _ in range(200):
            keys.reset_tables()
            tp.ones(2, device="toy") + 1
            tp.plugins.installed(refresh=True)
            tp.plugins.load_all()

    run_threads(register, resolve, resolve)
    assert len(kernels_for("sub", "toy")) == 30
