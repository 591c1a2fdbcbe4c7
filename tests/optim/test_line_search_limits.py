"""LBFGS for drawn numbers of iterations and evaluations, with a line search and without, beside torch."""

import random

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch is the reference")

SHAPES = [(3,), (2, 2), (), (1,), (0,), (2, 3)]


def drawn(rng):
    """Return options, and shapes and dtypes of parameters."""
    options = {
        "lr": rng.choice([1.0, 0.3, 0.03]),
        "max_iter": rng.randint(1, 6),
        "max_eval": rng.choice([None, None, 1, 2, 3, 5]),
        "tolerance_grad": rng.choice([1e-7, 1e-2]),
        "tolerance_change": rng.choice([1e-9, 1e-3]),
        "history_size": rng.choice([1, 3, 100]),
        "line_search_fn": rng.choice([None, "strong_wolfe", "strong_wolfe"]),
    }
    dtypes = rng.choice([["float64"], ["float64"], ["float64", "complex128"]])
    return options, [(rng.choice(SHAPES), rng.choice(dtypes)) for _ in range(rng.randint(1, 4))]


def run(library, options, parameters, seed):
    """Return the losses of all evaluations, and where they end."""
    numbers = np.random.default_rng(seed)
    leaves = []
    for shape, dtype in parameters:
        array = numbers.standard_normal(shape) + 1j * numbers.standard_normal(shape)
        array = array if dtype == "complex128" else array.real
        leaves.append(library.tensor(array).requires_grad_())
    optimizer = library.optim.LBFGS(leaves, **options)
    losses = []

    def closure():
        optimizer.zero_grad()
        parts = [
            ((x - 0.5).abs() ** 2).sum() * (i + 1) + (x.abs() ** 4).sum()
            for i, x in enumerate(leaves)
        ]
        loss = sum(parts)
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(3):
        optimizer.step(closure)
    state = optimizer.state[leaves[0]]
    counts = state["func_evals"], state["n_iter"]
    return losses, counts, [leaf.detach().numpy().copy() for leaf in leaves]


@pytest.mark.parametrize("seed", range(60))
def test_evaluations_and_where_they_end(seed):
    options, parameters = drawn(random.Random(seed))
    parameters.append(((2,), "float64"))
    theirs = run(torch, options, parameters, seed)
    ours = run(tp, options, parameters, seed)
    assert ours[1] == theirs[1]
    assert ours[0] == pytest.approx(theirs[0], rel=1e-6)
    for found, expected in zip(ours[2], theirs[2], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)


def test_a_second_group_is_refused():
    x, y = tp.ones(2, requires_grad=True), tp.ones(2, requires_grad=True)
    optimizer = tp.optim.LBFGS([x])
    optimizer.add_param_group({"params": [y]})
    with pytest.raises(AssertionError, match="exactly one param_group, but got 2"):
        optimizer.step(lambda: (x + y).sum())
