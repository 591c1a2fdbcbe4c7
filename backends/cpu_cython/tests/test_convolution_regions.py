"""Networks of convolutions in one call of oneDNN, against the same networks op by op.

By default 12 random networks; with TENSORPLUG_FUZZ in the environment 200.
"""

import os
import random
import threading

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.onednn_network", reason="oneDNN is not there")
import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug import nn
from tensorplug_cpu_cython import convolution_regions, cpu_features

NETWORKS = 200 if os.environ.get("TENSORPLUG_FUZZ") else 12

ACTIVATIONS = [
    F.relu, F.relu6, F.hardswish, F.silu, F.hardsigmoid, tp.sigmoid, lambda x: F.hardtanh(x, -0.5, 2.0),
    lambda x: x.clamp(-1, 1), F.gelu, lambda x: x,
]  # fmt: skip


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch):
    monkeypatch.setattr(convolution_regions, "_LEAST", 1.0)


class Network(nn.Module):
    """Layers at random: groups, strides, dilation, pooling, shortcuts to anything of the same shape."""

    def __init__(self, draw):
        super().__init__()
        self.layers = nn.ModuleList()
        self.plan = []
        channels, side = draw.choice([1, 3, 8, 16]), draw.choice([9, 16, 23])
        self.first = channels, side
        for _ in range(draw.randint(2, 8)):
            if draw.random() < 0.2 and side > 4:
                how = draw.choice(["max", "mean", "mean without padding"])
                options = draw.choice([(2, 2, 0), (3, 2, 1), (3, 1, 1), (3, 1, 0)])
                self.plan.append((how, options, None, None))
                side = (side + 2 * options[2] - options[0]) // options[1] + 1
                continue
            groups = draw.choice([1, 1, 1, channels])
            after = (
                channels * draw.choice([1, 2]) if groups > 1 else draw.choice([channels, 8, 16, 20])
            )
            kernel, padding = draw.choice([(1, 0), (3, 1), (3, 1), (3, 0), (5, 2)])
            stride = draw.choice([1, 1, 2])
            dilation = draw.choice([1, 1, 1, 2]) if kernel == 3 and side > 5 else 1
            where = (side + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            if where < 1:
                continue
            conv = nn.Conv2d(
                channels, after, kernel, stride, padding, dilation, groups, bias=draw.random() < 0.6
            )
            self.layers.append(conv)
            norm = nn.BatchNorm2d(after) if draw.random() < 0.5 else None
            if norm is not None:
                norm.running_var.uniform_(0.5, 2.0)
                norm.running_mean.normal_()
                self.layers.append(norm)
            self.plan.append((conv, norm, draw.choice(ACTIVATIONS), draw.random() < 0.6))
            channels, side = after, where
        self.kept = draw.random() < 0.3

    def forward(self, x):
        seen = []
        for what, norm, activation, shortcut in self.plan:
            if what == "max":
                x = F.max_pool2d(x, *norm)
            elif isinstance(what, str):
                x = F.avg_pool2d(x, *norm, count_include_pad=what == "mean")
            else:
                x = what(x)
                x = x if norm is None else norm(x)
                alike = [y for y in seen if y.shape == x.shape]
                if shortcut and alike:
                    x = x + alike[len(alike) // 2]
                x = activation(x)
            seen.append(x)
        return (x, seen[len(seen) // 2] + 0.5) if self.kept else (x,)


def fused(compiled):
    """Return how many steps are in regions of oneDNN."""
    entries = compiled.forward._entries if hasattr(compiled, "forward") else compiled._entries
    programs = [entry.program for found in entries.values() for entry in found if entry.program]
    return sum(
        [len(s.steps) for made in programs for s in made.steps
         if hasattr(s, "fuser") and s.fuser.name == "convolutions"]
    )  # fmt: skip


def compare(seed):
    """Compare a network compiled and not; return the largest difference, and the steps in regions."""
    draw = random.Random(seed)
    tp.manual_seed(seed)
    network = Network(draw).eval()
    channels, side = network.first
    function = network.forward
    compiled = tp.compile(function)
    x = tp.randn(draw.choice([1, 2, 3]), channels, side, side)
    if draw.random() < 0.3:
        x = x.contiguous(memory_format=tp.channels_last)
    worst = 0.0
    with tp.no_grad():
        for again in range(4):
            if again == 3:  # weights that were written
                for parameter in network.parameters():
                    parameter.mul_(1.1)
            for a, b in zip(function(x), compiled(x), strict=True):
                assert (a.shape, a.stride()) == (b.shape, b.stride())
                scale = max(float(a.abs().max()), 1e-3)
                worst = max(worst, float((a - b).abs().max()) / scale)
            x = tp.randn(x.shape) if again else x * 2
    return worst, fused(compiled)


def test_random_networks():
    found = [compare(seed) for seed in range(NETWORKS)]
    assert max([worst for worst, _ in found]) < 1e-5
    assert sum([steps for _, steps in found]) > 2 * NETWORKS
    assert not [q for q in tp.plugins.quarantined_fusers() if q.plugin.startswith("cpu_cython")]


def test_a_shortcut_of_something_else_is_found(monkeypatch):
    follow = convolution_regions._Builder._follow

    def other(self, *arguments):
        place, posts, depthwise = follow(self, *arguments)
        kept = [post for post in posts if post[0] != convolution_regions.dnn.ADD]
        return place, kept, depthwise

    monkeypatch.setattr(convolution_regions._Builder, "_follow", other)
    assert max([compare(seed)[0] for seed in range(12)]) > 1e-2


class Inverted(nn.Module):
    """A 1×1 convolution, one of each channel, and a 1×1 one; `seen`: what lies between comes out, too."""

    def __init__(self, stride, bias, seen):
        super().__init__()
        self.wide = nn.Conv2d(16, 64, 1, bias=bias)
        self.each = nn.Conv2d(64, 64, 3, stride, 1, groups=64, bias=bias)
        self.narrow = nn.Conv2d(64, 16, 1, bias=bias)
        self.shortcut, self.seen = stride == 1, seen

    def forward(self, x):
        wide = F.relu6(self.wide(x))
        found = self.narrow(F.relu(self.each(wide)))
        found = found + x if self.shortcut else found
        return (found, wide) if self.seen else (found,)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("seen", [False, True])
def test_convolutions_of_each_channel_are_done_by_the_one_before(stride, bias, seen, monkeypatch):
    tp.manual_seed(0)
    follow, found = convolution_regions._Builder._follow, []

    def noted(self, *arguments):
        place, posts, depthwise = follow(self, *arguments)
        found.append(len(depthwise))
        return place, posts, depthwise

    monkeypatch.setattr(convolution_regions._Builder, "_follow", noted)
    network = Inverted(stride, bias, seen).eval()
    compiled = tp.compile(network.forward)
    with tp.no_grad():
        for _ in range(3):
            x = tp.randn(2, 16, 97, 96)  # what lies between must not fit into the caches
            for a, b in zip(network(x), compiled(x), strict=True):
                assert float((a - b).abs().max()) < 1e-5 * float(a.abs().max())
    assert fused(compiled)
    assert (3 in found) == (not seen)


def block():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU()).eval()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_runs_by_the_kernels(value):
    network = block()
    compiled = tp.compile(network.forward)
    x = tp.randn(1, 3, 8, 8)
    with tp.no_grad():
        for _ in range(3):
            compiled(x)
        x[0, 1, 4, 4] = value
        assert fused(compiled)
        np.testing.assert_array_equal(compiled(x).numpy(), network(x).numpy())
        network[0].weight[0, 0, 0, 0] = value
        x = tp.randn(1, 3, 8, 8)
        np.testing.assert_array_equal(compiled(x).numpy(), network(x).numpy())
        assert not fused(compiled)


def test_threads_may_call_at_the_same_time():
    network = block()
    compiled = tp.compile(network.forward)
    x = tp.randn(2, 3, 32, 32)
    with tp.no_grad():
        wanted = network(x)
        for _ in range(3):
            compiled(x)
    wrong = []

    def run():
        with tp.no_grad():
            found = [compiled(x) for _ in range(20)]
            wrong.extend([y for y in found if not tp.allclose(y, wanted, rtol=1e-5, atol=1e-5)])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_gradients_are_recorded():
    network = block()
    compiled = tp.compile(network.forward)
    for _ in range(3):
        x = tp.randn(1, 3, 8, 8, requires_grad=True)
        compiled(x).sum().backward()
        found, x.grad = x.grad, None
        network(x).sum().backward()
        assert tp.allclose(found, x.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("level", ["v3", "v4"])
@pytest.mark.parametrize("channels", [1, 3, 8])
@pytest.mark.parametrize("kernel", [3, 7, 8, 11, 16])
def test_wide_kernels_of_images(level, channels, kernel, monkeypatch):
    """Where oneDNN has no layout for the first convolution, that and the pooling after it are left out."""
    monkeypatch.setattr(cpu_features, "level", lambda: level)
    network = nn.Sequential(
        nn.Conv2d(channels, 16, kernel, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(16, 16, 3),
        nn.ReLU(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 8, 3, padding=1), nn.ReLU(),
    )  # fmt: skip
    compiled = tp.compile(network)
    with tp.no_grad():
        for _ in range(3):
            x = tp.randn(2, channels, 67, 67)
            tp.testing.assert_close(compiled(x), network(x), rtol=1e-4, atol=1e-5)
    program = next(iter(compiled._compiled._entries.values()))[0].program
    left_out = level == "v3" and channels < 8 and kernel > 7
    assert (len(program.steps) > 1) == left_out  # all is one call, or not
