"""Cross-entropy and dropout, against NumPy in float64: threads, strides, classes that do not exist."""

import numpy as np
import pytest

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
import tensorplug as tp  # noqa: E402
from tensorplug_cpu_cython import dropout, losses, random  # noqa: E402
from tensorplug_cpu_cython.kernels.losses import (  # noqa: E402
    _no_gradient,
    _reduced,
    mse_loss,
)

# Short rows are padded, long ones go in runs, columns in blocks.
SHAPES = [
    (1, 1),
    (5, 10),
    (130, 3),
    (7, 512),
    (9, 513),
    (300, 700),
    (2, 9000),
    (3, 6, 5),
    (4, 20, 300),
]

pytestmark = pytest.mark.usefixtures("threads")


def case(shape, dtype, weighted, ignored):
    generator = np.random.default_rng(0)
    scores = (generator.standard_normal(shape) * 5).astype(dtype)
    target = generator.integers(0, shape[1], (shape[0], *shape[2:]))
    target[0] = ignored
    weight = (generator.random(shape[1]) + 0.5).astype(dtype) if weighted else None
    return scores, target, weight


def expected(scores, target, weight, ignored, logs):
    """Return losses, weights and the gradient of the losses' sum, in float64."""
    exact = scores.astype(np.float64)
    if not logs:
        exact = exact - exact.max(1, keepdims=True)
        exact = exact - np.log(np.exp(exact).sum(1, keepdims=True))
    chosen = np.where(target == ignored, 0, target)[:, None]
    weights = np.ones(scores.shape[1]) if weight is None else weight.astype(np.float64)
    weights = np.where(target == ignored, 0, weights[chosen[:, 0]])
    picked = np.take_along_axis(exact, chosen, 1)[:, 0]
    gradient = np.zeros(scores.shape) if logs else np.exp(exact) * weights[:, None]
    share = np.take_along_axis(gradient, chosen, 1) - weights[:, None]
    np.put_along_axis(gradient, chosen, share, 1)
    return -picked * weights, weights, gradient


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [-100, 0])
@pytest.mark.parametrize("logs", [False, True])
def test_losses(shape, dtype, weighted, ignored, logs):
    scores, target, weight = case(shape, dtype, weighted, ignored)
    lost, weights, gradient = expected(scores, target, weight, ignored, logs)
    tolerance = (
        {"rtol": 2e-5, "atol": 2e-5} if dtype is np.float32 else {"rtol": 1e-11, "atol": 1e-12}
    )
    for given in (scores, np.asfortranarray(scores)):
        rest = (given, target, weight, ignored)
        found = losses.cross_entropy(*rest, "none", logs, _reduced)
        np.testing.assert_allclose(found, lost, **tolerance)
        found = losses.cross_entropy(*rest, "sum", logs, _reduced)
        np.testing.assert_allclose(found, lost.sum(), **tolerance)
        g = np.full(target.shape, 2, dtype)
        found = losses.cross_entropy_gradient(g, *rest, "none", logs, _no_gradient)
        np.testing.assert_allclose(found, 2 * gradient, **tolerance)
        if weights.any():
            found = losses.cross_entropy(*rest, "mean", logs, _reduced)
            np.testing.assert_allclose(found, lost.sum() / weights.sum(), **tolerance)
        total = weights.sum() or 1
        one = np.ones((), dtype)
        found = losses.cross_entropy_gradient(one, *rest, "mean", logs, _no_gradient)
        np.testing.assert_allclose(found, gradient / total, **tolerance)


@pytest.mark.parametrize("wrong", [-1, 3, 1 << 40])
def test_a_class_that_does_not_exist(wrong):
    scores, target = np.zeros((500, 3), np.float32), np.zeros(500, np.int64)
    target[400] = wrong
    for logs in (False, True):
        rest = (scores, target, None, -100)
        for reduction in ("none", "mean"):
            with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds"):
                losses.cross_entropy(*rest, reduction, logs, _reduced)
        # What forward would have refused touches no memory outside of the result.
        g = np.ones((), np.float32)
        found = losses.cross_entropy_gradient(g, *rest, "sum", logs, _no_gradient)
        np.testing.assert_array_equal(found[400], 0)


def test_scores_that_are_no_numbers():
    scores = np.array([[np.nan, 0], [np.inf, 0], [-np.inf, 0], [-np.inf, -np.inf]], np.float32)
    rest = (scores, np.array([1, 1, 0, 1]), None, -100, "none")
    found = losses.cross_entropy(*rest, False, _reduced)
    np.testing.assert_array_equal(found, [np.nan, np.nan, np.inf, np.nan])
    np.testing.assert_array_equal(
        losses.cross_entropy(*rest, True, _reduced), [0, 0, np.inf, np.inf]
    )


@pytest.mark.parametrize("shape", [(), (3,), (64,), (65,), (7, 13), (100_003,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("p", [0.1, 0.5, 1.0])
def test_dropout(shape, dtype, p):
    array = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    seed, offset = 5, (1 << 64) - 3
    result, kept = dropout.forward(array, p, seed, offset)
    words = np.asarray(random.philox_bits(shape, seed, offset))
    numbers = (words >> 8).astype(np.float32) * np.float32(2.0**-24)
    np.testing.assert_array_equal(kept, numbers >= np.float32(p))
    scale = np.asarray(1 / (1 - p) if p < 1 else 0, dtype)
    np.testing.assert_allclose(
        result, array * kept * scale, rtol=1e-3 if dtype is np.float16 else 0
    )
    np.testing.assert_array_equal(dropout.backward(array, kept, p), result)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
def test_squares_of_differences(dtype, reduction, weighted):
    generator = np.random.default_rng(0)
    for shape in ((), (1,), (7, 3), (300, 700), (0, 3)):
        x, y, w = (np.asarray(generator.standard_normal(shape), dtype) for _ in range(3))
        for a, b in ((x, y), (x.T, y.T), (x[..., ::-1], y) if shape else (x, y)):
            exact = (a.astype(np.float64) - b) ** 2
            weight = w.reshape(a.shape) if weighted else None
            exact = exact if weight is None else exact * weight
            if reduction != "none":
                share = exact.size if weight is None else weight.sum(dtype=np.float64)
                with np.errstate(all="ignore"):
                    exact = exact.sum() / (share if reduction == "mean" else 1)
            with np.errstate(all="ignore"):
                found = mse_loss(a, b, reduction, weight)
            assert found.dtype == dtype
            np.testing.assert_allclose(found, exact, 1e-4, 1e-4)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_gradients_of_either_argument(reduction):
    """Passes that look alike but for the argument that is differentiated are replayed apart."""
    x, y = tp.tensor([[0.25, -0.5]], requires_grad=True), tp.tensor([[0.0, 1.0]])
    for pair in ((y, x), (x, y)):
        for _ in range(6):  # the last ones are replayed
            x.grad = None
            tp.nn.functional.mse_loss(*pair, reduction=reduction).sum().backward()
            share = 2 if reduction == "mean" else 1
            assert x.grad.tolist() == [[0.5 / share, -3.0 / share]]
