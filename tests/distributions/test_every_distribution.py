"""Every distribution, divergence, constraint and transform that torch has, in float64 against torch's."""

import itertools
import zlib

import numpy as np
import pytest

import tensorplug as tp
import tensorplug.distributions as D
from tensorplug.distributions import constraints as C

torch = pytest.importorskip("torch", reason="torch is the reference")
T = torch.distributions

RNG = np.random.default_rng(18)
SQUARE = RNG.standard_normal((3, 3))
POSITIVE = SQUARE @ SQUARE.T + np.eye(3)
PAIR = np.stack([POSITIVE, POSITIVE + 1.0])


def positive(*shape):
    return RNG.random(shape or (2,)) * 2 + 0.3


def share(*shape):
    return RNG.random(shape or (2,)) * 0.8 + 0.1


def real(*shape):
    return RNG.standard_normal(shape or (2,))


def weights(*shape):
    found = RNG.random(shape) + 0.1
    return found / found.sum(-1, keepdims=True)


# Name: arguments, made anew each time; arrays stand for tensors, (name, arguments) for distributions.
ARGUMENTS = {
    "Bernoulli": lambda: [share()],
    "Beta": lambda: [positive(), positive()],
    "Binomial": lambda: [np.array([6.0, 6.0]), share()],
    "Categorical": lambda: [weights(2, 4)],
    "Cauchy": lambda: [real(), positive()],
    "Chi2": lambda: [positive()],
    "ContinuousBernoulli": lambda: [np.array([share(1)[0], 0.5003])],
    "Dirichlet": lambda: [positive(2, 3)],
    "Exponential": lambda: [positive()],
    "FisherSnedecor": lambda: [positive() + 4, positive() + 4],
    "Gamma": lambda: [positive(), positive()],
    "GeneralizedPareto": lambda: [real(), positive(), share() / 3],
    "Geometric": lambda: [share()],
    "Gumbel": lambda: [real(), positive()],
    "HalfCauchy": lambda: [positive()],
    "HalfNormal": lambda: [positive()],
    "Independent": lambda: [("Normal", [real(2, 3), positive(2, 3)]), 1],
    "Independent of none": lambda: [("Bernoulli", [share(2)]), 0],
    "Independent of all": lambda: [("Bernoulli", [share(2)]), 1],
    "InverseGamma": lambda: [positive() + 2, positive()],
    "Kumaraswamy": lambda: [positive(), positive()],
    "LKJCholesky": lambda: [3, positive()],
    "Laplace": lambda: [real(), positive()],
    "LogNormal": lambda: [real(), positive() / 2],
    "LogisticNormal": lambda: [real(2, 3), positive(2, 3)],
    "LowRankMultivariateNormal": lambda: [real(2, 3), real(2, 3, 2), positive(2, 3)],
    "MixtureSameFamily": lambda: [
        ("Categorical", [weights(2, 4)]),
        ("Normal", [real(2, 4), positive(2, 4)]),
    ],
    "MixtureSameFamily of vectors": lambda: [
        ("Categorical", [weights(2, 4)]),
        ("Independent", [("Normal", [real(2, 4, 3), positive(2, 4, 3)]), 1]),
    ],
    "Multinomial": lambda: [5, weights(2, 4)],
    "MultivariateNormal": lambda: [real(2, 3), PAIR * positive(1)],
    "NegativeBinomial": lambda: [positive(), share()],
    "Normal": lambda: [real(), positive()],
    "OneHotCategorical": lambda: [weights(2, 4)],
    "OneHotCategoricalStraightThrough": lambda: [weights(2, 4)],
    "Pareto": lambda: [positive(), positive() + 2],
    "Poisson": lambda: [positive()],
    "RelaxedBernoulli": lambda: [np.array(0.7), share()],
    "RelaxedOneHotCategorical": lambda: [np.array(0.7), weights(2, 4)],
    "StudentT": lambda: [positive() + 2, real(), positive()],
    "TransformedDistribution": lambda: [("Normal", [real(), positive()]), ("ExpTransform", [])],
    "Uniform": lambda: [share() / 4, share() / 4 + 0.5],
    "VonMises": lambda: [real(), positive()],
    "Weibull": lambda: [positive(), positive() + 1],
    "Wishart": lambda: [positive() + 5, PAIR * positive(1)],
}
# Where torch says something else than the value.
OTHERWISE = {
    ("FisherSnedecor", "mode"),  # it is not clamped at 0 where the first df is below 2
    ("Kumaraswamy", "mode"),  # NaN where a parameter is above 1
}


