"""Random numbers by seed: the same again, from a state, after a fork, in every form, mode and transform.

What holds of one function of random numbers has to hold of all: those of tensors, in place, with ``out=``, of
networks, initializers, distributions, samplers.
"""

import copy

import pytest

import tensorplug as tp
from tensorplug.testing.comparison import assert_close

F, init = tp.nn.functional, tp.nn.init
ones = tp.ones

GLOBAL = {
    "rand": lambda: tp.rand(7),
    "randn": lambda: tp.randn(5),
    "randint": lambda: tp.randint(99, (6,)),
    "randperm": lambda: tp.randperm(9),
    "rand_like": lambda: tp.rand_like(ones(3)),
    "randn out": lambda: tp.randn(5, out=tp.empty(5)),
    "randint out": lambda: tp.randint(99, (6,), out=tp.empty(6, dtype=tp.int64)),
    "randperm out": lambda: tp.randperm(9, out=tp.empty(9, dtype=tp.int64)),
    "normal out": lambda: tp.normal(0.0, 1.0, (4,), out=tp.empty(4)),
    "bernoulli": lambda: tp.bernoulli(tp.full((30,), 0.5)),
    "normal": lambda: tp.normal(tp.zeros(4), ones(4)),
    "multinomial": lambda: tp.multinomial(ones(30), 5),
    "poisson": lambda: tp.poisson(ones(9) * 30),
    "dropout": lambda: F.dropout(ones(30)),
    "dropout2d": lambda: F.dropout2d(ones(1, 30, 2, 2)),
    "alpha_dropout": lambda: F.alpha_dropout(ones(30), 0.5, True),
    "rrelu": lambda: F.rrelu(-ones(6), training=True),
    "gumbel_softmax": lambda: F.gumbel_softmax(tp.zeros(4)),
    "attention": lambda: F.scaled_dot_product_attention(
        ones(1, 6, 4), ones(1, 6, 4), tp.eye(6, 4)[None], dropout_p=0.5
    ),
    "fractional_max_pool2d": lambda: F.fractional_max_pool2d(tp.rand(1, 1, 6, 6), 2, 3),
    "kaiming_uniform_": lambda: init.kaiming_uniform_(tp.empty(3, 3)),
    "trunc_normal_": lambda: init.trunc_normal_(tp.empty(3, 3)),
    "orthogonal_": lambda: init.orthogonal_(tp.empty(3, 3)),
    "Linear": lambda: tp.nn.Linear(3, 3).weight.detach(),
    "Gamma": lambda: tp.distributions.Gamma(tp.tensor(2.0), tp.tensor(1.0)).sample((4,)),
    **{
        name: lambda name=name, given=given: getattr(tp.empty(30), name)(*given)
        for name, given in {
            "uniform_": (), "normal_": (), "exponential_": (), "cauchy_": (), "geometric_": (0.3,),
            "log_normal_": (), "random_": (), "bernoulli_": (),
        }.items()
    },
}  # fmt: skip
OF_GENERATOR = {
    "rand": lambda g: tp.rand(5, generator=g),
    "randn": lambda g: tp.randn(5, generator=g),
    "randn out": lambda g: tp.randn(5, generator=g, out=tp.empty(5)),
    "randint": lambda g: tp.randint(99, (6,), generator=g),
    "randperm": lambda g: tp.randperm(9, generator=g),
    "bernoulli": lambda g: tp.bernoulli(tp.full((30,), 0.5), generator=g),
    "normal": lambda g: tp.normal(0.0, 1.0, (4,), generator=g),
    "multinomial": lambda g: tp.multinomial(ones(30), 5, generator=g),
    "poisson": lambda g: tp.poisson(ones(6) * 30, generator=g),
    "uniform_": lambda g: tp.empty(5).uniform_(generator=g),
    "exponential_": lambda g: tp.empty(5).exponential_(generator=g),
    "kaiming_normal_": lambda g: init.kaiming_normal_(tp.empty(3, 3), generator=g),
    "random_split": lambda g: tp.tensor(
        tp.utils.data.random_split(range(9), [4, 5], generator=g)[0].indices
    ),
    "RandomSampler": lambda g: tp.tensor(list(tp.utils.data.RandomSampler(range(9), generator=g))),
    "DataLoader": lambda g: tp.cat(
        list(tp.utils.data.DataLoader(tp.arange(9), batch_size=4, shuffle=True, generator=g))
    ),
}


