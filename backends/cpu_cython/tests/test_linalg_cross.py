"""Cross products in every layout, beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.linalg_cross", reason="cpu_cython is not built")
import tensorplug as tp
from tensorplug_cpu_cython.linalg_cross import cross

PAIRS = [
    ((3,), (3,), 0),
    ((5, 3), (5, 3), 1),
    ((3, 5), (3, 5), 0),
    ((2, 3, 5), (2, 3, 5), 1),
    ((1, 3), (5, 3), -1),
    ((2, 3, 1), (1, 3, 4), 1),
    ((3, 3, 3), (3, 3, 3), 2),
    ((0, 3), (0, 3), 1),
    ((2, 0, 3), (1, 1, 3), 2),
]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
@pytest.mark.parametrize(("first", "second", "dim"), PAIRS)
def test_products(first: Any, second: Any, dim: int, dtype: Any, turned: bool) -> None:
    rng = np.random.default_rng(0)
    a, b = [(rng.standard_normal(shape) * 9).astype(dtype) for shape in (first, second)]
    expected = np.cross(a, b, axis=dim)
    if turned:
        a, b = np.asfortranarray(a), np.repeat(b, 2, 0)[::2]
    np.testing.assert_allclose(cross(a, b, dim), expected, 1e-5, 1e-4)


@pytest.mark.parametrize(("first", "second", "dim"), PAIRS)
def test_gradients(first: Any, second: Any, dim: int) -> None:
    leaves = [tp.randn(shape, dtype=tp.float64).requires_grad_() for shape in (first, second)]
    assert tp.autograd.gradcheck(lambda a, b: tp.linalg.cross(a, b, dim=dim), leaves)
    assert tp.autograd.gradgradcheck(lambda a, b: tp.linalg.cross(a, b, dim=dim), leaves)
    parts = [tp.randn(shape, dtype=tp.complex128).requires_grad_() for shape in (first, second)]
    assert tp.autograd.gradcheck(lambda a, b: tp.linalg.cross(a, b, dim=dim), parts)
