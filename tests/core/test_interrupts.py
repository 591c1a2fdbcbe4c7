"""KeyboardInterrupt wherever CPython may raise one leaves no mode on.

Signals are handled when a Python function begins and when a call of C is over: so a profile function, which
called just there, raises at the n-th point, for each n until the end is reached without.
"""

import importlib
import inspect
import pkgutil
import signal
from functools import partial
from types import SimpleNamespace
from typing import ClassVar

import pytest

import tensorplug as tp
from tensorplug import _devices, accelerator, nn
from tensorplug._device_members import StreamContext
from tensorplug.amp.autocast_mode import saved_autocast
from tensorplug.autograd import forward_ad, grad_mode
from tensorplug.autograd.engine.backward import _Seen
from tensorplug.autograd.graph import hooks, saved_tensors
from tensorplug.autograd.graph.handles import RemovableHandle
from tensorplug.autograd.transforms import levels
from tensorplug.core import contexts
from tensorplug.core.dispatch import layers, overrides, resolution
from tensorplug.core.tensor import printing
from tensorplug.data.signals import signals_put_off
from tensorplug.distributed.data_parallel import DistributedDataParallel
from tensorplug.distributed.tensor.parallel import loss_parallel
from tensorplug.fx import tracer
from tensorplug.graph.parts import Parts
from tensorplug.nn.attention import SDPBackend, sdpa_kernel
from tensorplug.nn.functional_call import _swapped
from tensorplug.nn.hooks import global_hooks
from tensorplug.nn.utils import parametrize
from tensorplug.onnx import exporting
from tensorplug.optim.swapping import swap_in_optimizer_params_and_state
from tensorplug.serialization import settings
from tensorplug.testing.interrupts import Interrupts, chosen_points
from tensorplug.testing.process_state import process_state
from tensorplug.utils import (
    _python_dispatch,
    checkpoint as checkpoints,
    flop_counter,
    model_summary,
)
from tensorplug.utils._mode_utils import no_dispatch
from tensorplug.utils.checkpoint import checkpoint, set_checkpoint_early_stop
from tensorplug.utils.flop_counter import FlopCounterMode
from tensorplug.utils.module_tracker import ModuleTracker
from tensorplug.utils.selective_checkpoint import _Keeping, _Taking


class Watch(layers.Layer):
    name, order = "watch", 90


class OneOfTwo:
    """A device type of two devices: its module and runtime."""

    current: ClassVar[list[int]] = [0]

    @classmethod
    def _runtime(cls):
        return cls

    @classmethod
    def current_device(cls):
        return cls.current[0]

    @classmethod
    def device_guard(cls, index):
        return None

    set_device = partial(current.__setitem__, 0)


HOOKS = {}
WEIGHT = nn.Parameter(tp.ones(1))
MODEL = nn.Linear(1, 1)
MODEL.weight = WEIGHT
OPTIMIZER = tp.optim.SGD([WEIGHT], lr=0.5)
PARALLEL = SimpleNamespace(require_backward_grad_sync=True)


def swapped():
    other = tp.optim.SGD([tp.zeros(1)], lr=0.1)
    return swap_in_optimizer_params_and_state(
        OPTIMIZER, {"weight": tp.zeros(1)}, other.state_dict()
    )


def accelerated(index):
    made = accelerator.device_index(None)
    made._within = _devices._CurrentDevice(OneOfTwo, index)
    return made


def state():
    """Return what contexts of the tables below may change."""
    return process_state() | {
        "device": OneOfTwo.current[0],
        "hooks": [list(HOOKS), list(global_hooks.forward), list(global_hooks.forward_pre)],
        "model": (
            MODEL.weight is WEIGHT,
            MODEL.training,
            len(MODEL._forward_hooks),
            len(MODEL._forward_pre_hooks),
        ),
        "optimizer": [(id(g["params"][0]), g["lr"]) for g in OPTIMIZER.param_groups],
        "parallel": PARALLEL.require_backward_grad_sync,
        "random": tp.get_rng_state().tolist(),
        "cached": len(parametrize._cached),
        "switches": (tp.backends.cudnn.benchmark, dict(tp.backends.cuda._sdp).get("math", True)),
        "sparse checks": tp.sparse.check_sparse_tensor_invariants.is_enabled(),
        "handlers": signal.getsignal(signal.SIGTERM),
        "files": settings.skips_data(),
    }


