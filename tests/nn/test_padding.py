"""Padding of short and long dimensions, which are copied in different ways, beside NumPy's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
import tensorplug.nn.functional as F

MODES: dict[str, Any] = {"circular": "wrap", "replicate": "edge", "reflect": "reflect"}
# Added and taken away, at one end and at both.
ENDS = [(0, 0), (1, 2), (0, 3), (2, 0), (-2, 3), (3, -1), (-1, -2), (-2, 0)]
LENGTHS = [5, 63, 64, 255, 256, 300]


def places(mode: str, length: int, before: int, after: int) -> np.ndarray:
    """Return which element comes where, padded by NumPy and then cut."""
    every = np.arange(length)
    if mode == "circular":  # what is left goes around
        every = every[max(-before, 0) : length - max(-after, 0)]
    padded = np.pad(every, (max(before, 0), max(after, 0)), MODES[mode])
    if mode == "circular":
        return padded
    return padded[max(-before, 0) : len(padded) - max(-after, 0)]


def compared(mode: str, shape: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal(shape)
    input = tp.tensor(values, requires_grad=True)
    found = F.pad(input, sizes, mode)
    expected, numbers = values, np.arange(values.size).reshape(shape)
    for i in range(len(sizes) // 2):
        dim = len(shape) - 1 - i
        where = places(mode, shape[dim], sizes[2 * i], sizes[2 * i + 1])
        expected, numbers = expected.take(where, dim), numbers.take(where, dim)
    assert found.tolist() == expected.tolist()
    weights = rng.standard_normal(expected.shape)
    (gradient,) = tp.autograd.grad(found, input, tp.tensor(weights))
    added = np.zeros(values.size)
    np.add.at(added, numbers, weights)
    np.testing.assert_allclose(gradient.numpy().reshape(-1), added, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("ends", ENDS, ids=str)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("mode", MODES)
def test_one_dimension(mode: str, length: int, ends: tuple[int, int]) -> None:
    compared(mode, (2, 3, length), ends)


@pytest.mark.parametrize("shape", [(2, 70, 6), (2, 6, 70), (2, 3, 260, 65)], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_two_dimensions(mode: str, shape: tuple[int, ...]) -> None:
    if len(shape) == 3:
        shape = (1, *shape)
    for last, before_last in itertools.product(ENDS[::2], ENDS[1::3]):
        compared(mode, shape, (*last, *before_last))
