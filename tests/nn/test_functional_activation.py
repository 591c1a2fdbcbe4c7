"""Activations: values and gradients against torch's, kinks and extremes, in place, bad input."""

import math

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F

POINTWISE = [
    ("relu", {}),
    ("relu6", {}),
    ("leaky_relu", {}),
    ("leaky_relu", {"negative_slope": 0.3}),
    ("gelu", {}),
    ("gelu", {"approximate": "tanh"}),
    ("silu", {}),
    ("mish", {}),
    ("elu", {}),
    ("elu", {"alpha": 0.7}),
    ("selu", {}),
    ("celu", {"alpha": 1.3}),
    ("sigmoid", {}),
    ("tanh", {}),
    ("logsigmoid", {}),
    ("softplus", {}),
    ("softplus", {"beta": 2.0, "threshold": 3.0}),
    ("softsign", {}),
    ("hardtanh", {}),
    ("hardtanh", {"min_val": -0.5, "max_val": 2.0}),
    ("hardswish", {}),
    ("hardsigmoid", {}),
    ("tanhshrink", {}),
    ("softshrink", {"lambd": 0.4}),
    ("hardshrink", {}),
    ("threshold", {"threshold": 0.1, "value": 20.0}),
    ("rrelu", {"training": False}),
    ("rrelu", {"lower": 0.2, "upper": 0.2, "training": True}),
]
INPLACE = [
    "relu", "relu6", "leaky_relu", "silu", "mish", "elu", "selu", "celu", "hardtanh", "hardswish",
    "hardsigmoid", "rrelu",
]  # fmt: skip


# torch keeps 1/6 and 1/alpha in single precision.
RTOL = {"hardsigmoid": 1e-7, "celu": 1e-6}


@pytest.mark.parametrize(("name", "options"), POINTWISE)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 4)])
def test_pointwise(compare, name, options, shape):
    import torch

    input = (torch.randn(shape, dtype=torch.float64) * 3).requires_grad_()
    compare.functional(name, input, rtol=RTOL.get(name, 1e-10), **options)


@pytest.mark.parametrize(("name", "options"), POINTWISE)
def test_kinks_and_extremes(compare, name, options):
    import torch

    values = [-math.inf, -800.0, -3.0, -1.0, -0.5, -0.0, 0.0, 0.1, 0.5, 1.0, 1.5, 3.0, 6.0, 800.0]
    input = torch.tensor(values, dtype=torch.float64)
    if name in ("gelu", "silu", "mish", "hardswish", "softsign", "tanhshrink", "hardshrink"):
        input = input[1:]  # inf times zero: how that comes out differs by the order of factors
    compare.functional(name, input.requires_grad_(), rtol=RTOL.get(name, 1e-10), **options)


@pytest.mark.parametrize("name", INPLACE)
def test_in_place(name):
    values = [-2.0, -0.3, 0.4, 7.0]
    leaf = tp.tensor(values, dtype=tp.float64, requires_grad=True)
    input = leaf * 1
    result = getattr(F, name)(input, inplace=True)
    assert result is input
    result.sum().backward()
    other = tp.tensor(values, dtype=tp.float64, requires_grad=True)
    expected = getattr(F, name)(other)
    expected.sum().backward()
    assert result.tolist() == expected.tolist()
    assert leaf.grad.tolist() == other.grad.tolist()


@pytest.mark.parametrize(
    "name", ["relu_", "leaky_relu_", "elu_", "selu_", "celu_", "hardtanh_", "rrelu_"]
)
def test_functions_named_for_being_in_place(name):
    input = tp.tensor([-1.0, 2.0])
    expected = getattr(F, name[:-1])(input.clone())
    assert getattr(F, name)(input) is input
    assert input.tolist() == expected.tolist()


def test_threshold_in_place():
    input = tp.tensor([0.0, 1.0])
    assert F.threshold_(input, 0.5, -1.0) is input
    assert input.tolist() == [-1.0, 1.0]


@pytest.mark.parametrize(
    ("shape", "weights"),
    [((2, 3), (3,)), ((2, 3, 4), (3,)), ((2, 3), (1,)), ((4,), (1,)), ((), ())],
)
def test_prelu(compare, shape, weights):
    import torch

    input = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(weights, dtype=torch.float64, requires_grad=True)
    compare.functional("prelu", input, weight)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_softmax(compare, name, dim):
    import torch

    input = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    compare.functional(name, input, dim)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (2, 3, 4, 5)])
def test_softmax_without_dim(compare, shape):
    import torch

    compare.functional("softmax", torch.randn(shape, dtype=torch.float64))
    with pytest.warns(UserWarning, match="Implicit dimension"):
        F.softmax(tp.zeros(2, 3))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_glu(compare, dim):
    import torch

    input = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    compare.functional("glu", input, dim)


