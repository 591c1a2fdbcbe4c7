"""Identity, Linear, Bilinear, Flatten, Unflatten: values and gradients against torch's."""

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.nn import functional as F

torch = pytest.importorskip("torch", reason="values are compared with torch's")


def twins(name, *args):
    """Return our module and torch's with the same float64 parameters."""
    theirs = getattr(torch.nn, name)(*args).double()
    ours = getattr(nn, name)(*args).double()
    state = {
        key: tp.tensor(value.tolist(), dtype=tp.float64)
        for key, value in theirs.state_dict().items()
    }
    ours.load_state_dict(state)
    return ours, theirs


def inputs(*shapes):
    torch.manual_seed(0)
    theirs = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    ours = [
        tp.tensor(x.tolist(), dtype=tp.float64).reshape(tuple(x.shape)).requires_grad_()
        for x in theirs
    ]
    return ours, theirs


def flat(tensor):
    return tensor.detach().reshape(-1).tolist()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("name", "sizes", "shapes"),
    [
        ("Linear", (3, 4), [(3,)]),
        ("Linear", (3, 4), [(5, 3)]),
        ("Linear", (3, 4), [(2, 5, 3)]),
        ("Linear", (3, 4), [(0, 3)]),
        ("Bilinear", (2, 3, 4), [(5, 2), (5, 3)]),
        ("Bilinear", (2, 3, 4), [(2, 5, 2), (2, 5, 3)]),
    ],
)
def test_values_and_gradients(name, sizes, shapes, bias):
    ours, theirs = twins(name, *sizes, bias)
    our_inputs, their_inputs = inputs(*shapes)
    output, expected = ours(*our_inputs), theirs(*their_inputs)
    assert tuple(output.shape) == tuple(expected.shape)
    assert flat(output) == pytest.approx(flat(expected), rel=1e-12)
    (output**2).sum().backward()
    (expected**2).sum().backward()
    for mine, other in zip(
        [*our_inputs, *ours.parameters()], [*their_inputs, *theirs.parameters()], strict=True
    ):
        assert flat(mine.grad) == pytest.approx(flat(other.grad), rel=1e-12)


@pytest.mark.parametrize("name", ["Linear", "Bilinear"])
def test_fresh_parameters_are_bounded_as_torchs(name):
    sizes = (9, 50) if name == "Linear" else (9, 5, 50)
    module = getattr(nn, name)(*sizes)
    for parameter in module.parameters():
        values = flat(parameter)
        assert max(map(abs, values)) <= 1 / 3
        assert max(values) > 0.2
        assert min(values) < -0.2
    assert [p.dtype for p in getattr(nn, name)(*sizes, dtype=tp.float64).parameters()] == [
        tp.float64,
        tp.float64,
    ]
    assert getattr(nn, name)(*sizes, device="meta").weight.is_meta


def test_text():
    assert repr(nn.Linear(2, 3, bias=False)) == (
        "Linear(in_features=2, out_features=3, bias=False)"
    )
    assert repr(nn.Bilinear(1, 2, 3)) == (
        "Bilinear(in1_features=1, in2_features=2, out_features=3, bias=True)"
    )
    assert repr(nn.Flatten()) == "Flatten(start_dim=1, end_dim=-1)"
    assert repr(nn.Unflatten(1, (2, 3))) == "Unflatten(dim=1, unflattened_size=(2, 3))"
    assert repr(nn.Identity(3)) == "Identity()"


def test_shapes():
    x = tp.arange(24).reshape(2, 3, 4)
    assert nn.Flatten()(x).shape == (2, 12)
    assert nn.Flatten(0, 1)(x).shape == (6, 4)
    assert nn.Unflatten(2, (2, -1))(x).shape == (2, 3, 2, 2)
    assert nn.Unflatten(1, tp.Size([3, 1]))(x).shape == (2, 3, 1, 4)
    assert nn.Identity()(x) is x


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: nn.Linear(-1, 2), RuntimeError, "negative"),
        (lambda: nn.Linear("a", 2), TypeError, "size"),
        (lambda: nn.Bilinear(0, 2, 3), ValueError, "in1_features must be > 0"),
        (lambda: nn.Linear(2, 3)(tp.ones(4)), RuntimeError, "shape|size|match"),
        (lambda: nn.Unflatten(1, 3), TypeError, "must be a tuple of ints, but found type int"),
        (lambda: nn.Unflatten(1, (2, "a")), TypeError, "element of type str at pos 1"),
        (lambda: nn.Unflatten("a", (2,)), TypeError, "dim must be an int"),
        (lambda: nn.Flatten(5)(tp.zeros(2)), IndexError, "out of range"),
    ],
)
def test_bad_input(act, error, text):
    with pytest.raises(error, match=text):
        act()


@pytest.mark.parametrize("name", ["relu", "tanh", "sigmoid", "gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("shape", [(3,), (5, 3), (2, 5, 3), (0, 3)])
def test_linear_activation(name, shape):
    weight = tp.randn(4, 3, dtype=tp.float64, requires_grad=True)
    bias = tp.randn(4, dtype=tp.float64, requires_grad=True)
    x = tp.randn(*shape, dtype=tp.float64, requires_grad=True)
    options = {"approximate": "tanh"} if name == "gelu_tanh" else {}
    theirs = [
        torch.tensor(t.tolist(), dtype=torch.float64).reshape(tuple(t.shape))
        for t in (x, weight, bias)
    ]
    plain = torch.nn.functional.linear(*theirs)
    expected = getattr(torch.nn.functional, name.removesuffix("_tanh"))(plain, **options)
    assert flat(tp.ops.linear_activation(x, weight, bias, name)) == pytest.approx(
        flat(expected), rel=1e-9
    )
    assert tp.autograd.gradcheck(
        lambda *args: tp.ops.linear_activation(*args, name), (x, weight, bias)
    )


def test_linear_activation_of_an_unknown_name():
    with pytest.raises(ValueError, match=r"one of relu, tanh.*got 'softmax'"):
        tp.ops.linear_activation(tp.ones(3), tp.ones(4, 3), None, "softmax")


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("rows", [(), (2,), (0,)])
@pytest.mark.parametrize("dtype", [tp.uint8, tp.int8, tp.int16, tp.int32, tp.int64, tp.float16])
def test_a_bilinear_map_keeps_the_dtype(dtype, rows, biased):
    values = np.random.default_rng(0).integers(0, 3, (3 + 4 + 60 + 5,))
    first, second, weight, bias = np.split(values, [3, 7, 67])
    first, second = (np.broadcast_to(part, (*rows, part.size)) for part in (first, second))
    weight = weight.reshape(5, 3, 4)
    expected = np.einsum("...i,oij,...j->...o", first, weight, second) + biased * bias
    given = [tp.tensor(part.copy()).to(dtype) for part in (first, second, weight, bias)]
    found = F.bilinear(*given[: 3 + biased])
    assert found.dtype is dtype
    assert found.tolist() == expected.tolist()


def test_a_bilinear_map_takes_inputs_of_one_shape():
    with pytest.raises(RuntimeError, match="input dimensions do not match: got 2 and 3"):
        nn.Bilinear(2, 3, 4)(tp.ones(5, 2), tp.ones(5, 1, 3))
