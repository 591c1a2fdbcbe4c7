"""Transforms, constraints, checks of arguments, transformed distributions."""

import math

import pytest
from scipy import special

import tensorplug as tp
import tensorplug.distributions as D
from tensorplug.distributions import constraints as C
from tensorplug.distributions.sampling import _implicit_slope
from tensorplug.testing import assert_close


def t(*numbers, **options):
    return tp.tensor(numbers, dtype=tp.float64, **options)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: D.Normal(0.0, -1.0), "scale"),
        (lambda: D.Normal(tp.tensor(math.nan), 1.0), "loc"),
        (lambda: D.Bernoulli(1.5), "probs"),
        (lambda: D.Bernoulli(logits=tp.tensor(math.nan)), "logits"),
        (lambda: D.Binomial(-1, 0.5), "total_count"),
        (lambda: D.Beta(1.0, 0.0), "concentration0"),
        (lambda: D.Categorical(tp.tensor([-1.0, 2.0])), "probs"),
        (lambda: D.OneHotCategorical(tp.tensor([-1.0, 2.0])), "probs"),
        (lambda: D.Chi2(-2.0), "df"),
        (lambda: D.Dirichlet(tp.tensor([1.0, -1.0])), "concentration"),
        (lambda: D.Exponential(0.0), "rate"),
        (lambda: D.Gamma(-1.0, 1.0), "concentration"),
        (lambda: D.Geometric(0.0), "probs"),
        (lambda: D.LogNormal(0.0, -1.0), "scale"),
        (lambda: D.MultivariateNormal(tp.zeros(2), -tp.eye(2)), "covariance_matrix"),
        (lambda: D.MultivariateNormal(tp.zeros(2), scale_tril=tp.ones(2, 2)), "scale_tril"),
        (lambda: D.Poisson(-1.0), "rate"),
        (lambda: D.StudentT(-1.0), "df"),
        (lambda: D.Weibull(1.0, -1.0), "concentration"),
        (lambda: D.RelaxedBernoulli(1.0, probs=2.0), "probs"),
    ],
)
def test_a_wrong_parameter_is_named(make, name):
    with pytest.raises(ValueError, match=f"parameter {name} "):
        make()


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: D.Uniform(1.0, 1.0), "low"),
        (lambda: D.Bernoulli(), "not both"),
        (lambda: D.Bernoulli(0.5, 0.0), "not both"),
        (lambda: D.Categorical(tp.tensor(1.0)), "one-dimensional"),
        (lambda: D.Dirichlet(tp.tensor(1.0)), "one-dimensional"),
        (lambda: D.MultivariateNormal(tp.zeros(2)), "Exactly one"),
        (lambda: D.Independent(D.Normal(0.0, 1.0), 1), "reinterpreted_batch_ndims"),
        (lambda: D.Normal("a", 1.0), "Number or Tensor"),
        (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), [abs]), "Transform"),
    ],
)
def test_other_wrong_arguments(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_values_are_checked_unless_told_otherwise():
    with pytest.raises(ValueError, match="support"):
        D.Exponential(1.0).log_prob(tp.tensor(-1.0))
    with pytest.raises(ValueError, match="must match event_shape"):
        D.Dirichlet(tp.ones(3)).log_prob(tp.ones(2) / 2)
    with pytest.raises(ValueError, match="not broadcastable"):
        D.Normal(tp.zeros(2), 1.0).log_prob(tp.zeros(3))
    with pytest.raises(ValueError, match="Tensor"):
        D.Normal(0.0, 1.0).log_prob(0.0)
    assert math.isnan(D.Normal(0.0, -1.0, validate_args=False).log_prob(tp.tensor(0.0)))
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)


def test_what_torch_says_of_missing_parts():
    with pytest.raises(NotImplementedError):
        D.Bernoulli(0.5).rsample()
    with pytest.raises(NotImplementedError):
        D.Gamma(1.0, 1.0).icdf(tp.tensor(0.5))
    with pytest.raises(NotImplementedError, match="Inhomogeneous"):
        D.Binomial(tp.tensor([1.0, 2.0]), 0.5).entropy()
    assert "Normal(loc: 0.0, scale: 1.0)" in repr(D.Normal(0.0, 1.0))


