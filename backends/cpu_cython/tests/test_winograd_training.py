"""Winograd's way in compiled training: convolutions with weights that change, and both of their gradients.

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
from tensorplug_cpu_cython import winograd_regions
from tensorplug_cpu_cython.convolution_winograd import Convolution, WeightGradient

CASES = 400 if os.environ.get("TENSORPLUG_FUZZ") else 40
#: To the largest result; sums of products as they stand have up to 1.5e-6 here.
BOUND = 3e-6


def last(array):
    """Return an array (N, C, H, W) in channels-last order."""
    return np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


def windows(x, size, padding):
    """Return the padded windows (N, C, H', W', size, size) in double precision."""
    x = np.pad(x.astype("f8"), ((0, 0), (0, 0), *[(p, p) for p in padding]))
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))


def convolved(x, weight, padding):
    """Return the convolution."""
    found = windows(x, weight.shape[2], padding)
    return np.einsum("nchwij,kcij->nkhw", found, weight.astype("f8"), optimize=True)


def input_gradient(gradient, weight, padding):
    """Return the adjoint with respect to the input."""
    size = weight.shape[2]
    turned = weight.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1]
    return convolved(gradient, turned, [size - 1 - p for p in padding])


def weight_gradient(x, gradient, size, padding):
    """Return the adjoint with respect to the weight."""
    found = windows(x, size, padding)
    return np.einsum("nchwij,nkhw->kcij", found, gradient.astype("f8"), optimize=True)


def assert_near(found, wanted):
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= BOUND * np.abs(wanted).max()


@pytest.fixture
def threads():
    before = tp.get_num_threads()
    yield tp.set_num_threads
    tp.set_num_threads(before)


@pytest.mark.parametrize("seed", range(CASES))
def test_random_convolutions_as_in_double_precision(seed, threads):
    """Of all sizes, whether it pays or not; the bits do not depend on the threads."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    size = draw.choice([3, 3, 5])
    padding = draw.randint(0, size - 1), draw.randint(0, size - 1)
    channels, filters = (16 * draw.randint(1, 9) for _ in range(2))
    sides = [draw.randint(max(1, size - 2 * p), 21) for p in padding]
    x = last(numbers.standard_normal((draw.randint(1, 3), channels, *sides), dtype="f4"))
    weight = numbers.standard_normal((filters, channels, size, size), dtype="f4")
    if draw.random() < 0.3:
        weight = np.ascontiguousarray(weight.transpose(2, 0, 3, 1)).transpose(1, 3, 0, 2)
    bias = numbers.standard_normal(filters, dtype="f4") if draw.random() < 0.5 else None
    wanted = convolved(x, weight, padding)
    gradient = last(numbers.standard_normal(wanted.shape, dtype="f4"))
    forward = Convolution(x.shape, wanted.shape, size, padding, False)
    adjoint = Convolution(wanted.shape, x.shape, size, padding, True)
    to_weight = WeightGradient(x.shape, wanted.shape, size, padding)
    found = []
    for number in (1, 2):
        threads(number)
        found.append([forward(x, weight, bias), adjoint(gradient, weight), to_weight(x, gradient)])
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
    y, dx, dw = found[0]
    assert y.transpose(0, 2, 3, 1).flags.c_contiguous
    assert dx.transpose(0, 2, 3, 1).flags.c_contiguous
    assert dw.flags.c_contiguous
    assert_near(y, wanted if bias is None else wanted + bias[:, None, None])
    assert_near(dx, input_gradient(gradient, weight, padding))
    assert_near(dw, weight_gradient(x, gradient, size, padding))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_left_to_the_kernels(value):
    numbers = np.random.default_rng(0)
    x = last(numbers.standard_normal((2, 16, 9, 11), dtype="f4"))
    weight = numbers.standard_normal((32, 16, 3, 3), dtype="f4")
    gradient = last(numbers.standard_normal((2, 32, 7, 9), dtype="f4"))
    forward = Convolution(x.shape, gradient.shape, 3, (0, 0), False)
    adjoint = Convolution(gradient.shape, x.shape, 3, (0, 0), True)
    to_weight = WeightGradient(x.shape, gradient.shape, 3, (0, 0))
    assert forward(x, weight) is not None
    for place in (0, -1):
        for array, call in (
            (x, lambda: forward(x, weight)),
            (x, lambda: to_weight(x, gradient)),
            (weight, lambda: forward(x, weight)),
            (weight, lambda: adjoint(gradient, weight)),
            (gradient, lambda: adjoint(gradient, weight)),
            (gradient, lambda: to_weight(x, gradient)),
        ):
            kept = array[place, place, place, place]
            array[place, place, place, place] = value
            assert call() is None
            array[place, place, place, place] = kept


def test_other_arrays_are_left_to_the_kernels():
    x, weight = last(np.ones((1, 16, 8, 8), "f4")), np.ones((16, 16, 3, 3), "f4")
    forward = Convolution(x.shape, (1, 16, 6, 6), 3, (0, 0), False)
    to_weight = WeightGradient(x.shape, (1, 16, 6, 6), 3, (0, 0))
    gradient = last(np.ones((1, 16, 6, 6), "f4"))
    assert forward(x, weight) is not None
    assert to_weight(x, gradient) is not None
    others = [np.ascontiguousarray(x), x.astype("f8"), x[:, :, :7], x.transpose(0, 1, 3, 2), x[0]]
    for other in others:
        assert forward(other, weight) is None
        assert to_weight(other, gradient) is None
    assert forward(x, weight.astype("f8")) is None
    assert forward(x, weight[:, :, :2]) is None
    assert forward(x, weight, np.ones(15, "f4")) is None
    assert to_weight(x, np.ascontiguousarray(gradient)) is None


