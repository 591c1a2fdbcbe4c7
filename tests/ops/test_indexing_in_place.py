"""Slices written in place, against torch."""

from __future__ import annotations

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="compares with torch")

# Each is a function of the library, the target and a source of its dtype.
WRITES = {
    "add": lambda L, x, y: x.index_add_(1, L.tensor([2, 0, 2]), y[:, 1:], alpha=3),
    "add nothing": lambda L, x, y: x.index_add_(0, L.tensor([], dtype=L.int64), y[:0]),
    "add by int32": lambda L, x, y: x.index_add_(0, L.tensor([1], dtype=L.int32), y[1:]),
    "add to columns": lambda L, x, y: x.t().index_add_(0, L.tensor([1]), y[:, :1].t()),
    "add to a part": lambda L, x, y: x[:, ::2].index_add_(1, L.tensor([1]), y[:, :1]),
    "copy": lambda L, x, y: x.index_copy_(0, L.tensor([1, 0]), y),
    "fill": lambda L, x, y: x.index_fill_(1, L.tensor([3, -4]), 9),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
@pytest.mark.parametrize("write", WRITES)
def test_slices_are_written_in_place(write: str, dtype: str) -> None:
    results = []
    for lib in (torch, tp):
        x = lib.arange(8).reshape(2, 4).to(getattr(lib, dtype))
        WRITES[write](lib, x, x * 3 + 1)
        results.append(x.tolist())
    assert results[0] == results[1]


def test_slices_are_read_before_they_are_written() -> None:
    x = tp.arange(6.0).reshape(2, 3)
    x.index_copy_(0, tp.tensor([1, 0]), x)
    assert x.tolist() == [[3.0, 4.0, 5.0], [0.0, 1.0, 2.0]]


@pytest.mark.parametrize("place", [3, -1])
def test_a_place_that_is_missing_leaves_all_as_it_is(place: int) -> None:
    x = tp.zeros(3)
    with pytest.raises(IndexError, match="out of bounds"):
        x.index_add_(0, tp.tensor([0, place]), tp.ones(2))
    assert x.tolist() == [0.0, 0.0, 0.0]


def test_shared_memory_is_refused_by_name() -> None:
    with pytest.raises(RuntimeError, match=r"index_add_.*single memory location"):
        tp.zeros(1, 3).expand(2, 3).index_add_(0, tp.tensor([0]), tp.ones(1, 3))


def test_writes_through_a_view_count_and_are_recorded() -> None:
    for lib in (torch, tp):
        x = lib.zeros(2, 3)
        x[0].index_copy_(0, lib.tensor([1]), lib.ones(1))
        assert x.tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
        assert x._version == 1
        source = lib.ones(2, requires_grad=True)
        written = lib.zeros(3).index_add_(0, lib.tensor([0, 0]), source * 2)
        written.sum().backward()
        assert source.grad.tolist() == [2.0, 2.0]