def test_gumbel_softmax():
    tp.manual_seed(0)
    logits = tp.zeros(200, 4, requires_grad=True)
    soft = F.gumbel_softmax(logits, tau=0.5)
    assert soft.sum(-1).tolist() == pytest.approx([1.0] * 200, abs=1e-5)
    hard = F.gumbel_softmax(logits, hard=True)
    assert sorted({round(value, 5) + 0.0 for row in hard.tolist() for value in row}) == [0.0, 1.0]
    (hard * tp.arange(4.0)).sum().backward()
    assert logits.grad.abs().sum().item() > 0
    counts = hard.detach().sum(0).tolist()
    assert min(counts) > 25  # each class about 50 times


def test_rrelu_draws_slopes():
    tp.manual_seed(0)
    output = F.rrelu(-tp.ones(1000), 0.1, 0.3, training=True)
    assert -0.3 <= output.min().item() < -0.28
    assert -0.12 < output.max().item() <= -0.1


def test_known_values():
    input = tp.tensor([-1.0, 0.0, 1.0], dtype=tp.float64)
    half = 0.5 * (1 + math.erf(math.sqrt(0.5)))
    assert F.gelu(input).tolist() == pytest.approx([half - 1, 0.0, half])
    assert F.silu(input)[2].item() == pytest.approx(1 / (1 + math.exp(-1)))
    assert F.softplus(input)[1].item() == pytest.approx(math.log(2))
    assert F.elu(input)[0].item() == pytest.approx(math.exp(-1) - 1)
    assert F.hardsigmoid(input).tolist() == pytest.approx([1 / 3, 1 / 2, 2 / 3])


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16])
@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "softplus", "logsigmoid", "elu", "selu"])
def test_half_precision_rounds_once(compare, name, dtype):
    import torch

    input = torch.randn(50).to(getattr(torch, dtype.name))
    compare.functional(name, input, rtol=1e-2 if dtype is tp.bfloat16 else 1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *[(name, {}) for name in ("gelu", "silu", "mish", "softplus", "logsigmoid", "elu", "celu")],
        ("selu", {}),
        ("hardswish", {}),
        ("gelu", {"approximate": "tanh"}),
    ],
)
def test_gradients_of_half_precision_round_once(name, options, dtype):
    """Near where a derivative is zero several roundings would leave no digit."""
    tp.manual_seed(0)
    function = getattr(F, name)
    half = (tp.randn(500) * 2.5).to(dtype).requires_grad_()
    wide = half.detach().float().requires_grad_()
    g = tp.randn(500).to(dtype)
    function(half, **options).backward(g)
    function(wide, **options).backward(g.float())
    assert half.grad.dtype is dtype
    assert half.grad.tolist() == wide.grad.to(dtype).tolist()


@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "softplus", "elu", "logsigmoid"])
def test_second_derivative(name):
    input = tp.tensor([-2.0, -0.4, 0.3, 1.7], dtype=tp.float64, requires_grad=True)
    assert tp.autograd.gradcheck(getattr(F, name), (input,))
    assert tp.autograd.gradgradcheck(getattr(F, name), (input,))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: F.relu([1.0]), TypeError),
        (lambda: F.gelu(tp.tensor([1])), NotImplementedError),
        (lambda: F.gelu(tp.tensor([1.0]), approximate="erf"), RuntimeError),
        (lambda: F.hardtanh(tp.ones(1), 2.0, 1.0), ValueError),
        (lambda: F.glu(tp.ones(3)), RuntimeError),
        (lambda: F.glu(tp.ones(())), RuntimeError),
        (lambda: F.prelu(tp.ones(2, 3), tp.ones(2)), RuntimeError),
        (lambda: F.prelu(tp.ones(2, 3), tp.ones(3, 1)), RuntimeError),
        (lambda: F.softshrink(tp.ones(1), -1.0), RuntimeError),
        (lambda: F.rrelu(tp.ones(1), 0.5, 0.1), RuntimeError),
        (lambda: F.celu(tp.ones(1), 0.0), RuntimeError),
        (lambda: F.softmax(tp.ones(2), 1), IndexError),
    ],
)
def test_bad_input(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("name", ["hardtanh", "hardtanh_"])
@pytest.mark.parametrize("dtype", [tp.float32, tp.bfloat16, tp.int64])
def test_hardtanh_of_a_bound_below_the_other(name, dtype):
    """The function asks for bounds in order, torch's in-place variant and its operator do not."""
    x = tp.tensor([-2, 0, 2], dtype=dtype)
    call = tp.nn.functional.hardtanh_ if name == "hardtanh_" else tp.ops.hardtanh
    assert call(x, 1, -1).tolist() == [-1, -1, -1]
    if dtype.is_floating_point:
        leaf = x.clone().requires_grad_()
        call(leaf * 1, 1, -1).sum().backward()
        assert leaf.grad.tolist() == [0, 0, 0]
