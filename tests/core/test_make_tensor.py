"""make_tensor: what its bounds mean for each dtype, and which arguments it refuses."""

import math

import pytest

import tensorplug as tp
from tensorplug.testing import make_tensor

INTEGERS = [tp.uint8, tp.int8, tp.int16, tp.int32, tp.int64, tp.uint16, tp.uint32, tp.uint64]
FLOATS = [tp.float16, tp.bfloat16, tp.float32, tp.float64]
COMPLEX = [tp.complex32, tp.complex64, tp.complex128]
ALL = [tp.bool, *INTEGERS, *FLOATS, *COMPLEX]


def numbers_of(tensor):
    wide = tensor.to(tp.complex128) if tensor.is_complex() else tensor.to(tp.float64)
    return (tp.view_as_real(wide) if tensor.is_complex() else wide).flatten().tolist()


def limits(dtype):
    info = tp.finfo(dtype) if dtype.is_floating_point or dtype.is_complex else tp.iinfo(dtype)
    return info.min, info.max


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize(("low", "high"), [(None, None), (0, 1), (0, 2), (-3.5, 1.5), (0.25, 8)])
def test_numbers_lie_between_the_bounds(dtype, low, high):
    if dtype is tp.bool and low == 0.25:
        pytest.skip("the one between 0.25 and 8 would be True alone")
    inexact = dtype.is_floating_point or dtype.is_complex
    bottom = (-9 if dtype.is_signed else 0) if low is None else low
    top = (9 if inexact else 2 if dtype is tp.bool else 10) if high is None else high
    found = numbers_of(make_tensor(64, 64, dtype=dtype, low=low, high=high))
    assert min(found) >= bottom
    assert max(found) < top


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, *COMPLEX], ids=str)
def test_bounds_beyond_the_dtype_end_where_it_does(dtype):
    least, most = limits(dtype)
    made = make_tensor(100, dtype=dtype, low=-math.inf, high=math.inf)
    assert all(least <= number <= most for number in numbers_of(made))
    huge = 10**400  # which is no float
    made = make_tensor(100, dtype=dtype, low=-huge, high=huge)
    assert all(least <= number <= most for number in numbers_of(made))
    if 2.0 * most < math.inf:  # else there are no numbers beyond
        for low, high in ((-math.inf, 2.0 * least - 1), (2.0 * most, math.inf)):
            with pytest.raises(ValueError, match=r"The value interval specified .* only supports"):
                make_tensor(2, dtype=dtype, low=low, high=high)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_bounds_in_the_wrong_order_or_not_a_number_are_refused(dtype):
    for low, high in ((1, 0), (1.0, -1)):
        with pytest.raises(ValueError, match="`low` must be less than `high`"):
            make_tensor(2, dtype=dtype, low=low, high=high)
    for low, high in ((math.nan, 1), (0, math.nan)):
        with pytest.raises(ValueError, match="cannot be NaN"):
            make_tensor(2, dtype=dtype, low=low, high=high)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_equal_bounds_are_one_number_in_floating_point(dtype):
    if dtype.is_floating_point or dtype.is_complex:
        with pytest.warns(FutureWarning, match="low==high"):
            made = make_tensor(2, dtype=dtype, low=1, high=1)
        assert set(numbers_of(made)) == {1}
    else:
        with pytest.raises(ValueError, match="`low` must be less than `high`"):
            make_tensor(2, dtype=dtype, low=1, high=1)


@pytest.mark.parametrize("dtype", [tp.bool, *INTEGERS], ids=str)
def test_integers_require_no_grad(dtype):
    with pytest.raises(ValueError, match="`requires_grad=True` is not supported"):
        make_tensor(2, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_zeros_are_replaced_by_the_least_number(dtype):
    if dtype.is_floating_point or dtype.is_complex:
        with pytest.warns(FutureWarning, match="low==high"):
            made = make_tensor(2, dtype=dtype, low=0, high=0, exclude_zero=True)
        assert set(numbers_of(made)) == {tp.finfo(dtype).tiny}
    else:
        assert (make_tensor(50, dtype=dtype, low=0, high=2, exclude_zero=True) == 1).all()


def test_only_several_elements_can_lie_apart():
    for shape in ((), (0,), (1,), (2, 0), (1, 1)):
        assert make_tensor(*shape, dtype=tp.float32, noncontiguous=True).is_contiguous()
    for shape in ((2,), (3, 1), (2, 3)):
        made = make_tensor(*shape, dtype=tp.float32, noncontiguous=True)
        assert made.shape == shape
        assert not made.is_contiguous()
    with pytest.raises(ValueError, match="mutually exclusive"):
        make_tensor(2, dtype=tp.float32, noncontiguous=True, memory_format=tp.contiguous_format)
