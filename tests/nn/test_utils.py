"""Clipping, parameters as a vector, padded sequences."""

import math

import pytest

import tensorplug as tp
from tensorplug.nn import utils
from tensorplug.nn.utils import rnn

torch = pytest.importorskip("torch", reason="values are compared with torch's")

GRADIENTS = [[[3.0, -4.0], [0.5, 0.0]], [12.0, 1.0]]


def parameters(library):
    tensors = []
    for gradient in GRADIENTS:
        grad = library.tensor(gradient)
        tensor = library.zeros(*grad.shape, requires_grad=True)
        tensor.grad = grad
        tensors.append(tensor)
    return tensors


def flat(tensors):
    return [value for tensor in tensors for value in tensor.detach().reshape(-1).tolist()]


@pytest.mark.parametrize("norm_type", [2.0, 1, 3, 0, 0.5, math.inf, -math.inf])
@pytest.mark.parametrize("max_norm", [1.0, 1000.0])
def test_clipping_by_norm(norm_type, max_norm):
    ours, theirs = parameters(tp), parameters(torch)
    total = utils.clip_grad_norm_(ours, max_norm, norm_type)
    expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    assert total.shape == ()
    assert total.item() == pytest.approx(expected.item(), rel=1e-6)
    assert flat(p.grad for p in ours) == pytest.approx(flat(p.grad for p in theirs), rel=1e-6)


def test_clipping_in_two_steps():
    ours = parameters(tp)
    total = utils.get_total_norm([p.grad for p in ours])
    assert total.item() == pytest.approx(math.sqrt(9 + 16 + 0.25 + 144 + 1))
    utils.clip_grads_with_norm_(ours, 1.0, total)
    assert utils.get_total_norm(p.grad for p in ours).item() == pytest.approx(1.0, rel=1e-5)


def test_one_parameter_and_none():
    one = parameters(tp)[1]
    assert utils.clip_grad_norm_(one, 1.0).item() == pytest.approx(math.sqrt(145))
    assert utils.clip_grad_norm_([tp.zeros(1)], 1.0).item() == 0
    assert utils.get_total_norm([]).item() == 0
    utils.clip_grads_with_norm_([tp.zeros(1)], 1.0, tp.tensor(2.0))


def test_norms_that_are_not_finite():
    tensor = tp.zeros(1, requires_grad=True)
    tensor.grad = tp.tensor([math.inf])
    with pytest.raises(RuntimeError, match="non-finite, so it cannot be clipped"):
        utils.clip_grad_norm_(tensor, 1.0, error_if_nonfinite=True)
    assert tensor.grad.item() == math.inf
    assert utils.clip_grad_norm_(tensor, 1.0).item() == math.inf


def test_clipping_by_value():
    ours, theirs = parameters(tp), parameters(torch)
    utils.clip_grad_value_(ours, 2.0)
    torch.nn.utils.clip_grad_value_(theirs, 2.0)
    assert flat(p.grad for p in ours) == flat(p.grad for p in theirs)


def test_clipping_is_not_recorded():
    x = tp.ones(1, requires_grad=True)
    x.grad = tp.tensor([5.0])
    assert not utils.clip_grad_norm_(x, 1.0).requires_grad
    assert not x.grad.requires_grad


def test_vector_and_back():
    a, b = tp.nn.Linear(2, 2), tp.nn.Linear(2, 2)
    vector = utils.parameters_to_vector(a.parameters())
    assert vector.shape == (6,)
    assert vector.requires_grad
    utils.vector_to_parameters(vector, b.parameters())
    assert b.weight.tolist() == a.weight.tolist()
    assert b.bias.tolist() == a.bias.tolist()
    assert b.weight.is_leaf
    assert b.weight.requires_grad


def test_vectors_refused():
    with pytest.raises(TypeError, match="expected Tensor, but got: list"):
        utils.vector_to_parameters([1.0], [tp.zeros(1)])
    with pytest.raises(TypeError, match="two parameters on different devices"):
        utils.parameters_to_vector([tp.zeros(1), tp.zeros(1, device="meta")])


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding(batch_first, side):
    ours, theirs = (
        [library.arange(2 * length).reshape(length, 2) + 1 for length in (3, 1, 2)]
        for library in (tp, torch)
    )
    padded = rnn.pad_sequence(ours, batch_first, -1, side)
    expected = torch.nn.utils.rnn.pad_sequence(theirs, batch_first, -1, side)
    assert padded.tolist() == expected.tolist()
    if side == "right":
        back = rnn.unpad_sequence(padded, tp.tensor([3, 1, 2]), batch_first)
        assert [part.tolist() for part in back] == [part.tolist() for part in ours]


def test_padding_passes_gradients():
    a, b = tp.ones(2, requires_grad=True), tp.ones(1, requires_grad=True)
    padded = rnn.pad_sequence([a, b])
    (padded * tp.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert a.grad.tolist() == [1.0, 3.0]
    assert b.grad.tolist() == [2.0]


@pytest.mark.parametrize(
    ("sequences", "options", "error", "text"),
    [
        (3, {}, RuntimeError, "Expected iterable for input sequences"),
        ([], {}, RuntimeError, "empty list of sequences"),
        ([[1.0]], {"padding_side": "top"}, RuntimeError, "padding_side to be one of"),
    ],
)
def test_padding_refuses(sequences, options, error, text):
    with pytest.raises(error, match=text):
        rnn.pad_sequence(sequences, **options)
