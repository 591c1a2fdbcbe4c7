"""What is part of the graph, what may run twice, and what may be written to, for families of ops."""

import math

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F

X = [[1.0, 0.5], [0.3, 2.0]]


def leaf(values=X):
    return tp.tensor(values, dtype=tp.float64, requires_grad=True)


SAVE_NO_TENSOR = {
    "view": lambda x: x.view(4),
    "add": lambda x: x + 1,
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(),
    "cat": lambda x: tp.cat([x, x]),
    "stack": lambda x: tp.stack([x, x]),
    "clone": lambda x: x.clone(),
    "permute": lambda x: x.T,
    "neg": lambda x: -x,
    "sub": lambda x: x - 1,
    "scale": lambda x: x * 2,
    "expand": lambda x: x.expand(3, 2, 2),
    "select": lambda x: x[0],
    "split": lambda x: x.split(1)[0],
    "unbind": lambda x: x.unbind()[1],
    "to": lambda x: x.to(tp.float32),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1, 0),
    "tril": lambda x: x.tril(),
    "cumsum": lambda x: x.cumsum(0),
    "diagonal": lambda x: x.diagonal(),
    "pad": lambda x: F.pad(x, (1, 1)),
    "add with alpha": lambda x: x.add(tp.ones(2, 2, dtype=tp.float64), alpha=2),
}


@pytest.mark.parametrize("name", SAVE_NO_TENSOR)
def test_a_second_backward_through_what_saved_nothing(name):
    x = leaf()
    loss = SAVE_NO_TENSOR[name](x).sum()
    loss.backward()
    once = x.grad.clone()
    loss.backward()
    assert x.grad.tolist() == (2 * once).tolist()


@pytest.mark.parametrize("function", [tp.exp, tp.std, tp.norm, lambda x: x * x, lambda x: x @ x])
def test_a_second_backward_through_what_was_freed(function):
    loss = function(leaf()).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        loss.backward()


def test_losses_share_a_prefix():
    x = leaf()
    prefix = (x + 1).reshape(4)
    (prefix[:2] * 3).sum().backward()
    prefix[2:].sum().backward()
    assert x.grad.tolist() == [[3.0, 3.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    "function",
    [F.hardtanh, F.relu6, lambda x: tp.logaddexp(x, 2 * x), lambda x: tp.logaddexp2(x, -x)],
)
def test_writes_to_results(function):
    x, y = leaf(), leaf()
    result = function(x)
    result.mul_(2)
    result.sum().backward()
    (2 * function(y)).sum().backward()
    tp.testing.assert_close(x.grad, y.grad)


IN_PLACE = {
    "div_": lambda a, b: a.div_(b),
    "pow_": lambda a, b: a.pow_(b),
    "xlogy_": lambda a, b: a.xlogy_(b),
    "lerp_ end": lambda a, b: a.lerp_(b, 0.5),
    "lerp_ weight": lambda a, b: a.lerp_(a * 2, b),
    "float_power_": lambda a, b: a.float_power_(b),
    "ldexp_": lambda a, b: a.ldexp_(b),
    "atan2_": lambda a, b: a.atan2_(b),
    "hypot_": lambda a, b: a.hypot_(b),
    "copysign_": lambda a, b: a.copysign_(b),
    "addcdiv_": lambda a, b: a.addcdiv_(a * 2, b),
    "index_fill_": lambda a, b: a.index_fill_(0, tp.tensor([1, 1]), b[0, 0]),
}


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("both", [False, True])
def test_in_place_where_another_argument_requires_grad(name, both):
    a, b = leaf(), leaf([[1.5, 2.5], [0.5, 3.0]])
    start = a if both else a.detach()
    IN_PLACE[name](start.clone(), b).sum().backward()
    values = a.detach().clone().requires_grad_(both), b.detach().clone().requires_grad_()
    assert tp.autograd.gradcheck(lambda p, q: IN_PLACE[name](p.clone(), q), values)
    found = tp.autograd.grad(IN_PLACE[name](start.clone(), b).sum(), b)[0]
    tp.testing.assert_close(b.grad, found)


def test_value_of_index_fill():
    value = tp.tensor(2.0, requires_grad=True)
    tp.zeros(3, 2).index_fill(0, tp.tensor([1, 1, -2]), value).sum().backward()
    assert value.grad.item() == 2.0


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: tp.frexp(x)[0], [[0.5, 1.0], [2.0, 0.25]]),
        (lambda x: tp.nextafter(x, x + 1), [[1.0, 1.0], [1.0, 1.0]]),
        (lambda x: tp.nextafter(x, x.detach()), [[0.0, 0.0], [0.0, 0.0]]),
        (lambda x: tp.linalg.matrix_power(x, 0), [[0.0, 0.0], [0.0, 0.0]]),
        (lambda x: tp.linalg.householder_product(x, x[0, :0]), [[0.0, 0.0], [0.0, 0.0]]),
    ],
    ids=["frexp", "nextafter", "nextafter itself", "matrix_power", "householder_product"],
)
def test_what_is_constant_has_zeros(function, expected):
    x = leaf()
    function(x).sum().backward()
    assert x.grad.tolist() == expected


