"""Places in the graph that stand for tensors: each output of a node is a place of its own."""

import pytest

import tensorplug as tp
from tensorplug.autograd.graph import GradientEdge, get_gradient_edge


def by_hand(tensor):
    """Return the edge that a program puts together from a node and a number."""
    return GradientEdge(tensor.grad_fn, tensor.output_nr)


class Both(tp.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, twice, thrice):
        return twice * 2 + thrice * 3


OUTPUTS = {
    "split": lambda x: x.split([1, 2]),
    "unbind": lambda x: x.unbind(),
    "var_mean": lambda x: tp.var_mean(x, 0),
    "chunk": lambda x: x.chunk(2),
    "frexp": lambda x: (tp.frexp(x)[0],),
    "max": lambda x: (x.max(0).values,),
    "function": Both.apply,
    "one": lambda x: (x * 2,),
}


@pytest.mark.parametrize("edge_of", [by_hand, get_gradient_edge])
@pytest.mark.parametrize("name", OUTPUTS)
def test_edge_of_each_output_gets_the_gradient_of_its_tensor(name, edge_of):
    x = tp.tensor([1.0, 2.0, 4.0], requires_grad=True)
    outputs = OUTPUTS[name](x * 1)
    total = sum((number + 3) * (output**2).sum() for number, output in enumerate(outputs))
    by_tensor = tp.autograd.grad(total, outputs, retain_graph=True)
    by_edge = tp.autograd.grad(total, [edge_of(output) for output in outputs], retain_graph=True)
    for known, found in zip(by_tensor, by_edge, strict=True):
        assert tp.equal(known, found)


@pytest.mark.parametrize("edge_of", [by_hand, get_gradient_edge])
@pytest.mark.parametrize("name", OUTPUTS)
def test_backward_pass_starts_at_each_output(name, edge_of):
    x = tp.tensor([1.0, 2.0, 4.0], requires_grad=True)
    for output in OUTPUTS[name](x * 1):
        start = tp.ones_like(output) * 5
        (known,) = tp.autograd.grad(output, x, start, retain_graph=True)
        (found,) = tp.autograd.grad(edge_of(output), x, start, retain_graph=True)
        assert tp.equal(known, found)


@pytest.mark.parametrize("name", OUTPUTS)
def test_backward_to_edges_leaves_other_leaves_alone(name):
    x = tp.tensor([1.0, 2.0, 4.0], requires_grad=True)
    other = tp.ones((), requires_grad=True)
    outputs = OUTPUTS[name](x * 1)
    total = sum((output * other).sum() for output in outputs)
    total.backward(inputs=[by_hand(output) for output in outputs], retain_graph=True)
    assert x.grad is None
    assert other.grad is None
    total.backward(inputs=[by_hand(outputs[-1]), get_gradient_edge(x)])
    assert x.grad is not None
    assert other.grad is None


def test_edges_have_no_zeros_to_materialize():
    x = tp.ones(2, requires_grad=True)
    unused = by_hand(x * 3)
    assert tp.autograd.grad(x.sum(), unused, allow_unused=True, retain_graph=True) == (None,)
    with pytest.raises(RuntimeError, match="the given input is a GradientEdge"):
        tp.autograd.grad(x.sum(), unused, materialize_grads=True)


@pytest.mark.parametrize("edge_of", [lambda tensor: tensor, by_hand])
@pytest.mark.parametrize(
    ("dtype", "of_gradient"), [(tp.float32, tp.complex64), (tp.complex64, tp.float64)]
)
def test_gradient_of_the_other_kind_is_refused(edge_of, dtype, of_gradient):
    x = tp.ones(2, dtype=dtype, requires_grad=True)
    with pytest.raises(RuntimeError, match="required to have the same dtype"):
        tp.autograd.grad(edge_of(x * 2), x, tp.ones(2, dtype=of_gradient))


@pytest.mark.parametrize("known", [None, tp.ones(2)])
@pytest.mark.parametrize("steps", [0, 1])
def test_sparse_gradient_to_begin_with(known, steps):
    x = tp.ones(2, requires_grad=True)
    x.grad = None if known is None else known.clone()
    y = x * 2 if steps else x
    y.backward(tp.sparse_coo_tensor([[1, 1]], [1.0, 2.0], (2,)))
    expected = tp.tensor([0.0, 3.0]) * (steps + 1) + (0 if known is None else known)
    assert tp.equal(x.grad.to_dense(), expected)
