"""Losses of complex numbers and integers: what is taken, the dtypes of results, and gradients."""

import itertools

import numpy as np
import pytest

import tensorplug as tp

F = tp.nn.functional
COMPLEX = (tp.complex64, tp.complex128)


def pair(dtype):
    tp.manual_seed(0)
    return tp.randn(4, 3, dtype=dtype), tp.randn(4, 3, dtype=dtype)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_smooth_l1_loss_without_a_bend_is_l1_loss(dtype, reduction):
    found = []
    for loss in (lambda x, y: F.smooth_l1_loss(x, y, reduction=reduction, beta=0.0), F.l1_loss):
        x, y = (t.requires_grad_() for t in pair(dtype))
        result = loss(x, y) if loss is not F.l1_loss else loss(x, y, reduction=reduction)
        result.sum().backward()
        found.append((result, x.grad, y.grad))
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        assert tp.equal(one, other)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_soft_margin_loss_of_complex_numbers(dtype):
    x, _ = pair(dtype)
    target = x.real.sign()
    expected = np.log(1 + np.exp(-target.numpy() * x.numpy()))
    assert np.allclose(F.soft_margin_loss(x, target, reduction="none").numpy(), expected, 1e-5)
    assert np.allclose(F.soft_margin_loss(x, target).numpy(), expected.mean(), 1e-5)
    tp.autograd.gradcheck(
        lambda x: F.soft_margin_loss(x, target.double()), x.to(tp.complex128).requires_grad_()
    )


@pytest.mark.parametrize("margin", [0, 0.0, 1, 0.5])
def test_margin_ranking_loss_of_integers(margin):
    x, y, target = tp.tensor([1, 5, 2]), tp.tensor([3, 2, 2]), tp.tensor([1, -1, 1])
    expected = np.maximum(-target.numpy() * (x - y).numpy() + margin, 0)
    losses = F.margin_ranking_loss(x, y, target, margin=margin, reduction="none")
    assert losses.dtype == tp.float32
    assert np.array_equal(losses.numpy(), expected)
    assert F.margin_ranking_loss(x, y, target, margin=margin).item() == pytest.approx(
        expected.mean()
    )


#: Losses that compute floating-point numbers of whole ones: of the default dtype, before the halves come in.
MIXED = {
    "poisson_nll_loss": lambda L, x, y, z, **options: L.nn.functional.poisson_nll_loss(x, y, **options),
    "poisson_nll_loss, counts": lambda L, x, y, z, **options: L.nn.functional.poisson_nll_loss(
        x, y, log_input=False, full=True, **options
    ),
    "triplet_margin_loss": lambda L, x, y, z, **options: L.nn.functional.triplet_margin_loss(
        x, y, z, **options
    ),
    "triplet_margin_loss, swapped": lambda L, x, y, z, **options: L.nn.functional.triplet_margin_loss(
        x, y, z, swap=True, **options
    ),
    "triplet_margin_with_distance_loss": lambda L, x, y, z, **options: (
        L.nn.functional.triplet_margin_with_distance_loss(x, y, z, swap=True, **options)
    ),
}  # fmt: skip


@pytest.mark.parametrize("reduction", ["none", "mean"])
@pytest.mark.parametrize("whole", ["int64", "int32", "uint8"])
@pytest.mark.parametrize("half", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", MIXED)
def test_losses_of_integers_beside_halves(name, half, whole, reduction):
    torch = pytest.importorskip("torch", reason="reference for dtypes and values")
    numbers = [[[1, 2, 3], [4, 1, 2]], [[2, 5, 1], [1, 3, 1]], [[3, 3, 4], [2, 1, 5]]]
    for kinds in itertools.product((half, whole), repeat=3):
        results = []
        for L in (torch, tp):
            x, y, z = (
                L.tensor(rows, dtype=getattr(L, kind))
                for rows, kind in zip(numbers, kinds, strict=True)
            )
            results.append(MIXED[name](L, x, y, z, reduction=reduction))
        expected, found = results
        assert str(found.dtype).split(".")[1] == str(expected.dtype).split(".")[1], kinds
        assert np.allclose(found.double().tolist(), expected.double().tolist(), 2e-2, 2e-2)