def arguments_of(name, seed=0):
    """Return arguments that do not depend on what was made before."""
    RNG.bit_generator.state = np.random.default_rng(
        [seed, zlib.crc32(name.encode())]
    ).bit_generator.state
    return ARGUMENTS[name]()


def made(module, tensor, name, arguments):
    """Return the distribution or transform of a name in torch or here."""

    def value(one):
        if isinstance(one, tuple):
            return made(module, tensor, *one)
        return tensor(one) if isinstance(one, np.ndarray) else one

    return getattr(module, name.partition(" ")[0])(*map(value, arguments))


def both(name, arguments):
    ours = made(D, lambda a: tp.tensor(a, dtype=tp.float64), name, arguments)
    return ours, made(T, torch.tensor, name, arguments)


def near(ours, theirs, what, rtol=1e-8, atol=1e-10):
    assert tuple(ours.shape) == tuple(theirs.shape), what
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs.detach().numpy(), rtol=rtol, atol=atol, err_msg=what
    )


def test_none_is_missing():
    names = {n for n in T.__all__ if isinstance(getattr(T, n), type)}
    names = {n for n in names if issubclass(getattr(T, n), T.Distribution)}
    assert names - set(ARGUMENTS) == {"Distribution", "ExponentialFamily"}
    assert set(T.__all__) <= set(D.__all__) | {"constraint_registry"}
    assert set(C.__all__) >= set(T.constraints.__all__)
    assert set(D.transforms.__all__) >= set(T.transforms.__all__)


# Torch's log_prob of GeneralizedPareto raises in float64; SciPy's is in test_heavy_tails.py.
@pytest.mark.parametrize("name", sorted({*ARGUMENTS} - {"GeneralizedPareto"}))
@pytest.mark.filterwarnings("ignore:Singular sample detected")
def test_values(name):
    ours, theirs = both(name, arguments_of(name))
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
    assert tuple(ours.event_shape) == tuple(theirs.event_shape)
    assert ours.has_rsample == theirs.has_rsample
    assert ours.has_enumerate_support == theirs.has_enumerate_support
    assert isinstance(theirs, T.ExponentialFamily) == isinstance(ours, D.ExponentialFamily)
    torch.manual_seed(3)
    drawn = theirs.sample((3,))
    values = tp.from_numpy(drawn.numpy().copy())
    assert tuple(ours.sample((3,)).shape) == tuple(drawn.shape)
    assert bool(ours.support.check(ours.sample((5,))).all())
    assert ours.support.event_dim == theirs.support.event_dim
    assert ours.support.is_discrete == theirs.support.is_discrete
    near(ours.log_prob(values), theirs.log_prob(drawn), "log_prob", 1e-6)
    for what in ("mean", "mode", "variance", "stddev", "entropy", "perplexity", "cdf", "icdf"):
        if (name, what) in OTHERWISE:
            continue
        share = torch.full(theirs.batch_shape, 0.3, dtype=torch.float64)
        given = {"cdf": [drawn], "icdf": [share]}.get(what, [])
        try:
            wanted = getattr(theirs, what)
            wanted = wanted(*given) if callable(wanted) else wanted
        except (NotImplementedError, AttributeError):
            continue
        found = getattr(ours, what)
        if callable(found):
            found = found(*[tp.from_numpy(g.numpy().copy()) for g in given])
        near(found, wanted, what, 1e-6, 1e-8)
    wide, theirs_wide = ours.expand((4, *ours.batch_shape)), theirs.expand((4, *theirs.batch_shape))
    near(wide.log_prob(values[0]), theirs_wide.log_prob(drawn[0]), "expanded", 1e-6)
    assert wide.sample((2,)).shape == tuple(theirs_wide.sample((2,)).shape)


PAIRS = sorted(
    (p.__name__, q.__name__)
    for p, q in T.kl._KL_REGISTRY
    if p.__name__ != "ExponentialFamily" and p.__name__ in ARGUMENTS and q.__name__ in ARGUMENTS
)
# Where torch's divergence is not that of the densities: it is infinite for Uniform(0, 1) as the second.
TORCH_IS_OFF = {("ContinuousBernoulli", "Uniform")}


@pytest.mark.parametrize(("first", "second"), [*PAIRS, ("Chi2", "Gamma")])
def test_divergence(first, second):
    given = arguments_of(first)
    p, their_p = both(first, given)
    for seed in (1, 2):
        q, their_q = both(second, arguments_of(second, seed))
        if (first, second) not in TORCH_IS_OFF:
            wanted = T.kl_divergence(their_p, their_q)
            near(D.kl_divergence(p, q), wanted, f"{first} {second}", 1e-7)
    if first == second:
        near(D.kl_divergence(p, p), torch.zeros(p.batch_shape), "itself", atol=1e-8)


