"""Half precision: bounds that it does not hold, and gradients that are computed in float32, rounded once."""

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.nn import functional as F

HALVES = {"bfloat16": 2.0**-8, "float16": 2.0**-11}

#: Functions of a bound; at elements that are the bound as half precision rounds it.
BOUNDED = {
    "clamp": lambda f, x, v: x.clamp(-v, v),
    "hardshrink": lambda f, x, v: f.hardshrink(x, v),
    "hardtanh": lambda f, x, v: f.hardtanh(x, -v, v),
    "logit": lambda f, x, v: (x.abs() / 4).logit(v / 4),
    "softshrink": lambda f, x, v: f.softshrink(x, v),
    "threshold": lambda f, x, v: f.threshold(x, v, 20.0),
}


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_are_rounded_where_torch_rounds_them(name, half):
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    for bound in (0.1, 0.3, 0.7, 1.1, 0.01, 1e-3, 1.7):
        for nearest in (bound, -bound):
            found = []
            for library, functions in ((torch, torch.nn.functional), (tp, F)):
                x = library.tensor([nearest, nearest * 0.5, nearest * 2, nearest * 0.99])
                x = x.to(getattr(library, half)).requires_grad_()
                result = BOUNDED[name](functions, x, bound)
                result.backward(library.ones_like(result))
                found.append([result.tolist(), x.grad.tolist()])
            np.testing.assert_array_equal(*found, err_msg=f"{bound}, {nearest}")


def glu(x, y):
    return F.glu(x)


#: Functions whose value and gradient are right to half a unit in the last place.
ROUNDED_ONCE = {
    "binary_cross_entropy_with_logits": lambda x, y: F.binary_cross_entropy_with_logits(
        x, y.abs().clamp(0, 1), reduction="none"
    ),
    "glu": glu,
    "group_norm": lambda x, y: F.group_norm(x, 4),
    "layer_norm": lambda x, y: F.layer_norm(x, (16,)),
    "leaky_relu": lambda x, y: F.leaky_relu(x, 0.3),
    "lerp": lambda x, y: x.lerp(y, 0.3),
    "normalize": lambda x, y: F.normalize(x),
    "rms_norm": lambda x, y: F.rms_norm(x, (16,)),
    **{
        name: lambda x, y, name=name: getattr(F, name)(x)
        for name in (
            "celu", "elu", "gelu", "hardsigmoid", "hardswish", "logsigmoid", "mish", "selu", "silu",
            "softplus",
        )
    },
}  # fmt: skip


def distance(found, exact, unit):
    """Return how far numbers are from exact ones, in units of their last place."""
    found, exact = found.detach().double().numpy(), exact.detach().numpy()
    scale = np.abs(exact) + 1e-3 * np.abs(exact).max() + 1e-7  # where digits cancel, of the largest
    return (np.abs(found - exact) / scale / (2 * unit)).max()


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", ROUNDED_ONCE)
def test_values_and_gradients_are_rounded_once(name, half):
    draw = np.random.default_rng(0)
    dtype = getattr(tp, half)
    x = tp.tensor(draw.standard_normal((64, 16)) * 1.5).to(dtype)
    y = tp.tensor(draw.standard_normal((64, 16))).to(dtype)
    weights = None
    found = []
    for wide in (dtype, tp.float64):
        given = x.clone().to(wide).requires_grad_()
        result = ROUNDED_ONCE[name](given, y.to(wide))
        if weights is None:
            weights = tp.tensor(draw.standard_normal(result.shape)).to(dtype)
        result.backward(weights.to(wide))
        found.append((result, given.grad))
    for mine, exact in zip(*found, strict=True):
        assert mine.dtype is dtype
        assert distance(mine, exact, HALVES[half]) < 0.6


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_gradients_of_softmax_differ_by_what_their_results_are_rounded(name, half):
    """They are computed of the rounded results."""
    draw = np.random.default_rng(0)
    dtype = getattr(tp, half)
    x = tp.tensor(draw.standard_normal((64, 16)) * 1.5).to(dtype).requires_grad_()
    g = tp.tensor(draw.standard_normal((64, 16))).to(dtype)
    result = getattr(F, name)(x, -1)
    result.backward(g)
    wide, result = g.double(), result.detach().double()
    if name == "softmax":
        exact = result * (wide - (wide * result).sum(-1, keepdim=True))
    else:
        exact = wide - result.exp() * wide.sum(-1, keepdim=True)
    assert distance(x.grad, exact, HALVES[half]) < 0.6
