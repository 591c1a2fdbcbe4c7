"""Cached functions that programs ask with tensors: compiled as eager, with what callers find in the cache."""

import functools

import pytest

import tensorplug as tp
from tensorplug.graph.caches import Caches

#: What a program asks with: tensors that it makes, whole or as views, gets, or has; numbers among them.
ASKED_WITH = {
    "made": lambda x, state: (x > 0,),
    "a view": lambda x, state: ((x > 0).t(),),
    "made, among numbers": lambda x, state: (x > 0, 2, "name"),
    "given": lambda x, state: (x,),
    "given, as a view": lambda x, state: (x[:2],),
    "given, for nothing": lambda x, state: (x.contiguous(),),
    "written": lambda x, state: (x.add_(1),),
    "state": lambda x, state: (state,),
    "numbers": lambda x, state: (3, x.shape),
}
#: How it asks.
WAYS = {
    "once": lambda cached, asked: cached(*asked) * 2,
    "by keyword": lambda cached, asked: cached(asked[0], rest=asked[1:]) * 2,
    "twice": lambda cached, asked: cached(*asked) + cached(*asked),
    "and with a number": lambda cached, asked: cached(*asked) + cached(1.5),
    "around the cache": lambda cached, asked: cached(*asked) + cached.__wrapped__(*asked),
    "and returns it": lambda cached, asked: (cached(*asked) * 2, asked),
    "and returns what was kept": lambda cached, asked: cached(*asked),
}
MISSING = {"made", "a view", "made, among numbers", "given, as a view"}


def programs(size, make, way):
    """Return a program and the function that it asks, a cached one."""
    state = tp.ones(3, 3)

    @functools.lru_cache(size)
    def cached(*asked, rest=()):
        first = asked[0]
        number = first.sum() if isinstance(first, tp.Tensor) else tp.tensor(float(first))
        return number * len((*asked, *rest)) + tp.arange(3.0)

    def program(x):
        return way(cached, make(x, state))

    return program, cached, state


def story(run, cached, state):
    """Return what calls tell, between which the caller writes what it holds, and asks the cache itself."""
    told = []
    held = [tp.arange(9.0).reshape(3, 3) - 4, tp.ones(3, 3)]
    for number in range(8):
        x = (
            held[number % 2]
            if number < 6
            else tp.randn(3, 3, generator=tp.Generator().manual_seed(1))
        )
        result = run(x)
        result, asked = result if isinstance(result, tuple) else (result, ())
        told.append(result.tolist())
        keys = [key for key in (x, state, *asked) if isinstance(key, tp.Tensor)]
        told += [cached(key).tolist() for key in keys]  # what it kept by these it finds again
        if number == 3:
            held[0].mul_(2)  # by which the cache kept something
        if number == 4:
            result.fill_(9)
        if number == 5:
            cached.cache_clear()
    return told


@pytest.mark.parametrize("size", [None, 1, 4], ids=["all", "one", "four"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("asked", ASKED_WITH)
def test_programs_that_ask_a_cache(asked, way, size):
    told = []
    for compiles in (False, True):
        program, cached, state = programs(size, ASKED_WITH[asked], WAYS[way])
        run = tp.compile(program) if compiles else program
        told.append(story(run, cached, state))
    assert told[0] == told[1]


@pytest.mark.parametrize("asked", sorted(MISSING))
@pytest.mark.parametrize("size", [None, 1])
def test_one_graph_where_the_cache_finds_nothing(asked, size):
    program, _, _ = programs(size, ASKED_WITH[asked], WAYS["once"])
    run = tp.compile(program)
    for number in range(6):
        run(tp.full((3, 3), float(number)))
    explained = run.explain()
    assert (len(explained.graphs), explained.calls, explained.breaks) == (1, 5, [])


def test_a_planted_fault(monkeypatch):
    """What a cache found by an argument counts as found by any: it was so."""
    monkeypatch.setattr(Caches, "find_by", lambda caches, tensors: False)
    for way in WAYS:
        with pytest.raises(AssertionError):
            test_programs_that_ask_a_cache("given", way, None)
