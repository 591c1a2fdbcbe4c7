"""Convolutions of few channels by wide windows, against NumPy's in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
from tensorplug_cpu_cython import convolution_few_channels  # noqa: E402
from tensorplug_cpu_numpy.kernels import convolution as reference  # noqa: E402

LAYOUTS = ("rows", "channels last", "others")


@pytest.fixture(autouse=True, scope="module")
def without_avx512() -> Any:
    """Have it serve on all processors: with AVX-512 oneDNN has layouts for these."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_features, "level", lambda: "v3")
        yield


def laid_out(array: Any, layout: str) -> Any:
    if layout == "rows":
        return array
    if layout == "channels last":
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)
    return np.repeat(array, 2, axis=-1)[..., ::2]


@st.composite
def problems(draw: Any) -> Any:
    dims = draw(st.integers(1, 2))

    def per_dimension(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(low, high), min_size=dims, max_size=dims)))

    size, kernel = per_dimension(1, 40), per_dimension(1, 13)
    options = per_dimension(1, 5), per_dimension(0, 9), per_dimension(1, 3)
    assume(max(kernel) > 7)
    spans = zip(size, kernel, options[1], options[2], strict=True)
    assume(all(n + 2 * p > d * (k - 1) for n, k, p, d in spans))
    rng = np.random.default_rng(0)
    channels, filters = draw(st.integers(2, 7)), draw(st.sampled_from([8, 15, 16, 33, 64]))
    shapes = (draw(st.integers(1, 3)), channels, *size), (filters, channels, *kernel), (filters,)
    x, w, b = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes)
    return x, w, b if draw(st.booleans()) else None, *options


def expected(x: Any, w: Any, b: Any, *options: Any) -> Any:
    wide = [None if array is None else array.astype(float) for array in (x, w, b)]
    return reference.convolution(*wide, *options, 1)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(problems(), st.sampled_from(LAYOUTS))
def test_windows(problem: Any, layout: str) -> None:
    x, *rest = problem
    given = laid_out(x, layout)
    found = convolution_few_channels.convolution(given, *rest, 1)
    wanted = expected(*problem)
    assert found.dtype == np.float32
    assert found.shape == wanted.shape
    last = layout == "channels last" and not given.flags.c_contiguous
    assert (np.moveaxis(found, 1, -1) if last else found).flags.c_contiguous
    np.testing.assert_allclose(found, wanted, 1e-5, 2e-6 * max(1, np.abs(wanted).max()))
    same = convolution_few_channels.convolution(x, *rest, 1)
    assert np.array_equal(found, same)  # sums do not depend on how the image lies


@pytest.mark.parametrize("width", [1, 95, 96, 97, 200])
def test_rows_in_parts(width: int) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.uniform(-1, 1, (2, 3, 5, width)), rng.uniform(-1, 1, (17, 3, 5, 9))
    problem = x.astype(np.float32), w.astype(np.float32), None, (1, 1), (1, 4), (1, 1)
    found = convolution_few_channels.convolution(*problem, 1)
    np.testing.assert_allclose(found, expected(*problem), 1e-5, 1e-5)


def test_sums_do_not_depend_on_the_threads() -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s, dtype=np.float32) for s in ((3, 3, 64, 64), (24, 3, 11, 11)))
    before = cpu_features.get_num_threads()
    try:
        found = []
        for threads in (1, 3):
            cpu_features.set_num_threads(threads)
            found.append(
                convolution_few_channels.convolution(x, w, None, (4, 4), (2, 2), (1, 1), 1)
            )
    finally:
        cpu_features.set_num_threads(before)
    assert np.array_equal(*found)


@pytest.mark.parametrize("place", ["image", "weight", "bias"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_no_number_comes_out(place: str, number: float) -> None:
    x, w, b = np.ones((1, 2, 12, 12)), np.ones((9, 2, 9, 9)), np.ones(9)
    {"image": x[0, 1, 5], "weight": w[3, 0, 4], "bias": b[3:]}[place][0] = number
    problem = *(a.astype(np.float32) for a in (x, w, b)), (1, 1), (0, 0), (1, 1)
    found = convolution_few_channels.convolution(*problem, 1)
    np.testing.assert_array_equal(found, expected(*problem))


@pytest.mark.parametrize(
    ("shape", "weight", "groups"),
    [
        ((1, 3, 20, 20), (16, 3, 7, 7), 1),  # oneDNN has a layout
        ((1, 8, 20, 20), (16, 8, 9, 9), 1),
        ((1, 1, 20, 20), (16, 1, 9, 9), 1),
        ((1, 3, 20, 20), (7, 3, 9, 9), 1),  # too few filters
        ((1, 4, 20, 20), (16, 2, 9, 9), 2),
        ((1, 2, 9, 9, 9), (8, 2, 9, 9, 9), 1),
        ((0, 3, 20, 20), (16, 3, 9, 9), 1),
    ],
    ids=str,
)
def test_others_are_left_alone(shape: Any, weight: Any, groups: int) -> None:
    arrays = np.ones(shape, np.float32), np.ones(weight, np.float32)
    ones = (1,) * (len(shape) - 2)
    found = convolution_few_channels.convolution(*arrays, None, ones, ones, ones, groups)
    assert found is None
