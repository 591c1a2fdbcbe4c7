"""What cannot become a tensor, by every way to make one: refused with the error that torch has for it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tensorplug as tp

torch: Any = pytest.importorskip("torch", reason="torch is the reference of these tests")


def outcome(call: Callable[[], Any]) -> Any:
    """Return the type of a call's error, or None."""
    try:
        call()
    except (ArithmeticError, RuntimeError, TypeError, ValueError) as error:
        # Ours are subclasses of what torch raises.
        return next(t for t in type(error).__mro__ if t.__module__ == "builtins")
    return None


# --- nested data -------------------------------------------------------------------------------

BAD: dict[str, Any] = {
    "str": "a",
    "long str": "abc",
    "bytes": b"a",
    "None": None,
    "object": object(),
    "dict": {},
    "array of objects": np.array([None]),
}
AROUND: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "only": lambda x: [x],
    "first": lambda x: [x, 1],
    "last": lambda x: [1, x],
    "in a row": lambda x: [[1, 2], [3, x]],
    "first of a row": lambda x: [[x, 2], [3, 4]],
    "deep": lambda x: ([[x]],),
}


@pytest.mark.parametrize("function", ["tensor", "as_tensor"])
@pytest.mark.parametrize(("bad", "around"), [*itertools.product(BAD, AROUND)])
def test_items_that_are_no_numbers(function: str, bad: str, around: str) -> None:
    data = AROUND[around](BAD[bad])
    wanted = outcome(lambda: getattr(torch, function)(data))
    assert wanted is not None
    assert outcome(lambda: getattr(tp, function)(data)) is wanted


def circles() -> Iterator[list[Any]]:
    """Yield lists that hold themselves, at once or by another, alone and beside numbers."""
    for before, between, after in itertools.product(([], [0]), range(3), ([], [0])):
        top: list[Any] = [*before]
        inner = top
        for _ in range(between):
            deeper: list[Any] = [*before]
            inner.extend([deeper, *after])
            inner = deeper
        inner.extend([top, *after])
        yield top


@pytest.mark.parametrize("function", ["tensor", "as_tensor", "asarray"])
def test_lists_that_hold_themselves(function: str) -> None:
    for data in circles():
        with pytest.raises(TypeError, match="self-referential lists are incompatible"):
            getattr(tp, function)(data)


def test_a_sequence_that_gives_no_items() -> None:
    class Sequence:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, item: int) -> float:
            raise TypeError

    with pytest.raises(ValueError, match="could not determine the shape of object type 'Sequence'"):
        tp.tensor(Sequence())


# --- where it may lie --------------------------------------------------------------------------

LEGACY: dict[str, Callable[[Any, Any], Callable[..., Any]]] = {
    "Tensor": lambda lib, x: lib.Tensor,
    "FloatTensor": lambda lib, x: lib.FloatTensor,
    "new": lambda lib, x: x.new,
}


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("what", ["nothing", "sizes", "numbers", "tensor"])
@pytest.mark.parametrize("way", LEGACY)
def test_first_constructors_of_a_device(way: str, what: str, device: str) -> None:
    found = []
    for lib in (tp, torch):
        x = lib.ones(2)
        data = {"nothing": (), "sizes": (2, 3), "numbers": ((2.0, 3.0),), "tensor": (x,)}[what]
        make = LEGACY[way](lib, x)
        found.append(outcome(lambda: make(*data, device=device)))  # noqa: B023
    assert found[0] is found[1]


SOURCES: dict[str, Callable[[Any], Any]] = {
    "tensor": lambda lib: lib.ones(2),
    "array": lambda lib: np.ones(2),
    "NumPy scalar": lambda lib: np.float64(1),
    "number": lambda lib: 1.0,
    "list": lambda lib: [1.0],
    "capsule": lambda lib: lib.utils.dlpack.to_dlpack(lib.ones(2)),
    "buffer": lambda lib: bytearray(8),
}


