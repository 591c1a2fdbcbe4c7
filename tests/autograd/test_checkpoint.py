"""Checkpointing: gradients, random numbers, what stays in memory, errors."""

from __future__ import annotations

import contextlib
import gc
import itertools
import weakref
from typing import Any

import pytest

import tensorplug as tp
from tensorplug.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

BOTH = pytest.mark.parametrize("reentrant", [False, True], ids=["promises", "reentrant"])


def leaf(*shape):
    tp.manual_seed(3)
    return tp.randn(*shape, dtype=tp.float64).requires_grad_()


def body(x, w):
    return ((x @ w).tanh() @ w).sigmoid() * x


@BOTH
def test_gradients(reentrant):
    x, w = leaf(4, 4), leaf(4, 4)
    expected = tp.autograd.grad(body(x, w).square().sum(), (x, w))
    checkpoint(body, x, w, use_reentrant=reentrant).square().sum().backward()
    for tensor, gradient in zip((x, w), expected, strict=True):
        assert tp.equal(tensor.grad, gradient)


@BOTH
@pytest.mark.parametrize("preserve", [True, False])
def test_random_numbers(reentrant, preserve):
    x = leaf(200)
    masks = []

    def drop(x):
        masks.append(tp.rand(200) < 0.5)
        return x.exp() * masks[-1]

    y = checkpoint(drop, x, use_reentrant=reentrant, preserve_rng_state=preserve)
    after = tp.rand(3)
    state = tp.get_rng_state()
    y.sum().backward()
    assert len(masks) == 2
    assert tp.equal(masks[0], masks[1]) is preserve
    if preserve:
        assert tp.equal(state, tp.get_rng_state()), "backward moved the generator"
        assert tp.equal(x.grad, x.detach().exp() * masks[0])
    assert not tp.equal(after, tp.rand(3))


@BOTH
def test_nested(reentrant):
    x, w = leaf(3, 3), leaf(3, 3)

    def inner(x):
        return (x @ w).tanh()

    def outer(x):
        y = checkpoint(inner, x, use_reentrant=reentrant)
        return checkpoint(inner, y.exp(), use_reentrant=reentrant).sin()

    outer(x).sum().backward()
    got = x.grad, w.grad
    x.grad = w.grad = None
    inner(inner(x).exp()).sin().sum().backward()
    assert tp.equal(got[0], x.grad)
    assert tp.allclose(got[1], w.grad)


def checkpointed(function):
    return lambda x: checkpoint(function, x, use_reentrant=False)


def differentiated(function):
    def gradient(x):
        with tp.enable_grad():
            return tp.autograd.grad(function(x).sum(), x, create_graph=True)[0]

    return gradient


def two_parts(x):
    return checkpointed(lambda x: x.cos().exp())(checkpointed(lambda x: x.sin().tanh())(x))


def gradient_within(x):
    y = x.sin().exp()
    return y * tp.autograd.grad(x.exp().sum(), x)[0]


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("function", [two_parts, gradient_within])
@pytest.mark.parametrize("wraps", list(itertools.product("cg", repeat=4)), ids="".join)
def test_checkpoints_and_gradients_around_each_other(wraps, function, early_stop):
    """Of each order of checkpoints and gradients the value is that of the gradients alone."""
    plain = body = function
    for wrap in wraps:
        body = (checkpointed if wrap == "c" else differentiated)(body)
        plain = plain if wrap == "c" else differentiated(plain)
    x = leaf(3)
    with set_checkpoint_early_stop(early_stop):
        tp.testing.assert_close(body(x), plain(x))


def test_found_tensors_die_after_a_look_at_a_node():
    x = leaf(4)
    calls = []

    def part(x):
        calls.append(1)
        return x.exp()

    y = checkpoint(part, x, use_reentrant=False)
    for count in (2, 3):
        assert tp.equal(y.grad_fn._saved_result, x.exp())
        assert len(calls) == count
    y.sum().backward()
    assert len(calls) == 4
    with pytest.raises(RuntimeError, match="freed"):
        _ = y.grad_fn._saved_result


def test_memory():
    def part(x):
        return x.exp().sin().tanh()

    x = leaf(5)
    stored = []

    def pack(tensor):
        stored.append(tensor)
        return tensor

    with tp.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = part(x)
    plain = len(stored)
    assert plain == 3  # exp's result, sin's input, tanh's result
    del y
    stored.clear()
    with tp.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = checkpoint(part, x, use_reentrant=False)
    assert len(stored) == 1  # the argument, with which the second run begins
    y.sum().backward()
    assert x.grad is not None


def test_intermediate_results_die():
    alive = []

    class Box:
        pass

    def part(x):
        y = x.exp()
        y.box = Box()
        alive.append(weakref.ref(y))
        return y.sin().sum()

    x = leaf(5)
    gc.disable()
    try:
        y = checkpoint(part, x, use_reentrant=False)
        assert alive[0]() is None
        y.backward()
        assert all(reference() is None for reference in alive)
    finally:
        gc.enable()


def test_early_stop():
    calls = []

    def part(x):
        y = x.exp()
        calls.append("exp")
        z = y.sum()
        calls.append("end")
        return z

    x = leaf(5)
    checkpoint(part, x, use_reentrant=False).backward()
    assert calls == ["exp", "end"]  # the second run stopped in exp
    calls.clear()
    with set_checkpoint_early_stop(False):
        y = checkpoint(part, x, use_reentrant=False)
    y.backward()
    assert calls == ["exp", "end", "exp", "end"]


