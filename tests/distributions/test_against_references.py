"""Densities, moments, quantiles and divergences in float64, against SciPy and torch."""

import numpy as np
import pytest
import scipy.stats as st

import tensorplug as tp
import tensorplug.distributions as D
from tensorplug.testing import assert_close


def t(*numbers):
    return tp.tensor(numbers, dtype=tp.float64)


A, B = t(0.7, 2.5), t(1.3, 0.4)
P = t(0.2, 0.65)
WEIGHTS = tp.tensor([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]], dtype=tp.float64)
X = t(0.3, 1.7)
WHOLE = t(0.0, 3.0)
COVARIANCE = tp.tensor([[2.0, 0.3], [0.3, 0.5]], dtype=tp.float64)

# name, arguments, SciPy's frozen distribution, values
SCIPY = [
    ("Bernoulli", (P,), st.bernoulli(P.numpy()), t(0.0, 1.0)),
    ("Beta", (A, B), st.beta(A.numpy(), B.numpy()), t(0.3, 0.9)),
    ("Binomial", (t(5.0, 5.0), P), st.binom(5, P.numpy()), WHOLE),
    ("Cauchy", (A, B), st.cauchy(A.numpy(), B.numpy()), X),
    ("Chi2", (A,), st.chi2(A.numpy()), X),
    ("Exponential", (B,), st.expon(scale=1 / B.numpy()), X),
    ("Gamma", (A, B), st.gamma(A.numpy(), scale=1 / B.numpy()), X),
    ("Geometric", (P,), st.geom(P.numpy(), loc=-1), WHOLE),
    ("Gumbel", (A, B), st.gumbel_r(A.numpy(), B.numpy()), X),
    ("HalfNormal", (B,), st.halfnorm(scale=B.numpy()), X),
    ("Laplace", (A, B), st.laplace(A.numpy(), B.numpy()), X),
    ("LogNormal", (A, B), st.lognorm(B.numpy(), scale=np.exp(A.numpy())), X),
    ("Normal", (A, B), st.norm(A.numpy(), B.numpy()), X),
    ("Poisson", (A,), st.poisson(A.numpy()), WHOLE),
    ("StudentT", (t(2.5, 7.0), A, B), st.t(np.array([2.5, 7.0]), A.numpy(), B.numpy()), X),
    ("Uniform", (t(0.1, 1.0), t(0.5, 3.0)), st.uniform([0.1, 1.0], [0.4, 2.0]), X),
    ("Weibull", (A, B), st.weibull_min(B.numpy(), scale=A.numpy()), X),
]


@pytest.mark.parametrize(
    ("name", "arguments", "reference", "values"), SCIPY, ids=lambda v: str(v)[:9]
)
def test_scipy_agrees(name, arguments, reference, values):
    made = getattr(D, name)(*arguments)
    density = getattr(reference, "logpmf" if hasattr(reference.dist, "logpmf") else "logpdf")

    def near(ours, theirs):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-7, atol=1e-9)

    near(made.log_prob(values), density(values.numpy()))
    if name != "Cauchy":
        near(made.mean, reference.mean())
        near(made.variance, reference.var())
        near(made.stddev, reference.std())
    near_or_none(made, "cdf", values, reference, near)
    near_or_none(made, "icdf", t(0.2, 0.9), reference, near)
    try:
        entropy = made.entropy()
    except NotImplementedError:
        assert name == "Poisson"
    else:
        near(entropy, reference.entropy())


def near_or_none(made, method, values, reference, near):
    try:
        found = getattr(made, method)(values)
    except NotImplementedError:
        return
    scipys = {"cdf": reference.cdf, "icdf": reference.ppf}[method]
    near(found, scipys(values.numpy()))


def both(name, arguments):
    torch = pytest.importorskip("torch", reason="torch is the reference")
    theirs = [torch.tensor(a.tolist(), dtype=torch.float64) for a in arguments]
    return getattr(D, name)(*arguments), getattr(torch.distributions, name)(*theirs)


MORE = [
    ("Categorical", (WEIGHTS,), t(1.0, 2.0)),
    ("OneHotCategorical", (WEIGHTS,), tp.tensor([[0, 1.0, 0], [0, 0, 1]], dtype=tp.float64)),
    ("Dirichlet", (WEIGHTS * 4,), WEIGHTS.flip(0)),
    ("MultivariateNormal", (A, COVARIANCE), X),
    ("RelaxedBernoulli", (t(0.6, 2.0), P), t(0.2, 0.9)),
    ("RelaxedOneHotCategorical", (tp.tensor(0.7, dtype=tp.float64), WEIGHTS), WEIGHTS.flip(0)),
]


