"""Training steps under tp.compile, as ratios to our own eager, and whether the losses agree.

::

    python -m benchmarks.compiled_steps
    python -m benchmarks.compiled_steps --filter 'resnet|vit' --rounds 9

The networks are those of `benchmarks.models`. Both start from the same weights, see the same batch, and take
turns in one process; what is compared is the time of the processor, which other work disturbs least. A step
is the loss (the network and its loss are one graph), its gradients and the optimizer's step.

"Products" is the share of an eager step that kernels of products, convolutions, cells and attention take,
"optimizer" that of the optimizer's kernel: neither gets less by compiling, and so the ratio cannot be below
their sum, but where a pass takes other kernels for them (images in channels-last order).
"""

import argparse
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import tensorplug as tp

from .libraries import EXAMPLES, load
from .models import TOLERANCE, TOLERANCES
from .worker import OTHERS, TABLE1

#: How far losses may be apart within autocast.
HALF = 0.02
#: The ops whose kernels are products of matrices for the most part.
PRODUCTS = re.compile(
    r"(add|ba)?b?mm|matmul|(bi)?linear|.*conv|.*(lstm|gru|rnn)|scaled_dot|attention"
)


def task_of(name: str, full: bool) -> Any:
    """Return one of the networks, ready to be trained."""
    if name in TABLE1:
        return load(EXAMPLES / "table1", "tasks", tp).make(name, full=full, dropout=0.0)
    return load(Path(__file__).parent, "networks", tp).make(name, full=full)


def stepper(name: str, full: bool, compiled: bool, dtype: Any = None) -> Callable[[], float]:
    """Return what trains a network by one step, within autocast to `dtype`, and returns the loss."""
    task = task_of(name, full)
    batch = next(task.batches)
    task.model.train()

    def loss_of(*batch: Any) -> Any:
        return task.loss(task.model, batch)

    loss_of = tp.compile(loss_of) if compiled else loss_of

    def step() -> float:
        task.optimizer.zero_grad()
        with tp.autocast("cpu", dtype, enabled=dtype is not None):
            loss = loss_of(*batch)
        loss.backward()
        task.optimizer.step()
        return float(loss.item())

    step.loss_of = loss_of  # type: ignore[attr-defined]
    return step


def measure(
    name: str, full: bool, rounds: int, dtype: Any = None
) -> tuple[float, float, float, str]:
    """Return the seconds of an eager and a compiled step, how far losses differ, and what was captured."""
    steps = [stepper(name, full, compiled, dtype) for compiled in (False, True)]
    first = [[step() for _ in range(4)] for step in steps]  # the compiled one captures meanwhile
    apart = max(abs(a - b) / abs(a) for a, b in zip(*first, strict=True))
    times: list[list[float]] = [[], []]
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 else (1, 0):
            begin = time.process_time()
            count = 0
            while time.process_time() - begin < 0.2:
                steps[which]()
                count += 1
            times[which].append((time.process_time() - begin) / count)
    found = steps[1].loss_of.explain()  # type: ignore[attr-defined]
    how = f"{len(found.graphs)} graphs" if not found.breaks else str(found.breaks[0])
    return median(times[0]), median(times[1]), apart, how


def shares(name: str, full: bool, dtype: Any = None) -> tuple[float, float]:
    """Return the shares of products and of the optimizer's kernel in an eager step: medians of five turns."""
    step = stepper(name, full, compiled=False, dtype=dtype)
    for _ in range(5):
        step()
    begin = time.process_time()
    step()
    count = max(3, round(0.2 / (time.process_time() - begin)))
    turns = []
    for _ in range(5):
        begin = time.process_time()
        for _ in range(count):
            step()
        whole = (time.process_time() - begin) * 1e6
        with tp.profiler.profile() as profile:
            for _ in range(count):
                step()
        kernels = [event for event in profile.key_averages() if event.plugin]
        products = sum(event.self_cpu_time_total for event in kernels if PRODUCTS.match(event.key))
        optimizer = sum(event.self_cpu_time_total for event in kernels if "optim" in event.key)
        turns.append((products / whole, optimizer / whole))
    first, second = zip(*turns, strict=True)
    return median(first), median(second)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table; the status is 1 if losses differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--filter", default=".", help="networks, as a regular expression")
    parser.add_argument("--full", action="store_true", help="the published sizes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--autocast", help="a dtype: losses are computed within autocast")
    options = parser.parse_args(arguments)
    dtype = getattr(tp, options.autocast) if options.autocast else None
    tp.set_num_threads(options.threads)
    ratios = []
    wrong = []
    for name in (*TABLE1, *OTHERS):
        if not re.search(options.filter, name):
            continue
        eager, compiled, apart, how = measure(name, options.full, options.rounds, dtype)
        ratios.append(compiled / eager)
        products, optimizer = shares(name, options.full, dtype)
        if apart > (TOLERANCES.get(name, TOLERANCE) if dtype is None else HALF):
            wrong.append(name)
        print(
            f"{name:10} eager {eager * 1e3:8.2f} ms  compiled {compiled * 1e3:8.2f} ms"
            f"  ratio {ratios[-1]:.2f}  losses apart {apart:.1e}"
            f"  products {products:.2f}  optimizer {optimizer:.2f}  {how}",
            flush=True,
        )
    print(f"geometric mean of ratios {geometric_mean(ratios):.2f}")
    if wrong:
        print(f"error: losses disagree: {', '.join(wrong)}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