def test_retained_graph():
    x = leaf(4)
    calls = []

    def part(x):
        calls.append(1)
        return x.exp().sin().sum()

    y = checkpoint(part, x, use_reentrant=False)
    first = tp.autograd.grad(y, x, retain_graph=True)[0]
    second = tp.autograd.grad(y, x)[0]
    assert tp.equal(first, second)
    assert len(calls) == 3  # what a pass found dies with it
    with pytest.raises(RuntimeError, match="second time"):
        tp.autograd.grad(y, x)


def test_second_derivative():
    x = leaf(4)
    y = checkpoint(lambda x: x.exp().sin().sum(), x, use_reentrant=False)
    (g,) = tp.autograd.grad(y, x, create_graph=True)
    (gg,) = tp.autograd.grad(g.sum(), x)
    z = x.exp().sin().sum()
    (h,) = tp.autograd.grad(z, x, create_graph=True)
    assert tp.equal(g, h)
    assert tp.allclose(gg, tp.autograd.grad(h.sum(), x)[0])


def test_contexts():
    log = []

    @contextlib.contextmanager
    def note(name):
        log.append(name)
        yield

    x = leaf(4)
    y = checkpoint(
        lambda x: x.exp().sum(),
        x,
        use_reentrant=False,
        context_fn=lambda: (note("first"), note("second")),
    )
    assert log == ["first"]
    y.backward()
    assert log == ["first", "second"]


@pytest.mark.parametrize("check", ["default", "none"])
def test_other_metadata(check):
    x = leaf(4)
    calls = []

    def part(x):
        calls.append(1)
        return (x if len(calls) == 1 else x[:1]).exp().sum()

    y = checkpoint(part, x, use_reentrant=False, determinism_check=check)
    if check == "none":
        y.backward()
        return
    with pytest.raises(CheckpointError, match="different metadata"):
        y.backward()


def test_other_number():
    x = leaf(4)
    calls = []

    def part(x):
        calls.append(1)
        return x.exp().sin().sum() if len(calls) == 1 else x.exp().sum()

    y = checkpoint(part, x, use_reentrant=False)
    with set_checkpoint_debug_enabled(True):
        z = checkpoint(lambda x: part(x), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="A different number of tensors was saved"):
        y.backward()
    assert z is not None


def test_arguments():
    x = leaf(4)
    for options, match in (
        ({"use_reentrant": True, "foo": 1}, "Unexpected keyword"),
        ({"use_reentrant": True, "debug": True}, "only supported when use_reentrant=False"),
        ({"use_reentrant": False, "determinism_check": "some"}, "determinism_check should be"),
    ):
        with pytest.raises(ValueError, match=match):
            checkpoint(tp.exp, x, **options)
    with pytest.warns(UserWarning, match="use_reentrant"):
        checkpoint(tp.exp, x)
    with pytest.warns(UserWarning, match="None of the inputs"):
        checkpoint(tp.exp, x.detach(), use_reentrant=True)
    y = checkpoint(tp.exp, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="incompatible with"):
        tp.autograd.grad(y.sum(), x)
    y = checkpoint(lambda x, scale: x.exp() * scale, x, use_reentrant=False, scale=2.0)
    y.sum().backward()
    assert tp.allclose(x.grad, 2 * x.detach().exp())


@BOTH
def test_without_recording(reentrant):
    x = leaf(4)
    with tp.no_grad():
        assert not checkpoint(tp.exp, x, use_reentrant=reentrant).requires_grad


@BOTH
def test_several_outputs(reentrant):
    x = leaf(4)
    a, b = checkpoint(lambda x: (x.exp(), x.sin()), x, use_reentrant=reentrant)
    (a.sum() + 2 * b.sum()).backward()
    assert tp.allclose(x.grad, x.detach().exp() + 2 * x.detach().cos())


@BOTH
@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_sequential(reentrant, segments):
    tp.manual_seed(0)
    layers = [
        tp.nn.Linear(4, 4),
        tp.nn.Tanh(),
        tp.nn.Linear(4, 4),
        tp.nn.Tanh(),
        tp.nn.Linear(4, 2),
    ]
    model = tp.nn.Sequential(*layers)
    x = tp.randn(3, 4, requires_grad=True)
    model(x).sum().backward()
    expected = [p.grad.clone() for p in model.parameters()], x.grad.clone()
    model.zero_grad()
    x.grad = None
    checkpoint_sequential(model, segments, x, use_reentrant=reentrant).sum().backward()
    assert tp.allclose(x.grad, expected[1])
    for parameter, gradient in zip(model.parameters(), expected[0], strict=True):
        assert tp.allclose(parameter.grad, gradient)


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("inside", [False, True])
def test_the_second_run_is_autocast_as_the_first_one(use_reentrant: bool, inside: bool) -> None:
    layer = tp.nn.Linear(2, 2)
    x = tp.ones(1, 2, requires_grad=True)
    seen = []

    def part(t: Any) -> Any:
        y = layer(t)
        seen.append(y.dtype)
        return y.relu()

    with tp.autocast("cpu", dtype=tp.bfloat16, enabled=not inside):
        y = checkpoint(part, x, use_reentrant=use_reentrant)
    with tp.autocast("cpu", dtype=tp.bfloat16, enabled=inside):
        y.sum().backward()
    assert seen == [tp.float32 if inside else tp.bfloat16] * 2
    assert not tp.is_autocast_enabled("cpu")
