"""Distributions and transforms of drawn parameters that broadcast, numbers among them, beside torch.

Moments, entropy, densities with their gradients, distribution functions, expansion, divergences; values,
volumes and shapes of transforms that are composed at random.
"""

import os
import random
import zlib

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch is the reference")

CASES = max(6, int(os.environ.get("TENSORPLUG_FUZZ", "0")) // 40)
BATCHES = [(), (1,), (2,), (2, 3), (3, 1), (1, 3), (2, 1, 3)]
#: What differs, as docs/deviations.md says: where the density is largest, of parameters above 1 and below.
KNOWN = {(name, "mode") for name in ("Beta", "Dirichlet", "Kumaraswamy", "Weibull")}

POSITIVE, REAL, ODDS = "positive", "real", "odds"
SIMPLEX, SIZES = "simplex", "sizes"
PARAMETERS = {
    "Bernoulli": (ODDS,),
    "Beta": (POSITIVE, POSITIVE),
    "Binomial": ("count", ODDS),
    "Categorical": (SIMPLEX,),
    "Cauchy": (REAL, POSITIVE),
    "Chi2": (POSITIVE,),
    "ContinuousBernoulli": (ODDS,),
    "Dirichlet": (SIZES,),
    "Exponential": (POSITIVE,),
    "FisherSnedecor": (POSITIVE, POSITIVE),
    "Gamma": (POSITIVE, POSITIVE),
    "Geometric": (ODDS,),
    "Gumbel": (REAL, POSITIVE),
    "HalfCauchy": (POSITIVE,),
    "HalfNormal": (POSITIVE,),
    "InverseGamma": (POSITIVE, POSITIVE),
    "Kumaraswamy": (POSITIVE, POSITIVE),
    "Laplace": (REAL, POSITIVE),
    "LogNormal": (REAL, POSITIVE),
    "Multinomial": ("number", SIMPLEX),
    "NegativeBinomial": (POSITIVE, ODDS),
    "Normal": (REAL, POSITIVE),
    "OneHotCategorical": (SIMPLEX,),
    "Pareto": (POSITIVE, POSITIVE),
    "Poisson": (POSITIVE,),
    "RelaxedBernoulli": ("temperature", ODDS),
    "StudentT": (POSITIVE, REAL, POSITIVE),
    "VonMises": (REAL, POSITIVE),
    "Weibull": (POSITIVE, POSITIVE),
}


def drawn(rng, numbers, kind, batch):
    """Return a parameter: a number, or an array for a part of a batch's shape."""
    shape = tuple(1 if rng.random() < 0.2 else n for n in batch[rng.randint(0, len(batch)) :])
    if kind == "number":
        return rng.randint(1, 6)
    if kind == "temperature":
        return np.asarray(numbers.random() + 0.2)
    if kind == "count":
        return rng.choice([rng.randint(1, 6), numbers.integers(1, 6, shape).astype(float)])
    if kind in (SIMPLEX, SIZES):
        array = numbers.random((*shape, 3)) + 0.1
        return array / array.sum(-1, keepdims=True) if kind == SIMPLEX else array * 3
    array = {
        POSITIVE: numbers.random(shape) * 3 + 0.2,
        REAL: numbers.standard_normal(shape),
        ODDS: numbers.random(shape) * 0.9 + 0.05,
    }[kind]
    return float(array) if not shape and rng.random() < 0.5 else np.asarray(array)


def made(library, name, values, form, leaves=None):
    """Return the distribution of some parameters."""
    given, named = [], {}
    for kind, value in zip(PARAMETERS[name], values, strict=True):
        if isinstance(value, np.ndarray):
            value = library.tensor(value)
            if leaves is not None and kind != "count":
                leaves.append(value.requires_grad_())
        if kind in (ODDS, SIMPLEX):
            named[form] = value
        else:
            given.append(value)
    return getattr(library.distributions, name)(*given, **named)


def seen(value):
    if hasattr(value, "detach"):
        return str(value.dtype).rpartition(".")[2], np.array(value.detach().tolist())
    if isinstance(value, (list, tuple)):
        return [seen(item) for item in value]
    return value


def outcome(call):
    try:
        return seen(call())
    except (
        NotImplementedError,
        ValueError,
        RuntimeError,
        AttributeError,
        IndexError,
        ZeroDivisionError,
    ) as error:
        return error


def agree(theirs, ours, told):
    if isinstance(theirs, (AttributeError, IndexError)):
        return  # no refusal, but a slip: of a number as a temperature, of masks in divergences
    if isinstance(theirs, Exception):
        # What has another shape than that to be changed is refused by the transform here, not by reshape.
        kinds = (
            (type(theirs), ValueError) if "is invalid for input" in str(theirs) else type(theirs)
        )
        assert isinstance(ours, kinds), (told, theirs, ours)
    elif isinstance(theirs, (list, tuple)) and not isinstance(theirs[:1], tuple):
        assert len(theirs) == len(ours), told
        for one, other in zip(theirs, ours, strict=True):
            agree(one, other, told)
    elif isinstance(theirs, tuple):
        assert not isinstance(ours, Exception), (told, ours)
        # Numbers that stand alone are of single precision.
        near = 1e-6 if theirs[0] == "float64" and told[-1] else 1e-3
        assert ours[0] == theirs[0], told
        np.testing.assert_allclose(ours[1], theirs[1], near, near, err_msg=str(told))
    else:
        assert ours == theirs, told


def gradients(library, name, values, form, points, what):
    leaves = []
    distribution = made(library, name, values, form, leaves)
    result = distribution.entropy() if what == "entropy" else distribution.log_prob(points(library))
    result.sum().backward()
    return [leaf.grad for leaf in leaves]


@pytest.mark.parametrize("name", PARAMETERS)
def test_drawn_parameters(name):
    for case in range(CASES):
        seed = zlib.crc32(f"{name} {case}".encode())
        rng, numbers = random.Random(seed), np.random.default_rng(seed)
        batch, form = rng.choice(BATCHES), rng.choice(["probs", "logits"])
        values = [drawn(rng, numbers, kind, batch) for kind in PARAMETERS[name]]
        others = [drawn(rng, numbers, kind, rng.choice([(), batch])) for kind in PARAMETERS[name]]
        exact = not any(isinstance(value, float) for value in values + others)
        torch.manual_seed(seed)
        sampled = made(torch, name, values, form).sample(rng.choice([(), (2,)])).numpy()
        points = lambda library: library.tensor(sampled)  # noqa: B023, E731
        calls = {
            "mean": lambda d, library: d.mean,
            "variance": lambda d, library: d.variance,
            "stddev": lambda d, library: d.stddev,
            "mode": lambda d, library: d.mode,
            "entropy": lambda d, library: d.entropy(),
            "log_prob": lambda d, library: d.log_prob(points(library)),  # noqa: B023
            "cdf": lambda d, library: d.cdf(points(library)),  # noqa: B023
            "shapes": lambda d, library: [tuple(d.batch_shape), tuple(d.event_shape)],
            "expanded": lambda d, library: d.expand((2, *d.batch_shape)).mean,
            "support": lambda d, library: d.enumerate_support(),
            "divergence": lambda d, library: library.distributions.kl_divergence(
                d,
                made(library, name, others, form),  # noqa: B023
            ),
        }
        for what, call in calls.items():
            if (name, what) in KNOWN:
                continue
            both = [
                outcome(lambda: call(made(library, name, values, form), library))  # noqa: B023
                for library in (torch, tp)
            ]
            agree(*both, (name, case, what, values, others, form, exact))
        for what in ("log_prob", "entropy"):
            both = [
                outcome(lambda: gradients(library, name, values, form, points, what))  # noqa: B023
                for library in (torch, tp)
            ]
            agree(*both, (name, case, what, "gradient", values, form, exact))


def transform(rng, numbers, depth=0):
    """Return a function of a library that makes a transform of vectors of three elements."""
    kind = rng.randint(0, 10 if depth < 2 else 7)
    first, second = numbers.standard_normal(3), numbers.random(3) + 0.5
    inner = [
        transform(rng, numbers, depth + 1) for _ in range(rng.randint(0, 2) if depth < 2 else 0)
    ]
    some = inner[0] if inner else lambda library: library.distributions.ExpTransform()
    count = rng.randint(0, 2)
    plain = [
        "ExpTransform",
        "SigmoidTransform",
        "TanhTransform",
        "SoftplusTransform",
        "AbsTransform",
    ]
    if kind < 5:
        return lambda library: getattr(library.distributions, plain[kind])()
    return {
        5: lambda library: library.distributions.AffineTransform(
            library.tensor(first), library.tensor(second)
        ),
        6: lambda library: library.distributions.StickBreakingTransform(),
        7: lambda library: library.distributions.SoftmaxTransform(),
        8: lambda library: library.distributions.IndependentTransform(some(library), count),
        9: lambda library: library.distributions.ComposeTransform([f(library) for f in inner]),
        10: lambda library: library.distributions.ReshapeTransform((3,), (1, 3)),
    }[kind]


@pytest.mark.parametrize("part", range(4))
def test_drawn_transforms(part):
    for case in range(25 * CASES):
        seed = zlib.crc32(f"transforms {part} {case}".encode())
        rng, numbers = random.Random(seed), np.random.default_rng(seed)
        make = transform(rng, numbers)
        shape = rng.choice([(3,), (2, 3), (1, 2, 3)])
        array = numbers.standard_normal(shape)

        def through(library, make=make, array=array, shape=shape):
            one = make(library)
            x = library.tensor(array, requires_grad=True)
            y = one(x)
            volume = one.log_abs_det_jacobian(x, y)
            (slope,) = library.autograd.grad(volume.sum() + (y * y).sum(), x)
            domains = one.domain.event_dim, one.codomain.event_dim, bool(one.bijective)
            return [y, volume, slope, domains, tuple(one.forward_shape(shape))]

        both = [outcome(lambda: through(library)) for library in (torch, tp)]  # noqa: B023
        agree(*both, (part, case, shape, True))
