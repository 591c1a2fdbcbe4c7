"""Tensors that require grad where an op takes a number: refused, since no gradient would reach them."""

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch is the reference of these tests")

#: By name: a call with a number, and the number.
CALLS = {
    "add(alpha)": (lambda lib, x, n: lib.add(x, x, alpha=n), 2.0),
    "add_(alpha)": (lambda lib, x, n: x.clone().add_(x, alpha=n), 2.0),
    "sub(alpha)": (lambda lib, x, n: lib.sub(x, x, alpha=n), 2.0),
    "rsub(alpha)": (lambda lib, x, n: lib.rsub(x, x, alpha=n), 2.0),
    "addcmul": (lambda lib, x, n: lib.addcmul(x, x, x, value=n), 2.0),
    "addcdiv_": (lambda lib, x, n: x.clone().addcdiv_(x, x, value=n), 2.0),
    "addmm(beta)": (lambda lib, x, n: lib.addmm(x, x, x, beta=n), 2.0),
    "addmm(alpha)": (lambda lib, x, n: x.addmm(x, x, alpha=n), 2.0),
    "addmv": (lambda lib, x, n: lib.addmv(x[0], x, x[0], beta=n), 2.0),
    "addr": (lambda lib, x, n: lib.addr(x, x[0], x[0], alpha=n), 2.0),
    "baddbmm": (lambda lib, x, n: lib.baddbmm(x[None], x[None], x[None], beta=n), 2.0),
    "addbmm": (lambda lib, x, n: lib.addbmm(x, x[None], x[None], alpha=n), 2.0),
    "isclose(rtol)": (lambda lib, x, n: lib.isclose(x, x, n), 1e-3),
    "isclose(atol)": (lambda lib, x, n: lib.isclose(x, x, 0.1, n), 1e-3),
    "allclose": (lambda lib, x, n: lib.tensor(lib.allclose(x, x, atol=n)), 1e-3),
    "cdist": (lambda lib, x, n: lib.cdist(x, x, n), 3.0),
    "dist": (lambda lib, x, n: lib.dist(x, x + 1, n), 3.0),
    "pdist": (lambda lib, x, n: lib.pdist(x, n), 3.0),
    "pairwise_distance": (lambda lib, x, n: lib.pairwise_distance(x, x, p=n), 3.0),
    "renorm(p)": (lambda lib, x, n: lib.renorm(x, n, 0, 1.0), 3.0),
    "renorm(maxnorm)": (lambda lib, x, n: x.renorm(2.0, 0, n), 3.0),
    "histc": (lambda lib, x, n: lib.histc(x, 3, 0, n), 3.0),
    "logit": (lambda lib, x, n: lib.logit(x, n), 0.1),
    "nan_to_num": (lambda lib, x, n: lib.nan_to_num(x, n), 0.5),
    "nan_to_num(posinf)": (lambda lib, x, n: x.nan_to_num(posinf=n), 0.5),
    "std": (lambda lib, x, n: lib.std(x, dim=0, correction=n), 0.5),
    "var": (lambda lib, x, n: x.var(dim=0, correction=n), 0.5),
    "index_add": (lambda lib, x, n: x.index_add(0, lib.tensor([0, 1]), x, alpha=n), 2.0),
    "scatter": (lambda lib, x, n: x.scatter(0, lib.tensor([[0, 1]]), value=n), 2.0),
    "trapezoid": (lambda lib, x, n: lib.trapezoid(x, dx=n), 2.0),
    "full": (lambda lib, x, n: lib.full((2,), n), 2.0),
    "full_like": (lambda lib, x, n: lib.full_like(x, n), 2.0),
    "new_full": (lambda lib, x, n: x.new_full((2,), n), 2.0),
    "scalar_tensor": (lambda lib, x, n: lib.scalar_tensor(n), 2.0),
    "arange": (lambda lib, x, n: lib.arange(n), 3.0),
    "arange(step)": (lambda lib, x, n: lib.arange(0, 3, n), 0.5),
    "logspace(base)": (lambda lib, x, n: lib.logspace(0, 1, 3, n), 2.0),
    "layer_norm": (lambda lib, x, n: lib.layer_norm(x, (2,), None, None, n), 1e-5),
    "batch_norm": (
        lambda lib, x, n: lib.batch_norm(x, None, None, None, None, True, n, 1e-5, False),
        0.1,
    ),
    "elu": (lambda lib, x, n: lib.nn.functional.elu(x, n), 0.5),
    "celu": (lambda lib, x, n: lib.celu(x, n), 0.5),
    "leaky_relu": (lambda lib, x, n: lib.nn.functional.leaky_relu(x, n), 0.5),
    "threshold": (lambda lib, x, n: lib.threshold(x, n, 0.0), 0.5),
    "hardtanh": (lambda lib, x, n: lib.nn.functional.hardtanh(x, -1.0, n), 0.5),
    "softplus": (lambda lib, x, n: lib.nn.functional.softplus(x, n), 0.5),
    "hardshrink": (lambda lib, x, n: lib.hardshrink(x, n), 0.5),
    "softshrink": (lambda lib, x, n: lib.nn.functional.softshrink(x, n), 0.5),
    "huber_loss": (lambda lib, x, n: lib.nn.functional.huber_loss(x, x + 1, delta=n), 0.5),
    "hinge_embedding_loss": (
        lambda lib, x, n: lib.nn.functional.hinge_embedding_loss(x, x, n),
        0.5,
    ),
    "margin_ranking_loss": (lambda lib, x, n: lib.margin_ranking_loss(x, x, x, n), 0.5),
}
RANDOM = {
    "dropout": (lambda lib, x, n: lib.dropout(x, n, True), 0.5),
    "dropout(inplace)": (
        lambda lib, x, n: lib.nn.functional.dropout(x.clone(), n, True, True),
        0.5,
    ),
    "alpha_dropout": (lambda lib, x, n: lib.alpha_dropout(x, n, True), 0.5),
    "normal_": (lambda lib, x, n: x.clone().normal_(n, 1.0), 0.5),
    "normal_(std)": (lambda lib, x, n: x.clone().normal_(0.0, n), 0.5),
    "uniform_": (lambda lib, x, n: x.clone().uniform_(n, 1.0), 0.5),
    "exponential_": (lambda lib, x, n: x.clone().exponential_(n), 0.5),
    "cauchy_": (lambda lib, x, n: x.clone().cauchy_(n, 1.0), 0.5),
    "log_normal_": (lambda lib, x, n: x.clone().log_normal_(n, 1.0), 0.5),
    "geometric_": (lambda lib, x, n: x.clone().geometric_(n), 0.5),
    "rrelu": (lambda lib, x, n: lib.rrelu(x, n, 0.7, True), 0.5),
}


