"""Moments of samples, with fixed seeds and generous bounds; gradients through samples."""

import pytest

import tensorplug as tp
import tensorplug.distributions as D
from tensorplug.testing import assert_close

COUNT = 20_000


def t(*numbers, **options):
    return tp.tensor(numbers, dtype=tp.float64, **options)


A, B = t(0.7, 4.0), t(1.3, 0.4)
P = t(0.2, 0.65)
WEIGHTS = tp.tensor([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]], dtype=tp.float64)

MADE = [
    D.Bernoulli(P),
    D.Beta(A, B),
    D.Binomial(t(5.0, 1000.0), P),
    D.Chi2(A),
    D.Dirichlet(WEIGHTS * 3),
    D.Exponential(B),
    D.Gamma(A, B),
    D.Gamma(t(0.05, 30.0), B),
    D.Geometric(P),
    D.Gumbel(A, B),
    D.HalfNormal(B),
    D.Independent(D.Normal(A, B), 1),
    D.Laplace(A, B),
    D.LogNormal(P, B / 2),
    D.MultivariateNormal(A, tp.tensor([[2.0, 0.3], [0.3, 0.5]], dtype=tp.float64)),
    D.Normal(A, B),
    D.OneHotCategorical(WEIGHTS),
    D.Poisson(A),
    D.StudentT(t(7.0, 9.0), A, B),
    D.Uniform(A, A + B),
    D.Weibull(A, t(1.5, 0.9)),
]


@pytest.mark.parametrize("made", MADE, ids=lambda d: type(d).__name__)
def test_moments(made):
    tp.manual_seed(1)
    values = made.sample((COUNT,))
    assert not values.requires_grad
    assert made.support is None or bool(made.support.check(values).all())
    # Six standard errors of the mean; the variance is held to a fifth.
    error = 6 * made.stddev / COUNT**0.5
    assert bool(((values.mean(0) - made.mean).abs() <= error).all())
    assert_close(values.var(0), made.variance, rtol=0.2, atol=1e-3)


def test_categories_and_the_cauchy_median():
    tp.manual_seed(2)
    drawn = D.Categorical(WEIGHTS).sample((COUNT,))
    shares = tp.stack([(drawn == k).double().mean(0) for k in range(3)], -1)
    assert_close(shares, WEIGHTS, atol=0.02, rtol=0)
    assert_close(D.Cauchy(A, B).sample((COUNT,)).median(0)[0], A, atol=0.05, rtol=0.05)


@pytest.mark.parametrize(
    "make",
    [
        lambda a, b: D.Beta(a, b),
        lambda a, b: D.Cauchy(a, b),
        lambda a, b: D.Exponential(b),
        lambda a, b: D.Gumbel(a, b),
        lambda a, b: D.Laplace(a, b),
        lambda a, b: D.LogNormal(a, b),
        lambda a, b: D.Normal(a, b),
        lambda a, b: D.StudentT(a + 2, b, a),
        lambda a, b: D.Uniform(a, a + b),
        lambda a, b: D.Weibull(a, b),
        lambda a, b: D.HalfNormal(b),
        lambda a, b: D.RelaxedBernoulli(b, logits=a),
        lambda a, b: D.Dirichlet(tp.stack([a, b], -1)),
        lambda a, b: D.RelaxedOneHotCategorical(0.5, logits=tp.stack([a, b], -1)),
        lambda a, b: D.MultivariateNormal(a, scale_tril=tp.diag_embed(b)),
    ],
)
def test_gradients_reach_the_parameters(make):
    tp.manual_seed(3)
    a, b = t(0.7, 2.5, requires_grad=True), t(1.3, 0.4, requires_grad=True)
    made = make(a, b)
    assert made.has_rsample
    value = made.rsample((5,))
    value.sum().backward()
    for leaf in (a, b):
        assert leaf.grad is None or bool(leaf.grad.isfinite().all())
    assert b.grad is not None
    assert not made.sample((5,)).requires_grad


@pytest.mark.parametrize("concentration", [1e-3, 0.03, 0.5, 1.0, 3.0, 40.0, 1000.0])
def test_the_gradient_of_gamma_numbers(concentration):
    """Against differences of the quantile function."""
    special = pytest.importorskip("scipy.special")
    tp.manual_seed(4)
    a = tp.full((200,), concentration, dtype=tp.float64, requires_grad=True)
    value = D.Gamma(a, 1.0).rsample()
    (gradient,) = tp.autograd.grad(value.sum(), a)
    x, h = value.detach().numpy(), concentration * 1e-5
    low = special.gammainc(concentration, x)
    # From the nearer end, so that the probability keeps its digits.
    ends = [
        [special.gammaincinv(c, low), special.gammainccinv(c, special.gammaincc(concentration, x))]
        for c in (concentration + h, concentration - h)
    ]
    expected = [(plus - minus) / (2 * h) for plus, minus in zip(*ends, strict=True)]
    chosen = tp.where(
        tp.from_numpy(low) < 0.5, tp.from_numpy(expected[0]), tp.from_numpy(expected[1])
    )
    usual = tp.from_numpy(x) > 1e-250
    assert_close(gradient[usual], chosen[usual], rtol=2e-3, atol=1e-12)


def test_counts_and_sizes_of_nothing():
    assert D.Normal(tp.zeros(0), tp.ones(0)).sample((2,)).shape == (2, 0)
    assert D.Categorical(tp.ones(2, 3)).sample((0,)).shape == (0, 2)
    assert D.Binomial(0, 0.5).sample().item() == 0
    assert D.Binomial(tp.tensor([100.0]), tp.tensor([1.0])).sample().item() == 100
    assert D.Binomial(tp.tensor([100.0]), tp.tensor([0.0])).sample().item() == 0


def test_the_same_seed_gives_the_same_numbers():
    for made in MADE:
        tp.manual_seed(5)
        first = made.sample((3,))
        tp.manual_seed(5)
        assert_close(made.sample((3,)), first, rtol=0, atol=0)
