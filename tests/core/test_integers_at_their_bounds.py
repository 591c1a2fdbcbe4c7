"""Integers near the ends of their dtype, in ops whose results are floating-point numbers."""

import numpy as np
import pytest

import tensorplug as tp

ENDS = {
    name: [np.iinfo(name).min, np.iinfo(name).min + 1, 0, 1, 3, np.iinfo(name).max]
    for name in ("uint8", "int8", "int16", "int32")
}


def both(name, values=None):
    values = ENDS[name] if values is None else values
    return tp.tensor(values, dtype=getattr(tp, name)), np.array(values, np.float64)


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("kind", "tuvw")
def test_shifted_polynomials(kind, name):
    x, exact = both(name)
    shifted = getattr(tp.special, f"shifted_chebyshev_polynomial_{kind}")
    plain = getattr(tp.special, f"chebyshev_polynomial_{kind}")
    for n in range(4):
        expected = plain(tp.tensor(2 * exact - 1), n)
        np.testing.assert_allclose(shifted(x, n).tolist(), expected.tolist(), rtol=2e-6)


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("places", [None, "uint8", "int8", "int64", "float64"])
def test_areas(name, places):
    heights, exact = both(name)
    where = [5, 4, 100, 2, 1, 0]
    x = None if places is None else tp.tensor(where, dtype=getattr(tp, places))
    steps = np.ones(5) if places is None else np.diff(np.array(where, float))
    areas = (exact[1:] + exact[:-1]) / 2 * steps
    found = tp.trapezoid(heights, x)
    assert found.dtype is (tp.float64 if places == "float64" else tp.float32)
    np.testing.assert_allclose(found.item(), areas.sum(), rtol=1e-6)
    found = tp.cumulative_trapezoid(heights, x).tolist()
    np.testing.assert_allclose(found, areas.cumsum(), rtol=1e-6, atol=abs(areas).max() * 1e-6)


@pytest.mark.parametrize("name", ["uint8", "int8", "int16"])
def test_slopes(name):
    values, exact = both(name)
    found = tp.gradient(values)[0].tolist()
    np.testing.assert_allclose(found, np.gradient(exact), rtol=1e-6)


def test_a_place_without_dimensions_counts_for_the_dtype():
    torch = pytest.importorskip("torch", reason="torch is the reference")
    for y in ("int64", "float16", "float32"):
        for x in ("int64", "float32", "float64"):
            kinds = [
                str(
                    library.trapezoid(
                        library.ones(2, dtype=getattr(library, y)),
                        library.tensor(2, dtype=getattr(library, x)),
                    ).dtype
                ).rpartition(".")[2]
                for library in (tp, torch)
            ]
            assert kinds[0] == kinds[1], (y, x)


@pytest.mark.parametrize("first", ["uint8", "int64", "float32"])
@pytest.mark.parametrize("second", ["uint8", "int64", "float32", "float64"])
@pytest.mark.parametrize("shapes", [((2,), ()), ((), ()), ((2, 1), (1,)), ((), (2, 2))])
def test_dtype_of_block_diag(first, second, shapes):
    torch = pytest.importorskip("torch", reason="torch is the reference")
    found, expected = (
        library.block_diag(
            *(
                library.ones(shape, dtype=getattr(library, name))
                for shape, name in zip(shapes, (first, second), strict=True)
            )
        )
        for library in (tp, torch)
    )
    assert str(found.dtype).rpartition(".")[2] == str(expected.dtype).rpartition(".")[2]
    assert found.tolist() == expected.tolist()
