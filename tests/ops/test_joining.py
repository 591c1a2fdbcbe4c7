"""Joining empty vectors."""

from __future__ import annotations

from typing import Any

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="compares with torch")


@pytest.mark.parametrize("dim", [0, 1])
def test_an_empty_vector_beside_others_has_a_gradient(dim: int) -> None:
    for lib in (torch, tp):
        empty = lib.zeros(0, requires_grad=True)
        full = lib.ones(2, 3, requires_grad=True)
        lib.cat([empty, full, empty], dim).sum().backward()
        assert empty.grad is not None
        assert tuple(empty.grad.shape) == (0,)
        assert full.grad.tolist() == [[1.0] * 3] * 2


def test_empty_vectors_alone_are_joined() -> None:
    empty: list[Any] = [tp.zeros(0, requires_grad=True) for _ in range(2)]
    tp.cat(empty).sum().backward()
    assert [tuple(x.grad.shape) for x in empty] == [(0,), (0,)]


@pytest.mark.parametrize("dim", [1, -2, 5])
def test_empty_vectors_have_every_dimension(dim):
    assert tp.cat([tp.tensor([]), tp.tensor([])], dim).shape == (0,)
    with pytest.raises(IndexError):
        tp.cat([tp.tensor([]), tp.ones(1)], dim)
