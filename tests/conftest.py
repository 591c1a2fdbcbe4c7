"""Each test leaves the process as it found it: a mode that stays on would change all tests after it."""

import gc
import sys

import pytest

import tensorplug as tp
import tensorplug.amp
from tensorplug import _settings
from tensorplug.autograd.graph import saved_tensors
from tensorplug.core.contexts import settle, thread
from tensorplug.core.device.dtypes import get_default_dtype
from tensorplug.core.dispatch import contracts, fallback, layers, profiling, resolution
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor import printing


def process_state():
    """What calls of ops depend on, beside their arguments."""
    settle()
    return {
        "recording": (layers.recording.enabled, layers.recording.inference),
        "layers": layers.active_layers(),
        "preferred backends": resolution.preferred_backends(),
        "contexts open": (
            dispatch_state.grad_disabled,
            dispatch_state.layers_active,
            dispatch_state.preferences,
        ),
        "levels of transforms": (thread.batches, thread.tangents),
        "saved tensors hooks": (thread.saved_hooks, thread.saved_hooks_disabled),
        "anomaly mode": saved_tensors.anomaly,
        "autocast": thread.autocast,
        "profile": profiling.current,
        "checks of contracts": contracts.every_call,
        "fallback policy": fallback.fallback_policy(),
        "default dtype": get_default_dtype(),
        "default device": thread.device,
        "deterministic algorithms": tuple(_settings._deterministic),
        "print options": printing._options,
        "threads": tp.get_num_threads(),
        "collector": gc.isenabled(),
        "profile function": sys.getprofile(),
    }


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    item.stash[BEFORE] = process_state()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    result = yield
    before, after = item.stash[BEFORE], process_state()
    left = {name: (before[name], now) for name, now in after.items() if now != before[name]}
    assert not left, f"the test leaves behind: {left}"
    return result


BEFORE = pytest.StashKey()