def test_products_of_scattered_zeros():
    """Second derivatives of products in which several factors are zero."""

    def scattered(values):
        index = tp.tensor([0, 0, 0, 1])
        return (
            values[:2].scatter_reduce(0, index, values[2:], "prod") @ tp.tensor([1.0, 3.0]).double()
        )

    def dense(values):
        return values[0] * values[2] * values[3] * values[4] + 3 * values[1] * values[5]

    def alone(values):
        index = tp.tensor([0, 0, 0])
        made = values[:2].scatter_reduce(0, index, values[2:], "prod", include_self=False)
        return made @ tp.tensor([1.0, 3.0]).double()

    point = tp.tensor([0, 0, 2, 0, 0], dtype=tp.float64)
    assert tp.func.grad(alone)(point).tolist() == [0, 3, 0, 0, 0]
    found = tp.func.hessian(alone)(point)
    assert found.nonzero().tolist() == [[3, 4], [4, 3]]
    assert found[3, 4].item() == 2
    for start in ([2, 3, 0, 0, 5, 7], [0, 3, 0, 4, 5, 0], [2, 0, 1, 0, 5, 0], [0, 0, 0, 0, 5, 0]):
        point = tp.tensor(start, dtype=tp.float64)
        for hessian in (tp.func.hessian, lambda f: tp.func.jacrev(tp.func.jacrev(f))):
            tp.testing.assert_close(hessian(scattered)(point), hessian(dense)(point))


def test_sinc_next_to_zero():
    x = tp.tensor([1e-200, 0.0, -1e-160, 1e-8, 0.1, 0.15999, 0.16001, 2.5], dtype=tp.float64)
    (first,) = tp.autograd.grad(tp.sinc(x.requires_grad_()).sum(), x, create_graph=True)
    (second,) = tp.autograd.grad(first.sum(), x)
    slope = -(math.pi**2) / 3
    assert first[:4].tolist() == pytest.approx([slope * v for v in x[:4].tolist()], rel=1e-12)
    assert second[:4].tolist() == pytest.approx([slope] * 4, rel=1e-12)
    y = x.detach()[4:] * math.pi
    exact = (y.cos() / y - y.sin() / (y * y)) * math.pi
    tp.testing.assert_close(first[4:].detach(), exact, rtol=1e-12, atol=0.0)


def test_mixed_derivatives_of_powers():
    expected = [[0.0, 0.5], [0.5, math.log(2) ** 2]]
    point = tp.tensor([2.0, 0.0], dtype=tp.float64)
    for hessian in (tp.func.hessian, lambda f: tp.func.jacrev(tp.func.jacrev(f))):
        found = hessian(lambda v: v[0] ** v[1])(point)
        tp.testing.assert_close(found, tp.tensor(expected, dtype=tp.float64))


def test_ops_that_look_at_the_data_under_vmap():
    p, t = tp.tensor([[0.2, 0.5], [0.1, 0.9]]), tp.tensor([[0.0, 1.0], [1.0, 0.0]])
    rows = [F.binary_cross_entropy(a, b).item() for a, b in zip(p, t, strict=True)]
    assert tp.vmap(F.binary_cross_entropy)(p, t).tolist() == pytest.approx(rows)
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        tp.vmap(F.binary_cross_entropy)(p * 5, t)
    classes = tp.tensor([[0, 1], [3, 2]])
    assert tp.vmap(F.one_hot)(classes).tolist() == F.one_hot(classes).tolist()
    counts = tp.vmap(lambda row: tp.bincount(row, minlength=5))(classes)
    assert counts.tolist() == [tp.bincount(row, minlength=5).tolist() for row in classes]


def test_as_strided_of_samples_that_share_memory():
    point = tp.arange(4.0)
    expected = tp.func.jacrev(lambda x: x.as_strided((2, 2), (1, 2)))(point)
    assert (
        tp.func.jacfwd(lambda x: x.as_strided((2, 2), (1, 2)))(point).tolist() == expected.tolist()
    )
    both = tp.vmap(
        tp.func.grad(lambda x, y: (x.as_strided((2,), (2,)) * y).sum()), in_dims=(None, 0)
    )
    found = both(point, tp.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert found.tolist() == [[1.0, 0.0, 2.0, 0.0], [3.0, 0.0, 4.0, 0.0]]
