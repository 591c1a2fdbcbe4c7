"""Ops of several steps in one pass: every layout, dtype and special value against NumPy in float64."""

import itertools

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.pointwise_fused", reason="cpu_cython is not built")
import tensorplug as tp
from tensorplug_cpu_cython.pointwise_fused import Fused

SPECIAL = np.array([0.0, -0.0, 1, -1, 0.5, -2.5, 7, np.inf, -np.inf, np.nan, 3e38], np.float32)


def _clamped(x, low, high):
    return np.minimum(np.maximum(x, low), high)


# name, the op on tensors, the same on arrays, how many tensors
OPS = [
    ("add", lambda x, y: tp.add(x, y, alpha=0.75), lambda x, y: x + 0.75 * y, 2),
    ("sub", lambda x, y: tp.sub(x, y, alpha=3), lambda x, y: x - 3 * y, 2),
    ("lerp near", lambda x, y: tp.lerp(x, y, 0.25), lambda x, y: x + 0.25 * (y - x), 2),
    ("lerp far", lambda x, y: tp.lerp(x, y, 0.75), lambda x, y: y - 0.25 * (y - x), 2),
    ("hypot", tp.hypot, np.hypot, 2),
    ("logaddexp", tp.logaddexp, np.logaddexp, 2),
    ("clamp", lambda x: tp.clamp(x, -0.5, 2), lambda x: _clamped(x, -0.5, 2), 1),
    ("crossed", lambda x: tp.clamp(x, 2, -0.5), lambda x: _clamped(x, 2, -0.5), 1),
    ("nan bound", lambda x: tp.clamp(x, float("nan"), 1), lambda x: x * np.nan, 1),
    ("clamp tensors", tp.clamp, _clamped, 3),
    ("addcmul", lambda *xs: tp.addcmul(*xs, value=0.5), lambda x, y, z: x + 0.5 * y * z, 3),
    ("addcdiv", lambda *xs: tp.addcdiv(*xs, value=-2), lambda x, y, z: x - 2 * y / z, 3),
    ("frac", tp.frac, lambda x: x - np.trunc(x), 1),
    ("isinf", tp.isinf, np.isinf, 1),
    ("isfinite", tp.isfinite, np.isfinite, 1),
    ("nan_to_num", lambda x: tp.nan_to_num(x, 5.0, 6.0, 7.0), None, 1),
]
BY_NAME = {name: rest for name, *rest in OPS}


def expected(reference, arrays):
    if reference is None:
        return np.nan_to_num(arrays[0], nan=5.0, posinf=6.0, neginf=7.0)
    with np.errstate(all="ignore"):
        return reference(*[array.astype(np.float64) for array in arrays])


