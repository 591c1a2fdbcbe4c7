"""What calls of ops depend on, beside their arguments: modes of the thread, and options of the process."""

from __future__ import annotations

import gc
import sys
from typing import Any

import tensorplug as tp
import tensorplug.amp  # its state is part of that of threads
from tensorplug import _settings
from tensorplug.autograd import forward_ad  # noqa: F401  so is this one's
from tensorplug.autograd.graph import saved_tensors
from tensorplug.core.contexts import thread
from tensorplug.core.device.dtypes import get_default_dtype
from tensorplug.core.dispatch import contracts, fallback, overrides, profiling
from tensorplug.core.dispatch.counts import settle
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor import printing
from tensorplug.serialization import unpickling


def process_state() -> dict[str, Any]:
    """Return it by name, to be compared: who changes it for a while puts it back."""
    settle()
    return {
        "recording": (thread.enabled, thread.inference),
        "layers": thread.stack,
        "preferred backends": thread.preferred,
        "contexts open": (
            dispatch_state.grad_disabled,
            # Tensors of subclasses that wait for the collector are no context.
            dispatch_state.layers_active - bool(overrides._alive),
            dispatch_state.preferences,
        ),
        "levels of transforms": (thread.batches, thread.tangents, thread.dual_levels),
        "saved tensors hooks": (thread.saved_hooks, thread.saved_hooks_disabled),
        "anomaly mode": (saved_tensors.anomaly, saved_tensors.check_nan),
        "classes that files may name": tuple(unpickling.get_safe_globals()),
        "autocast": thread.autocast,
        "profile": (profiling.current(), profiling.local.ranges, profiling.local.backward),
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
