"""Half Cauchy, Pareto, inverse gamma, Kumaraswamy, F, and counts: against SciPy, torch, and moments."""

import numpy as np
import pytest
import scipy.stats as st
from scipy import integrate

import tensorplug as tp
import tensorplug.distributions as D
from tensorplug.autograd import gradcheck


def t(*numbers):
    return tp.tensor(numbers, dtype=tp.float64)


A, B, M = t(2.7, 4.5), t(1.3, 3.4), t(6.0, 9.0)
INSIDE, BEYOND = t(0.3, 0.7), t(3.3, 5.7)
a, b, m = A.numpy(), B.numpy(), M.numpy()
P = t(0.3, 0.6)

# Arguments, SciPy's counterpart, values; the variance is finite where that is 0.
CASES = {
    "FisherSnedecor": ((A, M), st.f(a, m), INSIDE),
    "GeneralizedPareto": ((A, B, t(0.3, -0.2)), st.genpareto([0.3, -0.2], a, b), BEYOND + 2),
    "HalfCauchy": ((B,), st.halfcauchy(scale=b), INSIDE),
    "InverseGamma": ((A, B), st.invgamma(a, scale=b), INSIDE),
    "Kumaraswamy": ((A, B), None, INSIDE),
    "NegativeBinomial": ((A, P), st.nbinom(a, 1 - P.numpy()), t(0.0, 3.0)),
    "Pareto": ((B, M), st.pareto(m, scale=b), BEYOND + 1),
}


def near(ours, theirs, rtol=1e-9):
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][1] is not None])
def test_scipy_agrees(name):
    arguments, reference, values = CASES[name]
    made = getattr(D, name)(*arguments)
    discrete = name == "NegativeBinomial"
    near(
        made.log_prob(values), (reference.logpmf if discrete else reference.logpdf)(values.numpy())
    )
    if name != "HalfCauchy":
        near(made.mean, reference.mean())
        near(made.variance, reference.var())
    if not discrete:
        near(made.entropy(), reference.entropy(), 1e-7) if name != "FisherSnedecor" else None
    if hasattr(type(made), "cdf") and type(made).cdf is not D.Distribution.cdf:
        near(made.cdf(values), reference.cdf(values.numpy()))
    if name != "InverseGamma" and type(made).icdf is not D.Distribution.icdf:
        near(made.icdf(INSIDE), reference.ppf(INSIDE.numpy()))


def test_kumaraswamy_by_its_integral():
    made = D.Kumaraswamy(A, B)
    x = tp.linspace(0, 1, 200_001, dtype=tp.float64).unsqueeze(-1)[1:-1]
    density, width = made.log_prob(x).exp(), 1 / 200_000
    near(density.sum(0) * width, [1, 1], 1e-6)
    near((density * x).sum(0) * width, made.mean.numpy(), 1e-6)
    near((density * (x - made.mean) ** 2).sum(0) * width, made.variance.numpy(), 1e-6)
    near(-(density * density.log()).sum(0) * width, made.entropy().numpy(), 1e-4)
    near(made.icdf(made.cdf(INSIDE)), INSIDE.numpy())
    peak = x[density.argmax(0)[0], 0]
    assert abs(made.mode[0] - peak) < 1e-4


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_the_density(name):
    arguments, _, values = CASES[name]

    def log_prob(*parameters):
        return getattr(D, name)(*parameters, validate_args=False).log_prob(values)

    assert gradcheck(log_prob, tuple(x.clone().requires_grad_() for x in arguments))


@pytest.mark.parametrize("name", [name for name in CASES if name != "HalfCauchy"])
def test_moments_of_samples(name):
    """The mean of n samples is within 6 of its standard deviations; the seed is fixed."""
    tp.manual_seed(7)
    arguments, _, _ = CASES[name]
    made, n = getattr(D, name)(*arguments), 20_000
    drawn = made.sample((n,))
    assert drawn.shape == (n, 2)
    assert bool(made.support.check(drawn).all())
    apart = (drawn.mean(0) - made.mean).abs() / (made.stddev / n**0.5)
    assert float(apart.max()) < 6, apart


def test_the_median_of_half_cauchy_samples():
    tp.manual_seed(7)
    drawn = D.HalfCauchy(B).sample((20_000,))
    share = (drawn < B).double().mean(0)
    assert float((share - 0.5).abs().max()) < 6 * 0.5 / 20_000**0.5