def check(op, reference, arrays, rtol=1e-5):
    result = op(*[tp.from_numpy(array) for array in arrays]).numpy()
    with np.errstate(over="ignore"):
        wanted = expected(reference, arrays).astype(result.dtype)
    np.testing.assert_allclose(result, wanted, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", BY_NAME)
def test_special_values_in_every_combination(name):
    op, reference, count = BY_NAME[name]
    some = SPECIAL[:-1]  # the squares of the last overflow in float alone
    pairs = np.array(list(itertools.product(some, repeat=count)), np.float32)
    check(op, reference, [np.ascontiguousarray(column) for column in pairs.T])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("name", BY_NAME)
def test_dense_strided_broadcast_and_large_arrays(name, dtype):
    op, reference, count = BY_NAME[name]
    generator = np.random.default_rng(0)

    def array(*shape):
        return generator.uniform(0.5, 3, shape).astype(dtype)

    rtol = 2e-2 if dtype is np.float16 else 2e-6
    layouts = [
        [array(7, 33)] * count,
        [array(33, 7).T for _ in range(count)],
        [array(14, 99)[::2, ::3] for _ in range(count)],
        [array(7, 33), array(33), array(7, 1)][:count],
        [array(7, 33), array(), array()][:count],
        [array(7, 33), array(7, 33), array()][:count],
        [array(7, 33), array(), array(7, 33)][:count],
        [array(2, 3, 5).transpose(1, 2, 0) for _ in range(count)],
        [array(0, 3) for _ in range(count)],
        [array(70_001) for _ in range(count)],
    ]
    for arrays in layouts:
        check(op, reference, arrays, rtol)


def test_hypot_neither_overflows_nor_vanishes():
    big = tp.tensor([3e38, 3e-30, float("inf"), float("nan")])
    other = tp.tensor([1e38, 4e-30, float("nan"), 1.0])
    expected = np.hypot(big.numpy().astype(np.float64), other.numpy().astype(np.float64))
    np.testing.assert_allclose(tp.hypot(big, other).numpy(), expected, rtol=1e-6)


def test_tensors_of_integers_go_along_with_those_of_floats():
    x, n = tp.tensor([0.5, 1.5, 2.5]), tp.tensor([1, 2, 2])
    assert tp.addcmul(x, n, n).tolist() == [1.5, 5.5, 6.5]
    assert tp.addcdiv(x, x, n).tolist() == [1.0, 2.25, 3.75]
    assert tp.clamp(x, n - 1, n).tolist() == [0.5, 1.5, 2.0]


def test_clamp_of_integers():
    x = tp.tensor([-(2**60), -3, 0, 5, 2**60])
    assert x.clamp(-3, 4).tolist() == [-3, -3, 0, 4, 4]
    assert x.clamp(4, -3).tolist() == [-3] * 5
    assert x.clamp(0.5, 1.5).dtype is tp.float32
    assert x.clamp(0, 2**70 // 2**60).tolist() == [0, 0, 0, 5, 1024]
    assert tp.tensor([3, 200], dtype=tp.uint8).clamp(5, 100).tolist() == [5, 100]
    with pytest.raises(RuntimeError, match="cast"):
        x.clamp_(0, 1.5)
    assert x.clamp_(-1, 1).tolist() == [-1, -1, 0, 1, 1]


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16, np.int8, np.uint8])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_division_of_integers(name, dtype):
    limits = np.iinfo(dtype)
    generator = np.random.default_rng(0)
    edges = [
        limits.min,
        limits.min + 1,
        limits.max,
        limits.max - 1,
        limits.max // 2 + 1,
        1,
        2,
        3,
        7,
    ]
    edges += [0] if limits.min == 0 else [0, -1, -2, -3, -7]
    if dtype is np.int64:
        edges += [2**50, 2**50 - 1, -(2**50), 2**52 + 1, -(2**53) - 1]
    x, y = np.array(list(itertools.product(edges, [e for e in edges if e])), dtype).T
    small = generator.integers(max(limits.min, -100), 100, (2, 3000)).astype(dtype)
    small[1][small[1] == 0] = 1
    for a, b in ((x, y), small, (small[0][::2], small[1][1::2]), (small[0], small[1][:1])):
        a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(a, b)
        result = getattr(tp, name)(tp.from_numpy(a), tp.from_numpy(b))
        np.testing.assert_array_equal(result.numpy(), expected)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(tp, name)(tp.from_numpy(small[0].copy()), 0)
    written = tp.from_numpy(small[0].copy())
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(written, f"{name}_")(0)
    np.testing.assert_array_equal(written.numpy(), small[0])


WRITES = [
    ("clamp_", lambda x, y: x.clamp_(0.7, 1.5), lambda x, y: x.clamp(0.7, 1.5)),
    ("clamp_ tensors", lambda x, y: x.clamp_(y, y + 1), lambda x, y: x.clamp(y, y + 1)),
    ("lerp_", lambda x, y: x.lerp_(y, 0.3), lambda x, y: x.lerp(y, 0.3)),
    ("lerp_ tensor", lambda x, y: x.lerp_(y, y), lambda x, y: x.lerp(y, y)),
    ("addcmul_", lambda x, y: x.addcmul_(y, y, value=2), lambda x, y: x.addcmul(y, y, value=2)),
    ("addcdiv_", lambda x, y: x.addcdiv_(x, y), lambda x, y: x.addcdiv(x, y)),
    ("add_", lambda x, y: x.add_(y, alpha=0.5), lambda x, y: x.add(y, alpha=0.5)),
    ("sub_", lambda x, y: x.sub_(y, alpha=0.5), lambda x, y: x.sub(y, alpha=0.5)),
]