def test_divergence_of_wisharts():
    """Torch adds up batches in it, so it is asked for one matrix at a time."""
    (df, matrices), (other_df, others) = arguments_of("Wishart"), arguments_of("Wishart", 1)
    p, q = (both("Wishart", [*pair])[0] for pair in ((df, matrices), (other_df, others)))
    wanted = [
        T.kl_divergence(*(T.Wishart(torch.tensor(n), torch.tensor(m)) for n, m in ((a, b), (c, d))))
        for a, b, c, d in zip(df, matrices, other_df, others, strict=True)
    ]
    near(D.kl_divergence(p, q), torch.stack(wanted), "Wishart")


@pytest.mark.parametrize("name", ["ContinuousBernoulli", "Poisson", "Wishart"])
def test_divergences_of_families_are_differentiable(name):
    """In both of the distributions, by finite differences."""
    made_of = [[tp.tensor(a, dtype=tp.float64) for a in arguments_of(name, s)] for s in (0, 1)]
    given = [x.clone().requires_grad_() for pair in made_of for x in pair]

    def divergence(*x):
        half = len(x) // 2
        kind = getattr(D, name)
        options = {"validate_args": False}
        pair = [
            kind(*(v if v.ndim < 2 else (v + v.mT) / 2 for v in part), **options)
            for part in (x[:half], x[half:])
        ]
        return D.kl_divergence(*pair)

    assert tp.autograd.gradcheck(divergence, given)


def test_divergences_by_integrals():
    """Those in which torch is off, and a few at the edges of supports."""
    inside = tp.linspace(0, 1, 20_001, dtype=tp.float64)[1:-1]
    first, wide = D.ContinuousBernoulli(tp.tensor(0.3, dtype=tp.float64)), (-0.5, 1.5)
    for q in (D.Uniform(tp.tensor(0.0, dtype=tp.float64), 1.0), D.Uniform(*wide)):
        logs = first.log_prob(inside) - q.log_prob(inside)
        found = float((first.log_prob(inside).exp() * logs).mean())
        assert float(D.kl_divergence(first, q)) == pytest.approx(found, abs=1e-3)
    assert float(D.kl_divergence(first, D.Uniform(0.1, 1.0))) == float("inf")
    assert float(D.kl_divergence(D.Uniform(0.0, 1.0), first)) < 1
    assert float(D.kl_divergence(D.Uniform(0.0, 1.1), first)) == float("inf")


@pytest.mark.parametrize("name", ["VonMises", "LKJCholesky", "Wishart", "ContinuousBernoulli",
                                  "LowRankMultivariateNormal", "MixtureSameFamily"])  # fmt: skip
def test_moments_of_samples(name):
    """Means of n samples are within 6 of their standard deviations; the seed is fixed."""
    tp.manual_seed(5)
    ours, theirs = both(name, arguments_of(name))
    n = 4000
    drawn = ours.sample((n,)).numpy()
    if name == "VonMises":
        kappa = ours.concentration.numpy()
        from scipy.special import ive

        got, wanted = np.cos(drawn - ours.loc.numpy()), ive(1, kappa) / ive(0, kappa)
    elif name == "LKJCholesky":  # of the correlations, the mean is 0
        got, wanted = (drawn @ drawn.swapaxes(-1, -2))[..., 0, 2], 0.0
    else:
        got, wanted = drawn, theirs.mean.numpy()
    assert np.all(np.abs(got.mean(0) - wanted) < 6 * got.std(0) / n**0.5)


CONSTRAINTS = {
    "real": lambda c: c.real,
    "positive": lambda c: c.positive,
    "nonnegative": lambda c: c.nonnegative,
    "greater_than": lambda c: c.greater_than(lower_bound=-1.5),
    "greater_than_eq": lambda c: c.greater_than_eq(lower_bound=2.0),
    "less_than": lambda c: c.less_than(upper_bound=2.0),
    "unit_interval": lambda c: c.unit_interval,
    "interval": lambda c: c.interval(lower_bound=-1.0, upper_bound=3.0),
    "half_open_interval": lambda c: c.half_open_interval(lower_bound=-1.0, upper_bound=3.0),
    "simplex": lambda c: c.simplex,
    "lower_cholesky": lambda c: c.lower_cholesky,
    "corr_cholesky": lambda c: c.corr_cholesky,
    "positive_definite": lambda c: c.positive_definite,
    "positive_semidefinite": lambda c: c.positive_semidefinite,
    "real_vector": lambda c: c.real_vector,
    "independent": lambda c: c.independent(c.positive, 1),
    "cat": lambda c: c.cat([c.positive, c.unit_interval], dim=-1, lengths=[1, 2]),
    "stack": lambda c: c.stack([c.positive, c.real, c.less_than(1.0)], dim=0),
    "integer_interval": lambda c: c.integer_interval(lower_bound=0, upper_bound=3),
    "boolean": lambda c: c.boolean,
}