TRANSFORMS = {
    "exp": (D.ExpTransform(), t(-1.0, 2.0)),
    "power": (D.PowerTransform(2.5), t(0.5, 2.0)),
    "power down": (D.PowerTransform(tp.tensor(-0.5, dtype=tp.float64)), t(0.5, 2.0)),
    "sigmoid": (D.transforms.SigmoidTransform(), t(-3.0, 0.5)),
    "tanh": (D.TanhTransform(), t(-3.0, 0.5)),
    "softplus": (D.SoftplusTransform(), t(-3.0, 0.5)),
    "affine": (D.AffineTransform(1.0, -2.0), t(-3.0, 0.5)),
    "sticks": (D.StickBreakingTransform(), t(-1.0, 0.5)),
    "composed": (
        D.ComposeTransform([D.AffineTransform(0.5, 2.0), D.ExpTransform()]),
        t(-1.0, 0.5),
    ),
    "inverse": (D.ExpTransform().inv, t(0.3, 2.0)),
    "independent": (D.IndependentTransform(D.ExpTransform(), 1), t(0.3, 2.0)),
    "identity": (D.identity_transform, t(0.3, 2.0)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    """The inverse comes back, and the Jacobian is the one that differentiation gives."""
    transform, x = TRANSFORMS[name]
    y = transform(x)
    assert transform.bijective
    assert bool(transform.codomain.check(y).all())
    assert_close(transform.inv(y), x)
    assert tuple(transform.forward_shape(tuple(x.shape))) == tuple(y.shape)
    assert tuple(transform.inverse_shape(tuple(y.shape))) == tuple(x.shape)
    n = x.shape[-1]
    jacobian = tp.autograd.functional.jacobian(lambda v: transform(v)[..., :n], x)
    determinant = tp.linalg.slogdet(jacobian)[1]
    assert_close(transform.log_abs_det_jacobian(x, y).sum(), determinant)
    assert_close(transform.inv.log_abs_det_jacobian(y, x).sum(), -determinant)
    assert transform == transform
    assert transform.inv.inv is transform or name == "inverse"


def test_transforms_without_a_jacobian():
    x = t(1.0, 2.0)
    assert_close(D.SoftmaxTransform()(x).sum(), t(1.0)[0])
    assert_close(D.AbsTransform()(-x), x)
    matrix = tp.tensor([[0.5, 3.0], [1.0, -1.0]], dtype=tp.float64)
    lower = D.LowerCholeskyTransform()(matrix)
    assert bool(C.lower_cholesky.check(lower))
    assert_close(D.LowerCholeskyTransform().inv(lower), matrix.tril())
    with pytest.raises(NotImplementedError):
        D.AbsTransform().log_abs_det_jacobian(x, x)


def test_reshaping():
    transform = D.ReshapeTransform((4,), (2, 2))
    x = tp.arange(8.0).reshape(2, 4)
    assert transform(x).shape == (2, 2, 2)
    assert_close(transform.inv(transform(x)), x)
    assert transform.log_abs_det_jacobian(x, transform(x)).tolist() == [0, 0]
    with pytest.raises(ValueError, match="elements"):
        D.ReshapeTransform((2,), (3,))
    made = D.TransformedDistribution(D.Independent(D.Normal(tp.zeros(4), 1.0), 1), transform)
    assert made.event_shape == (2, 2)
    assert made.log_prob(made.sample()).shape == ()


def test_a_cache_gives_the_very_same_tensor_back():
    transform = D.SigmoidTransform(cache_size=1)
    x = t(40.0)
    assert transform.inv(transform(x)) is x
    assert D.transforms.SigmoidTransform().with_cache()._cache_size == 1
    with pytest.raises(ValueError, match="cache_size"):
        D.ExpTransform(cache_size=2)


def test_a_transformed_distribution():
    base = D.Normal(t(0.5, -1.0), t(1.0, 2.0))
    made = D.TransformedDistribution(base, [D.AffineTransform(1.0, -2.0), D.ExpTransform()])
    other = D.LogNormal(1 - 2 * base.loc, 2 * base.scale)
    x = t(0.7, 3.0)
    assert_close(made.log_prob(x), other.log_prob(x))
    assert_close(made.cdf(x), other.cdf(x))
    assert_close(made.icdf(t(0.1, 0.8)), other.icdf(t(0.1, 0.8)))
    assert made.expand((3, 2)).sample().shape == (3, 2)
    simplex = D.TransformedDistribution(D.Normal(t(0.0, 0.0), 1.0), D.StickBreakingTransform())
    assert simplex.event_shape == (3,)
    assert simplex.batch_shape == ()
    drawn = simplex.sample((4,))
    assert bool(simplex.support.check(drawn).all())
    assert simplex.log_prob(drawn).shape == (4,)
    with pytest.raises(NotImplementedError, match="monotonic"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), D.AbsTransform()).cdf(tp.tensor(1.0))


@pytest.mark.parametrize(
    ("constraint", "inside", "outside"),
    [
        (C.boolean, 1.0, 0.5),
        (C.positive, 0.1, 0.0),
        (C.nonnegative, 0.0, -0.1),
        (C.nonnegative_integer, 3.0, 2.5),
        (C.positive_integer, 1.0, 0.0),
        (C.real, -3.0, math.nan),
        (C.unit_interval, 1.0, 1.1),
        (C.less_than(2.0), 1.9, 2.0),
        (C.half_open_interval(0.0, 1.0), 0.0, 1.0),
        (C.integer_interval(0, 2), 2.0, 3.0),
        (C.simplex, [0.5, 0.5], [0.5, 0.6]),
        (C.one_hot, [0.0, 1.0], [1.0, 1.0]),
        (C.real_vector, [0.0, 1.0], [1.0, math.nan]),
        (C.symmetric, [[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [3.0, 1.0]]),
        (C.square, [[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0]]),
        (C.lower_triangular, [[1.0, 0.0], [2.0, 1.0]], [[1.0, 2.0], [3.0, 1.0]]),
        (C.lower_cholesky, [[1.0, 0.0], [2.0, 1.0]], [[-1.0, 0.0], [3.0, 1.0]]),
        (C.corr_cholesky, [[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.6, 0.9]]),
        (C.positive_definite, [[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]),
    ],
)
def test_constraints(constraint, inside, outside):
    assert constraint.check(tp.tensor(inside)).item() is True
    assert constraint.check(tp.tensor(outside)).item() is False
    assert repr(constraint)


def test_dependent_constraints():
    assert C.is_dependent(D.Uniform.support)
    assert not C.is_dependent(D.Normal.support)
    assert D.Binomial.support.is_discrete
    with pytest.raises(ValueError, match="dependent"):
        C.dependent.check(tp.ones(1))


@pytest.mark.parametrize("odds", [-30.0, -1.0, 0.0, 1.0, 30.0])
@pytest.mark.parametrize("count", [0.0, 3.0, 10.0])
def test_the_slope_of_binomial_odds(odds, count):
    logits = t(odds, requires_grad=True)
    D.Binomial(10, logits=logits).log_prob(t(count)).backward()
    expected = count - 10 / (1 + math.exp(-odds))
    assert logits.grad.item() == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_curvature_of_a_sigmoid_transform():
    x = t(-2.0, 0.0, 3.0, requires_grad=True)
    jacobian = D.transforms.SigmoidTransform().log_abs_det_jacobian(x, x.sigmoid())
    (slope,) = tp.autograd.grad(jacobian.sum(), x, create_graph=True)
    (curvature,) = tp.autograd.grad(slope.sum(), x)
    probability = x.detach().sigmoid()
    assert_close(slope.detach(), 1 - 2 * probability)
    assert_close(curvature, -2 * probability * (1 - probability))


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64])
@pytest.mark.parametrize("concentration", [1e-3, 0.01, 0.1])
def test_beta_numbers_of_small_concentrations(concentration, dtype):
    tp.manual_seed(0)
    both = tp.full((), concentration, dtype=dtype)
    numbers = D.Beta(both, both).sample((4000,))
    # What is nearest to 0 stands for all that is smaller; the distribution is symmetric.
    assert ((numbers > 0) & (numbers < 1)).all()
    assert abs((numbers < 0.5).double().mean().item() - 0.5) < 0.04
    inner = ((numbers > 0.01) & (numbers < 0.99)).double().mean().item()
    scipy_stats = pytest.importorskip("scipy.stats")
    beta = scipy_stats.beta(concentration, concentration)
    assert abs(inner - (beta.cdf(0.99) - beta.cdf(0.01))) < 0.04


@pytest.mark.parametrize(
    ("concentration", "number"),
    [
        (concentration, number)
        for concentration in (0.01, 0.1, 0.5, 1.0, 3.0, 30.0)
        for number in (1e-12, 1e-6, 9e-4, 1.1e-3, 0.1, 2.0)
        if special.gammainc(concentration, number) > 1e-200
    ],
)
def test_slopes_of_gamma_numbers(concentration, number):
    """Of the number at a fixed probability: by finite differences of the quantile function."""
    step = concentration * 1e-4
    probability = special.gammainc(concentration, number)
    above, below = [
        math.log(special.gammaincinv(concentration + side, probability)) for side in (step, -step)
    ]
    found = _implicit_slope(tp.tensor(number).double().log(), tp.tensor(concentration).double())
    assert float(found) == pytest.approx((above - below) / (2 * step), rel=2e-6)


def test_slopes_of_dirichlet_numbers():
    """The mean of x_i is a_i / sum(a): so is, on average, the slope of the numbers."""
    tp.manual_seed(1)
    concentration = t(0.3, 0.05, 2.0, requires_grad=True)
    numbers = D.Dirichlet(concentration).rsample((40000,))
    (slope,) = tp.autograd.grad(numbers.mean(0)[0], concentration)
    total = concentration.detach().sum()
    expected = -concentration.detach()[0] / total**2 + t(1.0, 0.0, 0.0) / total
    assert_close(slope, expected, rtol=0.0, atol=0.02)
