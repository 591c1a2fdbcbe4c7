"""What a dtype tells of itself."""

import pytest

import tensorplug as tp


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
