"""Training in several processes: same weights, memory, efficiency, and the ratio to torch.

``mpiexec -n 2 python benchmarks/several_processes.py [same repeats memory efficiency torch]`` prints
what docs/distributed.md shows. ``peak ddp|fsdp`` and ``limit MIB`` are runs of their own. Processes have one
thread.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import hashlib
import resource
import statistics
import sys
import time
from pathlib import Path

import tensorplug as tp
import tensorplug.distributed as dist
from tensorplug import nn
from tensorplug.distributed.fsdp import fully_shard
from tensorplug.nn.parallel import DistributedDataParallel


def say(*words):
    if dist.get_rank() == 0:
        print(*words, flush=True)


def part(batch):
    return batch.chunk(dist.get_world_size())[dist.get_rank()]


def digits():
    """The network of `make demo`'s kind, on random images: what is compared is arithmetic."""
    tp.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    generator = tp.Generator().manual_seed(1)

    def batch():
        return tp.randn(32, 1, 8, 8, generator=generator), tp.randint(
            0, 10, (32,), generator=generator
        )

    return model, batch, lambda model, x, y: nn.functional.cross_entropy(model(x), y)


class Gpt(nn.Module):
    """A char-GPT: embeddings, causal attention in blocks with residuals, a head."""

    def __init__(self, width=64, heads=4, depth=2, length=32, letters=65):
        super().__init__()
        self.token, self.place = nn.Embedding(letters, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(
            [
                nn.TransformerEncoderLayer(
                    width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
                )
                for _ in range(depth)
            ]
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, tokens):
        x = self.token(tokens) + self.place.weight
        for block in self.blocks:
            x = block(x, src_mask=self.mask.to(x.dtype))
        return self.head(self.norm(x))


def gpt():
    tp.manual_seed(0)
    model = Gpt()
    generator = tp.Generator().manual_seed(1)

    def batch():
        text = tp.randint(0, 65, (8, 33), generator=generator)
        return text[:, :-1].contiguous(), text[:, 1:].contiguous()

    return (
        model,
        batch,
        lambda m, x, y: nn.functional.cross_entropy(m(x).flatten(0, 1), y.flatten()),
    )


def train(model, batch, loss, steps, whole, dtype):
    model = model.to(dtype)
    wrapped = model if whole else DistributedDataParallel(model, bucket_cap_mb=0.1)
    optimizer = tp.optim.SGD(wrapped.parameters(), lr=0.05, momentum=0.9)
    for _ in range(steps):
        x, y = batch()
        x = x.to(dtype) if x.is_floating_point() else x
        optimizer.zero_grad()
        loss(wrapped, x if whole else part(x), y if whole else part(y)).backward()
        optimizer.step()
    return list(model.parameters())


def same(steps=50):
    for name, make in (("digits", digits), ("char-GPT", gpt)):
        for dtype in (tp.float64, tp.float32):
            reference = train(*make(), steps, True, dtype)
            ours = train(*make(), steps, False, dtype)
            worst = max(
                float((a - b).norm() / b.norm()) for a, b in zip(ours, reference, strict=True)
            )
            say(
                f"same weights, {name}, {dtype}, {dist.get_world_size()} processes: {worst:.1e} "
                f"after {steps} steps"
            )


def repeats(count=20):
    found = set()
    for _ in range(count):
        weights = train(*gpt(), 10, False, tp.float32)
        digest = hashlib.sha256(b"".join(w.detach().numpy().tobytes() for w in weights)).hexdigest()
        everybody = [None] * dist.get_world_size()
        dist.all_gather_object(everybody, digest)
        found.update(everybody)
    say(f"{count} repeats of 10 steps: {len(found)} different results")


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def memory(steps=1000):
    model, batch, loss = digits()
    wrapped = DistributedDataParallel(model)
    optimizer = tp.optim.Adam(wrapped.parameters())
    seen = {}
    for step in range(steps + 1):
        x, y = batch()
        optimizer.zero_grad()
        loss(wrapped, part(x), part(y)).backward()
        optimizer.step()
        if step % 100 == 0:
            seen[step] = resident()
    say(
        f"resident MiB at step 100, 200, {steps}: {seen[100]:.1f} {seen[200]:.1f} {seen[steps]:.1f}"
    )


def wide(width=512, depth=8):
    tp.manual_seed(0)
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers)


def steps_of(model, x, count):
    for _ in range(count):
        for parameter in model.parameters():
            parameter.grad = None
        model(x).square().mean().backward()


