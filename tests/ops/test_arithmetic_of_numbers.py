"""Arithmetic of two Python numbers is a tensor, of the functions for which torch computes it."""

import itertools

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="it is the reference")

NUMBERS = (8, 3, True, False, 2.5, -7.25, 2j)
CALLS = [
    *(
        (name, {})
        for name in ("add", "sub", "subtract", "mul", "multiply", "floor_divide", "true_divide")
    ),
    *((name, {"alpha": 3}) for name in ("add", "sub", "subtract")),
    *(
        (name, {} if mode is None else {"rounding_mode": mode})
        for name in ("div", "divide")
        for mode in (None, "trunc", "floor")
    ),
]


def outcome(library, name, arguments, options):
    """Return the value and the name of its dtype, or the class of the error."""
    try:
        found = getattr(library, name)(*arguments, **options)
    except (RuntimeError, TypeError) as error:
        return type(error)
    return found.item(), str(found.dtype).rpartition(".")[2]


@pytest.mark.parametrize(("name", "options"), CALLS)
def test_two_numbers(name, options):
    for first, second in itertools.product(NUMBERS, repeat=2):
        if not second and "div" in name:
            continue
        found = outcome(tp, name, (first, second), options)
        assert found == outcome(torch, name, (first, second), options), (first, second)
