"""Products of a network's Hessian with a vector agree, whichever way they are computed."""

import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.func import functional_call, grad, jvp, vjp

DOUBLE = {"dtype": tp.float64}


def network():
    tp.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(4, 6), nn.Tanh(), nn.LayerNorm(6), nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 3)
    ).to(tp.float64)
    inputs, labels = tp.randn(7, 4, **DOUBLE), tp.arange(7) % 3
    names = [name for name, _ in model.named_parameters()]
    point = tuple(p.detach().clone() for p in model.parameters())

    def loss(*parameters):
        outputs = functional_call(model, dict(zip(names, parameters, strict=True)), (inputs,))
        return nn.functional.cross_entropy(outputs, labels) + sum(
            0.01 * (p**3).sum() for p in parameters
        )

    return loss, point, tuple(tp.randn_like(p) for p in point)


def gradient_of(loss):
    return grad(loss, argnums=tuple(range(len(network()[1]))))


def dot(left, right):
    return sum((a * b).sum() for a, b in zip(left, right, strict=True))


def reverse_over_reverse(loss, point, vector):
    leaves = [p.clone().requires_grad_() for p in point]
    first = tp.autograd.grad(loss(*leaves), leaves, create_graph=True)
    return tp.autograd.grad(dot(first, vector), leaves)


def reverse_over_reverse_transforms(loss, point, vector):
    _, back = vjp(gradient_of(loss), *point)
    return back(vector)


def forward_over_reverse(loss, point, vector):
    return jvp(gradient_of(loss), point, vector)[1]


def reverse_over_forward(loss, point, vector):
    def along(*parameters):
        return jvp(loss, parameters, vector)[1]

    return grad(along, argnums=tuple(range(len(point))))(*point)


def reverse_over_dual_numbers(loss, point, vector):
    import tensorplug.autograd.forward_ad as fwd

    leaves = [p.clone().requires_grad_() for p in point]
    with fwd.dual_level():
        duals = [fwd.make_dual(p, v) for p, v in zip(leaves, vector, strict=True)]
        tangent = fwd.unpack_dual(loss(*duals)).tangent
        return tp.autograd.grad(tangent, leaves)


def functional_hvp(loss, point, vector):
    return tp.autograd.functional.hvp(loss, point, vector)[1]


def functional_vhp(loss, point, vector):
    return tp.autograd.functional.vhp(loss, point, vector)[1]


def finite_differences(loss, point, vector, step=1e-5):
    gradient = gradient_of(loss)
    ahead = gradient(*[p + step * v for p, v in zip(point, vector, strict=True)])
    behind = gradient(*[p - step * v for p, v in zip(point, vector, strict=True)])
    return [(a - b) / (2 * step) for a, b in zip(ahead, behind, strict=True)]


@pytest.mark.parametrize(
    ("way", "tolerance"),
    [
        (reverse_over_reverse_transforms, 1e-12),
        (forward_over_reverse, 1e-12),
        (reverse_over_forward, 1e-12),
        (reverse_over_dual_numbers, 1e-12),
        (functional_hvp, 1e-12),
        (functional_vhp, 1e-12),
        (finite_differences, 1e-8),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_agrees_with_reverse_over_reverse(way, tolerance):
    loss, point, vector = network()
    expected = reverse_over_reverse(loss, point, vector)
    found = way(loss, point, vector)
    assert len(found) == len(expected) == 8
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype is tp.float64
        tp.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
    assert max(value.abs().max().item() for value in expected) > 0.01
