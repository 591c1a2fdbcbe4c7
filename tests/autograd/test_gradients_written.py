"""Gradients are the caller's: one element may be written, and neither arguments nor others change."""

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing import cases
from tensorplug.testing.records import all_records

RECORDS = sorted(
    [r for r in all_records() if r.gradient and tp.float32 in r.dtypes],
    key=lambda record: record.op,
)
LOSSES = {
    "sum": lambda tensors: tensors[0].sum(),
    "sums": lambda tensors: sum([t.sum() for t in tensors]),
    "mean": lambda tensors: tensors[0].mean(),
    "single": lambda tensors: tensors[0].reshape(-1)[0],
}


def call(op, sample):
    """Return the floating-point tensors of a call, and those of its results that depend on them."""
    tp.manual_seed(1)
    args, kwargs = cases.map_tensors(
        (sample.args, sample.kwargs),
        lambda t: t.detach().clone().requires_grad_(t.is_floating_point()),
    )
    given = [t for t in cases.tensors_in((args, kwargs)) if t.requires_grad]
    results = cases.tensors_in(op.call(*args, **kwargs))
    return given, [t for t in results if t.requires_grad and t.numel()]


def gradients(op, sample, loss):
    """Return the floating-point tensors of a call, and the gradients of those that have some."""
    given, made = call(op, sample)
    if not made or not made[0].dtype.is_floating_point:
        return [], []
    try:
        found = tp.autograd.grad(LOSSES[loss](made), given, allow_unused=True)
    except RuntimeError:  # an argument has no derivative
        return [], []
    return given, [g for g in found if g is not None and g.numel()]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.op)
def test_one_element_of_each(record, loss):
    op, sample = get_op(record.op), cases.samples_of(record, "cpu", tp.float32)[0]
    given, found = gradients(op, sample, loss)
    before = [t.detach().clone() for t in (*given, *found)]
    for gradient in found:
        gradient[(0,) * gradient.ndim] = 5.0
        assert gradient.reshape(-1)[0].item() == 5
    given_again, found_again = gradients(op, sample, loss)
    for one, other in zip(before, (*given, *found_again), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.detach().numpy())
    for one, other in zip(given, given_again, strict=True):
        assert tp.equal(one, other)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.op)
def test_one_element_of_what_leaves_keep(record):
    """No leaf shares its ``grad`` with another one, or with the gradient that was given."""
    op, sample = get_op(record.op), cases.samples_of(record, "cpu", tp.float32)[0]
    given, results = call(op, sample)
    seeds = [tp.ones(t.shape, dtype=t.dtype) for t in results]
    try:
        tp.autograd.backward(results, seeds)
    except RuntimeError:  # an argument has no derivative
        return
    kept = [t.grad for t in given if t.grad is not None and t.grad.numel()]
    for number, gradient in enumerate(kept):
        others = [*kept[:number], *kept[number + 1 :], *seeds, *given]
        before = [other.detach().clone() for other in others]
        gradient[(0,) * gradient.ndim] = 5.0 - number
        for one, other in zip(before, others, strict=True):
            np.testing.assert_array_equal(one.numpy(), other.detach().numpy())


class Writing(tp.autograd.Function):
    """Its formula writes to the gradient that comes in."""

    @staticmethod
    def forward(ctx, x):
        return x.sum()

    @staticmethod
    def backward(ctx, g):
        return g.mul_(3).expand(2)


def writing(gradient):
    gradient.mul_(4)


def test_functions_may_write_to_the_first_gradient():
    x = tp.ones(2, requires_grad=True)
    Writing.apply(x).backward()
    assert x.grad.tolist() == [3, 3]
    for hooked in (lambda x: x.sum(), lambda x: (x * 2).sum()):
        x = tp.ones(2, requires_grad=True)
        loss = hooked(x)
        loss.register_hook(writing)
        loss.backward()
        assert x.grad[0].item() == 4 * hooked(tp.tensor([1.0, 0.0])).item()
    single = tp.ones((), requires_grad=True)
    (gradient,) = tp.autograd.grad(single, single)
    writing(gradient)
    assert gradient.item() == 4
    assert tp.autograd.grad(single, single)[0].item() == 1
