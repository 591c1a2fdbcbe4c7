"""Random graphs of pointwise ops run in one go as they do op by op, bit for bit.

By default 60 graphs; with TENSORPLUG_FUZZ in the environment 2,000.
"""

import os
import random

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.pointwise_tiles", reason="cpu_cython is not built")
import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug_cpu_cython import pointwise, pointwise_regions
from tensorplug_cpu_cython.pointwise_tiles import Tiles

GRAPHS = 2000 if os.environ.get("TENSORPLUG_FUZZ") else 60

ANY = [
    lambda x: x.neg(), lambda x: x.abs(), lambda x: x.square(), lambda x: x.relu(), lambda x: x.sign(),
    lambda x: x.clamp(-2, 3), lambda x: x * 3, lambda x: x + 1, lambda x: 2 - x, lambda x: x.clone(),
]  # fmt: skip
FLOATING = [
    lambda x: x.sigmoid(), lambda x: x.tanh(), lambda x: x.exp().clamp(max=9), lambda x: x.sin(),
    lambda x: F.gelu(x), lambda x: F.gelu(x, approximate="tanh"), lambda x: F.silu(x),
    lambda x: F.elu(x, 0.5),
    lambda x: F.leaky_relu(x, 0.1), lambda x: F.hardswish(x), lambda x: F.softplus(x), lambda x: x.frac(),
    lambda x: x / 3, lambda x: x.pow(2), lambda x: x.abs().sqrt(), lambda x: x * 0.3 + 0.7,
    lambda x: x.rsqrt(),
    lambda x: tp.nan_to_num(x, 1.0, 2.0, 3.0), lambda x: x.to(tp.float64).floor().to(x.dtype),
    lambda x: F.softshrink(x), lambda x: x.logit(0.1),
]  # fmt: skip
TWO = [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: tp.maximum(x, y),
    lambda x, y: tp.where(x > y, x, y), lambda x, y: tp.where(x.eq(y), x, y + x),
    lambda x, y: tp.add(x, y, alpha=2), lambda x, y: tp.minimum(x, y),
]  # fmt: skip
TWO_FLOATING = [
    lambda x, y: x / (y.abs() + 1), lambda x, y: tp.hypot(x, y), lambda x, y: tp.lerp(x, y, 0.25),
    lambda x, y: tp.lerp(x, y, x), lambda x, y: tp.addcmul(x, y, x, value=0.5), lambda x, y: tp.atan2(x, y),
    lambda x, y: tp.logaddexp(x, y), lambda x, y: tp.copysign(x, y),
]  # fmt: skip
DTYPES = [tp.float32] * 4 + [tp.float64, tp.float16, tp.bfloat16, tp.int64, tp.int32, tp.uint8]


def laid_out(tensor, draw):
    """Return a tensor with the same values that lies otherwise in memory, at times."""
    dims = tensor.dim()
    how = draw.randrange(5)
    if how == 0 and dims > 1:
        order = list(range(dims))
        draw.shuffle(order)
        back = [order.index(d) for d in range(dims)]
        return tensor.permute(order).contiguous().permute(back)
    if how == 1 and dims:
        wide = tp.stack([tensor, tensor], dim=-1)
        return wide[..., 0]
    if how == 2 and dims:
        return tensor.flip(draw.randrange(dims))
    if how == 3 and dims and tensor.shape[0]:
        return tensor.narrow(0, 0, 1).expand(tensor.shape)
    return tensor


def inputs_of(draw, dtype, shape):
    made = []
    for _ in range(draw.randint(1, 4)):
        own = [size if draw.random() < 0.7 else 1 for size in shape][draw.choice([0, 0, 0, 1]) :]
        tensor = (tp.randn(own) * 3).to(dtype)
        made.append(laid_out(tensor, draw))
    if made[0].shape != tuple(shape):
        made[0] = laid_out((tp.randn(shape) * 3).to(dtype), draw)
    return made


def graph_of(seed):
    """Return a random program and the arguments for it."""
    draw = random.Random(seed)
    tp.manual_seed(seed)
    dtype = draw.choice(DTYPES)
    floating = dtype.is_floating_point
    shape = [draw.choice([1, 2, 3, 7, 16, 33]) for _ in range(draw.randint(0, 4))]
    if draw.random() < 0.15:
        shape = (
            [draw.choice([5000, 20000])] if draw.random() < 0.5 else [3, draw.choice([1500, 4099])]
        )
    if draw.random() < 0.03:
        shape = [0, 3]
    calls = []
    for _ in range(draw.randint(2, 14)):
        if draw.random() < 0.5:
            calls.append((draw.choice(ANY + FLOATING if floating else ANY), 1))
        else:
            calls.append((draw.choice(TWO + TWO_FLOATING if floating else TWO), 2))
    picks = [(draw.random(), draw.random()) for _ in calls]
    kept = draw.randint(1, 3)

    def program(*values):
        for (function, count), pick in zip(calls, picks, strict=True):
            # Mostly of what was made last.
            chosen = [values[int((1 - p * p) * len(values)) - (p == 0)] for p in pick[:count]]
            values = (*values, function(*chosen))
        return values[-kept:]

    return program, inputs_of(draw, dtype, shape)


