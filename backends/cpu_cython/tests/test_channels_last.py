"""Training with images channels last between convolutions, against eager.

By default 32 random programs; with TENSORPLUG_FUZZ in the environment 1,000.
"""

import os
import random

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.onednn_network", reason="oneDNN is not there")
import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug import nn

PROGRAMS = 1000 if os.environ.get("TENSORPLUG_FUZZ") else 32

KEEPING = [
    F.relu, F.relu6, F.hardtanh, F.silu, F.hardswish, F.gelu, F.softplus, tp.tanh, tp.sigmoid,
    lambda x: x * 2 + 1, lambda x: (x * 2).relu_(), lambda x: (x - 1).add_(0.5),
    lambda x: F.max_pool2d(x, 3, 1, 1), lambda x: F.avg_pool2d(x, 2, 1, 1),
    lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    lambda x: x + tp.arange(float(x.shape[1])).reshape(-1, 1, 1), lambda x: x * x.mean((2, 3), True),
]  # fmt: skip
OTHERS = [
    lambda x: x.view(x.shape[0], x.shape[1], -1).view(x.shape).mul(2), lambda x: x.transpose(2, 3),
    lambda x: x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
    lambda x: tp.cat([x, x[:, :1]], 1)[:, 1:], lambda x: x.flip(2),
    lambda x: x + x.transpose(2, 3) if x.shape[2] == x.shape[3] else x,
    lambda x: x[:, :, ::1], lambda x: x.clone(memory_format=tp.channels_last), lambda x: x.softmax(1),
    lambda x: x.as_strided(x.shape, x.stride()) + 1, lambda x: F.pad(x, (1, 0)),
    lambda x: x.reshape(-1).reshape(x.shape), lambda x: x.cumsum(3) * 0.1, lambda x: x.detach() + x,
    lambda x: F.layer_norm(x, x.shape[2:]), lambda x: F.group_norm(x, 1),
]  # fmt: skip


class Network(nn.Module):
    """Convolutions with anything between them, one of the images a result, too."""

    def __init__(self, draw):
        super().__init__()
        self.layers = nn.ModuleList()
        self.plan = []
        self.channels = channels = draw.choice([1, 3, 4])
        for _ in range(draw.randint(2, 5)):
            after = draw.choice([channels, 4, 6])
            groups = channels if after == channels and draw.random() < 0.3 else 1
            kernel, stride = draw.choice([(1, 1), (3, 1), (3, 2)])
            self.layers.append(
                nn.Conv2d(
                    channels,
                    after,
                    kernel,
                    stride,
                    kernel // 2,
                    groups=groups,
                    bias=draw.random() < 0.5,
                )
            )
            if draw.random() < 0.5:
                self.layers.append(nn.BatchNorm2d(after))
                # Not 0, or what is padded by zeros comes to 0 in each norm behind, and at kinks.
                nn.init.uniform_(self.layers[-1].bias, 0.1, 0.5)
            self.plan.append(len(self.layers))
            self.plan += draw.sample(KEEPING, draw.randint(0, 2))
            if draw.random() < 0.4:
                self.plan.append(draw.choice(OTHERS))
            self.plan.append(draw.random() < 0.5)
            channels = after
        self.kept = draw.randrange(len(self.plan))

    def forward(self, x):
        done, before, kept = 0, None, x * 1
        for number, step in enumerate(self.plan):
            if step is True and before is not None and before.shape == x.shape:
                x = before + x
            elif type(step) is int:
                before = x
                for layer in self.layers[done:step]:
                    x = layer(x)
                done = step
            elif callable(step):
                x = step(x)
            if number == self.kept:
                kept = x * 1
        return x, kept


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs_as_eager(seed):
    draw = random.Random(seed)
    tp.manual_seed(seed)
    network = Network(draw)
    x = tp.randn(2, network.channels, 7, draw.choice([7, 8]))
    if draw.random() < 0.3:
        x = draw.choice(
            [lambda x: x.contiguous(memory_format=tp.channels_last), lambda x: x.transpose(2, 3)]
        )(x)
    state = {name: value.clone() for name, value in network.state_dict().items()}
    compiled = tp.compile(network)
    needed = draw.random() < 0.5
    found = []
    for run in (network, compiled, compiled, compiled):
        network.load_state_dict(state)
        network.zero_grad()
        given = x.detach().requires_grad_(needed)
        results = run(given)
        loss = sum([(result * result.detach().cos()).sum() for result in results])
        loss.backward()
        leaves = [*network.parameters(), *([given] if given.requires_grad else [])]
        found.append(
            [*results, *[leaf.grad for leaf in leaves], *[b.clone() for b in network.buffers()]]
        )
    first, *others = found
    for other in others:
        for a, b in zip(first, other, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                assert a.stride() == b.stride()
                scale = max(float(a.detach().abs().max()), 1.0)
                difference = np.abs(a.detach().numpy() - b.detach().numpy()).max(initial=0)
                assert difference <= 1e-3 * scale
