"""Random numbers: Philox by its published vectors, generators, distributions."""

import math
import pickle
import threading

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.testing.samples.random import philox

CPU = tp.device("cpu")

# Random123's known answers for philox4x32-10 (kat_vectors): counter, key, result.
KNOWN = [
    (0, 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    (2**128 - 1, 2**64 - 1, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        0x03707344_13198A2E_85A308D3_243F6A88,
        0x299F31D0_A4093822,
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_philox_gives_the_published_words(counter, key, words):
    assert tp.ops.philox_bits((4,), key, counter, CPU).tolist() == words
    assert philox((4,), key, counter).tolist() == words


@pytest.mark.parametrize("offset", [0, 5, 2**32 - 2, 2**64 - 3, 2**70])
def test_blocks_follow_each_other_across_the_words_of_the_counter(offset):
    made = tp.ops.philox_bits((23,), 7, offset, CPU)
    assert made.tolist() == philox((23,), 7, offset).tolist()


def test_many_blocks_are_those_computed_one_by_one():
    made = tp.ops.philox_bits((100_003,), 3, 11, CPU)
    for block in (0, 8191, 8192, 20_000):
        words = philox((4,), 3, 11 + block).tolist()
        assert made[4 * block : 4 * block + 4].tolist() == words


def test_a_seed_gives_the_numbers_it_always_gave():
    made = tp.rand(4, generator=tp.Generator().manual_seed(42))
    words = philox((4,), 42, 0)
    assert made.tolist() == ((words >> 8) * 2.0**-24).tolist()
    double = tp.rand(4, dtype=tp.float64, generator=tp.Generator().manual_seed(42))
    bits = (philox((4,), 42, 0) << 21) + (philox((4,), 42, 1) >> 11)
    assert double.tolist() == (bits * 2.0**-53).tolist()


def test_each_call_goes_on_where_the_last_one_stopped():
    generator = tp.Generator().manual_seed(1)
    parts = [tp.rand(4, generator=generator), tp.rand(4, generator=generator)]
    whole = tp.rand(8, generator=generator.manual_seed(1))
    assert tp.cat(parts).tolist() == whole.tolist()


def test_manual_seed_repeats_everything():
    def draw():
        tp.manual_seed(3)
        return [
            tp.rand(3).tolist(),
            tp.randn(3).tolist(),
            tp.randint(9, (3,)).tolist(),
            tp.randperm(9).tolist(),
            tp.empty(3).uniform_(1, 2).tolist(),
            tp.multinomial(tp.ones(5), 3).tolist(),
        ]

    assert draw() == draw()
    assert tp.initial_seed() == 3


def test_state_is_saved_and_restored():
    generator = tp.Generator().manual_seed(2**64 - 1)
    tp.rand(5, generator=generator)
    state = generator.get_state()
    first = tp.rand(3, generator=generator).tolist()
    generator.set_state(state)
    assert tp.rand(3, generator=generator).tolist() == first
    other = pickle.loads(pickle.dumps(generator))
    assert tp.rand(3, generator=other).tolist() == tp.rand(3, generator=generator).tolist()
    with pytest.raises(TypeError, match="uint8"):
        generator.set_state(tp.zeros(16))
    with pytest.raises(RuntimeError, match="16 bytes"):
        generator.set_state(tp.zeros(5, dtype=tp.uint8))


def test_fork_rng_puts_the_generator_back():
    tp.manual_seed(5)
    expected = tp.rand(3).tolist()
    tp.manual_seed(5)
    with tp.random.fork_rng():
        tp.manual_seed(9)
        tp.rand(100)
    assert tp.rand(3).tolist() == expected


@pytest.mark.parametrize("seed", [-1, -(2**63), 2**64 - 1, 0, np.int64(3)])
def test_seeds_of_64_bits_are_taken(seed):
    assert tp.Generator().manual_seed(seed).initial_seed() == int(seed) % 2**64


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_longer_seeds_are_refused(seed):
    with pytest.raises(ValueError, match="64 bits"):
        tp.manual_seed(seed)


def test_threads_draw_different_numbers():
    generator = tp.Generator().manual_seed(0)
    drawn = []

    def draw():
        drawn.extend(tp.rand(4, generator=generator).tolist() for _ in range(50))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = tp.rand(4 * len(drawn), generator=generator.manual_seed(0)).reshape(-1, 4).tolist()
    assert sorted(drawn) == sorted(whole)


def test_a_generator_of_another_device_is_refused():
    with pytest.raises(RuntimeError, match="generator"):
        tp.rand(2, generator=tp.Generator("meta"))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_numbers_stay_below_one(name):
    drawn = tp.rand(200_000, dtype=getattr(tp, name)).to(tp.float64)
    assert float(drawn.min()) >= 0
    assert float(drawn.max()) < 1
    assert abs(float(drawn.mean()) - 0.5) < 0.005


# Sizes and bounds leave a chance of failure under one in a million, and the seed is fixed.
N = 200_000


@pytest.mark.parametrize(
    ("draw", "mean", "variance"),
    [
        (lambda x: x.uniform_(-1, 3), 1, 16 / 12),
        (lambda x: x.normal_(2, 3), 2, 9),
        (lambda x: x.exponential_(0.5), 2, 4),
        (lambda x: x.geometric_(0.25), 4, 12),
        (lambda x: x.log_normal_(0, 0.5), math.exp(0.125), (math.exp(0.25) - 1) * math.exp(0.25)),
        (lambda x: x.bernoulli_(0.3), 0.3, 0.21),
        (lambda x: x.random_(0, 10), 4.5, 99 / 12),
        (lambda x: tp.poisson(x.fill_(3.5)), 3.5, 3.5),
        (lambda x: tp.poisson(x.fill_(40)), 40, 40),
        (lambda x: tp.poisson(x.fill_(1e5)), 1e5, 1e5),
        (lambda x: tp.randn(N, dtype=tp.float64), 0, 1),
        (lambda x: tp.randint(-5, 6, (N,)).to(tp.float64), 0, 10),
        (lambda x: tp.randint(0, 2**40, (N,)).to(tp.float64) / 2**40, 0.5, 1 / 12),
        (lambda x: tp.multinomial(tp.tensor([1.0, 2, 1]), N, True).to(tp.float64), 1, 0.5),
    ],
)
def test_moments(draw, mean, variance):
    tp.manual_seed(0)
    values = np.asarray(draw(tp.empty(N, dtype=tp.float64)).tolist())
    assert abs(values.mean() - mean) < 5 * math.sqrt(variance / N)
    assert abs(values.var() - variance) < 0.04 * variance


def test_normal_numbers_have_the_normal_distribution():
    stats = pytest.importorskip("scipy.stats", reason="scipy supplies the test")
    tp.manual_seed(0)
    assert stats.kstest(tp.randn(50_000).tolist(), "norm").pvalue > 1e-3
    assert stats.kstest(tp.empty(50_000).cauchy_().tolist(), "cauchy").pvalue > 1e-3


def test_multinomial_without_replacement_favours_the_heavy():
    tp.manual_seed(0)
    drawn = tp.multinomial(tp.tensor([1.0, 2.0, 3.0, 0.0]).expand(20_000, 4), 2)
    first = np.bincount(np.asarray(drawn[:, 0].tolist()), minlength=4) / 20_000
    assert np.allclose(first, [1 / 6, 2 / 6, 3 / 6, 0], atol=0.02)
    assert not bool((drawn[:, 0] == drawn[:, 1]).any())


def test_the_widest_ranges():
    tp.manual_seed(0)
    full = tp.randint(-(2**63), 2**63 - 1, (1000,))
    assert bool((full < 0).any())
    assert bool((full > 0).any())
    assert int(tp.empty(1000, dtype=tp.int64).random_().min()) >= 0
    assert set(tp.empty(1000, dtype=tp.bool).random_().tolist()) == {True, False}
    assert int(tp.empty(10_000, dtype=tp.int8).random_().max()) == 127


def test_permutations_are_all_reached():
    tp.manual_seed(0)
    seen = {tuple(tp.randperm(3).tolist()) for _ in range(200)}
    assert len(seen) == 6


FILLS = [
    ("uniform", (2, 3)),
    ("normal", (1, 2)),
    ("random", (3, 90)),
    ("bernoulli", (0.3,)),
    ("exponential", (2.0,)),
    ("geometric", (0.3,)),
    ("cauchy", (1.0, 2.0)),
    ("log_normal", (0.5, 0.25)),
]
TARGETS = {
    "rows": lambda dtype: tp.zeros(6, 19, dtype=dtype),
    "columns": lambda dtype: tp.zeros(19, 6, dtype=dtype).t(),
    "part": lambda dtype: tp.zeros(6, 38, dtype=dtype)[1:, ::2],
    "number": lambda dtype: tp.zeros((), dtype=dtype),
    "nothing": lambda dtype: tp.zeros(3, 0, dtype=dtype),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "float16", "int64", "uint8"])
@pytest.mark.parametrize(("fill", "numbers"), FILLS)
def test_a_fill_draws_what_its_op_does_and_writes_once(fill, numbers, name, target):
    dtype = getattr(tp, name)
    if not dtype.is_floating_point and fill not in ("random", "bernoulli", "geometric"):
        with pytest.raises(NotImplementedError):
            getattr(tp.zeros(2, dtype=dtype), f"{fill}_")(*numbers)
        return
    filled = TARGETS[target](dtype)
    generator = tp.Generator()
    op = getattr(tp.ops, f"random.{fill}")
    wanted = op(filled, *numbers, generator=generator.manual_seed(5))
    for call in range(1, 4):  # the first finds the kernels, and the others have them
        result = getattr(filled, f"{fill}_")(*numbers, generator=generator.manual_seed(5))
        assert result is filled
        assert filled._version == call
        assert tp.equal(filled, wanted)


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("uniform_", [(), (1, 3), (1, 3), (1.0, 3), (2, 3), ()]),
        ("normal_", [(), (1, 2), (1, 2), (1, 3)]),
        ("random_", [(), (), (5,), (5,), (2, 9), (2, 9), (2, 8)]),
        ("bernoulli_", [(), (0.2,), (0.2,), (0.9,)]),
        ("exponential_", [(), (2,), (2,), (3,)]),
        ("geometric_", [(0.2,), (0.2,), (0.7,)]),
        ("cauchy_", [(), (1, 2), (1, 2)]),
        ("log_normal_", [(), (0, 0.5), (0, 0.5)]),
    ],
)
def test_a_fill_like_the_one_before_draws_what_its_arguments_say(name, calls):
    generator = tp.Generator()
    for args in calls:
        for dtype in (tp.float32, tp.float64, tp.float32):
            tp.manual_seed(5)
            given = getattr(tp.zeros(9, dtype=dtype), name)(*args)
            # A call with names is planned anew.
            again = getattr(tp.zeros(9, dtype=dtype), name)(
                *args, generator=generator.manual_seed(5)
            )
            assert given.tolist() == again.tolist(), (args, dtype)


