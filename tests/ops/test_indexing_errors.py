"""Errors of ops that share their checks name the op that was called."""

import pytest

import tensorplug as tp

CALLS = {
    "index_add": lambda x, *rest: x.index_add(*rest),
    "index_reduce": lambda x, *rest: x.index_reduce(*rest, "amax"),
    "index_copy": lambda x, *rest: x.index_copy(*rest),
}
WRONG = {
    "too many rows": (0, [0], tp.ones(2)),
    "other dtype": (0, [0], tp.ones(1, dtype=tp.float64)),
    "a matrix of positions": (0, [[0]], tp.ones(1)),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("wrong", WRONG)
def test_the_op_is_named(name, wrong):
    dim, index, source = WRONG[wrong]
    with pytest.raises((RuntimeError, IndexError), match=rf"^{name}\(\): "):
        CALLS[name](tp.ones(3), dim, tp.tensor(index), source)