@pytest.mark.parametrize(("name", "write", "op"), WRITES)
def test_writing_in_place_gives_the_same(name, write, op):
    values = tp.rand(6, 8) + 0.5
    for x, y in (
        (values.clone(), tp.rand(6, 8) + 0.5),
        (values.clone()[:, ::2], tp.rand(6, 4) + 0.5),
        (values.clone().t(), tp.rand(8, 6) + 0.5),
        (values.clone(), tp.rand(8) + 0.5),
        (values.clone(), tp.tensor(0.75)),
    ):
        for _ in range(2):  # the second call is known
            expected, version = op(x, y), x._version
            assert write(x, y) is x
            np.testing.assert_array_equal(x.numpy(), expected.numpy())
            assert x._version == version + 1
    # What is read lies where it is written, one element on.
    memory = tp.rand(9) + 0.5
    x, y = memory[1:], memory[:-1]
    expected = op(x.clone(), y.clone())
    write(x, y)
    np.testing.assert_array_equal(x.numpy(), expected.numpy())


@pytest.mark.parametrize(("name", "write", "op"), WRITES)
def test_writing_in_place_is_differentiated(name, write, op):
    start, y = tp.rand(5) + 0.5, tp.rand(5) + 0.5
    gradients = []
    for function in (write, op):
        x, other = start.clone().requires_grad_(), y.clone().requires_grad_()
        function(x * 1.0, other).sum().backward()
        gradients.append((x.grad, other.grad))
    for mine, theirs in zip(*gradients, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-6)


@pytest.mark.parametrize("write", [write for _, write, _ in WRITES])
def test_a_leaf_that_requires_grad_is_not_written(write):
    x = tp.rand(3).requires_grad_()
    with pytest.raises(RuntimeError, match="leaf"):
        write(x, tp.ones(3))
    with tp.no_grad():
        write(x, tp.ones(3))


def test_a_tensor_given_twice_is_told_apart_from_two():
    x, y = tp.tensor([1.0, 2.0]), tp.tensor([10.0, 20.0])
    for _ in range(3):
        assert tp.lerp(x, x, 0.25).tolist() == [1.0, 2.0]
        assert tp.lerp(x, y, 0.25).tolist() == [3.25, 6.5]
        assert tp.addcmul(x, y, y).tolist() == [101.0, 402.0]
        assert tp.addcmul(x, x, y).tolist() == [11.0, 42.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_limits_of_products_with_logarithms(dtype):
    special = np.array([0.0, -0.0, 1, -1, 2, np.inf, -np.inf, np.nan, 1e-300], dtype)
    x, y = (np.ascontiguousarray(side.ravel()) for side in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        exact = {
            "xlogy": np.where(np.isnan(y), y, np.where(x == 0, 0, x * np.log(y))),
            "xlog1py": np.where(np.isnan(y), y, np.where(x == 0, 0, x * np.log1p(y))),
            "logaddexp2": np.logaddexp2(x, y),
        }
    for name, expected in exact.items():
        np.testing.assert_allclose(Fused(name).call((x, y)), expected, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_of_no_dimension_repeat(dtype):
    x = np.random.default_rng(0).standard_normal(1000).astype(dtype)
    half, two = np.asarray(0.5, dtype), np.asarray(2.0, dtype)
    call = Fused("clamp_tensors").call
    np.testing.assert_array_equal(call((x, -half, half)), np.clip(x, -half, half))
    np.testing.assert_allclose(Fused("addcmul").call((half, x, two), (3,)), half + 6 * x, rtol=1e-6)
    np.testing.assert_array_equal(call((half, two, x)), np.minimum(x, two))
    np.testing.assert_array_equal(call((half, two, two)), two)