def compare(seed):
    """Compare one graph with the program; return how many steps were run in regions."""
    program, given = graph_of(seed)
    compiled = tp.compile(program, dynamic=False)
    with tp.no_grad():
        compiled(*given)
        compiled(*given)
        for again in (given, [laid_out_like(x) for x in given]):
            wanted, found = program(*again), compiled(*again)
            for a, b in zip(wanted, found, strict=True):
                assert a.dtype is b.dtype
                assert (a.shape, a.stride()) == (b.shape, b.stride())
                x, y = (t.to(tp.float64).numpy() for t in (a, b))
                if x.tobytes() != y.tobytes():  # a NaN may have another sign
                    np.testing.assert_array_equal(x, y, err_msg=f"seed {seed}")
                    np.testing.assert_array_equal(np.signbit(x[x == 0]), np.signbit(y[y == 0]))
    programs = [entry.program for entries in compiled._entries.values() for entry in entries]
    return sum(
        [len(getattr(step, "steps", ())) for made in programs if made for step in made.steps]
    )


def laid_out_like(tensor):
    """Return other values in the same layout."""
    made = tp.empty_strided(tensor.shape, [abs(s) for s in tensor.stride()], dtype=tensor.dtype)
    if 0 in tensor.stride() or any([s < 0 for s in tensor.stride()]):
        return tensor
    made.copy_((tp.randn(tensor.shape) * 2).to(tensor.dtype))
    return made


def test_random_graphs():
    fused = [compare(seed) for seed in range(GRAPHS)]
    assert sum(fused) > 4 * GRAPHS
    assert not [q for q in tp.plugins.quarantined_fusers() if q.plugin.startswith("cpu_cython")]


def test_a_wrong_register_is_found(monkeypatch):
    def swapped(shape, order, inputs, outputs, calls, between, grain):
        changed = [
            (
                address,
                numbers,
                (*registers[:2][::-1], *registers[2:]) if len(registers) == 3 else registers,
            )
            for address, numbers, registers in calls
        ]
        return Tiles(shape, order, inputs, outputs, changed, between, grain)

    monkeypatch.setattr(pointwise_regions, "Tiles", swapped)
    wrong = 0
    for seed in range(30):
        try:
            compare(seed)
        except AssertionError:
            wrong += 1
    assert wrong > 5


@pytest.mark.parametrize("exponent", [2, 3, 0.5, -1])
@pytest.mark.parametrize("dtype", DTYPES[3:], ids=str)
def test_squares_as_powers(dtype, exponent, monkeypatch):
    if not dtype.is_floating_point and exponent not in (2, 3):
        exponent = 2
    loops = []

    def recorded(shape, order, inputs, outputs, calls, between, grain):
        loops.extend(call[0] for call in calls)
        return Tiles(shape, order, inputs, outputs, calls, between, grain)

    monkeypatch.setattr(pointwise_regions, "Tiles", recorded)
    x = tp.tensor([0.0, 1, 2.5, 7, 11, 100, 3] * 99).to(dtype)
    if dtype.is_floating_point:
        x = tp.cat([x, -x, tp.tensor([float("inf"), -float("inf"), float("nan")]).to(dtype)])

    def program(x):
        return (x * 3) ** exponent + x

    compiled = tp.compile(program)
    with tp.no_grad():
        for _ in range(3):
            found, wanted = (y.to(tp.float64).numpy() for y in (compiled(x), program(x)))
            np.testing.assert_array_equal(found, wanted)
    number = pointwise_regions._NUMBER_OF[dtype]
    square = pointwise.Unary("square").loop(number)[0]
    assert loops
    assert (square in loops) == (exponent == 2)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_share_tiles(threads):
    def program(x, y):
        return (x * 2 + y).sigmoid() * x, (y - x).abs().sqrt()

    before = tp.get_num_threads()
    tp.set_num_threads(threads)
    try:
        x, y = tp.randn(70, 1, 1001), tp.randn(13, 1)
        compiled = tp.compile(program)
        with tp.no_grad():
            for _ in range(3):
                for a, b in zip(compiled(x, y), program(x, y), strict=True):
                    assert tp.equal(a, b)
    finally:
        tp.set_num_threads(before)


def test_other_arrays_are_refused():
    tiles = Tiles((4,), (0,), [(0, (4,))], [(0, (4,))], [], [], 1024)
    with pytest.raises(ValueError, match="expected 1 arrays"):
        tiles([])
    with pytest.raises(ValueError, match="expected an array of shape"):
        tiles([np.zeros(5, np.float32)])
    with pytest.raises(ValueError, match="expected an array of shape"):
        tiles([np.zeros(4)])
    with pytest.raises(ValueError, match="no such register"):
        Tiles((4,), (0,), [(0, (4,))], [(0, (4,))], [(1, (), (0, 7))], [], 1024)
    with pytest.raises(ValueError, match="too much"):
        Tiles((4,), (0,), [(0, (4,))] * 40, [(0, (4,))], [], [], 1024)


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64], ids=str)
@pytest.mark.parametrize("size", [31, 64, 128, 131, 700])
def test_numbers_of_rows(dtype, size):
    """Numbers that differ from row to row, in each place, for counts of rows around those read ahead."""
    for rows in (1, 2, 7, 8, 9, 16, 29):
        of_row, other = (tp.randn(rows, 1, dtype=dtype) for _ in range(2))
        of_column, all_ = tp.randn(size, dtype=dtype), tp.randn(rows, size, dtype=dtype)

        def program(of_row, other, of_column, all_):
            first = of_row * of_column
            second = tp.lerp(first, other, all_) - first * all_ + of_row
            return second, other - second.abs()

        fused = tp.compile(program)
        given = of_row, other, of_column, all_
        for _ in range(3):
            found = fused(*given)
        for value, expected in zip(found, program(*given), strict=True):
            assert np.array_equal(value.numpy(), expected.numpy(), equal_nan=True)
