"""Convolutions by products with columns, of all shapes, in slabs and by several samples, against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")
import tensorplug as tp
from tensorplug_cpu_cython import convolution_columns
from tensorplug_cpu_numpy.kernels import convolution as reference

NAMES = ("convolution", "convolution_input", "convolution_weight")


def positions(size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> list[int]:
    each = zip(size, kernel, stride, padding, dilation, strict=True)
    return [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in each]


def problem(shape: Any, weight: Any, options: Any, groups: int, bias: bool, dtype: Any) -> Any:
    """Return the arguments of each of the three."""
    rng = np.random.default_rng(0)
    where = positions(shape[2:], weight[2:], *options)
    x, w, g, b = (
        rng.uniform(-1, 1, s).astype(dtype)
        for s in (shape, weight, (shape[0], weight[0], *where), weight[:1])
    )
    return (
        (x, w, b if bias else None, *options, groups),
        (g, w, tuple(shape[2:]), *options, groups),
        (x, g, tuple(weight[2:]), *options, groups),
    )


def check(problems: Any) -> None:
    for name, arguments in zip(NAMES, problems, strict=True):
        dtype = arguments[0].dtype
        wide = [a.astype(float) if isinstance(a, np.ndarray) else a for a in arguments]
        expected = getattr(reference, name)(*wide)
        found = getattr(convolution_columns, name)(*arguments)
        assert found.dtype == dtype
        assert found.flags.c_contiguous
        allowed = 1e-12 if dtype == np.float64 else 2e-5
        np.testing.assert_allclose(
            found, expected, allowed, allowed * max(1, np.abs(expected).max())
        )


@st.composite
def windows(draw: Any) -> Any:
    dims, groups = draw(st.integers(1, 3)), draw(st.integers(1, 3))

    def per_dimension(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(low, high), min_size=dims, max_size=dims)))

    inputs, outputs = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    shape = (draw(st.sampled_from([1, 3, 600])), groups * inputs, *per_dimension(1, 9))
    weight = (groups * outputs, inputs, *per_dimension(1, 4))
    options = per_dimension(1, 4), per_dimension(0, 4), per_dimension(1, 3)
    assume(min(positions(shape[2:], weight[2:], *options)) > 0)
    return problem(
        shape,
        weight,
        options,
        groups,
        draw(st.booleans()),
        draw(st.sampled_from([np.float32, np.float64])),
    )


@settings(max_examples=100, deadline=None, derandomize=True)
@given(windows())
def test_windows_of_all_shapes(problems: Any) -> None:
    check(problems)


@pytest.mark.parametrize("shape", [(2, 40, 9000), (2, 20, 90, 70), (2, 20, 21, 20, 19)], ids=str)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
def test_slabs(shape: Any, stride: int, groups: int, threads: int) -> None:
    dims = len(shape) - 2
    weight = (6, shape[1] // groups, *[3] * dims)
    check(
        problem(
            shape, weight, ((stride,) * dims, (1,) * dims, (1,) * dims), groups, True, np.float64
        )
    )


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", [tp.float64, tp.int64, tp.int32, tp.uint8])
def test_the_ops_run_by_them(dims: int, dtype: Any) -> None:
    for name in (f"conv{dims}d", f"conv_transpose{dims}d"):
        x, w = (
            tp.randint(0, 9, (2, 3, *[5] * dims)).to(dtype),
            tp.randint(0, 9, (3, 3, *[2] * dims)).to(dtype),
        )
        found = getattr(tp.nn.functional, name)(x, w, stride=2)
        with tp.prefer("cpu_numpy"):
            expected = getattr(tp.nn.functional, name)(x.double(), w.double(), stride=2)
        assert found.dtype == dtype
        assert tp.equal(found, expected.long().to(dtype))


@pytest.mark.parametrize(
    ("x", "w", "groups"),
    [
        (np.zeros((0, 2, 5)), np.zeros((2, 2, 3)), 1),
        (np.zeros((2, 5, 5, 4)).transpose(0, 3, 1, 2), np.zeros((2, 4, 3, 3)), 1),
        (np.zeros((2, 2, 5), np.int64), np.zeros((2, 2, 3), np.int64), 1),
    ],
    ids=["no images", "channels last", "integers"],
)
def test_what_is_left_to_others(x: Any, w: Any, groups: int) -> None:
    options = [(n,) * (x.ndim - 2) for n in (1, 0, 1)]
    assert convolution_columns.convolution(x, w, None, *options, groups) is None