@pytest.mark.parametrize(
    ("registry", "name"), list(itertools.product(["biject_to", "transform_to"], CONSTRAINTS))
)
def test_transforms_of_constraints(registry, name):
    ours, theirs = CONSTRAINTS[name](C), CONSTRAINTS[name](T.constraints)
    assert (ours.event_dim, ours.is_discrete) == (theirs.event_dim, theirs.is_discrete)
    if name not in ("cat", "stack"):
        assert repr(ours) == repr(theirs)
    try:
        their_transform = getattr(T, registry)(theirs)
    except NotImplementedError:
        with pytest.raises(NotImplementedError, match="Cannot transform"):
            getattr(D, registry)(ours)
        return
    transform = getattr(D, registry)(ours)
    x = np.random.default_rng(7).standard_normal((3, 3))
    mine, other = tp.tensor(x, dtype=tp.float64), torch.tensor(x)
    y, wanted = transform(mine), their_transform(other)
    near(y, wanted, "call")
    assert bool(ours.check(y).all())
    assert bool(transform.bijective) == bool(their_transform.bijective)
    assert transform.domain.event_dim == their_transform.domain.event_dim
    assert transform.codomain.event_dim == their_transform.codomain.event_dim
    near(transform.inv(y), their_transform.inv(wanted), "inverse", 1e-6)
    if transform.bijective:
        jacobian = transform.log_abs_det_jacobian(mine, y)
        near(jacobian, their_transform.log_abs_det_jacobian(other, wanted), "jacobian", 1e-7)


def test_copula_by_cumulative_transforms():
    base = D.MultivariateNormal(tp.zeros(2), scale_tril=D.LKJCholesky(2).sample())
    copula = D.TransformedDistribution(
        base, [D.CumulativeDistributionTransform(D.Normal(0.0, 1.0))]
    )
    drawn = copula.sample((100,))
    assert bool(((drawn > 0) & (drawn < 1)).all())
    x = tp.tensor([0.3, 0.9])
    apart = D.Normal(0.0, 1.0)
    wanted = base.log_prob(apart.icdf(x)) - apart.log_prob(apart.icdf(x)).sum(-1)
    tp.testing.assert_close(copula.log_prob(x), wanted)


def test_matrices_of_vectors():
    for diag, count in ((0, 6), (-1, 6), (1, 8)):
        vector = np.arange(1.0, count + 1)
        found = D.utils.vec_to_tril_matrix(tp.tensor([vector, 2 * vector]), diag)
        wanted = T.utils.vec_to_tril_matrix(torch.tensor(np.stack([vector, 2 * vector])), diag)
        near(found, wanted, "matrix")
        assert D.utils.tril_matrix_to_vec(found, diag).tolist() == [
            vector.tolist(),
            (2 * vector).tolist(),
        ]


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_what_is_transformed_and_how(name):
    ours, theirs = both(name, arguments_of(name))
    transformed = isinstance(theirs, T.TransformedDistribution)
    assert isinstance(ours, D.TransformedDistribution) == transformed
    if not transformed:
        return
    batch = (3, *ours.batch_shape)
    for one, other in [(ours, theirs), (ours.expand(batch), theirs.expand(batch))]:
        assert type(one).__name__ == type(other).__name__ == name
        assert type(one.base_dist).__name__ == type(other.base_dist).__name__
        shapes = [
            [tuple(shape) for shape in (d.batch_shape, d.event_shape, d.base_dist.batch_shape)]
            for d in (one, other)
        ]
        assert shapes[0] == shapes[1]
        value = other.base_dist.sample((4,))
        mine = tp.from_numpy(value.numpy().copy())
        for part, theirs_part in zip(one.transforms, other.transforms, strict=True):
            mine, value = part(mine), theirs_part(value)
        near(mine, value, "transformed", 1e-7)
