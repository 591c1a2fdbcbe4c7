"""Special values, mixed dtypes, positions and random numbers: as on the CPU."""

from functools import partial

import numpy as np
import pytest
from on_device import FLOATS, agree, integers, needs_device, randoms

import tensorplug as tp
import tensorplug.amp
from tensorplug_cuda_cupy.runtime import generator_state

pytestmark = needs_device
ops = tp.ops
NAN, INF = float("nan"), float("inf")


def same(op, *arguments, equal_nan=True, **tolerance):
    """Compare an op on the device with the CPU, of the same arguments."""
    there = [a.to("cuda") if isinstance(a, tp.Tensor) else a for a in arguments]
    found, expected = op(*there), op(*arguments)
    pairs = (
        [(found, expected)] if isinstance(found, tp.Tensor) else zip(found, expected, strict=True)
    )
    for one, other in pairs:
        tp.testing.assert_close(one.cpu(), other, equal_nan=equal_nan, **tolerance)


# --- single numbers -----------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, -0.1, 3.5, -7.25, 1e30, -1e-30, INF, -INF, NAN]


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("name", ["remainder", "floor_divide", "logaddexp"])
def test_floats(dtype, name):
    a, b = tp.meshgrid(*[tp.tensor(SPECIAL, dtype=dtype)] * 2, indexing="ij")
    tolerance = {"rtol": 1e-6 if dtype == tp.float32 else 1e-14, "atol": 0}
    same(getattr(ops, name), a, b, **tolerance)
    found = getattr(ops, name)(a.to("cuda"), b.to("cuda")).cpu()
    expected = getattr(ops, name)(a, b)
    assert tp.equal(found.signbit()[expected == 0], expected.signbit()[expected == 0])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", ["fmod", "bitwise_left_shift", "bitwise_right_shift"])
