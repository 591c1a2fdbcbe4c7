"""Transforms: their inverses and caches as objects, and the shapes that they make."""

import copy
import pickle

import pytest

import tensorplug as tp
from tensorplug.distributions import Independent, Normal, TransformedDistribution, transforms

TRANSFORMS = {
    "abs": transforms.AbsTransform(),
    "affine": transforms.AffineTransform(tp.tensor([1.0, 2.0, 3.0]), 2.0),
    "compose": transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.PowerTransform(2)]
    ),
    "nothing": transforms.ComposeTransform([]),
    "cumulative": transforms.CumulativeDistributionTransform(Normal(0.0, 1.0)),
    "exp": transforms.ExpTransform(),
    "independent": transforms.IndependentTransform(transforms.ExpTransform(), 1),
    "power": transforms.PowerTransform(tp.tensor([1.0, 2.0, 3.0])),
    "reshape": transforms.ReshapeTransform((3,), (1, 3)),
    "sigmoid": transforms.SigmoidTransform(),
    "softmax": transforms.SoftmaxTransform(),
    "softplus": transforms.SoftplusTransform(),
    "stick": transforms.StickBreakingTransform(),
    "tanh": transforms.TanhTransform(),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_inverse_is_one_object(name):
    transform = TRANSFORMS[name]
    inverse = transform.inv
    assert inverse.inv is transform
    assert transform.inv is inverse
    assert inverse.inv.inv is inverse
    for made in (
        copy.copy(transform),
        copy.deepcopy(transform),
        pickle.loads(pickle.dumps(transform)),
    ):
        assert made.inv.inv is made
    assert type(pickle.loads(pickle.dumps(inverse)).inv) is type(transform)


def test_each_equals_itself_alone():
    for name, transform in TRANSFORMS.items():
        for other, second in TRANSFORMS.items():
            assert (transform == second) is (name == other)
    assert transforms.identity_transform.inv == transforms.identity_transform


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_cache(name, inverted):
    transform = TRANSFORMS[name]
    cached = (transform.inv if inverted else transform).with_cache(1)
    assert cached._cache_size == 1
    assert cached.with_cache(1) is cached
    x = transform(tp.tensor([0.25, 0.5, 0.125])) if inverted else tp.tensor([0.25, 0.5, 0.125])
    y = cached(x)
    assert cached(x) is y
    assert cached.inv(y) is x
    if name not in ("compose", "nothing"):  # parts have caches of their own
        held = cached.inv._cached_x_y[::-1] if inverted else cached._cached_x_y
        assert [one is other for one, other in zip(held, (x, y), strict=True)] == [True, True]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_shapes(name):
    transform = TRANSFORMS[name]
    for shape in ((3,), (2, 3), (1,) if name in ("affine", "power") else (4, 1, 3)):
        y = transform(tp.full(shape, 0.25))
        assert tuple(transform.forward_shape(shape)) == y.shape
        assert tuple(transform.inverse_shape(tuple(y.shape))) == transform.inv(y).shape


@pytest.mark.parametrize("events", [0, 1])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("size", [(), (3,), (2, 3)])
def test_parameters_widen_the_base(events, batch, size):
    """Every element is a draw of its own, where a tensor among the parameters is wider than the base."""
    base = Normal(0.0, 1.0).expand(batch)
    if events > len(batch):
        return
    base = Independent(base, events) if events else base
    made = TransformedDistribution(base, transforms.AffineTransform(tp.zeros(size), 1.0))
    wide = tuple(tp.broadcast_shapes(batch, size))
    assert (*made.batch_shape, *made.event_shape) == wide
    drawn = made.sample((5,))
    assert drawn.shape == (5, *wide)
    assert len(drawn.flatten().unique()) == drawn.numel()
    assert made.log_prob(drawn).shape == (5, *made.batch_shape)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_signs_are_those_of_the_derivative(name):
    transform = TRANSFORMS[name]
    for each in (transform, transform.inv, transforms.IndependentTransform(transform, 1)):
        if name in {"abs", "reshape", "softmax", "stick"}:
            with pytest.raises(NotImplementedError, match="no sign"):
                _ = each.sign
            continue
        sign = each.sign
        x = tp.tensor([[0.2, 0.4, 0.6]], requires_grad=True)
        y = each(x)
        (slope,) = tp.autograd.grad(y.sum(), x)
        assert (slope * sign > 0).all()


@pytest.mark.parametrize("chosen", [abs, [abs], [transforms.ExpTransform(), None], None, 3])
def test_what_are_no_transforms_is_refused(chosen):
    with pytest.raises(ValueError, match="must be a Transform or a list of Transforms"):
        TransformedDistribution(Normal(0.0, 1.0), chosen)
