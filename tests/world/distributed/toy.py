"""Processes that torchrun starts train a toy model, as in pytorch/examples' distributed/ddp."""

import argparse
import os
import tempfile

import numpy as np
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def drawn(model, scale=0.1):
    """Give parameters values that any library draws alike."""
    rng = np.random.RandomState(0)
    with torch.no_grad():
        for parameter in model.parameters():
            values = scale * rng.standard_normal(tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(values))
    return model


def demo_basic(rank):
    ddp_model = DDP(drawn(ToyModel()))
    rng = np.random.RandomState(rank)
    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        outputs = ddp_model(torch.from_numpy(rng.standard_normal((20, 10))).float() + rank)
        labels = torch.from_numpy(rng.standard_normal((20, 5))).float()
        loss = loss_fn(outputs, labels)
        loss.backward()
        optimizer.step()
        print(f"rank {rank} step {step}: loss {loss.item():.5f}")


def demo_checkpoint(rank):
    model = DDP(drawn(ToyModel()))
    path = os.path.join(tempfile.gettempdir(), f"toy-{os.environ['MASTER_PORT']}.pt")
    if rank == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    with model.no_sync():
        model(torch.ones(2, 10)).sum().backward()
    model(torch.ones(2, 10) * rank).sum().backward()
    total = sum(p.grad.double().sum() for p in model.parameters())
    gathered = [torch.zeros((), dtype=torch.float64) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, total)
    assert len({round(float(g), 3) for g in gathered}) == 1
    print(f"rank {rank} checkpoint: {total.item():.4f}")
    dist.barrier()
    if rank == 0:
        os.remove(path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="gloo")
    args = parser.parse_args()
    dist.init_process_group(backend=args.backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    assert (rank, size) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    print(f"rank {rank} of {size}, {dist.get_backend()}, local {os.environ['LOCAL_RANK']}")
    demo_basic(rank)
    demo_checkpoint(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
