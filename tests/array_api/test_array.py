"""The array object: where the standard's rules are not torch's, it follows the standard."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

import tensorplug as tp
import tensorplug.array_api as xp
from tensorplug.core.tensor.base import version_of

DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32",
    "float64", "complex64", "complex128",
]  # fmt: skip
INTEGERS = [name for name in DTYPES if "int" in name]


def same_kind(a, b):
    """Whether the standard defines how two dtypes promote."""
    kinds = {np.dtype(a).kind, np.dtype(b).kind}
    if kinds == {"i", "u"}:
        return "uint64" not in (a, b)
    return len(kinds) == 1 or kinds == {"f", "c"}


PAIRS = [(a, b) for a in DTYPES for b in DTYPES if same_kind(a, b)]


@pytest.mark.parametrize("shapes", [((2,), ()), ((), (2,)), ((), ()), ((3, 1), (2,))])
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_promotion_knows_no_rule_for_0d_arrays(a, b, shapes):
    x, y = np.ones(shapes[0], a), np.ones(shapes[1], b)
    expected = x | y if a == "bool" else x + y
    left, right = xp.asarray(x), xp.asarray(y)
    found = left | right if a == "bool" else left + right
    assert type(found) is xp.Array
    assert found.dtype.name == str(expected.dtype)
    assert tuple(found.shape) == expected.shape
    assert xp.result_type(left, right).name == str(expected.dtype)


def test_a_plain_tensor_keeps_torch_rules():
    x, y = tp.ones(2, dtype=tp.int8), tp.ones((), dtype=tp.int64)
    assert (x + y).dtype is tp.int8
    assert (x + xp.asarray(y)).dtype is tp.int64  # the Array decides, on either side
    assert (xp.asarray(x) + y).dtype is tp.int64
    assert xp.add(x, y).dtype is tp.int64
    with pytest.raises(ValueError, match="step"):
        x[::-1]


def test_no_common_integer():
    with pytest.raises(TypeError, match=r"astype\(\)"):
        xp.asarray([1], dtype=xp.uint64) + xp.asarray([1], dtype=xp.int8)


@pytest.mark.parametrize("name", DTYPES)
def test_numbers_take_the_dtype_of_the_array(name):
    x = xp.ones(2, dtype=getattr(xp, name))
    number = True if name == "bool" else 1
    found = x & number if name == "bool" else [x + number, number - x, x * number][1]
    assert found.dtype is x.dtype


def test_in_place_keeps_array_and_dtype():
    x = xp.ones(3, dtype=xp.int32)
    y = x
    x += xp.asarray(2, dtype=xp.uint8)
    assert x is y
    assert x.dtype is tp.int32
    assert x.tolist() == [3, 3, 3]


@pytest.mark.parametrize("operator", ["__add__", "__matmul__", "__eq__", "__rsub__", "__lshift__"])
def test_what_is_no_operand_is_not_implemented(operator):
    assert getattr(xp.ones(2, dtype=xp.int64), operator)("text") is NotImplemented


def test_size_is_a_number_and_a_method():
    x = xp.zeros((2, 3))
    assert x.size == 6
    assert x.size() == (2, 3)
    assert x.size(1) == 3


keys = st.deferred(lambda: shapes.flatmap(lambda s: st.tuples(st.just(s), basic(s))))
shapes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


def basic(shape):
    return arrays.basic_indices(shape, allow_newaxis=True)


@settings(max_examples=200)
@given(keys)
def test_getitem_as_numpy(drawn):
    shape, key = drawn
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    found = xp.asarray(x)[key]
    assert type(found) is xp.Array
    np.testing.assert_array_equal(found.numpy(), x[key])


@settings(max_examples=200)
@given(keys)
def test_setitem_as_numpy(drawn):
    shape, key = drawn
    x = np.zeros(shape, int)
    y = xp.asarray(x.copy())
    value = np.arange(x[key].size).reshape(x[key].shape) + 1
    x[key] = value
    y[key] = xp.asarray(value)
    np.testing.assert_array_equal(y.numpy(), x)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_any_integers_index(dtype):
    x = xp.arange(5)
    assert x[xp.asarray([3, 0], dtype=getattr(xp, dtype))].tolist() == [3, 0]


def test_backward_slices_beside_arrays_and_masks():
    n = np.arange(24).reshape(2, 3, 4)
    x = xp.asarray(n)
    mask = np.array([True, False])
    np.testing.assert_array_equal(x[:, xp.asarray([2, 0]), ::-2].numpy(), n[:, [2, 0], ::-2])
    np.testing.assert_array_equal(x[xp.asarray(mask), ..., ::-1].numpy(), n[mask, ..., ::-1])
    x[::-1, 0, 1] = 7.0
    n[::-1, 0, 1] = 7
    np.testing.assert_array_equal(x.numpy(), n)


def test_setitem_converts_the_value():
    x = xp.zeros(3, dtype=xp.float64)
    x[xp.asarray([0, 2])] = xp.asarray([1, 2], dtype=xp.int8)
    assert x.tolist() == [1, 0, 2]


def test_gradients_pass_through():
    x = tp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = xp.asarray(x)
    (xp.sum(y[::-1] * xp.asarray([1.0, 2.0, 3.0])) + xp.max(x)).backward()
    assert x.grad.tolist() == [3, 2, 2]


def test_asarray_shares_memory_and_version():
    x = tp.zeros(2)
    y = xp.asarray(x)
    y[0] = 1
    assert x.tolist() == [1, 0]
    assert version_of(x) == version_of(y) == 1
    assert xp.asarray(x, copy=True).data_ptr() != x.data_ptr()
    with pytest.raises(ValueError, match="without a copy"):
        xp.asarray(x, dtype=xp.float64, copy=False)


def test_to_device():
    x = tp.ones(2)
    assert x.to_device("cpu") is x
    assert type(xp.ones(2).to_device(x.device)) is xp.Array
    with pytest.raises(ValueError, match="stream must be None"):
        x.to_device("cpu", stream=1)


def test_transposes_and_iteration_stay_arrays():
    x = xp.ones((2, 3))
    assert type(x.T) is type(x.mT) is type(next(iter(x))) is xp.Array
    assert x.T.shape == x.mT.shape == (3, 2)