def test_integers(dtype, name):
    limits = np.iinfo(dtype)
    values = [limits.min, limits.max, 1, 3, 7, limits.max // 3, 100, 5]
    by = [number for number in (1, 3, 7, 31, 63, 64, 100, limits.max) if number <= limits.max]
    if limits.min < 0 and name != "fmod":
        by += [-1, limits.min]
    a, b = tp.meshgrid(*[tp.from_numpy(np.array(n, dtype)) for n in (values, by)], indexing="ij")
    same(getattr(ops, name), a, b, rtol=0, atol=0)


def test_rows_that_are_infinite_or_no_numbers():
    x = randoms(6, 5).float()
    x[0], x[1, 2], x[2, 1], x[3, :4] = -INF, INF, NAN, -INF
    for array, dim in ((x, 1), (x, 0), (x.t(), 1), (x[:, ::2], 1)):
        same(tp.Tensor.softmax, array, dim)
    x[4] = 0
    for array, dim in ((x, 1), (x.t(), 0)):
        same(ops.normalize, array, 2, dim, 1e-12)


def test_pooling_of_what_is_no_number_and_of_nothing():
    x = tp.tensor([[[1, NAN, 2, NAN, -INF, -INF, 3, 3]]])
    same(ops.max_pool, x, (2,), (2,), (0,), (1,), False)
    same(ops.max_pool, x[:0], (2,), (2,), (0,), (1,), False)
    same(ops.avg_pool, x[:0], (2,), (2,), (0,), False, True, None)
    for size in (3, 0):
        same(ops.adaptive_avg_pool, x[:size], (3 - size,))
    same(ops.adaptive_avg_pool_backward, x[..., :0], (1, 1, 4))


def test_classes_that_are_none():
    x, target, ignored = randoms(3, 4).float(), tp.tensor([0, 4, -1]), tp.full((3,), -100)
    for found in (
        ops.nll_loss(x.to("cuda"), target.to("cuda"), reduction="none"),
        ops.cross_entropy(x.to("cuda"), target.to("cuda"), reduction="none"),
    ):
        assert found.isnan().tolist() == [False, True, True]
    for reduction in ("mean", "sum"):
        same(partial(ops.cross_entropy, reduction=reduction), x, ignored)
        same(ops.cross_entropy_backward, tp.ones(()), x, ignored, None, -100, reduction)
        same(partial(ops.cross_entropy, reduction=reduction), x[:0], ignored[:0])


def test_batch_norm_far_from_zero():
    x = randoms(64, 3, 5, 5).float() + 1000
    _, mean, rstd = ops.native_batch_norm(*[t.to("cuda") for t in (x, tp.ones(3), tp.ones(3))], 0.0)
    variance, right = tp.var_mean(x.double(), (0, 2, 3), correction=0)
    tp.testing.assert_close(mean.cpu().double(), right, rtol=1e-6, atol=0)
    tp.testing.assert_close(rstd.cpu().double(), variance.rsqrt(), rtol=1e-4, atol=0)


# --- mixed dtypes -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16], ids=lambda dtype: dtype.name)
def test_norms_of_halves_by_float32_numbers(dtype):
    x, g = randoms(4, 3, 5, 5), randoms(4, 3, 5, 5, seed=1)
    numbers = [randoms(3, seed=n).abs().float() + 0.5 for n in range(2, 6)]

    def normalized(x, g, weight, bias, *statistics):
        narrow = x.dtype not in (tp.float32, tp.float64)
        more = [n.to(tp.float32 if narrow else tp.float64) for n in (weight, bias, *statistics)]
        zeros = [tp.zeros_like(more[0])] * 2
        found = ops.native_batch_norm(x, *more[:2], 1e-3)
        back = ops.native_batch_norm_backward(g, *zeros, x, more[0], *more[2:])
        assert not narrow or {t.dtype for t in (*found[1:], *back[1:])} == {tp.float32}
        return *found, *back, ops.batch_norm_inference(x, *more[2:], *more[:2], 1e-3)

    agree(normalized, (x, g, *numbers), dtype, times=2)


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64], ids=lambda dtype: dtype.name)
def test_running_statistics(dtype):
    numbers = [randoms(7, seed=n).abs() + 0.5 for n in range(4)]

    def moved(mean, var, *batch):
        ops.batch_norm_update_stats(mean, var, *batch, 0.1, 1e-3, 1.25)
        return mean, var

    for layout in (tp.Tensor.contiguous, lambda x: tp.stack([x, x], -1)[..., 0]):
        agree(moved, numbers, dtype, layout)


@pytest.mark.parametrize(
    ("scale", "tracker", "found"),
    [(8.0, 0, 0.0), (8.0, 2, 0.0), (8.0, 1, 1.0), (3e38, 2, 0.0)],
)
def test_update_scale(scale, tracker, found):
    given = [tp.tensor(scale), tp.tensor(tracker, dtype=tp.int32), tp.tensor(found)]
    there = [t.to("cuda") for t in given]
    tp.ops.amp.update_scale(*there, 2.0, 0.5, 3)
    tp.ops.amp.update_scale(*given, 2.0, 0.5, 3)
    assert [t.item() for t in there] == [t.item() for t in given]


# --- positions ----------------------------------------------------------------------------------

