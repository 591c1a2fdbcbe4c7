"""Trains on a stand-in for a GPU that refuses to be waited for; a program of its own for test_queued.py."""

import json
import sys
import traceback

import pytest
import stand_in_cupy

stand_in_cupy.install()

import tensorplug as tp  # noqa: E402  after what it is to find
import tensorplug_cuda_cupy as backend  # noqa: E402

nn = tp.nn


class Tokens(nn.Module):
    """An embedding, and a transformer's layer that looks back."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(3, 8)
        self.places = nn.Parameter(tp.randn(6, 8))
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.output = nn.Linear(8, 3)

    def forward(self, x):
        tokens = (x > 0).long() + (x > 1).long()
        mask = nn.Transformer.generate_square_subsequent_mask(6, device=x.device)
        hidden = self.embedding(tokens) + self.places
        return self.output(self.layer(hidden, src_mask=mask, is_causal=True))[:, -1]


class Sequences(nn.Module):
    """A recurrent network."""

    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(2, 8, batch_first=True)
        self.output = nn.Linear(8, 3)

    def forward(self, x):
        return self.output(self.cells(x.reshape(-1, 3, 2))[0][:, -1])


def layers():
    return nn.Sequential(
        nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.1), nn.Linear(8, 8), nn.ReLU(),
        nn.Linear(8, 3),
    )  # fmt: skip


def images():
    return nn.Sequential(
        nn.Unflatten(1, (1, 2, 3)), nn.Upsample(scale_factor=4), nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3), nn.GroupNorm(2, 4), nn.SiLU(),
        nn.AdaptiveAvgPool2d((2, 3)), nn.Flatten(), nn.Linear(24, 3),
    )  # fmt: skip


NETWORKS = {"images": images, "layers": layers, "sequences": Sequences, "tokens": Tokens}


def train(device, network, optimizer, options, dtype):
    """Take three steps; return the losses, read after all of them."""
    tp.manual_seed(0)
    model = NETWORKS[network]().to(device)
    optimizer = getattr(tp.optim, optimizer)(model.parameters(), lr=0.01, **options)
    scaler = tp.amp.GradScaler(device, enabled=dtype is not None)
    data = tp.utils.data.TensorDataset(tp.randn(15, 6), tp.arange(15) % 3)
    batches = tp.utils.data.DataLoader(data, batch_size=5, pin_memory=True)
    steps = iter(batches)
    tp.manual_seed(1)  # each device's generator begins anew
    losses = []
    for x, target in steps:
        assert x.is_pinned()
        inputs = x.to(device, non_blocking=True)
        optimizer.zero_grad()
        with tp.autocast(device, dtype, enabled=dtype is not None):
            loss = nn.functional.cross_entropy(model(inputs), target.to(device))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach().to("cpu", non_blocking=True))
    return [loss.item() for loss in losses]


def results(network, optimizer, options, dtype):
    """Return the losses on both devices, or what was raised."""
    tp.cuda.set_sync_debug_mode("error")
    try:
        with pytest.raises(RuntimeError, match="synchronizing CUDA operation"):
            tp.ones(1, device="cuda").item()
        there = train("cuda", network, optimizer, options, getattr(tp, dtype, None))
        return [there, train("cpu", network, optimizer, options, None)]
    except Exception:
        return traceback.format_exc()
    finally:
        tp.cuda.set_sync_debug_mode("default")


if __name__ == "__main__":
    known = {found.device for found in tp.plugins.installed()}
    if "cuda" not in known:
        for one in (backend.plugin, backend.networks, backend.optimizers, backend.amp):
            tp.plugins.register(one)
    print(json.dumps([results(*case) for case in json.loads(sys.argv[1])]))
