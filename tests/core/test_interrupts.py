"""KeyboardInterrupt wherever CPython may raise one leaves no mode on.

Signals are handled when a Python function begins and when a call of C is over: so a profile function, which
called just there, raises at the n-th point, for each n until the end is reached without.
"""

import importlib
import inspect
import pkgutil

import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.amp.autocast_mode import saved_autocast
from tensorplug.autograd import grad_mode
from tensorplug.autograd.graph import hooks, saved_tensors
from tensorplug.autograd.transforms import levels
from tensorplug.core.dispatch import layers, overrides, resolution
from tensorplug.core.tensor import printing
from tensorplug.nn.attention import SDPBackend, sdpa_kernel
from tensorplug.testing.interrupts import Interrupts, chosen_points
from tensorplug.testing.process_state import process_state
from tensorplug.utils.checkpoint import checkpoint, set_checkpoint_early_stop


class Watch(layers.Layer):
    name, order = "watch", 90


# By the place of its class or function: how to make each context manager that changes the state of a thread.
MODES = {
    "amp.autocast_mode.autocast": lambda: tp.autocast("cpu"),
    "amp.autocast_mode._Restored": lambda: saved_autocast()(),
    "autograd.grad_mode._Fixed": lambda: grad_mode._Fixed(False),
    "autograd.grad_mode.enable_grad": tp.enable_grad,
    "autograd.grad_mode.inference_mode": tp.inference_mode,
    "autograd.grad_mode.no_grad": tp.no_grad,
    "autograd.graph.hooks.allow_mutation_on_saved_tensors": hooks.allow_mutation_on_saved_tensors,
    "autograd.graph.hooks.disable_saved_tensors_hooks": lambda: hooks.disable_saved_tensors_hooks(
        "x"
    ),
    "autograd.graph.hooks.save_on_cpu": hooks.save_on_cpu,
    "autograd.graph.saved_tensors.saved_tensors_hooks": lambda: saved_tensors.saved_tensors_hooks(
        abs, abs
    ),
    "autograd.transforms.levels.ActiveLevels": lambda: levels.ActiveLevels((levels.Level(),), ()),
    "core.device.device.Device": lambda: tp.device("meta"),
    "core.dispatch.layers._Active": lambda: Watch().active(),
    "core.dispatch.layers._GradientOff": layers.gradient_off,
    "core.dispatch.layers.isolated": layers.isolated,
    "core.dispatch.overrides.DisableTorchFunction": overrides.DisableTorchFunction,
    "core.dispatch.overrides.DisableTorchFunctionSubclass": overrides.DisableTorchFunctionSubclass,
    "core.dispatch.overrides._Below": lambda: overrides._Below(()),
    "core.dispatch.resolution.prefer": lambda: resolution.prefer("cpu_numpy"),
    "nn.attention.sdpa_kernel": lambda: sdpa_kernel(SDPBackend.MATH),
    "overrides.BaseTorchFunctionMode": tp.overrides.BaseTorchFunctionMode,
    "utils.checkpoint._Setting": lambda: set_checkpoint_early_stop(False),
}
# The same, for what concerns the process: it is put back when the interrupted generator goes.
OPTIONS = {
    "backends.Backend.flags": lambda: tp.backends.cudnn.flags(benchmark=True),
    "backends.Backend.sdp_kernel": lambda: tp.backends.cuda.sdp_kernel(enable_math=False),
    "core.device.generator.fork_rng": tp.random.fork_rng,
    "core.tensor.printing.printoptions": lambda: printing.printoptions(precision=2),
    "nn.utils.parametrize.cached": nn.utils.parametrize.cached,
}
OTHERS = {
    "_devices._CurrentDevice": "the current device is the runtime's",
    "autograd.anomaly_mode.detect_anomaly": "an option of the process, which the next use sets",
    "autograd.anomaly_mode.set_detect_anomaly": "an option of the process, which the next use sets",
    "autograd.forward_ad.dual_level": "its end is a function of its own, below",
    "autograd.grad_mode._Mode": "a base class",
    "autograd.grad_mode.set_grad_enabled": "has a test of its own",
    "autograd.grad_mode.set_multithreading_enabled": "changes nothing",
    "autograd.forward.forward_mode.ForwardLevel": "tells tensors that a transform is over",
    "autograd.vmap.batched_tensor.BatchLevel": "tells tensors that a transform is over",
    "autograd.transforms.levels.Level": "tells tensors that a transform is over",
    "autograd.graph.handles.RemovableHandle": "removes what was registered before the block",
    "compat._Installation": "uninstalls what was installed before the block",
    "compat.additions.SummaryWriter": "a file",
    "core.contexts.Context": "a base class",
    "core.contexts._Leaver": "no context but what ends them",
    "core.dispatch.overrides.PushedMode": "a base class",
    "overrides.TorchFunctionMode": "a base class",
    "core.tensor.shared_memory.SharedMemory": "no context of ours but of the memory's",
    "data.signals.signals_put_off": "puts interrupts off",
    "nn.utils.stateless._swapped": "concerns a module",
    "optim.ops.optimizers.on_device._unless": "concerns tensors",
    "optim.swapping.swap_in_optimizer_params_and_state": "concerns an optimizer",
    "profiler.profile.profile": "takes a profile, which may be stopped later",
    "profiler.profile.record_function": "a name in a profile",
    "serialization.archive.Writer": "a file",
    "serialization.archive.opened_for_reading": "a file",
    "serialization.archive.opened_for_writing": "a file",
    "serialization.safetensors.safe_open": "a file",
    "serialization.unpickling.safe_globals": "what may be loaded, asked for file by file",
    "utils.model_summary._Watch": "hooks of modules",
    "utils.checkpoint._RandomStates.restored": "random states, by fork_rng",
}


