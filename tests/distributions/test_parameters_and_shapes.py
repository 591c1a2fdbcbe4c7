"""What distributions make of numbers beside tensors, and transforms of shapes and extremes, beside torch."""

import itertools

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch is the reference")

ODDS = ["Bernoulli", "Binomial", "ContinuousBernoulli", "NegativeBinomial"]
SIMPLEX = ["Categorical", "Multinomial", "OneHotCategorical", "OneHotCategoricalStraightThrough"]


@pytest.mark.parametrize("name", ["Binomial", "NegativeBinomial"])
@pytest.mark.parametrize("form", ["probs", "logits"])
def test_numbers_take_the_dtype_of_the_tensor_beside_them(name, form):
    for count, odds in itertools.product(["number", "float32", "float64"], repeat=2):
        found = []
        for library in (torch, tp):
            given = [
                value if kind == "number" else library.tensor(value, dtype=getattr(library, kind))
                for kind, value in ((count, 3.0), (odds, 0.3))
            ]
            made = getattr(library.distributions, name)(given[0], **{form: given[1]})
            parts = (made.total_count, made.probs, made.logits, made.mean, made.variance)
            found.append([(str(part.dtype).rpartition(".")[2], part.tolist()) for part in parts])
        for theirs, ours in zip(*found, strict=True):
            assert ours[0] == theirs[0]
            assert ours[1] == pytest.approx(
                theirs[1], rel=1e-6 if theirs[0] == "float32" else 1e-12
            )


@pytest.mark.parametrize("form", ["probs", "logits"])
@pytest.mark.parametrize("name", [*ODDS, *SIMPLEX])
def test_shapes_of_parameters(name, form):
    count = [4] if name in ("Binomial", "Multinomial", "NegativeBinomial") else []
    shapes = []
    for library in (torch, tp):
        odds = library.full((2, 1, 3), 0.5)
        made = getattr(library.distributions, name)(*count, **{form: odds})
        shapes.append((tuple(made.param_shape), tuple(made.expand((4, 2, 1)).param_shape))
                      if name in SIMPLEX else tuple(made.param_shape))  # fmt: skip
    assert shapes[1] == shapes[0]


def transforms(D):
    stick = D.StickBreakingTransform()
    return {
        "stick": stick,
        "of two": D.IndependentTransform(stick, 1),
        "exp": D.IndependentTransform(D.ExpTransform(), 2),
        "inverse": D.IndependentTransform(stick, 1).inv,
        "composed": D.ComposeTransform([D.ExpTransform(), D.IndependentTransform(stick, 1)]),
        "softmax": D.IndependentTransform(D.SoftmaxTransform(), 2),
    }


@pytest.mark.parametrize("name", transforms(tp.distributions))
def test_independent_transforms_of_any_shape(name):
    theirs, ours = transforms(torch.distributions)[name], transforms(tp.distributions)[name]
    for shape in [(), (3,), (2, 3), (1, 2, 3)]:
        array = np.full(shape, 1 / 3)
        try:
            made = theirs(torch.tensor(array))
            shapes = tuple(theirs.forward_shape(shape)), tuple(theirs.inverse_shape(made.shape))
        except (ValueError, IndexError) as error:
            with pytest.raises(type(error)):
                ours(tp.tensor(array))
            continue
        found = ours(tp.tensor(array))
        np.testing.assert_allclose(found.numpy(), made.numpy(), rtol=1e-12)
        assert (tuple(ours.forward_shape(shape)), tuple(ours.inverse_shape(made.shape))) == shapes


def test_the_shape_of_a_transformed_distribution():
    D = tp.distributions
    stick = D.IndependentTransform(D.StickBreakingTransform(), 1)
    made = D.TransformedDistribution(D.Normal(tp.zeros(3, 2), 1.0), [stick])
    assert made.event_shape == (3, 3)
    assert made.sample().shape == (3, 3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_broken_sticks_have_finite_volumes(dtype):
    array = np.array([[-900.0, 3.0, 900.0], [-107.0, -36.0, 49.0], [1.0, -2.0, 3.0]])
    found = []
    for library in (torch, tp):
        x = library.tensor(array, dtype=getattr(library, dtype))
        stick = library.distributions.StickBreakingTransform()
        y = stick(x)
        found.append([t.numpy() for t in (y, stick.log_abs_det_jacobian(x, y), stick.inv(y))])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4 if dtype == "float32" else 1e-10)
        assert np.isfinite(ours).all()
