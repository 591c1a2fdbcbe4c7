"""Hooks of single saved tensors: ``grad_fn._raw_saved_self.register_hooks``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorplug as tp


class Cube(tp.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx._saved_power = 3
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


def attribute(name: str) -> Callable[[Any], Any]:
    return lambda y: getattr(y.grad_fn, name)


# A call, which of its node's saved tensors, and how often its gradient doubles if that one is doubled.
SAVED = {
    "mul": (lambda x: x * 3.0 * tp.full((2,), 2.0), attribute("_raw_saved_other"), 1),
    "exp": (lambda x: x.exp(), attribute("_raw_saved_result"), 1),
    "pow": (lambda x: x**3, attribute("_raw_saved_self"), 2),
    "index": (lambda x: x[tp.tensor([0, 0])], lambda y: y.grad_fn._raw_saved_indices[0], 0),
    "amax": (lambda x: (x * 1).max(0)[0], lambda y: y.grad_fn._raw_saved_indices, 0),
    "Function": (Cube.apply, lambda y: y.grad_fn._raw_saved_tensors[0], 2),
}


@pytest.mark.parametrize("create_graph", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("saved", SAVED.values(), ids=SAVED)
def test_what_one_pair_of_hooks_makes_of_a_saved_tensor_is_used(
    saved: Any, create_graph: bool
) -> None:
    call, of, doublings = saved
    x = tp.tensor([0.5, -0.25], requires_grad=True)
    (plain,) = tp.autograd.grad(call(x).sum(), x)
    y = call(x)
    seen: list[Any] = []
    of(y).register_hooks(lambda t: seen.append(t) or t, lambda t: t * 2 if doublings else t)
    assert len(seen) == 1
    assert not seen[0].requires_grad
    (grad,) = tp.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert tp.allclose(grad, plain * 2**doublings)


def test_an_unpacked_tensor_keeps_the_history_of_the_packed_one() -> None:
    x = tp.tensor([0.5, -0.25], dtype=tp.float64, requires_grad=True)
    y = x**3
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t.numpy(), tp.from_numpy)
    (grad,) = tp.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = tp.autograd.grad(grad.sum(), x)
    assert tp.allclose(second, 6 * x)


def test_a_node_of_a_function_has_what_its_ctx_has_under_such_names() -> None:
    y = Cube.apply(tp.tensor([0.5], requires_grad=True))
    assert y.grad_fn._saved_power == 3
    for name in ("_saved_other", "_raw_saved_other"):
        with pytest.raises(AttributeError, match=name):
            getattr(y.grad_fn, name)


def keep(tensor: Any) -> Any:
    return tensor


def test_hooks_that_cannot_be_set_are_refused() -> None:
    x = tp.tensor([0.5, -0.25], requires_grad=True)
    saved = (x.exp()).grad_fn._raw_saved_result
    saved.register_hooks(keep, keep)
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        saved.register_hooks(keep, keep)
    y = x.exp()
    with pytest.raises(RuntimeError, match="modifying its input in place"):
        y.grad_fn._raw_saved_result.register_hooks(lambda t: t.mul_(2), keep)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(keep, lambda t: 1)
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
        y.sum().backward()
    y = x.exp()
    saved = y.grad_fn._raw_saved_result
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after it has been freed"):
        saved.register_hooks(keep, keep)
    rows = tp.ones(2, 2, requires_grad=True)[:, tp.tensor([0, 1])]
    with pytest.raises(RuntimeError, match="None is forbidden"):
        rows.grad_fn._raw_saved_indices[0].register_hooks(keep, keep)


def test_a_tensor_with_hooks_may_be_written_to_since_what_was_packed_counts() -> None:
    x = tp.tensor([0.5, -0.25], requires_grad=True)
    y = x.exp()
    kept = y.detach().clone()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t.clone(), keep)
    z = y.sum()
    y.mul_(0)
    z.backward()
    assert tp.equal(x.grad, kept)
