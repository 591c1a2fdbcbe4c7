"""``_foreach_*``: each function of torch's, with every sort of argument."""

import pytest

import tensorplug as tp
from tensorplug._foreach import NAMES, PREFIX

torch = pytest.importorskip("torch", reason="torch says what comes out")

FIRST = [[[0.6, 1.2], [0.9, 0.7]], [0.5, 1.5, 0.8]]
SECOND = [[[0.3, 0.4], [1.9, 0.8]], [0.5, 1.1, 0.2]]
THIRD = [[[1.3, 1.4], [0.9, 0.6]], [1.5, 1.4, 0.7]]
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "clamp_max", "clamp_min", "pow")


def tensors(m, values):
    return [m.tensor(value, dtype=m.float64) for value in values]


def arguments(name):
    """Return functions of the module that make (positional, named) arguments beside the list."""
    base = name.rstrip("_")
    second, third = (lambda m: tensors(m, SECOND)), (lambda m: tensors(m, THIRD))
    if base in BINARY:
        yield lambda m: ((second(m),), {})
        yield lambda m: ((2.0,), {})
        yield lambda m: (([2.0, 3.0],), {})
        if base in ("add", "sub"):
            yield lambda m: ((second(m),), {"alpha": 2})
        if base in ("add", "mul", "div"):
            yield lambda m: ((m.tensor(3.0, dtype=m.float64),), {})
    elif base in ("addcmul", "addcdiv"):
        yield lambda m: ((second(m), third(m)), {})
        yield lambda m: ((second(m), third(m), 2.0), {})
        yield lambda m: ((second(m), third(m)), {"value": 2.0})
        yield lambda m: ((second(m), third(m), [2.0, 3.0]), {})
        yield lambda m: ((second(m), third(m)), {"scalars": [2.0, 3.0]})
        yield lambda m: ((second(m), third(m), m.tensor([2.0, 3.0], dtype=m.float64)), {})
    elif base == "lerp":
        yield lambda m: ((second(m), 0.3), {})
        yield lambda m: ((second(m), third(m)), {})
    elif base == "copy":
        yield lambda m: ((second(m),), {})
    elif base in ("norm", "powsum"):
        yield lambda m: ((3,), {})
    elif base != "mm":
        yield lambda m: ((), {})


def test_every_function_of_torch_is_there():
    theirs = {name for name in dir(torch) if name.startswith(PREFIX)}
    assert theirs == {PREFIX + name for name in NAMES}
    for name in theirs:
        assert getattr(tp, name).__name__ == name


@pytest.mark.parametrize("name", sorted(NAMES))
def test_values(name):
    for make in arguments(name):
        found = []
        for m in (torch, tp):
            first = tensors(m, FIRST)
            positional, named = make(m)
            result = getattr(m, PREFIX + name)(first, *positional, **named)
            assert name.endswith("_") == (result is first)
            found.append([tp.tensor(x.tolist(), dtype=tp.float64) for x in (*result, *first)])
        tp.testing.assert_close(found[1], found[0], equal_nan=True)


def test_lists_of_different_lengths():
    with pytest.raises(RuntimeError, match="same number"):
        tp._foreach_add([tp.ones(1), tp.ones(2)], [tp.ones(1)])
    with pytest.raises(RuntimeError, match="at least one"):
        tp._foreach_add([], 1)


@pytest.mark.parametrize("name", sorted(name for name in NAMES if name.rstrip("_") in BINARY))
def test_refused_complex_numbers_name_the_function(name):
    """What an ordering is asked of complex numbers says which function was called, in place or not."""
    base = name.rstrip("_")
    z = [tp.ones(2, dtype=tp.complex64)]
    if base not in ("maximum", "minimum", "clamp_max", "clamp_min"):
        getattr(tp, PREFIX + name)(z, z)
        return
    for other in (z, 1.0, [1.0]):
        with pytest.raises(NotImplementedError, match=rf"^{base}\(\) is not implemented for dtype"):
            getattr(tp, PREFIX + name)(z, other)
