"""Links compute what their loops do, bit for bit: each one alone, at hand as first and as second argument."""

import random
from contextlib import suppress

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.pointwise_tiles", reason="cpu_cython is not built")
import tensorplug as tp
from tensorplug_cpu_cython import pointwise, pointwise_fused
from tensorplug_cpu_cython.pointwise_chains import LOAD, STORE, chains_of
from tensorplug_cpu_cython.pointwise_tiles import Tiles

LINKS = {**pointwise.links(), **pointwise_fused.links()}
TYPES = {0: np.float32, 1: np.float64}
NUMBERS = (0.3, 1.7, 0.7, 0.9)
#: Less than a block, some blocks, more than a tile.
LENGTHS = (1, 100, 128, 1000, 9001)
SPECIAL = [0.0, -0.0, 1, -1, 0.5, -2.5, 20, 89, -89, 104, np.inf, -np.inf, np.nan, 3e38, 1e-40]


def arguments_of(fused):
    """Return how many arrays an op takes."""
    for count in (1, 2, 3):
        with suppress(TypeError):
            fused.call((np.ones(1),) * count, NUMBERS)
            return count
    raise AssertionError


def loops():
    """Return all loops with a link: name, type, address, number of arguments."""
    owners = [(name, pointwise.Unary(name), 1) for name in pointwise.names("unary")]
    owners += [(name, pointwise.Binary(name), 2) for name in pointwise.names("binary")]
    fused = [(name, pointwise_fused.Fused(name)) for name in pointwise_fused.names()]
    owners += [(name, owner, arguments_of(owner)) for name, owner in fused]
    return {
        f"{name}-{TYPES[number].__name__}": (number, owner.loop(number)[0], count)
        for name, owner, count in owners
        for number in TYPES
        if owner.loop(number)[0] in LINKS
    }


LOOPS = loops()


def values(draw, number, length):
    """Return numbers of all sizes, special ones among them."""
    made = np.asarray([draw.gauss(0, 3) for _ in range(length)], TYPES[number])
    for position in range(0, length, 7):
        made[position] = draw.choice(SPECIAL)
    return made


def tiles(number, shapes, calls, between, shape):
    order = tuple(range(len(shape)))
    strides = np.empty(shape, TYPES[number]).strides
    given = [(number, s) for s in shapes]
    return Tiles(shape, order, given, [(number, strides)], calls, between, 1024)


def equal(found, wanted):
    """Compare the bits; of NaN the sign may differ."""
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(found), ~numbers)
    assert found[numbers].tobytes() == wanted[numbers].tobytes()


@pytest.mark.parametrize("turned", [False, True], ids=["first", "second"])
@pytest.mark.parametrize("name", LOOPS)
def test_each_link_against_its_loop(name, turned):
    number, loop, count = LOOPS[name]
    if turned and not LINKS[loop][1]:
        turned = False
    square = pointwise.Unary("square").loop(number)[0]
    draw = random.Random(name)
    for shape in [(n,) for n in LENGTHS] + [(3, 700), (5, 130)]:
        for other in [shape, (), (shape[-1],)]:
            shapes = [shape] + [other] * (count - 1)
            arrays = [values(draw, number, int(np.prod(s))).reshape(s) for s in shapes]
            at_hand = count - 1 if turned else 0
            # The argument at hand is a square, made before, and the result is negated.
            squared, result = count + 1, count + 2
            own = [squared if k == at_hand else k for k in range(count)]
            calls = [
                (square, (), (at_hand, squared)),
                (loop, NUMBERS, (*own, result)),
                (pointwise.Unary("neg").loop(number)[0], (), (result, count)),
            ]
            assert [c[:2] for c in chains_of(calls, count + 1, LINKS)] == [(0, 3)]
            (found,) = tiles(number, shapes, calls, [(number, 0), (number, 1)], shape)(arrays)
            single = tiles(number, shapes[at_hand : at_hand + 1], [(square, (), (0, 1))], [], shape)
            (first,) = single(arrays[at_hand : at_hand + 1])
            arguments = [first if k == at_hand else a for k, a in enumerate(arrays)]
            alone = [(loop, NUMBERS, tuple(range(count + 1)))]
            (second,) = tiles(number, [a.shape for a in arguments], alone, [], shape)(arguments)
            equal(found, -second)


def test_links_of_random_programs_compute_what_calls_do():
    linked = {10: (100, 0, 4), 20: (200, 201, 4), 30: (300, 0, 4), 40: (400, 0, 8)}
    counts = {10: 1, 20: 2, 30: 3, 40: 1, 50: 1}
    chained = 0
    for seed in range(300):
        draw = random.Random(seed)
        arrays, registers, calls = 5, [0, 1, 2], []
        for number in range(draw.randint(1, 12)):
            loop = draw.choice([10, 20, 20, 20, 30, 40, 50])
            given = [registers[-1 - min(int(draw.expovariate(1)), 2)] for _ in range(counts[loop])]
            result = 3 + number if number < 2 else 8 + number
            calls.append((loop, (), (*given, result)))
            registers.append(result)
        needed = {3, 4, *(r for call in calls for r in call[2][:-1])} & set(registers)
        wanted = {r: ("given", r) for r in range(3)}
        for loop, _, (*given, result) in calls:
            wanted[result] = (loop, *(wanted[r] for r in given))
        memory = {r: ("given", r) for r in range(3)}
        done = 0
        for first, last, links in [*chains_of(calls, arrays, linked), (len(calls), len(calls), [])]:
            for loop, _, (*given, result) in calls[done:first]:
                memory[result] = (loop, *(memory[r] for r in given))
            chained += last - first
            at_hand = None
            for code, _, own in links:
                if code == LOAD:
                    at_hand = memory[own[0]]
                elif code == STORE:
                    memory[own[0]] = at_hand
                elif code == 201:
                    at_hand = (20, memory[own[0]], at_hand)
                else:
                    at_hand = (code // 10, at_hand, *(memory[r] for r in own))
            assert len(links) <= 3 * (last - first)
            done = last
        read_later = {r for r in needed if r in (3, 4)}
        assert all(memory[r] == wanted[r] for r in read_later)
        assert all(memory[r] == value for r, value in wanted.items() if r in memory)
    assert chained > 300


def test_chains_of_strided_rows_and_several_threads():
    before = tp.get_num_threads()
    try:
        for threads in (1, 3):
            tp.set_num_threads(threads)
            x, y = tp.randn(9, 2000)[:, ::2], tp.randn(9, 1)
            for a, b in ((x, y), (x.contiguous(), y), (x.t(), y.t()), (x[:, 3:], tp.randn(1, 997))):

                def program(a, b):
                    c = (a * 2 - b).tanh()
                    return c, (c + a).sigmoid() * c / (1 - c.square())

                compiled = tp.compile(program)
                with tp.no_grad():
                    for _ in range(3):
                        for found, wanted in zip(compiled(a, b), program(a, b), strict=True):
                            assert tp.equal(found, wanted)
    finally:
        tp.set_num_threads(before)
