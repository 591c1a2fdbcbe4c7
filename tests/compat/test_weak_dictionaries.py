"""Dictionaries by identity that keep no key alive, as ``torch.utils.weak`` has them."""

import copy
import gc
import threading

import pytest

import tensorplug as tp
from tensorplug.compat.weak import WeakIdKeyDictionary


def kinds():
    yield pytest.param(WeakIdKeyDictionary, tp, id="own")
    try:
        import torch
        from torch.utils.weak import WeakIdKeyDictionary as Reference
    except ImportError:
        return
    yield pytest.param(Reference, torch, id="torch")


of_both = pytest.mark.parametrize(("Kind", "library"), list(kinds()))


@of_both
def test_keys_are_told_apart_by_identity_and_live_as_long_as_others_hold_them(Kind, library):
    first, second = library.ones(2), library.ones(2)
    held = Kind({first: 1})
    held[second] = 2
    assert (held[first], held[second], len(held)) == (1, 2, 2)
    assert library.ones(2) not in held
    assert list(map(id, held)) == [id(first), id(second)]
    del first
    gc.collect()
    assert list(held.values()) == [2]
    assert repr(held).startswith("<WeakIdKeyDictionary at 0x")
    assert [ref() is second for ref in held.keyrefs()] == [True]


@of_both
def test_what_is_no_key_and_what_is_not_held(Kind, library):
    held, x = Kind(), library.ones(1)
    for call in (held.__getitem__, held.__delitem__, held.pop):
        with pytest.raises(KeyError):
            call(x)
        with pytest.raises(TypeError):
            call(13)
    with pytest.raises(TypeError):
        held[13] = 1
    held[x] = 1
    del held[x]
    assert x not in held


@of_both
def test_copies_and_unions(Kind, library):
    x, y, z = (library.ones(1) for _ in range(3))
    held = Kind({x: [1], y: [2]})
    for made in (held.copy(), copy.copy(held)):
        assert type(made) is Kind
        assert made[x] is held[x]
        made[z] = [3]
        assert z not in held
    deep = copy.deepcopy(held)
    assert deep[x] == [1]
    assert deep[x] is not held[x]
    united = held | {y: [5], z: [3]}
    assert [united[key] for key in (x, y, z)] == [[1], [5], [3]]
    united = {y: [5], z: [3]} | held
    assert [united[key] for key in (x, y, z)] == [[1], [2], [3]]
    assert type(united) is Kind
    before = held
    held |= {x: [7]}
    assert held is before
    assert held[x] == [7]
    with pytest.raises(TypeError):
        held | [1]


def test_other_threads_may_drop_keys_while_it_is_copied():
    keys = [tp.ones(1) for _ in range(3000)]
    held = WeakIdKeyDictionary(dict.fromkeys(keys, 0))

    def drop():
        while keys:
            keys.pop()

    thread = threading.Thread(target=drop)
    thread.start()
    sizes = [len(made) for _ in range(50) for made in (held.copy(), copy.deepcopy(held))]
    thread.join()
    assert max(sizes) <= 3000
    gc.collect()
    assert len(held) == 0