ALL = [*FLOATS, tp.uint8, tp.int8, tp.int16, tp.int32, tp.int64]


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("way", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("own", [True, False])
def test_scatter_reduce(dtype, way, own):
    input, src = integers(1, 5, (4, 600)).to(dtype), integers(1, 5, (3, 500), 1).to(dtype)
    index = integers(0, 4, (3, 500), 2)
    same(lambda x, i, y: x.scatter_reduce(0, i, y, way, include_self=own), input, index, src)


@pytest.mark.parametrize(
    "dtype", [*ALL, tp.bool, tp.complex64, tp.complex128], ids=lambda dtype: dtype.name
)
def test_index_put_accumulates(dtype):
    input, values = integers(1, 5, (5, 3)).to(dtype), integers(1, 5, (4, 3), 1).to(dtype)
    rows, columns = tp.tensor([1, 4, 1, -1]), tp.tensor([[0], [2], [0], [1]])

    def put(x, values, rows, columns):
        return (
            x.index_put([rows], values, accumulate=True),
            x.index_put([rows[:, None], columns], values[:, :1], accumulate=True),
            x.index_put([None, columns[:, 0]], values[:, :1].t(), accumulate=True),
        )

    same(put, input, values, rows, columns, rtol=0, atol=0)


def test_writes_go_into_strided_memory():
    memory = tp.zeros(4, 6, device="cuda")
    out = memory[:, ::2]
    out.index_put_(
        [tp.tensor([1, 1], device="cuda")], tp.ones(2, 3, device="cuda"), accumulate=True
    )
    assert memory[1].tolist() == [2, 0, 2, 0, 2, 0]
    out.scatter_add_(1, tp.tensor([[0, 0]], device="cuda"), tp.ones(1, 2, device="cuda"))
    assert memory[0].tolist() == [2, 0, 0, 0, 0, 0]


def test_positions_that_are_not_there_are_left_out():
    rows = tp.tensor([3, -4, 0], device="cuda")
    found = tp.zeros(3, 2, device="cuda").index_put(
        [rows], tp.ones(3, 2, device="cuda"), accumulate=True
    )
    assert found.tolist() == [[1, 1], [0, 0], [0, 0]]


def test_large_scatters():
    index, values = integers(0, 100, (100_000,)), tp.ones(100_000)
    same(lambda index, values: values.new_zeros(100).scatter_add(0, index, values), index, values)
    for dtype in (tp.uint8, tp.int16, tp.bfloat16):
        ones = tp.ones(100, dtype=dtype, device="cuda")
        few = tp.arange(100, device="cuda") % 7
        total = tp.zeros(7, dtype=dtype, device="cuda").index_add(0, few, ones)
        assert total.cpu().tolist() == np.bincount(np.arange(100) % 7).tolist()


# --- random numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "seed", "offset"),
    [
        ((4,), 0, 0),
        ((7, 5), 1234567890123456789, 3),
        ((0, 3), 1, 1),
        ((), 5, 9),
        ((40,), 2**64 - 1, 2**64 - 2),  # the lower half of the counter wraps around
        ((9,), 42, 2**128 - 1),
        ((1000,), 7, 1 << 70),
    ],
)
def test_philox_gives_the_bits_of_the_cpu(shape, seed, offset):
    found = ops.philox_bits(shape, seed, offset, tp.device("cuda"))
    assert tp.equal(found.cpu(), ops.philox_bits(shape, seed, offset, tp.device("cpu")))


def test_random_numbers_are_those_of_the_cpu():
    for shape in ((5,), (1000, 33)):
        tp.manual_seed(3)
        expected = tp.rand(*shape)
        tp.manual_seed(3)
        assert tp.equal(tp.rand(*shape, device="cuda").cpu(), expected)


def test_a_replayed_graph_draws_further_numbers():
    import cupy

    def bits(seed, offset):
        return ops.philox_bits((6,), seed, offset, tp.device("cuda")).tolist()

    def kept():
        return ops.native_dropout(tp.ones(5, device="cuda"), 0.5, 7, 13)[1].tolist()

    shift = generator_state.Shift(cupy.zeros(2, cupy.uint64))
    generator_state.begin(shift)
    try:
        first, dropped = bits(7, 11), kept()
        assert shift.blocks == 4
        shift.array[0] = shift.blocks
        again = bits(7, 11)
        shift.array[1] = 7 ^ 9  # another seed
        other = bits(7, 11)
    finally:
        generator_state.end()
    assert [first, again, other, dropped] == [bits(7, 11), bits(7, 15), bits(9, 15), kept()]
