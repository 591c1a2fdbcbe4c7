"""Backward passes within backward passes, as deep as somebody likes."""

import contextvars
import gc
import threading

import pytest

import tensorplug as tp
from tensorplug.autograd import Function, Variable
from tensorplug.testing.process_state import process_state

DEPTHS = [1, 24, 25, 26, 60, 700]


def nested(inside, how="backward"):
    """Return a function of a number whose backward calls one backward in another, that many of them deep."""

    class Deep(Function):
        @staticmethod
        def forward(ctx, x):
            with tp.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx, g):
            if ctx.x < 0:
                inside()
                return g
            leaf = ctx.x.detach().requires_grad_()
            with tp.enable_grad():
                y = Deep.apply(leaf) * 1
            if how == "backward":
                y.backward(g)
                return leaf.grad
            return tp.autograd.grad(y, leaf, g)[0]

    return Deep.apply


def run(depth, inside=lambda: None, how="backward"):
    x = tp.tensor(float(depth), requires_grad=True)
    (nested(inside, how)(x) * 3).backward()
    return x.grad.item()


@pytest.mark.parametrize("how", ["backward", "grad"])
@pytest.mark.parametrize("depth", DEPTHS)
def test_gradient(depth, how):
    before = threading.active_count()
    assert run(depth, how=how) == 3
    assert threading.active_count() == before


@pytest.mark.parametrize("depth", DEPTHS)
def test_error(depth):
    def fail():
        raise KeyError("deep inside")

    gc.collect()
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        before = process_state()
        with pytest.raises(KeyError, match="deep inside"):
            run(depth, fail)
        assert process_state() == before  # which no collector has to see to
    finally:
        if is_enabled:
            gc.enable()
    assert run(depth) == 3


@pytest.mark.parametrize("depth", DEPTHS)
def test_state_goes_along(depth):
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(7)
    found = []

    def look():
        found.extend((tp.is_grad_enabled(), variable.get(), tp.get_autocast_dtype("cpu")))
        found.extend((tp.is_autocast_enabled("cpu"), (tp.ones(2, 2) @ tp.ones(2, 2)).dtype))

    with tp.autocast("cpu", dtype=tp.bfloat16):
        run(depth, look)
    assert found == [False, 7, tp.bfloat16, True, tp.bfloat16]
    assert not tp.is_autocast_enabled("cpu")


@pytest.mark.parametrize("depth", DEPTHS)
def test_callbacks_wait_for_the_outermost_pass(depth):
    order = []
    x = tp.tensor(float(depth), requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda _: order.append("leaf"))
    engine = Variable._execution_engine
    function = nested(lambda: engine.queue_callback(lambda: order.append("callback")))
    function(x).backward()
    assert order == ["leaf", "callback"]


def test_checkpoints_within_checkpoints():
    from tensorplug.utils.checkpoint import checkpoint

    def body(x, count):
        return checkpoint(body, x + 1, count - 1, use_reentrant=True) if count else x * 2

    x = tp.ones(2, requires_grad=True)
    body(x, 30).sum().backward()
    assert x.grad.tolist() == [2, 2]