@pytest.mark.parametrize(
    ("name", "arguments", "values"), [*[(n, a, v) for n, a, _, v in SCIPY], *MORE]
)
def test_torch_agrees(name, arguments, values):
    torch = pytest.importorskip("torch", reason="torch is the reference")

    if name == "Uniform":
        values = t(0.3, 1.7)
    ours, theirs = both(name, arguments)
    x = torch.tensor(values.tolist(), dtype=torch.float64)
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
    assert tuple(ours.event_shape) == tuple(theirs.event_shape)
    assert ours.has_rsample == theirs.has_rsample
    assert ours.has_enumerate_support == theirs.has_enumerate_support
    assert tuple(ours.sample((2, 3)).shape) == tuple(theirs.sample((2, 3)).shape)

    def near(got, wanted):
        assert_close(got.double(), tp.from_numpy(wanted.double().numpy()), equal_nan=True)

    near(ours.log_prob(values), theirs.log_prob(x))
    for what in ("mean", "mode", "variance"):
        if (name, what) == ("Weibull", "mode"):
            continue  # 0 where the concentration is below 1, torch says NaN
        try:
            wanted = getattr(theirs, what)
        except NotImplementedError:
            continue
        near(getattr(ours, what), wanted)
    try:
        wanted = theirs.entropy()
    except NotImplementedError:
        pass
    else:
        near(ours.entropy(), wanted)
    wide, their_wide = ours.expand((4, *ours.batch_shape)), theirs.expand((4, *theirs.batch_shape))
    assert tuple(wide.sample().shape) == tuple(their_wide.sample().shape)
    near(wide.log_prob(values), their_wide.log_prob(x))
    if ours.has_enumerate_support:
        near(ours.enumerate_support(), theirs.enumerate_support())
        near(ours.enumerate_support(False), theirs.enumerate_support(False))


SECOND = {
    "Bernoulli": (t(0.5, 0.1),),
    "Beta": (B, A),
    "Binomial": (t(5.0, 5.0), t(0.5, 0.1)),
    "Categorical": (WEIGHTS.flip(0),),
    "OneHotCategorical": (WEIGHTS.flip(0),),
    "Dirichlet": (WEIGHTS.flip(0) * 2,),
    "Exponential": (A,),
    "Gamma": (B, A),
    "Geometric": (t(0.5, 0.1),),
    "Gumbel": (B, A),
    "HalfNormal": (A,),
    "Laplace": (B, A),
    "LogNormal": (B, A),
    "MultivariateNormal": (B, tp.eye(2, dtype=tp.float64) * 0.7),
    "Normal": (B, A),
    "Poisson": (B,),
    "Uniform": (t(0.0, 1.5), t(0.6, 3.0)),
}
PAIRS = [(n, n) for n in SECOND] + [
    ("Uniform", "Normal"),
    ("Exponential", "Gamma"),
    ("Gamma", "Exponential"),
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_divergences(first, second):
    torch = pytest.importorskip("torch", reason="torch is the reference")
    given = {n: a for n, a, *_ in (*SCIPY, *MORE)}
    p, their_p = both(first, given[first])
    q, their_q = both(second, SECOND[second])
    wanted = torch.distributions.kl_divergence(their_p, their_q)
    assert_close(D.kl_divergence(p, q), tp.from_numpy(wanted.numpy()))
    assert_close(D.kl_divergence(p, p), tp.zeros_like(D.kl_divergence(p, p)), atol=1e-9, rtol=0)


def test_divergence_of_independent_ones_and_others():
    p, q = D.Normal(A, B), D.Normal(B, A)
    whole = D.kl_divergence(D.Independent(p, 1), D.Independent(q, 1))
    assert_close(whole, D.kl_divergence(p, q).sum())
    with pytest.raises(NotImplementedError, match="Cauchy"):
        D.kl_divergence(D.Cauchy(0.0, 1.0), p)

    class Own(D.Normal):
        pass

    assert_close(D.kl_divergence(Own(A, B), q), D.kl_divergence(p, q))

    @D.register_kl(Own, Own)
    def _own(p, q):
        return "ours"

    assert D.kl_divergence(Own(A, B), Own(A, B)) == "ours"
    with pytest.raises(TypeError, match="Distribution"):
        D.register_kl("Own", Own)


@pytest.mark.parametrize("name", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_three_ways_to_say_a_covariance(name):
    torch = pytest.importorskip("torch", reason="torch is the reference")
    matrix = tp.linalg.cholesky(COVARIANCE) if name == "scale_tril" else COVARIANCE
    ours = D.MultivariateNormal(A, **{name: matrix})
    theirs = torch.distributions.MultivariateNormal(
        torch.tensor(A.tolist(), dtype=torch.float64),
        **{name: torch.tensor(matrix.tolist(), dtype=torch.float64)},
    )
    for what in ("covariance_matrix", "precision_matrix", "scale_tril"):
        assert_close(getattr(ours, what), tp.from_numpy(getattr(theirs, what).numpy().copy()))
    assert ours.expand((3,)).covariance_matrix.shape == (3, 2, 2)