def efficiency(rounds=9):
    """CPU time of a step alone over that of one with the others: other programs do not count."""
    alone, together = wide(), DistributedDataParallel(wide())
    for rows in (512, 2048):
        x = tp.randn(rows, 512)
        ratios = []
        steps_of(alone, x, 2)
        steps_of(together, x, 3)
        for _ in range(rounds):
            dist.barrier()
            start = time.process_time()
            steps_of(alone, x, 2)
            middle = time.process_time()
            steps_of(together, x, 2)
            ratios.append((middle - start) / (time.process_time() - middle))
        say(
            f"efficiency, {rows} rows: {statistics.median(ratios):.2f} of a process alone, by CPU time"
        )


def torch(rounds=15):
    import torch as theirs

    theirs.set_num_threads(1)
    port = [29500 + os.getpid() % 2000]
    dist.broadcast_object_list(port, 0)
    theirs.distributed.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{port[0]}",
        rank=dist.get_rank(),
        world_size=dist.get_world_size(),
    )
    for width, depth, rows in ((512, 8, 256), (128, 8, 64), (1024, 4, 128)):
        ours = DistributedDataParallel(wide(width, depth))
        layers = [
            layer
            for _ in range(depth)
            for layer in (theirs.nn.Linear(width, width), theirs.nn.ReLU())
        ]
        plain = theirs.nn.Sequential(*layers)
        other = theirs.nn.parallel.DistributedDataParallel(plain)
        x, y = tp.randn(rows, width), theirs.randn(rows, width)
        pairs = {"DDP": (ours, other), "without": (ours.module, plain)}
        steps_of(ours, x, 3)
        steps_of(other, y, 3)
        found = {}
        for _ in range(rounds):
            for kind, (mine, its) in pairs.items():
                times = []
                for model, inputs in ((mine, x), (its, y)):
                    # A module that is in a DDP has its hooks: what is without is told to reduce nothing.
                    ours.require_backward_grad_sync = other.require_backward_grad_sync = True
                    wrapped = kind == "DDP"
                    dist.barrier()
                    start = time.perf_counter(), time.process_time()
                    if not wrapped:
                        ours.reducer.expect_nothing()
                    steps_of(model, inputs, 2)
                    end = time.perf_counter(), time.process_time()
                    times.append([b - a for a, b in zip(start, end, strict=True)])
                found.setdefault(kind, []).append([a / b for a, b in zip(*times, strict=True)])
        for kind, ratios in found.items():
            wall, cpu = (statistics.median(column) for column in zip(*ratios, strict=True))
            say(
                f"step time over torch's, {kind}, {depth} layers of {width}, {rows} rows: "
                f"{wall:.2f} by the clock, {cpu:.2f} by CPU time"
            )
    theirs.distributed.destroy_process_group()


def peak(kind, width=1024, depth=16, steps=3):
    """The largest memory of a process beyond what it has before the model, in MiB."""
    before = resident()
    model = wide(width, depth)
    if kind == "fsdp":
        for layer in model:
            if isinstance(layer, nn.Linear):
                fully_shard(layer)
        fully_shard(model)
    elif kind == "ddp":
        model = DistributedDataParallel(model)
    optimizer = tp.optim.Adam(model.parameters())
    x = tp.randn(32, width)
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    state = sum(v.numel() * 4 for s in optimizer.state.values() for v in s.values()) / 2**20
    everybody = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, round(most))
    count = width * (width + 1) * depth * 4 / 2**20
    say(
        f"{kind}: peak MiB by rank {everybody}; parameters {count:.0f}, optimizer states {state:.0f} of it"
    )


def limit(mib):
    """Train a model under a limit of memory."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + int(mib) * 2**20,) * 2)
    try:
        peak("fsdp")
    except (MemoryError, tp.OutOfMemoryError) as error:
        say(f"{dist.get_world_size()} processes of {mib} MiB: {type(error).__name__}")
    else:
        say(f"{dist.get_world_size()} processes of {mib} MiB: trained")


if __name__ == "__main__":
    dist.init_process_group("mpi")
    parts = sys.argv[1:] or ["same", "repeats", "memory", "efficiency", "torch"]
    if parts[0] in ("peak", "limit"):
        globals()[parts[0]](parts[1])
    else:
        for chosen in parts:
            globals()[chosen]()
    dist.destroy_process_group()
