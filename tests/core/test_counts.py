"""The counts by which calls know that no layer looks on: not too low within contexts, nor high after them.

Contexts are nested at random; within each, calls are seen by the layers that are active there.
"""

from __future__ import annotations

import random
from contextlib import ExitStack
from typing import Any

import pytest

import tensorplug as tp
from tensorplug.core.dispatch.layers import Layer, isolated
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.overrides import TorchFunctionMode
from tensorplug.utils._python_dispatch import TorchDispatchMode


class Watch(Layer):
    """Counts the calls that it sees."""

    name, order = "watch", 1000

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, op: Any, args: Any, kwargs: Any, proceed: Any) -> Any:
        self.seen += 1
        return proceed(*args, **kwargs)


class WatchMode(TorchFunctionMode):
    """The same as a mode."""

    def __init__(self) -> None:
        self.seen = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        return func(*args, **(kwargs or {}))


class WatchOps(TorchDispatchMode):
    """The same below autograd."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        return func(*args, **(kwargs or {}))


WATCHES = {"layer": Watch, "mode": WatchMode, "ops": WatchOps}
CONTEXTS = (
    "no_grad", "enable_grad", "inference_mode", "no_inference_mode", "isolated", "prefer", *WATCHES,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_layers_see_the_calls_within_nested_contexts(seed: int) -> None:
    rng = random.Random(seed)
    x = tp.ones(2)
    tp.add(x, x)
    before = (dispatch_state.layers_active, dispatch_state.preferences)
    watches: list[tuple[Any, bool]] = []
    with ExitStack() as stack:
        for _ in range(rng.randint(1, 6)):
            kind = rng.choice(CONTEXTS)
            if kind in WATCHES:
                watch: Any = WATCHES[kind]()
                watches.append((watch, True))
                stack.enter_context(watch.active() if kind == "layer" else watch)
            elif kind == "prefer":
                stack.enter_context(tp.prefer("cpu_numpy"))
            elif kind == "isolated":
                stack.enter_context(isolated())
                watches = [(w, live and isinstance(w, WatchMode)) for w, live in watches]
            elif kind == "no_inference_mode":
                stack.enter_context(tp.inference_mode(False))
            else:
                stack.enter_context(getattr(tp, kind)())
            for _ in range(2):  # the first call may find that nobody looks on
                seen = [watch.seen for watch, _ in watches]
                made = tp.add(x, x)
                assert made.is_inference() is tp.is_inference_mode_enabled()
                now = [watch.seen for watch, _ in watches]
                expected = [n + live for n, (_, live) in zip(seen, watches, strict=True)]
                assert now == expected
    assert not tp.add(x, x).is_inference()
    assert not dispatch_state.inference
    assert (dispatch_state.layers_active, dispatch_state.preferences) == before


def test_calls_ask_for_inference_mode_only_where_a_thread_is_in_it() -> None:
    x = tp.ones(2)
    with tp.no_grad():
        tp.add(x, x)
        assert not dispatch_state.inference
        with tp.inference_mode():
            assert tp.add(x, x).is_inference()
            with tp.inference_mode(False):
                assert not tp.add(x, x).is_inference()
            assert tp.add(x, x).is_inference()
    tp.add(x, x)
    assert not dispatch_state.inference


@pytest.mark.parametrize("mode", [tp.no_grad, tp.inference_mode])
def test_a_layer_that_is_gone_costs_nothing_within_a_block_without_gradients(mode: Any) -> None:
    x = tp.ones(2)
    tp.add(x, x)
    before = dispatch_state.layers_active
    with mode():
        with Watch().active(), tp.prefer("cpu_numpy"):
            tp.add(x, x)
        tp.add(x, x)
        assert dispatch_state.layers_active == before


def test_a_view_by_anothers_shape_takes_no_shape() -> None:
    x, like = tp.ones(2, 3), tp.ones(3, 2)
    wrong: Any = (3, 2)
    for name in ("view_as", "reshape_as"):
        for _ in range(3):
            assert getattr(x, name)(like).shape == (3, 2)
        with pytest.raises((AttributeError, TypeError)):
            getattr(x, name)(wrong)
