"""What dtypes ``out=`` takes of ops that return answers of yes or no, or indices: torch's."""

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch is what is compared with")

CALLS = {
    "any": lambda lib, x, out: lib.any(x, out=out),
    "any of a dim": lambda lib, x, out: lib.any(x, 0, out=out),
    "all": lambda lib, x, out: lib.all(x, out=out),
    "argmax": lambda lib, x, out: lib.argmax(x, 0, out=out),
    "argmin": lambda lib, x, out: lib.argmin(x, 0, out=out),
    "nonzero": lambda lib, x, out: lib.nonzero(x, out=out),
    "searchsorted": lambda lib, x, out: lib.searchsorted(lib.tensor([1, 2]), x, out=out),
    "bucketize": lambda lib, x, out: lib.bucketize(x, lib.tensor([1, 2]), out=out),
    "isposinf": lambda lib, x, out: lib.isposinf(x, out=out),
    "isneginf": lambda lib, x, out: lib.isneginf(x, out=out),
    "signbit": lambda lib, x, out: lib.signbit(x, out=out),
    "isin": lambda lib, x, out: lib.isin(x, x, out=out),
    "eq": lambda lib, x, out: lib.eq(x, x, out=out),
    "logical_not": lambda lib, x, out: lib.logical_not(x, out=out),
}
DTYPES = ("bool", "uint8", "int32", "int64", "float32")


def outcome(lib, name, of, to):
    x, out = lib.ones(2, dtype=getattr(lib, of)), lib.empty(0, dtype=getattr(lib, to))
    try:
        return CALLS[name](lib, x, out).tolist()
    except RuntimeError:
        return "refused"
    except NotImplementedError:  # of the input's dtype
        return "refused"


@pytest.mark.parametrize("name", CALLS)
def test_out(name):
    for of in DTYPES:
        for to in DTYPES:
            assert outcome(tp, name, of, to) == outcome(torch, name, of, to), f"{of} into {to}"