def test_multinomial():
    weights = tp.tensor([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]], dtype=tp.float64)
    made = D.Multinomial(5, weights)
    counts = tp.tensor([[1.0, 3.0, 1.0], [5.0, 0.0, 0.0]], dtype=tp.float64)
    wanted = [
        st.multinomial.logpmf(c, 5, w) for c, w in zip(counts.numpy(), weights.numpy(), strict=True)
    ]
    near(made.log_prob(counts), wanted)
    near(made.entropy(), [st.multinomial(5, w).entropy() for w in weights.numpy()])
    tp.manual_seed(3)
    drawn = made.sample((4000,))
    assert drawn.shape == (4000, 2, 3)
    assert bool((drawn.sum(-1) == 5).all())
    apart = (drawn.mean(0) - made.mean).abs() / (made.stddev / 4000**0.5)
    assert float(apart.max()) < 6
    with pytest.raises(ValueError, match="support"):
        made.log_prob(counts + 1)
    assert made.expand((4, 2)).log_prob(counts).shape == (4, 2)


@pytest.mark.parametrize("name", CASES)
def test_torch_agrees(name):
    torch = pytest.importorskip("torch", reason="torch's own class is the reference")
    arguments, _, values = CASES[name]
    ours = getattr(D, name)(*arguments)
    theirs = getattr(torch.distributions, name)(*[torch.from_numpy(x.numpy()) for x in arguments])
    assert ours.has_rsample == theirs.has_rsample
    assert set(ours.arg_constraints) == set(theirs.arg_constraints)
    assert ours.support.event_dim == theirs.support.event_dim
    assert ours.support.is_discrete == theirs.support.is_discrete
    for attribute in ("mean", "variance", "stddev", "mode"):
        if (name, attribute) != ("Kumaraswamy", "mode"):  # torch's is NaN where there is one
            near(getattr(ours, attribute), getattr(theirs, attribute).numpy(), 1e-7)
    if name != "GeneralizedPareto":  # torch's refuses float64
        near(
            ours.log_prob(values),
            theirs.log_prob(torch.from_numpy(values.numpy())).numpy(),
            1e-7,
        )


def _integral(p, q, low, high):
    """Return the integral of p log(p / q) over exp(low) to exp(high)."""

    def at(y):
        x = t(np.exp(y))
        log_p, log_q = p.log_prob(x), q.log_prob(x)
        return float((log_p + y).exp() * (log_p - log_q))

    return integrate.quad(at, low, high, limit=200)[0]


@pytest.mark.parametrize(
    ("name", "first", "second", "span"),
    [
        ("InverseGamma", (3.0, 2.0), (2.0, 1.5), (-12, 12)),
        ("InverseGamma", (2.5, 0.5), (3.5, 4.0), (-12, 12)),
        ("HalfCauchy", (1.5,), (0.5,), (-25, 25)),
        ("HalfCauchy", (0.3,), (2.0,), (-25, 25)),
        ("Kumaraswamy", (2.0, 3.0), (2.0, 1.5), (-20, -1e-12)),
        ("Kumaraswamy", (1.5, 1.2), (1.5, 4.0), (-20, -1e-12)),
    ],
)
def test_divergences_are_the_integrals(name, first, second, span):
    p, q = [getattr(D, name)(*[t(x) for x in given]) for given in (first, second)]
    assert float(D.kl_divergence(p, q)) == pytest.approx(_integral(p, q, *span), rel=1e-6)
    near(D.kl_divergence(p, p), np.zeros(1), 1e-12)
    torch = pytest.importorskip("torch", reason="torch's divergence is compared, too")
    theirs = [
        getattr(torch.distributions, name)(*[torch.tensor([x], dtype=torch.float64) for x in given])
        for given in (first, second)
    ]
    if name != "Kumaraswamy":  # torch's is there for equal ones alone
        near(D.kl_divergence(p, q), torch.distributions.kl_divergence(*theirs).numpy())


def test_divergence_of_different_powers_is_not_known():
    with pytest.raises(NotImplementedError, match="different concentration1"):
        D.kl_divergence(D.Kumaraswamy(1.0, 2.0), D.Kumaraswamy(2.0, 2.0))


def test_divergence_of_paretos():
    torch = pytest.importorskip("torch", reason="torch's divergence is the reference")
    p, q = (B, M), (t(0.5, 5.0), A)
    ours = D.kl_divergence(D.Pareto(*p), D.Pareto(*q))
    theirs = [torch.distributions.Pareto(*[torch.from_numpy(x.numpy()) for x in d]) for d in (p, q)]
    near(ours, torch.distributions.kl_divergence(*theirs).numpy())