@pytest.fixture
def taken(monkeypatch):
    """The ops of the steps that went Winograd's way."""
    ops = []
    compile_ = winograd_regions.WinogradFuser.compile

    def noted(self, program, region, inputs, outputs):
        ops.extend([program.steps[number].op for number in region.steps])
        return compile_(self, program, region, inputs, outputs)

    monkeypatch.setattr(winograd_regions.WinogradFuser, "compile", noted)
    return ops


class Network(nn.Module):
    """Convolutions with paddings, biases, a shortcut and a transposed one; images of any size."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, padding=1)
        self.one = nn.Conv2d(32, 64, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(64)
        self.two = nn.Conv2d(64, 64, 3, padding=(0, 2))
        self.three = nn.Conv2d(64, 64, 5, padding=(3, 1))
        self.four = nn.ConvTranspose2d(64, 48, 3)
        self.last = nn.Conv2d(48, 48, 3)

    def forward(self, x):
        x = F.relu(self.norm(self.one(F.relu(self.first(x)))))
        x = F.silu(self.three(F.relu(self.two(x))) + x)
        x = F.max_pool2d(self.last(F.relu(self.four(x))), 2)
        return x.mean((2, 3))


def gradients(network, run, x, dtype=tp.float32):
    """Return the results, and the gradients of all parameters and of the input."""
    network.zero_grad()
    x = x.to(dtype).detach().requires_grad_(True)
    y = run(x)
    (y * y.detach().cos()).sum().backward()
    return [y.detach(), x.grad, *[parameter.grad for parameter in network.parameters()]]


def close(found, wanted, bound):
    for a, b in zip(found, wanted, strict=True):
        scale = float(b.abs().max())
        assert float((a.to(tp.float64) - b.to(tp.float64)).abs().max()) <= bound * scale + 1e-9


@pytest.mark.parametrize("number", [1, 2])
def test_training_with_batches_that_change(taken, threads, number):
    threads(number)
    tp.manual_seed(0)
    network = Network()
    exact = Network().double()
    exact.load_state_dict({k: v.double() for k, v in network.state_dict().items()})
    compiled = tp.compile(network)
    for batch, height, width in [(2, 22, 21)] * 3 + [(3, 22, 21)] * 3 + [(1, 17, 30)] * 3:
        x = tp.randn(batch, 3, height, width)
        wanted = gradients(exact, exact, x, tp.float64)
        eager, found = gradients(network, network, x), gradients(network, compiled, x)
        close(eager, wanted, 3e-4)
        close(found, wanted, 3e-4)
        for a, b in zip(found, eager, strict=True):
            assert a.stride() == b.stride()
    assert set(taken) == {"convolution", "convolution_input", "convolution_weight"}


def test_what_is_not_a_number_stays_where_it_is_in_eager_mode():
    tp.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3))
    compiled = tp.compile(network)
    for value in (1.0, 1.0, float("nan"), float("inf"), 1.0):
        x = tp.randn(1, 32, 24, 24)
        x[0, 3, 7, 8] = value
        wanted, found = (gradients(network, run, x) for run in (network, compiled))
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3, atol=1e-2)


def test_second_derivatives_are_eager_ones():
    tp.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.SiLU(), nn.Conv2d(32, 32, 3))
    compiled = tp.compile(network)
    x = tp.randn(2, 32, 12, 12).requires_grad_()
    for _ in range(3):
        found = []
        for run in (network, compiled):
            (first,) = tp.autograd.grad(run(x).square().sum(), x, create_graph=True)
            found.append(tp.autograd.grad(first.square().sum(), list(network.parameters())))
        close(found[1], found[0], 1e-4)


LEFT = {
    "stride": {"stride": 2},
    "dilation": {"dilation": 2},
    "groups": {"groups": 2},
    "window": {"kernel_size": 7},
    "oblong": {"kernel_size": (3, 5)},
    "padding": {"padding": 4},
    "channels": {"channels": 24},
    "small": {"side": 5},
    "double": {"dtype": tp.float64},
    "half": {"dtype": tp.bfloat16},
}


@pytest.mark.parametrize("name", LEFT)
def test_what_the_rule_leaves_has_the_kernels_bits(name, taken, monkeypatch):
    changes = {"kernel_size": 3, **LEFT[name]}
    channels, side = changes.pop("channels", 32), changes.pop("side", 24)
    dtype = changes.pop("dtype", tp.float32)
    tp.manual_seed(0)
    layers = [nn.Conv2d(channels, channels, **changes) for _ in range(2 if side > 5 else 1)]
    network = nn.Sequential(*layers, nn.ReLU(), nn.Conv2d(channels, 40, 1)).to(dtype)
    x = tp.randn(2, channels, side, side)
    found = []
    for regions in (winograd_regions.WinogradFuser.regions, lambda *_: []):
        monkeypatch.setattr(winograd_regions.WinogradFuser, "regions", regions)
        compiled = tp.compile(network)
        for _ in range(3):
            results = gradients(network, compiled, x, dtype)
        found.append(results)
    # The adjoint of a convolution that is padded by more than its window may pay.
    assert set(taken) <= ({"convolution", "convolution_weight"} if name == "padding" else set())
    if not taken:
        for a, b in zip(*found, strict=True):
            np.testing.assert_array_equal(a.double().numpy(), b.double().numpy())
