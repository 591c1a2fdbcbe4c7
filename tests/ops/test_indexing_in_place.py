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


def _mask(L):
    mask = L.zeros(6, 3, dtype=L.bool)
    mask[2] = True
    return mask


def _set(x, place, value):
    x[place] = value


# Each writes three elements of windows, of which others share the memory.
WINDOWS = {
    "put": lambda L, x, y: x.put_(L.tensor([0, 1, 5]), y),
    "put, added": lambda L, x, y: x.put_(L.tensor([0, 1, 5]), y, accumulate=True),
    "index_put": lambda L, x, y: x.index_put_((L.tensor([0, 2, 5]), L.tensor([1, 2, 0])), y),
    "index_add": lambda L, x, y: x.index_add_(0, L.tensor([2]), y[None]),
    "index_copy": lambda L, x, y: x.index_copy_(0, L.tensor([2]), y[None]),
    "index_fill": lambda L, x, y: x.index_fill_(0, L.tensor([2]), 50),
    "index_reduce": lambda L, x, y: x.index_reduce_(0, L.tensor([2]), y[None], "amax"),
    "scatter": lambda L, x, y: x.scatter_(1, L.tensor([[2, 1, 0]]), y[None]),
    "scatter a number": lambda L, x, y: x.scatter_(1, L.tensor([[2, 1, 0]]), 50),
    "scatter_add": lambda L, x, y: x.scatter_add_(1, L.tensor([[2, 1, 0]]), y[None]),
    "scatter_reduce": lambda L, x, y: x.scatter_reduce_(1, L.tensor([[2, 1, 0]]), y[None], "prod"),
    "masked_fill": lambda L, x, y: x.masked_fill_(_mask(L), 50),
    "masked_scatter": lambda L, x, y: x.masked_scatter_(_mask(L), y),
    "by positions": lambda L, x, y: _set(x, L.tensor([2]), y),
    "by a mask": lambda L, x, y: _set(x, _mask(L), y),
    "by a mask, a number": lambda L, x, y: _set(x, _mask(L), 50),
    "tril": lambda L, x, y: x.tril_(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
@pytest.mark.parametrize("write", WINDOWS)
def test_what_is_written_to_windows_stays(write: str, dtype: str) -> None:
    results = []
    for lib in (torch, tp):
        # torch computes half precision aside, and loses some.
        memory = lib.arange(9).to(lib.float64 if lib is torch else getattr(lib, dtype))
        version = memory._version
        WINDOWS[write](lib, memory[1:].unfold(0, 3, 1), lib.tensor([50, 51, 52]).to(memory.dtype))
        assert memory._version > version
        results.append(memory.tolist())
    assert results[0] == results[1]


OVERLAPPING = {
    **WINDOWS,
    "copy": lambda L, x, y: x.copy_(y),
    "add": lambda L, x, y: x.add_(y),
    "lerp": lambda L, x, y: x.lerp_(y.expand(6, 3), 0.5),
    "addcmul": lambda L, x, y: x.addcmul_(y, y),
    "add, out": lambda L, x, y: L.add(y, L.ones(6, 3), out=x),
    "cumsum": lambda L, x, y: x.cumsum_(0),
    "normal": lambda L, x, y: x.normal_(),
}
for _name in ("tril", "masked_fill", "by positions", "by a mask", "by a mask, a number"):
    del OVERLAPPING[_name]  # which torch writes, with a warning if at all
for _name in ("index_put", "index_fill"):
    del OVERLAPPING[_name]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("write", OVERLAPPING)
def test_expanded_tensors_are_not_written(write: str) -> None:
    for lib in (torch, tp):
        memory = lib.ones(1, 3)
        with pytest.raises(RuntimeError, match="unsupported operation: more than one element"):
            OVERLAPPING[write](lib, memory.expand(6, 3), lib.tensor([50.0, 51.0, 52.0]))
        assert memory.tolist() == [[1.0, 1.0, 1.0]]


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("requires_grad", ["neither", "input", "value", "both"])
@pytest.mark.parametrize("dim", [0, -1])
def test_fills_with_numbers_that_are_tensors(dim, requires_grad, in_place):
    """Each position counts once in the gradient of the number, however often it is named."""
    found = []
    for L in (tp, torch):
        x = L.arange(12.0).reshape(3, 4).requires_grad_(requires_grad in ("input", "both"))
        value = L.tensor(7.0, requires_grad=requires_grad in ("value", "both"))
        filled = x.clone()
        index = L.tensor([1, 0, 1])
        filled = (
            filled.index_fill_(dim, index, value)
            if in_place
            else filled.index_fill(dim, index, value)
        )
        gradients = []
        if filled.requires_grad:
            (filled * L.arange(12.0).reshape(3, 4)).sum().backward()
            gradients = [None if t.grad is None else t.grad.tolist() for t in (x, value)]
        found.append((filled.tolist(), gradients))
    assert found[0] == found[1]