def operand(lib):
    return lib.tensor([[0.25, 0.5], [0.75, 0.125]], dtype=lib.float64)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("name", {**CALLS, **RANDOM})
def test_a_number_that_requires_grad_is_refused(name, recorded):
    call, number = {**CALLS, **RANDOM}[name]
    for lib in (tp, torch):
        asked = lib.tensor(number, dtype=lib.float64, requires_grad=True)
        for _ in range(3):  # a call that is known by now, too
            call(lib, operand(lib), asked.detach())
        with lib.set_grad_enabled(recorded), pytest.raises(TypeError, match=r"Number|float"):
            call(lib, operand(lib), asked)


@pytest.mark.parametrize("name", CALLS)
def test_a_number_in_a_tensor_is_read(name):
    call, number = CALLS[name]
    for value in (
        number,
        number,
        number * 0.75,
        number * 0.5,
    ):  # of a call that is known, another value
        ours = call(tp, operand(tp), tp.tensor(value, dtype=tp.float64))
        theirs = call(torch, operand(torch), torch.tensor(value, dtype=torch.float64))
        assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
        np.testing.assert_allclose(
            np.asarray(ours.tolist()), np.asarray(theirs.tolist()), rtol=1e-6, atol=1e-12
        )


@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_ends_of_ranges_may_require_grad(name):
    end = tp.tensor(2.0, requires_grad=True)
    made = getattr(tp, name)(0.0, end, 3)
    assert made.tolist() == getattr(tp, name)(0.0, 2.0, 3).tolist()
    assert not made.requires_grad
