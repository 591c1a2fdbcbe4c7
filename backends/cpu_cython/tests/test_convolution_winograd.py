"""Convolutions by Winograd's way in networks of oneDNN, against sums in double precision.

By default 40 random ones; with TENSORPLUG_FUZZ in the environment 400.
"""

import os
import random

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.onednn_network", reason="oneDNN is not there")
import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug import nn
from tensorplug_cpu_cython import onednn_network as dnn

CASES = 400 if os.environ.get("TENSORPLUG_FUZZ") else 40
#: To the largest sum of products; sums of products as they stand have 2e-7.
BOUND = 3e-6


def lain(array, channels_last):
    """Return an array (N, C, H, W) in channels-last order, or in rows."""
    if not channels_last:
        return np.ascontiguousarray(array)
    return np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


def convolved(x, weight, bias, padding):
    """Return the convolution as sums in double precision."""
    x = np.pad(x.astype("f8"), ((0, 0), (0, 0), *[(p, p) for p in padding]))
    size = weight.shape[2]
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))
    found = np.einsum("nchwij,kcij->nkhw", windows, weight.astype("f8"), optimize=True)
    return found if bias is None else found + bias[:, None, None]


def draw_case(draw, numbers):
    """Return a network of one convolution, its arguments, what it should return, and the error."""
    size = draw.choice([3, 3, 5])
    channels, filters = draw.choice([48, 64]), draw.choice([32, 48, 64, 80, 96, 128])
    n, padding = draw.choice([1, 2, 3]), (draw.randint(0, size - 1), draw.randint(0, size - 1))
    sides = draw.randint(24, 40), draw.randint(24, 40)
    x = numbers.standard_normal((n, channels, *sides), dtype="f4")
    weight = numbers.standard_normal((filters, channels, size, size), dtype="f4")
    bias = numbers.standard_normal(filters, dtype="f4") if draw.random() < 0.7 else None
    wanted = convolved(x, weight, bias, padding)
    error = BOUND * np.abs(wanted).max()
    given = [lain(x, draw.random() < 0.5)]
    network = dnn.Network()
    source = network.input(x.shape, tuple(s // 4 for s in given[0].strides))
    posts = []
    for _ in range(draw.randint(0, 3)):
        kind = draw.choice(["relu", "clip", "add"])
        if kind == "relu":
            posts.append((dnn.RELU, 0.0, 0.0, 0, False))
            wanted = np.maximum(wanted, 0)
        elif kind == "clip":
            posts.append((dnn.CLIP, -1.5, 40.0, 0, False))
            wanted = np.clip(wanted, -1.5, 40)
        else:
            other = lain(numbers.standard_normal(wanted.shape, dtype="f4"), draw.random() < 0.5)
            given.append(other)
            value = network.input(other.shape, tuple(s // 4 for s in other.strides))
            posts.append((dnn.ADD, 0.0, 0.0, value, False))
            wanted = wanted + other
    found = network.convolution(
        source, x.shape, weight, bias, wanted.shape, (1, 1), padding, (1, 1), 1, posts
    )
    strides = tuple(s // 4 for s in lain(np.empty(wanted.shape, "f4"), draw.random() < 0.5).strides)
    network.output(found, wanted.shape, strides)
    network.finish()
    return network, given, wanted, error


@pytest.mark.parametrize("seed", range(CASES))
def test_random_ones(seed):
    network, given, wanted, error = draw_case(random.Random(seed), np.random.default_rng(seed))
    assert "winograd" in network.implementations()
    for _ in range(2):
        (found,) = network(given)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=error)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_make_no_difference(threads):
    network, given, *_ = draw_case(random.Random(3), np.random.default_rng(3))
    (wanted,) = network(given)
    before = tp.get_num_threads()
    try:
        tp.set_num_threads(threads)
        shared, same, *_ = draw_case(random.Random(3), np.random.default_rng(3))
        (found,) = shared(same)
    finally:
        tp.set_num_threads(before)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("size", [3, 5])
def test_weights_of_unit_vectors_pick_pixels(size):
    """Each weight by itself: what is wrong in one place of a tile shows."""
    channels, side = 48, 25
    x = np.random.default_rng(0).standard_normal((1, channels, side, side), dtype="f4")
    for place in range(size * size):
        weight = np.zeros((channels, channels, size * size), "f4")
        weight[range(channels), range(channels), place] = 1
        weight = weight.reshape(channels, channels, size, size)
        network = dnn.Network()
        source = network.input(x.shape, tuple(s // 4 for s in x.strides))
        padding = (size // 2, size // 2)
        wanted = convolved(x, weight, None, padding)
        found = network.convolution(
            source, x.shape, weight, None, wanted.shape, (1, 1), padding, (1, 1), 1, []
        )
        network.output(found, wanted.shape, tuple(s // 4 for s in x.strides))
        network.finish()
        assert "winograd" in network.implementations()
        np.testing.assert_allclose(network([x])[0], wanted, rtol=0, atol=1e-5)


class Residual(nn.Module):
    """A first convolution in blocks of channels, then two with a shortcut over which is written."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, padding=1)
        self.one = nn.Conv2d(32, 64, 3, padding=1, bias=False)
        self.two = nn.Conv2d(64, 64, 3, padding=1)
        self.three = nn.Conv2d(64, 64, 5, padding=2)

    def forward(self, x):
        x = F.relu(self.one(F.relu(self.first(x))))
        x = F.relu(self.two(x) + x)
        return F.max_pool2d(self.three(x).clamp(-2, 2) + x, 2)


def test_in_a_compiled_network():
    tp.manual_seed(0)
    network = Residual().eval()
    compiled = tp.compile(network.forward)
    with tp.no_grad():
        for _ in range(4):
            x = tp.randn(2, 3, 30, 33)
            wanted, found = network(x), compiled(x)
            assert found.stride() == wanted.stride()
            assert float((found - wanted).abs().max()) < BOUND * float(wanted.abs().max())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_stays_where_it_belongs(value):
    """Without a function behind the convolution, too; tiles would spread it."""
    tp.manual_seed(0)
    layer = nn.Conv2d(32, 32, 3, padding=1).eval()
    compiled = tp.compile(nn.Sequential(layer))
    with tp.no_grad():
        for _ in range(4):
            x = tp.randn(1, 32, 30, 30)
            x[0, 0, 13, 14] = value
            np.testing.assert_allclose(compiled(x).numpy(), layer(x).numpy(), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        {"stride": (2, 2)},
        {"dilation": (2, 2)},
        {"groups": 4},
        {"channels": 24},
        {"filters": 24},
        {"side": 5},
        {"kernel": 7},
        {"post": dnn.TANH},
    ],
    ids=str,
)
def test_others_run_as_before(change):
    stride, dilation = change.get("stride", (1, 1)), change.get("dilation", (1, 1))
    channels, filters = change.get("channels", 32), change.get("filters", 32)
    side, kernel, groups = change.get("side", 32), change.get("kernel", 3), change.get("groups", 1)
    tp.manual_seed(0)
    x = tp.randn(1, channels, side, side)
    weight = tp.randn(filters, channels // groups, kernel, kernel)
    wanted = F.conv2d(x, weight, None, stride, 1, dilation, groups)
    posts = [(change["post"], 0.0, 0.0, 0, False)] if "post" in change else []
    network = dnn.Network()
    found = network.convolution(
        network.input(tuple(x.shape), x.stride()), tuple(x.shape), weight.numpy(), None,
        tuple(wanted.shape), stride, (1, 1), dilation, groups, posts,
    )  # fmt: skip
    network.output(found, tuple(wanted.shape), wanted.stride())
    network.finish()
    assert "winograd" not in network.implementations()
    error = BOUND * float(wanted.abs().max())
    wanted = wanted.tanh() if posts else wanted
    np.testing.assert_allclose(network([x.numpy()])[0], wanted.numpy(), rtol=0, atol=error)
