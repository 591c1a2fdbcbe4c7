"""The kernels of networks, compiled for the host, give what the CPU's kernels and the ops' bodies give."""

import numpy as np
import pytest
from test_kernels_on_host import FLOATS, NATIVE, as_tensor, check, randoms

import tensorplug as tp
from tensorplug_cuda_cupy import replays
from tensorplug_cuda_cupy.kernels import (
    activations,
    attention,
    embedding,
    losses,
    pooling,
    random,
    recurrent,
)

pytestmark = [
    pytest.mark.usefixtures("on_host"),
    pytest.mark.xdist_group("cuda sources on the host"),  # one worker compiles them
]
HALVES = pytest.mark.parametrize("dtype", ["float16", "bfloat16"])


def to_last(array):
    """Return the same numbers with the channels inside."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


def close(found, expected, dtype="float32", **tolerance):
    loose = {"float16": 2e-2, "bfloat16": 1e-1}.get(dtype)
    if loose is not None:
        tolerance |= {"atol": loose, "rtol": loose}
    elif dtype == "float32" and not tolerance:
        tolerance = {"atol": 1e-5, "rtol": 1e-5}
    shape = np.shape(found)  # which as_tensor makes at least one dimension of
    tp.testing.assert_close(as_tensor(found).reshape(shape), expected, **tolerance)


# --- pooling ------------------------------------------------------------------------------------

POOLINGS = pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "dilation", "ceil_mode"),
    [
        ((9,), (3,), (2,), (1,), (1,), False),
        ((8, 7), (3, 2), (2, 1), (1, 0), (1, 2), True),
        ((5, 6), (2, 2), (3, 3), (0, 0), (1, 1), False),
        ((4, 5, 4), (2, 2, 3), (1, 2, 1), (0, 1, 1), (1, 1, 1), True),
    ],
)


@FLOATS
@POOLINGS
@pytest.mark.parametrize("last", [False, True])
def test_max_pool(dtype, size, kernel, stride, padding, dilation, ceil_mode, last):
    x = randoms((2, 3, *size), dtype)
    options = (kernel, stride, padding, dilation, ceil_mode)
    expected = tp.ops.max_pool(as_tensor(x), *options)
    shown = to_last(x) if last else x
    values, places = pooling.max_pool(shown, *options)
    check(values, expected[0])
    assert places.tolist() == expected[1].tolist()
    assert np.moveaxis(values, 1, -1).flags.c_contiguous == last
    g = randoms(values.shape, dtype, 1)
    wide = tp.ops.max_pool_gradient(as_tensor(g).to(tp.float64), expected[1], x.shape)
    found = pooling.max_pool_gradient(g, places, x.shape)
    assert found.dtype == g.dtype
    close(found, wide.to(as_tensor(g).dtype), dtype)


def test_max_pool_of_what_is_no_number():
    x = np.array([[[1, np.nan, 2, np.nan, -np.inf, -np.inf, 3, 3]]], np.float32)
    values, places = pooling.max_pool(x, (2,), (2,), (0,), (1,), False)
    assert places.tolist() == [[[1, 3, 4, 6]]]
    assert np.isnan(values[0, 0, :2]).all()
    assert values[0, 0, 2:].tolist() == [-np.inf, 3]


@FLOATS
@POOLINGS
@pytest.mark.parametrize("last", [False, True])
def test_avg_pool(dtype, size, kernel, stride, padding, dilation, ceil_mode, last):
    x = randoms((2, 3, *size), dtype)
    for include, divisor in ((True, None), (False, None), (True, 5)):
        options = (kernel, stride, padding, ceil_mode, include, divisor)
        expected = tp.ops.avg_pool(as_tensor(x).to(tp.float64), *options)
        found = pooling.avg_pool(to_last(x) if last else x, *options)
        close(found, expected.to(as_tensor(x).dtype), dtype)
        g = randoms(found.shape, dtype, 1)
        back = tp.ops.avg_pool_gradient(as_tensor(g).to(tp.float64), size, *options)
        shown = to_last(g) if last else g
        close(pooling.avg_pool_gradient(shown, size, *options), back.to(as_tensor(g).dtype), dtype)


@FLOATS
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("size", "wanted"),
    [((7,), (3,)), ((3,), (7,)), ((5, 8), (2, 3)), ((4, 5, 6), (3, 5, 4)), ((1, 9), (1, 1))],
)
def test_adaptive_avg_pool(dtype, last, size, wanted):
    x, g = randoms((2, 3, *size), dtype), randoms((2, 3, *wanted), dtype, 1)
    shown, above = (to_last(x), to_last(g)) if last else (x, g)
    expected = tp.ops.adaptive_avg_pool(as_tensor(x).to(tp.float64), wanted)
    kind = as_tensor(x).dtype
    found = pooling.adaptive_avg_pool(shown, wanted)
    close(found, expected.to(kind), dtype)
    assert np.moveaxis(found, 1, -1).flags.c_contiguous == last or last is False
    back = tp.ops.adaptive_avg_pool_gradient(as_tensor(g).to(tp.float64), x.shape)
    close(pooling.adaptive_avg_pool_gradient(above, x.shape), back.to(kind), dtype)


def test_adaptive_avg_pool_of_nothing():
    assert pooling.adaptive_avg_pool(randoms((0, 2, 4)), (3,)).shape == (0, 2, 3)
    assert pooling.adaptive_avg_pool(randoms((1, 2, 4)), (0,)).shape == (1, 2, 0)
    assert pooling.adaptive_avg_pool_gradient(randoms((1, 2, 0)), (1, 2, 4)).tolist() == [
        [[0.0] * 4] * 2
    ]


def test_large_windows_are_shared_by_a_block():
    x = randoms((2, 2, 17, 19))
    options = ((17, 18), (1, 1), (1, 1), False, False, None)
    close(pooling.avg_pool(x, *options), tp.ops.avg_pool(as_tensor(x), *options))


def test_pooling_of_nothing():
    nothing = np.zeros((0, 2, 4), np.float32)
    values, _ = pooling.max_pool(nothing, (2,), (2,), (0,), (1,), False)
    assert values.shape == (0, 2, 2)
    assert pooling.max_pool_gradient(values, np.zeros((0, 2, 2), int), (0, 2, 4)).shape == (0, 2, 4)
    assert pooling.avg_pool(nothing, (2,), (2,), (0,), False, True, None).shape == (0, 2, 2)


# --- dropout ------------------------------------------------------------------------------------


@FLOATS
@pytest.mark.parametrize("p", [0.5, 0.1, 1.0, 0.0])
def test_dropout_keeps_what_the_cpu_keeps(dtype, p):
    x = randoms((7, 13), dtype)
    seed, offset = 1234567890123, (1 << 64) - 3  # the counter's lower half wraps around
    expected = tp.ops.random_dropout(as_tensor(x), p, seed, offset)
    output, kept = random.random_dropout(x, p, seed, offset)
    assert kept.tolist() == expected[1].tolist()
    check(output, expected[0])
    check(
        random.dropout_gradient(x, kept, p), tp.ops.dropout_gradient(as_tensor(x), expected[1], p)
    )
    check(
        random.dropout_gradient(x[:1], kept, p),
        tp.ops.dropout_gradient(as_tensor(x[:1]), expected[1], p),
    )


def test_a_replayed_graph_draws_further_numbers():
    shift = replays.Shift(np.zeros(2, np.uint64))
    replays.begin(shift)
    try:
        first = random.philox_bits((6,), 7, 11)
        kept = random.random_dropout(np.ones(5, np.float32), 0.5, 7, 13)[1]
        assert shift.blocks == 4
        shift.array[0] = shift.blocks
        again = random.philox_bits((6,), 7, 11)
        shift.array[1] = 7 ^ 9  # another seed
        other = random.philox_bits((6,), 7, 11)
    finally:
        replays.end()
    assert first.tolist() == random.philox_bits((6,), 7, 11).tolist()
    assert again.tolist() == random.philox_bits((6,), 7, 15).tolist()
    assert other.tolist() == random.philox_bits((6,), 9, 15).tolist()
    assert kept.tolist() == random.random_dropout(np.ones(5, np.float32), 0.5, 7, 13)[1].tolist()


# --- recurrent cells ----------------------------------------------------------------------------


@FLOATS
@pytest.mark.parametrize("strided", [False, True])
def test_lstm_cell(dtype, strided):
    n, h = 5, 7
    gates, own = randoms((n, 8 * h), dtype)[:, : 4 * h], randoms((n, 4 * h), dtype, 1)
    cell = randoms((n, h), dtype, 2)
    if strided:
        cell = np.asfortranarray(cell)
    wide = [as_tensor(np.ascontiguousarray(a)).to(tp.float64) for a in (gates, own, cell)]
    expected = tp.ops.lstm_cell(wide)
    found = recurrent.lstm_cell([gates, own, cell])
    for one, other in zip(found, expected, strict=True):
        close(one, other.to(as_tensor(one).dtype), dtype)
    g_hidden, g_state = randoms((n, h), dtype, 3), randoms((n, 2 * h), dtype, 4)[:, ::2]
    wider = [
        as_tensor(np.ascontiguousarray(a)).to(tp.float64) for a in (g_hidden, g_state, found[1])
    ]
    back = tp.ops.lstm_cell_gradient(*wider[:2], wide, wider[2])
    results = recurrent.lstm_cell_gradient(g_hidden, g_state, [gates, own, cell], found[1])
    for one, other in zip(results, back, strict=True):
        close(one, other.to(as_tensor(one).dtype), dtype)


@FLOATS
def test_gru_cell(dtype):
    n, h = 4, 6
    gates, own = randoms((n, 3 * h), dtype), randoms((n, 3 * h), dtype, 1)
    hidden, g = randoms((n, h), dtype, 2), randoms((n, h), dtype, 3)
    wide = [as_tensor(a).to(tp.float64) for a in (gates, own, hidden)]
    close(
        recurrent.gru_cell([gates, own, hidden]),
        tp.ops.gru_cell(wide).to(as_tensor(g).dtype),
        dtype,
    )
    back = tp.ops.gru_cell_gradient(as_tensor(g).to(tp.float64), wide)
    found = recurrent.gru_cell_gradient(g, [gates, own, hidden])
    for one, other in zip(found, back, strict=True):
        close(one, other.to(as_tensor(one).dtype), dtype)


# --- losses and tables --------------------------------------------------------------------------


@FLOATS
@pytest.mark.parametrize("shape", [(5, 4), (3, 90), (2, 4, 3, 3)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy(dtype, shape, weighted, reduction):
    x = randoms(shape, dtype) * NATIVE[dtype](4)
    x.flat[3] = -np.inf
    target = np.random.default_rng(1).integers(0, shape[1], (shape[0], *shape[2:]))
    target.flat[1] = -100
    if target.flat[0] == 3:
        target.flat[0] = 0
    weight = np.abs(randoms(shape[1:2], dtype, 2)) if weighted else None
    wide = [None if a is None else as_tensor(a).to(tp.float64) for a in (x, weight)]
    options = (wide[0], tp.from_numpy(target), wide[1], -100, reduction)
    found = losses.class_cross_entropy(x, target, weight, -100, reduction)
    close(np.asarray(found), tp.ops.class_cross_entropy(*options).to(as_tensor(x).dtype), dtype)
    g = np.asarray(randoms(found.shape, dtype, 3))
    back = tp.ops.class_cross_entropy_gradient(as_tensor(g).to(tp.float64), *options)
    found = losses.class_cross_entropy_gradient(g, x, target, weight, -100, reduction)
    close(found, back.to(as_tensor(x).dtype), dtype)


@FLOATS
@pytest.mark.parametrize("shape", [(5, 4), (2, 4, 3, 3)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_nll_loss(dtype, shape, weighted, reduction):
    x = randoms(shape, dtype)
    target = np.random.default_rng(1).integers(0, shape[1], (shape[0], *shape[2:]))
    target.flat[1] = -100
    weight = np.abs(randoms(shape[1:2], dtype, 2)) if weighted else None
    wide = [None if a is None else as_tensor(a).to(tp.float64) for a in (x, weight)]
    options = (wide[0], tp.from_numpy(target), wide[1], -100, reduction)
    found = losses.class_nll_loss(x, target, weight, -100, reduction)
    close(np.asarray(found), tp.ops.class_nll_loss(*options).to(as_tensor(x).dtype), dtype)
    g = np.asarray(randoms(found.shape, dtype, 3))
    back = tp.ops.class_nll_loss_gradient(as_tensor(g).to(tp.float64), *options)
    found = losses.class_nll_loss_gradient(g, x, target, weight, -100, reduction)
    close(found, back.to(as_tensor(x).dtype), dtype)


def test_cross_entropy_of_what_is_no_class_and_of_nothing():
    x = randoms((3, 4))
    found = losses.class_cross_entropy(x, np.array([0, 4, -1]), None, -100, "none")
    assert np.isnan(found).tolist() == [False, True, True]
    ignored = np.full(3, -100)
    assert np.isnan(losses.class_cross_entropy(x, ignored, None, -100, "mean"))
    g = np.ones((), np.float32)
    back = losses.class_cross_entropy_gradient(g, x, ignored, None, -100, "mean")
    assert back.tolist() == np.zeros((3, 4)).tolist()
    empty = losses.class_cross_entropy(x[:0], ignored[:0], None, -100, "sum")
    assert empty == 0


@pytest.mark.parametrize("dtype", [*NATIVE, "int64", "bool", "complex64", "complex128"])
def test_rows_of_a_table(dtype):
    table = np.arange(12).reshape(4, 3).astype(NATIVE.get(dtype) or dtype)
    indices = np.array([[0, 3], [2, 2]])
    found = embedding.embedding_rows(table, indices, -1, False)
    assert found.dtype == table.dtype
    assert found.tolist() == table[indices].tolist()


@FLOATS
@pytest.mark.parametrize("padding", [-1, 2])
@pytest.mark.parametrize("by_frequency", [False, True])
def test_gradient_of_a_table(dtype, padding, by_frequency):
    g, indices = randoms((2, 3, 5), dtype), np.array([[0, 2, 2], [3, 0, 2]])
    wide = as_tensor(g).to(tp.float64)
    expected = tp.ops.embedding_rows_gradient(
        wide, tp.from_numpy(indices), 4, padding, by_frequency
    )
    found = embedding.embedding_rows_gradient(g, indices, 4, padding, by_frequency)
    close(found, expected.to(as_tensor(g).dtype), dtype)


# --- activations --------------------------------------------------------------------------------

OPTIONS = {
    "elu": (0.7, 1.1, 2.0), "hardsigmoid": (), "hardswish": (), "hardtanh": (-1.0, 1.5), "leaky_relu": (0.1,),
    "log_sigmoid": (), "mish": (), "softplus": (2.0, 3.0), "threshold": (0.5, 7.0),
}  # fmt: skip


@FLOATS
@pytest.mark.parametrize("name", activations.FUNCTIONS)
def test_activations(dtype, name):
    x = randoms((5, 41), dtype) * NATIVE[dtype](4)
    x[0, :3] = (np.nan, np.inf, -np.inf)
    wide = getattr(tp.ops, name)(as_tensor(x).to(tp.float64), *OPTIONS[name])
    expected = wide.to(as_tensor(x).dtype)
    for shown, right in ((x, expected), (x.T, expected.t()), (x[:, ::2], expected[:, ::2])):
        found = activations.activation(name)(shown, *OPTIONS[name])
        close(found, right, dtype, equal_nan=True, atol=1e-5, rtol=1e-4)


@FLOATS
@pytest.mark.parametrize("name", activations.GRADIENTS)
def test_slopes_of_activations(dtype, name):
    x, g = randoms((5, 41), dtype) * NATIVE[dtype](4), randoms((5, 41), dtype, 1)
    options = OPTIONS[name.removesuffix("_gradient")]
    wide = getattr(tp.ops, name)(*[as_tensor(a).to(tp.float64) for a in (g, x)], *options)
    found = activations.gradient(name)(g, x, *options)
    close(found, wide.to(as_tensor(x).dtype), dtype, atol=1e-5, rtol=1e-4)


# --- attention without cuDNN --------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:divide by zero")  # NumPy's alone
@HALVES
@pytest.mark.parametrize("batch", [(), (2,), (2, 3), (1, 2, 2)])
@pytest.mark.parametrize("mask", [None, "causal", "allowed", "added"])
def test_attention_by_products(dtype, batch, mask):
    length, source = 4, 5
    q, k, v = (randoms((*batch, n, 8), dtype, i) for i, n in enumerate((length, source, source)))
    given = None
    if mask == "allowed":
        given = np.random.default_rng(3).random((length, source)) > 0.4
        given[1] = False
    elif mask == "added":
        given = randoms((length, source), dtype, 4)
        given[2] = -np.inf
    causal = mask == "causal"
    inputs = [as_tensor(a) for a in (q, k, v)]
    shown = None if given is None else as_tensor(given)
    expected = tp.ops.attention_half(inputs, shown, causal, 0.3)
    output, total = attention.attention_half([q, k, v], given, causal, 0.3)
    close(output, expected[0], dtype)
    close(total, expected[1], atol=1e-5, rtol=1e-5)
    g = randoms(output.shape, dtype, 5)
    back = tp.ops.attention_half_gradient(as_tensor(g), inputs, shown, *expected, causal, 0.3)
    found = attention.attention_half_gradient(g, [q, k, v], given, output, total, causal, 0.3)
    for one, other in zip(found, back, strict=True):
        close(one, other, dtype)


def test_masks_are_made_finite():
    query, key = np.zeros((2, 3, 4, 8), "f2"), np.zeros((2, 3, 5, 8), "f2")
    allowed = np.ones((4, 5), bool)
    allowed[2] = False
    numbers, blocked = attention._finite_mask(allowed, query, key)
    assert numbers.shape == (1, 1, 4, 5)
    assert np.isfinite(numbers).all()
    assert blocked.shape == (2, 3, 4)
    assert blocked[1, 1].tolist() == [False, False, True, False]
    added = np.full((2, 1, 1, 5), -np.inf, "f2")
    numbers, blocked = attention._finite_mask(added, query, key)
    assert numbers.shape == (2, 1, 4, 5)
    assert blocked.all()
