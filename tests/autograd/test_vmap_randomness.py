"""Random ops inside of `vmap`: which samples draw the same numbers, in each mode, nested, beside others."""

import pytest

import tensorplug as tp

SIZE, ROWS = 40, 4

#: Ops that draw numbers for a tensor: its samples' own, or one that all share.
BY_TENSOR = {
    "rand_like": lambda t, x: t.rand_like(x),
    "randn_like": lambda t, x: t.randn_like(x),
    "randint_like": lambda t, x: t.randint_like(x, 9),
    "bernoulli": lambda t, x: t.bernoulli(x * 0 + 0.5),
    "bernoulli_": lambda t, x: x.clone().bernoulli_(0.5),
    "normal(mean)": lambda t, x: t.normal(x * 0, 1.0),
    "normal(std=)": lambda t, x: t.normal(0.0, x * 0 + 1),
    "normal_": lambda t, x: x.clone().normal_(),
    "uniform_": lambda t, x: x.clone().uniform_(),
    "exponential_": lambda t, x: x.clone().exponential_(),
    "geometric_": lambda t, x: x.clone().geometric_(0.3),
    "cauchy_": lambda t, x: x.clone().cauchy_(),
    "log_normal_": lambda t, x: x.clone().log_normal_(),
    "random_": lambda t, x: x.clone().random_(9),
    "poisson of low rates": lambda t, x: t.poisson(x * 0 + 3),
    "poisson of high rates": lambda t, x: t.poisson(x * 0 + 30),
    "multinomial": lambda t, x: t.multinomial(x * 0 + 1, 20),
    "dropout": lambda t, x: t.nn.functional.dropout(x * 0 + 1, 0.5),
    "alpha_dropout": lambda t, x: t.nn.functional.alpha_dropout(x * 0 + 1, 0.5, True),
    "rrelu": lambda t, x: t.nn.functional.rrelu(x * 0 - 1, training=True),
    "gumbel_softmax": lambda t, x: t.nn.functional.gumbel_softmax(x * 0),
}
#: Those that are told a size.
BY_SIZE = {
    "rand": lambda t, x: t.rand(SIZE),
    "randn": lambda t, x: t.randn(SIZE),
    "randint": lambda t, x: t.randint(0, 9, (SIZE,)),
    "randperm": lambda t, x: t.randperm(SIZE),
    "normal(size=)": lambda t, x: t.normal(0.0, 1.0, (SIZE,)),
}
DRAWS = BY_TENSOR | BY_SIZE
#: torch has no rule for them.
OURS_ALONE = ("rrelu",)


def drawn(t, draw, mode, batched):
    """Return how many rows of numbers differ, and of which shape and dtype they are."""
    x = t.zeros(ROWS, SIZE)
    if batched == "nested":
        inner = t.func.vmap(lambda x: draw(t, x), randomness=mode)
        rows = t.func.vmap(inner, randomness="different")(x.reshape(2, 2, SIZE)).reshape(ROWS, -1)
    elif batched:
        rows = t.func.vmap(lambda x: draw(t, x), randomness=mode)(x)
    else:
        rows = t.func.vmap(lambda x, y: draw(t, y) + x.sum(), (0, None), randomness=mode)(x, x[0])
    return (
        len({tuple(row) for row in rows.tolist()}),
        tuple(rows.shape),
        str(rows.dtype).rpartition(".")[2],
    )


def outcome(t, *given):
    t.manual_seed(0)
    try:
        return drawn(t, *given)
    except RuntimeError as error:
        return type(error).__name__


@pytest.mark.parametrize("batched", [True, False, "nested"])
@pytest.mark.parametrize("name", DRAWS)
def test_rows_that_differ(name, batched):
    draw = DRAWS[name]
    assert outcome(tp, draw, "error", batched) == "RuntimeError"
    same = {True: 1, False: 1, "nested": 2}[batched]
    assert outcome(tp, draw, "same", batched)[0] == same
    # Memory that all samples share is filled once.
    in_place = (name.endswith("_") or name in ("rrelu", "gumbel_softmax")) and batched is False
    if not in_place:
        assert outcome(tp, draw, "different", batched)[0] == ROWS


@pytest.mark.parametrize("mode", ["error", "different", "same", "neither"])
@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("name", [name for name in DRAWS if name not in OURS_ALONE])
def test_rows_beside_torch(name, batched, mode):
    torch = pytest.importorskip("torch", reason="its rules are the reference")
    theirs = outcome(torch, DRAWS[name], mode, batched)
    if mode == "same" and theirs == "RuntimeError":
        return  # docs/deviations.md: computed here
    assert outcome(tp, DRAWS[name], mode, batched) == theirs


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_moments_of_poisson(randomness):
    rates = tp.tensor([[0.5], [5.0], [50.0], [500.0]]).expand(4, 4000)
    tp.manual_seed(0)
    drawn = tp.func.vmap(tp.poisson, randomness=randomness)(rates)
    for numbers, rate in zip(drawn, (0.5, 5.0, 50.0, 500.0), strict=True):
        assert abs(numbers.mean().item() - rate) < 5 * (rate / 4000) ** 0.5
        assert abs(numbers.var().item() / rate - 1) < 0.15


#: Draws of a whole batch, for those that are told a size.
WHOLE = {
    "rand": lambda t, x: t.rand(x.shape),
    "randn": lambda t, x: t.randn(x.shape),
    "randint": lambda t, x: t.randint(0, 9, x.shape),
    "normal(size=)": lambda t, x: t.normal(0.0, 1.0, x.shape),
}


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", [name for name in DRAWS if name != "randperm"])
def test_samples_draw_what_a_batch_draws(name, dim):
    x = tp.zeros(ROWS, SIZE)
    tp.manual_seed(3)
    together = WHOLE.get(name, DRAWS[name])(tp, x)
    state = tp.get_rng_state()
    tp.manual_seed(3)
    draw = tp.func.vmap(lambda x: DRAWS[name](tp, x), in_dims=dim, randomness="different")
    assert tp.allclose(draw(x.movedim(0, dim)), together)
    assert tp.get_rng_state().equal(state)


def test_samples_draw_from_a_generator_of_ones_own():
    generator = tp.Generator().manual_seed(3)
    draw = tp.func.vmap(lambda x: tp.randn(5, generator=generator), randomness="different")
    nested = tp.func.vmap(draw, randomness="different")(tp.zeros(2, 3))
    assert nested.equal(tp.randn(2, 3, 5, generator=generator.manual_seed(3)))


def test_matrices_of_weights_draw_together():
    weights = tp.rand(3, 2, 7)
    tp.manual_seed(3)
    drawn = tp.func.vmap(lambda w: tp.multinomial(w, 4), randomness="different")(weights)
    tp.manual_seed(3)
    assert drawn.equal(tp.multinomial(weights.flatten(0, 1), 4).unflatten(0, (3, 2)))
