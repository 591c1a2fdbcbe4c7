"""``_foreach_*`` of all dtypes, beside others: what torch returns, if it does not raise."""

import warnings

import numpy as np
import pytest

import tensorplug as tp
from tensorplug._foreach import _BINARY, _TERNARY, _UNARY, PREFIX

torch = pytest.importorskip("torch", reason="torch says what comes out")

DTYPES = (
    "bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
SHAPES = ((3,), (0,), (2, 2), ())
NUMBERS = (2, 2.5, True, 1j, [1, 2, 3, 4], [1.0, 2, 3.5, 4], [True, False, True, True], [1, 2])


def tensors(lib, seed, dtype):
    draw = np.random.default_rng(seed)
    return [
        lib.tensor((abs(draw.normal(size=shape)) * 3 + 0.2).tolist()).to(getattr(lib, dtype))
        for shape in SHAPES
    ]


def calls(base, dtype):
    """Yield a word and a function of the library that makes the arguments."""
    if base in _UNARY:
        yield "alone", lambda lib: (tensors(lib, 0, dtype),)
        return
    if base in _TERNARY:
        for more in ((), (2,), (2.5,), ([1, 2, 3, 4],)):
            yield (
                f"{more}",
                lambda lib, more=more: (*[tensors(lib, n, dtype) for n in range(3)], *more),
            )
        return
    for other in DTYPES:
        if base != "lerp":
            yield other, lambda lib, other=other: (tensors(lib, 0, dtype), tensors(lib, 1, other))
    for number in (0.5, 2) if base == "lerp" else NUMBERS:
        ends = [1] if base == "lerp" else []
        yield (
            f"{number}",
            lambda lib, number=number, ends=ends: (
                *[tensors(lib, n, dtype) for n in (0, *ends)],
                number,
            ),
        )
    if base not in ("lerp", "sub"):
        yield "a tensor", lambda lib: (tensors(lib, 0, dtype), lib.tensor(2.0))


def known(base, dtype, said):
    """Return whether ours has no dtype of the result, or has a kernel where torch has none."""
    half = dtype == "float16" and ("j" in said or said.startswith("complex"))
    return half or (
        dtype == "bool" and base in ("clamp_max", "clamp_min", "maximum", "minimum", "pow")
    )


def outcome(lib, name, make):
    args = make(lib)
    try:
        result = getattr(lib, name)(*args)
    except (RuntimeError, TypeError, IndexError, NotImplementedError):
        return None
    wide = {True: lib.complex128, False: lib.float64}
    return [
        (str(t.dtype).split(".")[1], tuple(t.shape), np.array(t.to(wide[t.is_complex()]).tolist()))
        for t in (args[0] if result is None else result)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("base", [*_UNARY, *_BINARY, *_TERNARY])
def test_dtypes(base):
    for in_place in ("", "_"):
        name = f"{PREFIX}{base}{in_place}"
        if not hasattr(torch, name):
            continue
        for dtype in DTYPES:
            for said, make in calls(base, dtype):
                if known(base, dtype, said):
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    theirs, ours = outcome(torch, name, make), outcome(tp, name, make)
                assert (ours is None) is (theirs is None), (name, dtype, said)
                for (kind, shape, values), (type_, extent, found) in zip(
                    theirs or (), ours or (), strict=True
                ):
                    assert (kind, shape) == (type_, extent), (name, dtype, said)
                    bound = 2e-2 if "16" in kind else 1e-5
                    assert np.allclose(values, found, rtol=bound, equal_nan=True), (
                        name,
                        dtype,
                        said,
                    )