def seeded(draw, seed=5):
    tp.manual_seed(seed)
    return draw().detach()


@pytest.mark.parametrize("draw", GLOBAL.values(), ids=GLOBAL)
def test_the_global_stream(draw):
    first = seeded(draw)
    assert_close(seeded(draw), first, rtol=0, atol=0)
    assert any(not tp.equal(seeded(draw, n), first) for n in (6, 7, 8))
    tp.manual_seed(5)
    draw()
    state = tp.get_rng_state()
    following = [draw().detach() for _ in range(3)]
    assert any(not tp.equal(one, following[0]) for one in following[1:])
    tp.set_rng_state(state)
    for one in following:
        assert_close(draw().detach(), one, rtol=0, atol=0)
    tp.manual_seed(5)
    with tp.random.fork_rng():
        draw()
    assert_close(draw().detach(), first, rtol=0, atol=0)
    for mode in (tp.no_grad, tp.inference_mode):
        with mode():
            assert_close(seeded(draw), first, rtol=0, atol=0)


@pytest.mark.parametrize("draw", GLOBAL.values(), ids=GLOBAL)
@pytest.mark.parametrize("way", ["checkpoint", "reentrant", "compiled"])
def test_the_stream_goes_on_as_without(draw, way):
    def function(x):
        return (x * draw().detach().double().sum()).sum()

    def run(changed):
        x = tp.ones(3, dtype=tp.float64, requires_grad=True)
        call = function
        if changed and way == "compiled":
            call = tp.compile(function)
        elif changed:
            call = lambda x: tp.utils.checkpoint.checkpoint(  # noqa: E731  one of three calls
                function, x, use_reentrant=way == "reentrant"
            )
        tp.manual_seed(3)
        results = [call(x) for _ in range(3)]
        sum(results).backward()
        return [*[r.detach() for r in results], x.grad, tp.rand(2)]

    for got, known in zip(run(True), run(False), strict=True):
        assert_close(got, known)


@pytest.mark.parametrize("draw", OF_GENERATOR.values(), ids=OF_GENERATOR)
def test_a_stream_of_its_own(draw):
    generator = tp.Generator().manual_seed(4)
    before = tp.get_rng_state()
    first = draw(generator)
    assert tp.equal(before, tp.get_rng_state())
    cloned, copied = generator.clone_state(), copy.deepcopy(generator)
    second = draw(generator)
    for twin in (cloned, copied):
        assert tp.equal(draw(twin), second)
    state = generator.manual_seed(4).get_state()
    other = tp.Generator()
    other.set_state(state)
    for one in (first, second):
        assert tp.equal(draw(other), one)
        assert tp.equal(draw(generator), one)
    assert generator.initial_seed() == 4


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["rand", "randn"])
def test_the_same_numbers_in_every_form(name, dtype):
    kind = getattr(tp, dtype)
    function = getattr(tp, name)
    written = {"rand": "uniform_", "randn": "normal_"}[name]
    known = seeded(lambda: function(6, dtype=kind))
    forms = [
        lambda: function(6, out=tp.empty(6, dtype=kind)),
        lambda: function((2, 3), dtype=kind).flatten(),
        lambda: getattr(tp.empty(6, dtype=kind), written)(),
        lambda: getattr(tp.empty(12, dtype=kind)[::2], written)(),
        lambda: getattr(tp.empty(3, 2, dtype=kind).t(), written)().flatten(),
        lambda: getattr(tp, f"{name}_like")(known),
    ]
    for form in forms:
        assert_close(seeded(form), known, rtol=0, atol=0)
