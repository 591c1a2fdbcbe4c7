"""Training programs, drawn at random, in four threads at once: each gives what it gives alone.

Threads share nothing but the library, or in every second program a compiled function and a module that is
only read. Their modes (``no_grad``, ``inference_mode``, ``autocast``) are their own.
"""

import os
import random
import sys
import threading

import pytest

import tensorplug as tp
from tensorplug.testing.comparison import assert_close

COUNT = max(6, int(os.environ.get("TENSORPLUG_FUZZ", "0")) // 50)
THREADS = 4
nn, F = tp.nn, tp.nn.functional


def network(source):
    """Return a small network of eight numbers, and the shape of its inputs."""
    width = source.choice([4, 8])
    parts = {
        "dense": lambda: [nn.Linear(8, width), source.choice([nn.ReLU, nn.GELU, nn.Tanh])()],
        "norm": lambda: [nn.Linear(8, width), nn.LayerNorm(width)],
        "batch": lambda: [nn.Linear(8, width), nn.BatchNorm1d(width), nn.SiLU()],
        "conv": lambda: [
            nn.Unflatten(1, (2, 4)),
            nn.Conv1d(2, width, 3, padding=1),
            nn.ELU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
        ],
        "attention": lambda: [
            nn.Unflatten(1, (2, 4)),
            nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True),
            nn.Flatten(),
            nn.Linear(8, width),
        ],
    }
    return nn.Sequential(*parts[source.choice(sorted(parts))](), nn.Linear(width, 3))


def program(seed, shared):
    """Run a program; return what it made."""
    source = random.Random(f"threads {seed}")
    generator = tp.Generator().manual_seed(seed)
    model = network(source)
    with tp.no_grad():
        for parameter in model.parameters():
            parameter.copy_(tp.randn(parameter.shape, generator=generator) * 0.3)
    optimizer = source.choice([tp.optim.SGD, tp.optim.Adam, tp.optim.RMSprop])(
        model.parameters(), lr=0.05
    )
    inputs = tp.randn(16, 8, generator=generator)
    targets = tp.randint(3, (16,), generator=generator)
    loader = tp.utils.data.DataLoader(
        tp.utils.data.TensorDataset(inputs, targets),
        batch_size=4,
        shuffle=True,
        generator=generator,
    )
    made = []
    for number, (x, y) in enumerate(loader):
        kind = source.choice(["plain", "autocast", "checkpoint", "compiled", "functional", "hook"])
        call = shared["compiled"] if shared and kind == "compiled" else None
        optimizer.zero_grad()
        if kind == "autocast":
            with tp.autocast("cpu", tp.bfloat16):
                loss = F.cross_entropy(model(x), y)
        elif kind == "checkpoint":
            hidden = tp.utils.checkpoint.checkpoint(model, x, use_reentrant=False)
            loss = F.cross_entropy(hidden, y)
        elif kind == "functional":
            state = dict(model.named_parameters())
            loss = F.cross_entropy(tp.func.functional_call(model, state, (x,)), y)
        else:
            loss = F.cross_entropy(model(x), y)
        if call is not None:
            loss = loss + call(x * (number + 1))
        if kind == "hook":
            loss.register_hook(lambda g: g * 2)
        loss.backward()
        optimizer.step()
        made += [loss.detach(), *[p.grad.clone() for p in model.parameters()]]
        with source.choice([tp.no_grad, tp.inference_mode])():
            assert not tp.is_grad_enabled()
            made.append(model(x).clone())
            if shared:
                made.append(shared["model"](x).clone())
        assert tp.is_grad_enabled()
        assert not tp.is_autocast_enabled("cpu")
        rows = tp.func.vmap(tp.func.grad(lambda v: (v.sin() * v).sum()))(x)
        made.append(rows + tp.func.jvp(tp.tanh, (x,), (rows,))[1])
    return made + [p.detach().clone() for p in model.parameters()]


def together(seeds, shared):
    """Run programs at once; return what each made, or raise what one of them raised."""
    found, barrier = [None] * len(seeds), threading.Barrier(len(seeds))

    def run(place, seed):
        barrier.wait()
        try:
            found[place] = program(seed, shared)
        except BaseException as error:  # raised again where the test sees it
            found[place] = error

    workers = [threading.Thread(target=run, args=pair) for pair in enumerate(seeds)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return found


def things(seed):
    """Return what threads may share: nothing, or a compiled function and a module that is read."""
    if seed % 2:
        return {}
    tp.manual_seed(seed)
    return {
        "compiled": tp.compile(lambda v: (v.exp() * v).mean() if v.sum() > 0 else v.abs().mean()),
        "model": nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2)).eval(),
    }


@pytest.mark.parametrize("seed", range(COUNT))
def test_programs_in_threads(seed):
    same = [7 * seed] * THREADS if seed % 3 == 0 else [7 * seed + n for n in range(THREADS)]
    shared = things(seed)
    alone = {one: program(one, things(seed)) for one in set(same)}
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        found = together(same, shared)
    finally:
        sys.setswitchinterval(interval)
    for one, made in zip(same, found, strict=True):
        assert len(made) == len(alone[one])
        for got, known in zip(made, alone[one], strict=True):
            assert_close(got, known, equal_nan=True)