def test_bounds_that_a_dtype_has_no_numbers_for_warn_at_every_fill():
    for _ in range(3):
        with pytest.warns(UserWarning, match="out of bounds"):
            tp.zeros(2).random_(0, 1 << 30)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(
    ("fill", "numbers", "magnitude"),
    [
        ("exponential_", (1e300,), 0.0),
        ("cauchy_", (1e300, 1.0), math.inf),
        ("cauchy_", (0.0, 1e300), math.inf),
        ("log_normal_", (1e300, 1.0), math.inf),
        ("normal_", (1e300, 1.0), math.inf),
        ("normal_", (0.0, 1e300), math.inf),
    ],
)
def test_numbers_beyond_a_dtype_are_infinite_in_every_fill(fill, numbers, magnitude, name):
    for _ in range(3):  # what writes is known after the first
        drawn = getattr(tp.empty(4, dtype=getattr(tp, name)), fill)(*numbers)
        assert drawn.abs().tolist() == [magnitude] * 4


def test_bases_beyond_a_dtype_are_infinite_in_every_logspace():
    for base in (10.0, 1e300, 1e300):
        powers = tp.logspace(tp.tensor(0.0), 1.0, 2, base=base)
        assert powers.tolist() == [1.0, 10.0 if base == 10.0 else math.inf]


