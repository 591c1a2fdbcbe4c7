"""Trains on a stand-in for a GPU that refuses to be waited for; a program of its own for test_queued.py."""

import sys

import pytest
import stand_in_cupy

stand_in_cupy.install()

import tensorplug as tp  # noqa: E402  after what it is to find
import tensorplug_cuda_cupy as backend  # noqa: E402


def train(device, name, optimizer_options, dtype):
    """Take three steps; return the losses, read after all of them."""
    tp.manual_seed(0)
    model = tp.nn.Sequential(
        tp.nn.Linear(6, 8), tp.nn.LayerNorm(8), tp.nn.GELU(), tp.nn.Dropout(0.1), tp.nn.Linear(8, 8),
        tp.nn.ReLU(), tp.nn.Linear(8, 3),
    ).to(device)  # fmt: skip
    optimizer = getattr(tp.optim, name)(model.parameters(), lr=0.01, **optimizer_options)
    scaler = tp.amp.GradScaler(device, enabled=dtype is not None)
    data = tp.utils.data.TensorDataset(tp.randn(15, 6), tp.arange(15) % 3)
    batches = tp.utils.data.DataLoader(data, batch_size=5, pin_memory=True)
    steps = iter(batches)
    tp.manual_seed(1)  # each device's generator begins anew
    losses = []
    for x, target in steps:
        assert x.is_pinned()
        images = x.to(device, non_blocking=True)
        optimizer.zero_grad()
        with tp.autocast(device, dtype, enabled=dtype is not None):
            loss = tp.nn.functional.cross_entropy(model(images), target.to(device))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        tp.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach().to("cpu", non_blocking=True))
    return [loss.item() for loss in losses]


if __name__ == "__main__":
    known = {found.device for found in tp.plugins.installed()}
    if "cuda" not in known:
        for one in (backend.plugin, backend.networks, backend.optimizers, backend.amp):
            tp.plugins.register(one)
    name, options, dtype = sys.argv[1], eval(sys.argv[2]), sys.argv[3]
    tp.zeros(1, device="cuda")
    tp.cuda.set_sync_debug_mode("error")
    with pytest.raises(RuntimeError, match="synchronizing CUDA operation"):
        tp.ones(1, device="cuda").item()
    print(
        *[
            *train("cuda", name, options, getattr(tp, dtype, None)),
            *train("cpu", name, options, None),
        ]
    )
