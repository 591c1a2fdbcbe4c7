"""What a dtype tells of itself."""

import pytest

import tensorplug as tp
from tensorplug.core.device.dtypes import ALL_DTYPES


@pytest.mark.parametrize("name", ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16"])
def test_integers_have_no_complex_dtype(name):
    dtype = getattr(tp, name)
    with pytest.raises(RuntimeError, match=f"no complex dtype of {name}"):
        dtype.to_complex()
    assert dtype.to_real() is dtype


@pytest.mark.parametrize(
    ("name", "of_parts"),
    [
        ("float16", "complex32"),
        ("bfloat16", "complex64"),
        ("float32", "complex64"),
        ("float64", "complex128"),
    ],
)
def test_floating_point_has_one(name, of_parts):
    assert getattr(tp, name).to_complex() is getattr(tp, of_parts)
    assert getattr(tp, of_parts).to_complex() is getattr(tp, of_parts)


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=lambda dtype: dtype.name)
def test_all_that_a_dtype_tells(dtype):
    torch = pytest.importorskip("torch", reason="torch says what a dtype tells")
    theirs = getattr(torch, dtype.name)
    for name in ("itemsize", "is_floating_point", "is_complex", "is_signed"):
        assert getattr(dtype, name) == getattr(theirs, name), name
    for limits, names in (
        ("finfo", "bits eps max min tiny smallest_normal resolution dtype"),
        ("iinfo", "bits max min dtype"),
    ):
        try:
            expected = getattr(torch, limits)(theirs)
        except (TypeError, RuntimeError):
            with pytest.raises(TypeError):
                getattr(tp, limits)(dtype)
            continue
        found = getattr(tp, limits)(dtype)
        for name in names.split():
            assert getattr(found, name) == getattr(expected, name), name
        if limits == "finfo":  # of integers, torch's shows six digits
            assert repr(found) == repr(expected)