def test_chances_may_be_the_tensor_that_is_filled():
    chances = tp.rand(100)
    for _ in range(2):
        filled, generator = chances.clone(), tp.Generator()
        filled.bernoulli_(filled, generator=generator.manual_seed(3))
        assert tp.equal(filled, tp.bernoulli(chances, generator=generator.manual_seed(3)))


def test_filling_a_leaf_that_requires_grad_is_refused():
    leaf = tp.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.uniform_()
    with tp.no_grad():
        leaf.normal_()


@pytest.mark.parametrize(
    "call",
    [
        lambda P: P.rand(2, dtype=P.int64),
        lambda P: P.randint(5, 5, (2,)),
        lambda P: P.randint(300, (2,), dtype=P.uint8),
        lambda P: P.empty(2).uniform_(2, 1),
        lambda P: P.empty(2).normal_(0, -1),
        lambda P: P.empty(2).exponential_(0),
        lambda P: P.empty(2).geometric_(1),
        lambda P: P.bernoulli(P.tensor([1.5])),
        lambda P: P.bernoulli(P.tensor([1])),
        lambda P: P.multinomial(P.ones(3), 4),
        lambda P: P.multinomial(P.zeros(3), 1),
        lambda P: P.multinomial(-P.ones(3), 1),
        lambda P: P.multinomial(P.ones(3, 3, 3), 1),
        lambda P: P.normal(0.0, -1.0, (2,)),
        lambda P: P.randperm(-1),
        lambda P: P.poisson(-P.ones(2)),
    ],
)
def test_torch_refuses_the_same(call):
    torch = pytest.importorskip("torch", reason="torch is the reference")
    with pytest.raises((RuntimeError, TypeError, ValueError)) as theirs:
        call(torch)
    with pytest.raises(theirs.type):
        call(tp)


