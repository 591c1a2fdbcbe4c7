"""Calls that torch warns of: they warn here too, and those beside them do not."""

from __future__ import annotations

import warnings

import pytest

import tensorplug as tp


def bytes_mask(L):
    return L.tensor([1, 0, 1], dtype=L.uint8)


#: By name: a call, whether it warns, and what the warning says.
CALLS = {
    "meshgrid": (lambda L: L.meshgrid(L.ones(2), L.ones(3)), "required to pass the indexing argument"),
    "meshgrid of ij": (lambda L: L.meshgrid(L.ones(2), L.ones(3), indexing="ij"), None),
    "cartesian_prod": (lambda L: L.cartesian_prod(L.ones(2), L.ones(3)), None),
    "range": (lambda L: L.range(0, 3), "range is deprecated"),
    "arange": (lambda L: L.arange(0, 3), None),
    "where": (
        lambda L: L.where(bytes_mask(L), L.ones(3), L.zeros(3)), "received a uint8 condition tensor"
    ),
    "where of bools": (lambda L: L.where(bytes_mask(L).bool(), L.ones(3), L.zeros(3)), None),
    "index": (lambda L: L.ones(3)[bytes_mask(L)], "indexing with dtype .*uint8"),
    "index of bools": (lambda L: L.ones(3)[bytes_mask(L).bool()], None),
    "index among others": (lambda L: L.ones(2, 3)[:, bytes_mask(L)], "indexing with dtype .*uint8"),
    **{
        f"random_ {dtype} {bounds}": (
            lambda L, dtype=dtype, bounds=bounds: L.ones(2, dtype=getattr(L, dtype)).random_(*bounds),
            text,
        )
        for dtype, digits in (("float16", 11), ("bfloat16", 8), ("float32", 24), ("float64", 53))
        for bounds, text in (
            ((2**digits + 1,), None),
            ((2**digits + 2,), "to - 1 is out of bounds"),
            ((-(2**digits), 0), None),
            ((-(2**digits) - 1, 0), "from is out of bounds"),
            ((), None),
        )
    },
    "randint": (lambda L: L.randint(2**25, (2,), dtype=L.float32), "to - 1 is out of bounds"),
    "random_ of integers": (lambda L: L.ones(2, dtype=L.int64).random_(2**40), None),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("lib", ["ours", "torch"])
def test_what_warns(name, lib):
    call, text = CALLS[name]
    L = tp if lib == "ours" else pytest.importorskip("torch", reason="torch is the reference")
    if L is not tp:
        L.set_warn_always(True)
    try:
        if text is None:
            with warnings.catch_warnings(action="error"):
                call(L)
        else:
            with pytest.warns(UserWarning, match=text):
                call(L)
    finally:
        if L is not tp:
            L.set_warn_always(False)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, m: x.__setitem__(m, 5.0),
        lambda x, m: x.index_put_((m,), tp.tensor(5.0)),
        lambda x, m: x.__setitem__(m, tp.ones(2)),
        lambda x, m: x[m],
    ],
)
def test_masks_of_bytes_warn_once(call):
    with pytest.warns(UserWarning, match="uint8 is deprecated") as seen:
        call(tp.zeros(3), bytes_mask(tp))
    assert len(seen) == 1