def context_managers():
    """Yield the place of each class and generator function of the library that makes context managers."""
    for found in pkgutil.walk_packages(tp.__path__, "tensorplug."):
        if "__main__" in found.name or found.name.startswith("tensorplug.testing"):
            continue
        try:
            module = importlib.import_module(found.name)
        except ModuleNotFoundError:  # of a package that is not installed
            continue
        for thing in list(vars(module).values()):
            inside = list(vars(thing).values()) if inspect.isclass(thing) else []
            for made in (thing, *inside):
                if getattr(made, "__module__", None) != module.__name__:
                    continue
                generates = inspect.isgeneratorfunction(getattr(made, "__wrapped__", None))
                if hasattr(made, "__enter__") if inspect.isclass(made) else generates:
                    yield f"{module.__name__}.{made.__qualname__}".removeprefix("tensorplug.")


SAMPLE = 60


def assert_nothing_stays(function, whole=True):
    """Interrupt a function and look at the state; with `whole`, already while the traceback is alive."""
    interrupts = Interrupts()
    points = chosen_points(interrupts, function, SAMPLE)
    assert len(points) > 4
    wanted = process_state()
    for point in points:
        interrupts.run(function, point)
        if not whole:
            interrupts.error = None
        assert process_state() == wanted, point


def used(make):
    def use():
        with make():
            len("")

    return use


def test_every_context_manager_is_known():
    optional = {"utils.tensorboard.SummaryWriter"}
    assert set(context_managers()) | optional == {*MODES, *OPTIONS, *OTHERS, *optional}


@pytest.mark.parametrize("name", MODES)
def test_modes(name):
    assert_nothing_stays(used(MODES[name]))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", OPTIONS)
def test_options(name):
    assert_nothing_stays(used(OPTIONS[name]), whole=False)


def test_set_grad_enabled():
    """It acts when it is made, until further notice, as in torch; but its block ends it."""
    entered = []

    def use():
        with tp.set_grad_enabled(False):
            entered.append(True)

    interrupts = Interrupts()
    for point in chosen_points(interrupts, use, SAMPLE):
        entered.clear()
        interrupts.run(use, point)
        assert tp.is_grad_enabled() or not entered
        tp.set_grad_enabled(True)


def casting(x):
    with tp.autocast("cpu"):
        return (x @ x).sum()


PROGRAMS = {
    "backward": lambda x: (x @ x).exp().sum().backward(),
    "second order": lambda x: tp.autograd.grad(x.exp().sum(), x, create_graph=True),
    "autocast": lambda x: casting(x).backward(),
    "checkpoint": lambda x: checkpoint(casting, x, use_reentrant=False),
    "checkpoint, backward": lambda x: checkpoint(tp.sum, x * x, use_reentrant=False).backward(),
    "func.grad": lambda x: tp.func.grad(lambda x: x.exp().sum())(x.detach()),
    "vmap": lambda x: tp.vmap(tp.exp)(x.detach()),
    "jvp": lambda x: tp.func.jvp(tp.exp, (x.detach(),), (x.detach(),)),
    "hessian": lambda x: tp.func.hessian(lambda x: x.exp().sum())(x.detach()),
    "preferred": lambda x: used(lambda: tp.prefer("cpu_numpy"))() or x + x,
}


# In a callback of the collector of garbage an interrupt is lost, as Python has it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    def run():
        program(tp.ones(2, 2, requires_grad=True))

    program = PROGRAMS[name]
    assert_nothing_stays(run)
