"""More programs that write in place, where order and aliasing matter: torch's own result, or its error."""

# ruff: noqa: PLC3002  (programs alike, each one expression)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="compares with torch")

# Each gets the library and two leaves that require grad, `w` (3, 4) and `u` (4,), and returns what its
# gradients are taken of. A step is a function that writes.


def then(y: Any, *steps: Callable[[Any], Any]) -> Any:
    for step in steps:
        step(y)
    return y


def after(value: Any, *writes: Any) -> Any:
    """Return a value that was computed before the writes (arguments are evaluated in order)."""
    return value


def hooked(y: Any) -> Any:
    y.register_hook(lambda g: g * 3)
    return y


def without_recording(L: Any, write: Callable[[], Any]) -> None:
    with L.no_grad():
        write()


PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    # chains of writes
    "same element twice": lambda L, w, u: then(
        w * 2, lambda y: y[0].mul_(u), lambda y: y[0].mul_(u)
    ),
    "row, then column": lambda L, w, u: then(
        w * 1, lambda y: y[0].mul_(u), lambda y: y[:, 0].mul_(u[:3])
    ),
    "whole, then part": lambda L, w, u: then(w * 1, lambda y: y.mul_(u), lambda y: y[1].exp_()),
    "part, then whole": lambda L, w, u: then(w * 1, lambda y: y[1].exp_(), lambda y: y.sin_()),
    "with itself": lambda L, w, u: then(w * 1, lambda y: y.mul_(y)),
    "add itself": lambda L, w, u: then(w * 1, lambda y: y.add_(y)),
    "row with other row": lambda L, w, u: then(w * 1, lambda y: y[0].mul_(y[1])),
    "row to row": lambda L, w, u: then(w * 1, lambda y: y[0].copy_(y[1])),
    "rows around": lambda L, w, u: then(
        w * 1, lambda y: y[0].copy_(y[1] * 2), lambda y: y[1].copy_(y[0] * 3)
    ),
    "loop": lambda L, w, u: then(w * 1, *[lambda y, i=i: y[i].mul_(u) for i in range(3)]),
    "running sum": lambda L, w, u: then(
        w * 1, *[lambda y, i=i: y[:, i].add_(y[:, i - 1].clone()) for i in range(1, 4)]
    ),
    "running sum without copies": lambda L, w, u: then(
        w * 1, *[lambda y, i=i: y[:, i].add_(y[:, i - 1]) for i in range(1, 4)]
    ),
    "transposed twice": lambda L, w, u: then(w * 1, lambda y: y.t().t()[1].mul_(u)),
    "flattened": lambda L, w, u: then(w * 1, lambda y: y.view(-1)[3:7].mul_(2.0)),
    "strided slice": lambda L, w, u: then(w * 1, lambda y: y[::2, 1::2].mul_(u[:2])),
    "new dimension": lambda L, w, u: then(w * 1, lambda y: y[:, None, 1].mul_(3.0)),
    "permuted view": lambda L, w, u: then(
        w * 1, lambda y: y.view(3, 2, 2).permute(2, 0, 1)[0].mul_(u[:2])
    ),
    "diagonal of a view": lambda L, w, u: then(w * 1, lambda y: y[:, 1:].diagonal().mul_(u[:3])),
    "select of transposed": lambda L, w, u: then(w * 1, lambda y: y.t().select(0, 2).exp_()),
    "empty slice": lambda L, w, u: then(w * 1, lambda y: y[3:].mul_(2.0)),
    "unflattened": lambda L, w, u: then(w * 1, lambda y: y.unflatten(1, (2, 2))[:, 0].mul_(2.0)),
    "swapped axes": lambda L, w, u: then(w * 1, lambda y: y.swapaxes(0, 1)[0].neg_()),
    "narrow of narrow": lambda L, w, u: then(
        w * 1, lambda y: y.narrow(1, 1, 3).narrow(1, 1, 2).mul_(u[:2])
    ),
    # what was saved before
    "saved, then written": lambda L, w, u: (lambda y: after(y.exp().sum() + y * y, y.mul_(2)))(
        w * 1
    ),
    "input not saved": lambda L, w, u: (lambda y: after(y + 1, y.mul_(2)))(w * 1),
    "result saved": lambda L, w, u: then((w * 1).exp(), lambda y: y.mul_(2)),
    "result not saved": lambda L, w, u: then((w * 1).sin(), lambda y: y.mul_(2)),
    "view saved, other part written": lambda L, w, u: (
        lambda y: after(y[0].exp() * y[0], y[1].mul_(2))
    )(w * 1),
    "clone saved": lambda L, w, u: (lambda y: after(y.clone().square(), y.mul_(2)))(w * 1),
    "number beside": lambda L, w, u: (lambda y: after(y * 3, y.mul_(2)))(w * 1),
    "matmul, then factor written": lambda L, w, u: (lambda y: after(y @ u, y.zero_()))(w * 1),
    "written with no grad": lambda L, w, u: (
        lambda y: after(y * y, without_recording(L, lambda: y.mul_(2)))
    )(w * 1),
    "leaf written with no grad after use": lambda L, w, u: after(
        w * w, without_recording(L, lambda: w.add_(1))
    ),
    "detached written after use": lambda L, w, u: (lambda y: after(y * y, y.detach().add_(1)))(
        w * 1
    ),
    "data written after use": lambda L, w, u: (lambda y: after(y * y, y.data.add_(1)))(w * 1),
    # kinds of writes
    "zero": lambda L, w, u: then(w * 1, lambda y: y[1].zero_()),
    "fill": lambda L, w, u: then(w * 1, lambda y: y[1].fill_(2.0)),
    "fill with tensor": lambda L, w, u: then(w * 1, lambda y: y[1].fill_(u[0])),
    "clamp": lambda L, w, u: then(w * 1, lambda y: y.clamp_(0.5, 1.0)),
    "clamp part": lambda L, w, u: then(w * 1, lambda y: y[:, 1].clamp_(max=0.7)),
    "relu": lambda L, w, u: then(w - 1, lambda y: y.relu_()),
    "sigmoid": lambda L, w, u: then(w * 1, lambda y: y[0].sigmoid_()),
    "pow": lambda L, w, u: then(w * 1, lambda y: y[0].pow_(3)),
    "div": lambda L, w, u: then(w * 1, lambda y: y.div_(u + 2)),
    "addcmul": lambda L, w, u: then(w * 1, lambda y: y[0].addcmul_(u, y[1].clone(), value=2)),
    "lerp": lambda L, w, u: then(w * 1, lambda y: y.lerp_(u, 0.3)),
    "masked_fill": lambda L, w, u: then(w * 1, lambda y: y.masked_fill_(y > 1, 0.5)),
    "masked_fill with tensor": lambda L, w, u: then(w * 1, lambda y: y.masked_fill_(y > 1, u[0])),
    "index_fill of view": lambda L, w, u: then(
        w * 1, lambda y: y[1:].index_fill_(1, L.tensor([0, 2]), 1.0)
    ),
    "index_add of view": lambda L, w, u: then(
        w * 1, lambda y: y.t().index_add_(0, L.tensor([0, 0]), w[:, :2].t())
    ),
    "scatter of view": lambda L, w, u: then(
        w * 1, lambda y: y[0].scatter_(0, L.tensor([0, 3]), u[:2])
    ),
    "index_put accumulating": lambda L, w, u: then(
        w * 1, lambda y: y[0].index_put_((L.tensor([1, 1, 2]),), u[:3], accumulate=True)
    ),
    "setitem of bool mask": lambda L, w, u: then(
        w * 1, lambda y: y.__setitem__(L.tensor([True, False, True]), u)
    ),
    "setitem with itself": lambda L, w, u: then(w * 1, lambda y: y.__setitem__(0, y[1] + y[0])),
    "setitem broadcasting": lambda L, w, u: then(
        w * 1, lambda y: y.__setitem__((slice(None), 1), u[0])
    ),
    "copy from other dtype": lambda L, w, u: then(w * 1, lambda y: y[0].copy_(u.double())),
    "copy into plain": lambda L, w, u: then(L.zeros(3, 4), lambda y: y[1:].copy_(w[:2])),
    "add into plain": lambda L, w, u: then(
        L.ones(3, 4), lambda y: y[0].add_(u), lambda y: y.mul_(w)
    ),
    "plain view before": lambda L, w, u: (lambda y, v: then(v, lambda v: y.mul_(w)))(
        *(lambda y: (y, y[0]))(L.ones(3, 4))
    ),
    "tril": lambda L, w, u: then(w * 1, lambda y: y.tril_()),
    "cumsum": lambda L, w, u: then(w * 1, lambda y: y.cumsum_(1)),
    # views seen again
    "old view of a written base": lambda L, w, u: (
        lambda y: (lambda v: after(v, y.mul_(2))[0:1] * 1)(y[1])
    )(w * 1),
    "old view of a written view": lambda L, w, u: (
        lambda y: (lambda v, r: after(v, r.mul_(2)) * 1)(y[:, 1], y[0])
    )(w * 1),
    "view of view after write": lambda L, w, u: (
        lambda y: (lambda v, vv: after(vv, v.mul_(u)) * 1)(*(lambda v: (v, v[1:3]))(y[0]))
    )(w * 1),
    "base after old view": lambda L, w, u: (
        lambda y: (lambda v: then(y, lambda y: v.exp_()))(y.view(-1)[:5])
    )(w * 1),
    "hook before write": lambda L, w, u: then(hooked(w * 1), lambda y: y.mul_(2)),
    "hook after write": lambda L, w, u: hooked(then(w * 1, lambda y: y[0].mul_(2))),
    "hook on written view": lambda L, w, u: (lambda y: after(y, hooked(y[0].mul_(2))))(w * 1),
    "requires grad by write": lambda L, w, u: (lambda y: then(y.view(-1), lambda v: y[0].copy_(u)))(
        L.ones(3, 4)
    ),
    # refused
    "leaf": lambda L, w, u: w.mul_(2),
    "view of leaf": lambda L, w, u: w.view(-1).mul_(2),
    "leaf by operator": lambda L, w, u: w.__iadd__(1),
    "leaf set": lambda L, w, u: w.__setitem__(0, 1.0),
    "other shape": lambda L, w, u: (u * 1).add_(w),
    "integer by float": lambda L, w, u: then(L.tensor([1, 2, 3, 4]), lambda y: y.mul_(u)),
    "expanded": lambda L, w, u: then((u * 1).expand(3, 4), lambda y: y.add_(w)),
    "unbound row": lambda L, w, u: then((w * 1).unbind(0)[0], lambda y: y.mul_(2)),
    "split part": lambda L, w, u: then((w * 1).split(2, 1)[0], lambda y: y.mul_(2)),
    "chunk": lambda L, w, u: then((w * 1).chunk(3)[0], lambda y: y.mul_(2)),
    "detached view in place": lambda L, w, u: (w * 1)[0].detach_(),
    "float mask": lambda L, w, u: then(w * 1, lambda y: y.masked_fill_(y, 1.0)),
}


# What torch refuses, because the write destroyed what it had saved, and we can do: we had saved a copy.
PERMITTED = {"with itself"}


def run(L: Any, program: Callable[[Any, Any, Any], Any]) -> Any:
    """Return the value and the gradients, or the error."""
    w = (L.arange(12.0).reshape(3, 4) / 7 + 0.25).requires_grad_()
    u = (L.arange(4.0) / 3 + 0.5).requires_grad_()
    try:
        output = program(L, w, u)
        (output * output).sum().backward()
    except Exception as error:
        return type(error), str(error)
    gradients = [None if x.grad is None else x.grad.tolist() for x in (w, u)]
    return [output.detach().tolist(), w.detach().tolist(), *gradients]


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_torch(name):
    expected, got = run(torch, PROGRAMS[name]), run(tp, PROGRAMS[name])
    if name in PERMITTED:
        assert isinstance(expected, tuple)
        assert isinstance(got, list)
        return
    if isinstance(expected, tuple):
        assert isinstance(got, tuple), f"torch raised {expected}"
        assert issubclass(got[0], expected[0]), (expected, got)
        return
    assert isinstance(got, list), got
    for theirs, ours in zip(expected, got, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs))