# By the place of its class or function: how to make each context manager that changes the state of a thread.
PARTS = Parts([nn.Sequential(nn.Identity())], partial)
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
    "autograd.engine.backward._Seen": _Seen,
    "autograd.graph.hooks.save_on_cpu": hooks.save_on_cpu,
    "autograd.graph.saved_tensors.saved_tensors_hooks": lambda: saved_tensors.saved_tensors_hooks(
        abs, abs
    ),
    "autograd.graph.saved_tensors.hooks_set_aside": saved_tensors.hooks_set_aside,
    "autograd.transforms.levels.ActiveLevels": lambda: levels.ActiveLevels((levels.Level(),), ()),
    "autograd.transforms.levels._Entered": lambda: levels.entered(levels.Level(), batch=True),
    "autograd.transforms.levels.differentiated": levels.differentiated,
    "core.device.device.Device": lambda: tp.device("meta"),
    "core.dispatch.layers._Active": lambda: Watch().active(),
    "core.dispatch.layers._GradientOff": layers.gradient_off,
    "core.dispatch.layers.going_in": lambda: layers.going_in((Watch(),)),
    "core.dispatch.layers.isolated": layers.isolated,
    "core.dispatch.overrides.DisableTorchDispatch": overrides.DisableTorchDispatch,
    "core.dispatch.overrides.DisableTorchFunction": overrides.DisableTorchFunction,
    "core.dispatch.overrides.DisableTorchFunctionSubclass": overrides.DisableTorchFunctionSubclass,
    "core.dispatch.overrides._InFormula": overrides._InFormula,
    "core.dispatch.overrides._Below": lambda: overrides._Below(()),
    "fx.tracer._Tracing": tracer._Tracing,
    "core.dispatch.resolution.prefer": lambda: resolution.prefer("cpu_numpy"),
    "_devices._CurrentDevice": lambda: _devices._CurrentDevice(OneOfTwo, 1),
    "_device_members.StreamContext": lambda: StreamContext(tp.device("meta")),
    "accelerator.device_index": lambda: accelerated(1),
    "autograd.anomaly_mode.detect_anomaly": tp.autograd.detect_anomaly,
    "autograd.forward_ad.dual_level": forward_ad.dual_level,
    "nn.attention.sdpa_kernel": lambda: sdpa_kernel(SDPBackend.MATH),
    "profiler.profile.profile": tp.profiler.profile,
    "profiler.profile.record_function": lambda: tp.profiler.record_function("range"),
    "serialization.settings.skip_data": tp.serialization.skip_data,
    "serialization.unpickling.safe_globals": lambda: tp.serialization.safe_globals([Watch]),
    "distributed.tensor.parallel.loss._LossParallel": loss_parallel,
    "overrides.BaseTorchFunctionMode": tp.overrides.BaseTorchFunctionMode,
    "sparse.creation.check_sparse_tensor_invariants": tp.sparse.check_sparse_tensor_invariants,
    "utils.checkpoint._Hooks": lambda: checkpoints._Hooks(abs, abs),
    "utils.checkpoint._Setting": lambda: set_checkpoint_early_stop(False),
    "utils._mode_utils.no_dispatch": no_dispatch,
    "utils._python_dispatch.BaseTorchDispatchMode": _python_dispatch.BaseTorchDispatchMode,
    "utils._python_dispatch.TorchDispatchMode": _python_dispatch.TorchDispatchMode,
    "utils._python_dispatch._disable_current_modes": _python_dispatch._disable_current_modes,
    "utils.flop_counter.FlopCounterMode": lambda: FlopCounterMode(display=False),
    "utils.flop_counter._Counting": lambda: flop_counter._Counting(FlopCounterMode()),
}
STATES = checkpoints._RandomStates()
# The same of what concerns the process or an object.
MODES |= {
    "graph.parts.Parts.running": PARTS.running,
    "utils.selective_checkpoint._Keeping": lambda: _Keeping(lambda *_: True, {}),
    "utils.selective_checkpoint._Taking": lambda: _Taking({}),
    "backends.Backend.flags": lambda: tp.backends.cudnn.flags(benchmark=True),
    "backends.Backend.sdp_kernel": lambda: tp.backends.cuda.sdp_kernel(enable_math=False),
    "core.device.generator.fork_rng": tp.random.fork_rng,
    "core.tensor.printing.printoptions": lambda: printing.printoptions(precision=2),
    "data.signals.signals_put_off": signals_put_off,
    "nn.utils.parametrize.cached": parametrize.cached,
    "nn.functional_call._swapped": lambda: _swapped(MODEL, {"weight": tp.zeros(1)}, False, False),
    "optim.swapping.swap_in_optimizer_params_and_state": swapped,
    "distributed.data_parallel.DistributedDataParallel.no_sync": lambda: (
        DistributedDataParallel.no_sync(PARALLEL)
    ),
    "onnx.exporting._evaluated": lambda: exporting._evaluated(MODEL),
    "utils.checkpoint._RandomStates.restored": STATES.restored,
    "utils.module_tracker.ModuleTracker": ModuleTracker,
    "utils.model_summary._Watch.hooked": lambda: model_summary._Watch(MODEL).hooked(),
}
OTHERS = {
    "_streams.HostStream": "changes nothing",
    "_streams.Stream": "changes nothing",
    "distributed.coalescing._coalescing_manager": "its end waits for other processes",
    "distributed.file_store.FileStore._locked": "a file",
    "distributed.tcp_store._Server": "a server's sockets",
    "utils.benchmark.set_torch_threads": "how many threads kernels use, of the whole process",
    "autograd.gradcheck_points.moved": "writes elements to the inputs of a check, and puts them back",
    "autograd.grad_mode._Mode": "a base class",
    "autograd.anomaly_mode.set_detect_anomaly": "has a test of its own",
    "autograd.graph.handles.RemovableHandle": "has a test of its own",
    "autograd.grad_mode.set_grad_enabled": "has a test of its own",
    "autograd.grad_mode.set_multithreading_enabled": "changes nothing",
    "autograd.forward.forward_mode.ForwardLevel": "tells tensors that a transform is over",
    "autograd.vmap.batched_tensor.BatchLevel": "tells tensors that a transform is over",
    "autograd.transforms.levels.Level": "tells tensors that a transform is over",
    "compat.compiling.unchanged": "changes nothing",
    "serialization.settings.set_default_mmap_options": "sets when it is made, as in torch",
    "compat.utilities._temporary_directory": "a folder",
    "compat.internals._Guard": "changes nothing",
    "compat._Installation": "uninstalls what was installed before the block",
    "compat.additions.SummaryWriter": "a file",
    "core.contexts.Context": "a base class",
    "core.contexts.Block": "a base class",
    "core.contexts.Mode": "a base class",
    "core.contexts.OwnContext": "a base class",
    "core.contexts._Leaver": "no context but what ends them",
    "core.contexts._OwnLeaver": "no context but what ends them",
    "core.dispatch.overrides.PushedMode": "a base class",
    "overrides.TorchFunctionMode": "a base class",
    "core.tensor.shared_memory.SharedMemory": "no context of ours but of the memory's",
    "optim.ops.optimizers.on_device._unless": "puts back by what a tensor says, or not at all",
    "graph.stance.set_stance": "sets when it is made, as in torch",
    "graph.guards.Watch.by_lines": "a trace function, ended as all blocks are",
    "graph.guards.Watch.watching": "a profile function, as the one that interrupts here",
    "distributed.algorithms.join.Join": "its end waits for other processes, which an interrupt ends too",
    "hub._bar": "a bar of progress",
    "hub._hubconf": "imports a file",
    "fx.graph._InsertPoint": "concerns a graph",
    "fx.tracer._patched": "puts back what a trace patched, as torch does",
    "library.registration._scoped_library": "takes back what was declared in the block",
    "serialization.archive.Writer": "a file",
    "serialization.archive.opened_for_reading": "a file",
    "serialization.archive.opened_for_writing": "a file",
    "serialization.safetensors.safe_open": "a file",
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
                returned = getattr(made, "__annotations__", {}).get("return")
                function = generates or returned == "Block"
                if hasattr(made, "__enter__") if inspect.isclass(made) else function:
                    yield f"{module.__name__}.{made.__qualname__}".removeprefix("tensorplug.")


SAMPLE = 60


def what_stays(function):
    """Interrupt a function and look at the state, while the traceback is alive.

    Returns what the first interrupt left behind that left anything: (its point, what of the state).
    """
    interrupts = Interrupts()
    points = chosen_points(interrupts, function, SAMPLE)
    assert len(points) > 4
    wanted = state()
    for point in points:
        interrupts.run(function, point)
        found = state()
        if found != wanted:
            return [(point, name) for name in wanted if found[name] != wanted[name]]
    return []


def used(make):
    draws = make in (tp.random.fork_rng, STATES.restored)

    def use():
        with make():
            if draws:
                tp.rand(1)
            len("")

    return use


def test_every_context_manager_is_known():
    optional = {"utils.tensorboard.SummaryWriter"}
    assert set(context_managers()) | optional == {*MODES, *OTHERS, *optional}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("name", MODES)
def test_modes(name):
    assert what_stays(used(MODES[name])) == []


class EndsInPython(tp.no_grad):
    """A mode that stays on if an interrupt comes where its end begins."""

    def __exit__(self, *exc):
        contexts.leave(*exc)


class BeginsInTwoSteps(tp.no_grad):
    """A mode that stays on if an interrupt comes before its second step: its block has not begun."""

    def __enter__(self):
        super().__enter__()
        len("")
        return self


@pytest.mark.parametrize("make", [EndsInPython, BeginsInTwoSteps])
def test_a_mode_that_stays_on_is_found(make):
    assert what_stays(used(tp.no_grad)) == []
    try:
        assert [name for _, name in what_stays(used(make))] == ["recording", "contexts open"]
    finally:
        contexts.leave(None, None, None)
    assert what_stays(used(tp.no_grad)) == []


def points_it_outlasts(make, is_on):
    """Return at which points an interrupt within a block leaves on what the block ends."""
    entered, found = [], []

    def use():
        with make():
            entered.append(True)

    interrupts = Interrupts()
    for point in chosen_points(interrupts, use, SAMPLE):
        entered.clear()
        interrupts.run(use, point)
        if is_on() and entered:
            found.append(point)
        tp.set_grad_enabled(True)
        tp.autograd.set_anomaly_enabled(False)
        HOOKS.clear()
    return found


@pytest.mark.parametrize(
    ("make", "is_on"),
    [
        (lambda: tp.set_grad_enabled(False), lambda: not tp.is_grad_enabled()),
        (lambda: tp.autograd.set_detect_anomaly(True), tp.autograd.is_anomaly_enabled),
        (lambda: RemovableHandle.register(HOOKS, abs), lambda: bool(HOOKS)),
    ],
    ids=["set_grad_enabled", "set_detect_anomaly", "RemovableHandle"],
)
def test_settings_that_may_be_blocks(make, is_on):
    """They act when they are made, until further notice, as in torch; but their block ends them."""
    assert points_it_outlasts(make, is_on) == []


class Hooked:
    """A handle whose end is a function of Python."""

    def __enter__(self):
        HOOKS[0] = abs

    def __exit__(self, *exc):
        HOOKS.clear()


def test_a_setting_that_outlasts_its_block_is_found():
    assert points_it_outlasts(Hooked, lambda: bool(HOOKS))


def casting(x):
    with tp.autocast("cpu"):
        return (x @ x).sum()


def by_steps():
    schedule = tp.profiler.schedule(wait=0, warmup=1, active=1)
    with tp.profiler.profile(schedule=schedule) as profile:
        profile.step()
        profile.step()


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
    "profiled": lambda x: used(tp.profiler.profile)() or x + x,
    "profiled, by steps": lambda x: by_steps(),
    "summary": lambda x: tp.utils.summary(MODEL, (1, 1)),
    "preferred": lambda x: used(lambda: tp.prefer("cpu_numpy"))() or x + x,
}


# In a callback of the collector of garbage an interrupt is lost, as Python has it.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    def run():
        program(tp.ones(2, 2, requires_grad=True))

    program = PROGRAMS[name]
    assert what_stays(run) == []