@pytest.mark.parametrize("copy", [None, False, True])
@pytest.mark.parametrize("dtype", [None, "float32", "float64"])
@pytest.mark.parametrize("source", SOURCES)
def test_asarray(source: str, dtype: str | None, copy: bool | None) -> None:
    if (source, dtype, copy) == ("NumPy scalar", "float32", True):
        return  # torch raises that it can't alias it, which was not asked for
    made = [
        outcome(
            lambda lib=lib: lib.asarray(
                SOURCES[source](lib), dtype=dtype and getattr(lib, dtype), copy=copy
            )
        )
        for lib in (tp, torch)
    ]
    assert made[0] is made[1]


# --- out= of factories --------------------------------------------------------------------------

FACTORIES: dict[str, tuple[Any, ...]] = {
    "empty": ((2, 3),),
    "zeros": ((2, 3),),
    "ones": ((2, 3),),
    "full": ((2, 3), 1.5),
    "eye": (3,),
    "arange": (3.0,),
    "linspace": (0, 1, 3),
    "logspace": (0, 1, 3),
    "rand": ((2, 3),),
    "randn": ((2, 3),),
    "randint": (0, 5, (2, 3)),
    "randperm": (4,),
}


@pytest.mark.parametrize(
    "options", [{}, {"requires_grad": True}, {"layout": "sparse_coo"}, {"dtype": "int64"}]
)
@pytest.mark.parametrize("name", FACTORIES)
def test_options_beside_out(name: str, options: dict[str, Any]) -> None:
    found = []
    for lib in (tp, torch):
        out = lib.empty(0)
        given = {k: getattr(lib, v) if isinstance(v, str) else v for k, v in options.items()}
        error = outcome(lambda: getattr(lib, name)(*FACTORIES[name], out=out, **given))  # noqa: B023
        found.append((error, error or (out.requires_grad, tuple(out.shape))))
    assert found[0] == found[1]


# --- numbers -------------------------------------------------------------------------------------

FACTORS = (2, 2.5, 1.0, True, False)
ADDED = {"addr": 1, "addmv": 2, "addmm": 3}


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "complex64"])
@pytest.mark.parametrize(("argument", "factor"), [*itertools.product(("alpha", "beta"), FACTORS)])
@pytest.mark.parametrize("name", ADDED)
def test_factors_of_added_products(name: str, argument: str, factor: Any, dtype: str) -> None:
    found = []
    for lib in (tp, torch):
        vector = lib.ones(2, dtype=getattr(lib, dtype))
        matrix = lib.ones(2, 2, dtype=getattr(lib, dtype))
        given = {"addr": (matrix, vector, vector), "addmv": (vector, matrix, vector)}
        call = given.get(name, (matrix, matrix, matrix))
        found.append(outcome(lambda: getattr(lib, name)(*call, **{argument: factor})))  # noqa: B023
    assert found[0] is found[1]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "float16", "int32", "float32"])
def test_permutations_of_more_numbers_than_a_dtype_has(dtype: str) -> None:
    ours, theirs = getattr(tp, dtype), getattr(torch, dtype)
    for count in (127, 128, 129, 256, 257, 258, 2**11 + 1, 2**11 + 2, 2**15, 2**15 + 1):
        wanted = outcome(lambda: torch.randperm(count, dtype=theirs))  # noqa: B023
        assert outcome(lambda: tp.randperm(count, dtype=ours)) is wanted, count  # noqa: B023


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ranges_of_uniform_numbers(dtype: str) -> None:
    largest = torch.finfo(getattr(torch, dtype)).max
    for low, high in itertools.product((-largest, -42, 0, 42, largest), repeat=2):
        ours, theirs = (lib.empty(4, dtype=getattr(lib, dtype)) for lib in (tp, torch))
        wanted = outcome(lambda: theirs.uniform_(low, high))  # noqa: B023
        assert outcome(lambda: ours.uniform_(low, high)) is wanted, (low, high)  # noqa: B023