@pytest.mark.parametrize("dtype", [tp.int8, tp.uint8, tp.int64, tp.float16, tp.float32, tp.bool])
def test_random_from_a_bound_on(dtype):
    low = 0 if dtype in (tp.bool, tp.uint8) else -5
    drawn = tp.empty(2000, dtype=dtype).random_(low, None).double()
    assert int(drawn.min()) >= low
    assert bool((drawn > (0 if dtype is tp.bool else 100)).any())
    named = tp.empty(100, dtype=dtype).random_(**{"from": low, "to": low + 1})
    assert set(named.double().tolist()) == {low}
    with pytest.raises(TypeError, match="each once"):
        tp.empty(3).random_(3, 4, to=5)


@pytest.mark.parametrize(
    ("fill", "args"),
    [
        ("uniform_", ()), ("normal_", ()), ("random_", ()), ("bernoulli_", ()), ("bernoulli_", (0.5,)),
        ("exponential_", ()), ("geometric_", (0.5,)), ("cauchy_", ()), ("log_normal_", ()),
    ],
)  # fmt: skip
def test_dtypes_that_are_filled_are_those_of_torch(fill, args):
    torch = pytest.importorskip("torch", reason="torch is the reference")

    def taken(library, dtype):
        x = library.ones(2, dtype=getattr(library, dtype))
        try:
            getattr(x, fill)(*args)
        except (NotImplementedError, RuntimeError, TypeError):
            assert x.tolist() == [1, 1]
            return False
        return True

    names = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
             "complex64", "complex128")  # fmt: skip
    assert [n for n in names if taken(tp, n)] == [n for n in names if taken(torch, n)]
