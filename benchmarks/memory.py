"""Peak memory of one training step, tensorplug beside torch: ``python -m benchmarks.memory``.

Each number comes from a process of its own. Two measures, both of one step (forward, loss, backward) after a
step of another size has loaded and warmed up everything, and with the parameters already there:

- resident: how far the process's high-water mark of resident memory rises above what was resident before
  the step. The kernel counts it, so it holds scratch memory of kernels and what allocators keep as well.
- live: the most bytes that were allocated and not freed at any moment. Of tensorplug that is
  ``tracemalloc``, to which NumPy reports its arrays; of torch, the allocations that its own profiler saw,
  which leaves out what its libraries allocate by themselves.

The exit status is 1 only if a measurement can't be made. Linux alone tells resident memory this way.
"""

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

LIBRARIES = ("tensorplug", "torch")
NETWORKS = ("linear", "convolution", "normalized")
LAYERS = 50
MIB = 1 << 20


def network(nn: Any, name: str) -> tuple[Any, tuple[int, ...]]:
    """Return a network of 50 layers, and the shape of its input."""
    layers: list[Any] = []
    for _ in range(LAYERS):
        if name == "linear":
            layers += [nn.Linear(512, 512), nn.ReLU()]
        elif name == "convolution":
            layers += [nn.Conv2d(32, 32, 3, padding=1), nn.ReLU()]
        else:
            layers += [nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    return nn.Sequential(*layers), (256, 512) if name == "linear" else (16, 32, 32, 32)


def training_step(library: Any, model: Any, inputs: Any, checkpoint: bool) -> None:
    """Run forward, loss and backward."""
    if checkpoint:
        run = importlib.import_module(f"{library.__name__}.utils.checkpoint")
        outputs = run.checkpoint_sequential(model, 7, inputs, use_reentrant=False)
    else:
        outputs = model(inputs)
    outputs.square().mean().backward()


def high_water_mark() -> int:
    """Return the most bytes that were resident since the last reset."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def resident_growth(step: Callable[[], None]) -> int:
    """Return by how much a step raises the high-water mark."""
    Path("/proc/self/clear_refs").write_text("5")  # the mark falls to what is resident now
    before = high_water_mark()
    step()
    return high_water_mark() - before


def live_of_tensorplug(step: Callable[[], None]) -> int:
    """Return the peak of the bytes that the step had allocated and not freed."""
    tracemalloc.start()
    step()
    return tracemalloc.get_traced_memory()[1]


def live_of_torch(step: Callable[[], None]) -> int:
    """Return the same of torch's allocator, as its profiler saw it."""
    import torch

    with torch.profiler.profile(profile_memory=True) as taken:
        step()
    events = [e for e in taken.profiler.kineto_results.events() if e.name() == "[memory]"]
    live = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    return peak


def measure(library_name: str, name: str, checkpoint: bool, measure_live: bool) -> int:
    """Return one number, in this process."""
    library = importlib.import_module(library_name)
    library.set_num_threads(1)
    library.manual_seed(0)
    model, shape = network(library.nn, name)
    small = library.randn(1, *shape[1:])
    training_step(library, model, small, checkpoint)
    for parameter in model.parameters():
        parameter.grad = None
    inputs = library.randn(*shape)

    def step() -> None:
        training_step(library, model, inputs, checkpoint)

    if not measure_live:
        return resident_growth(step)
    return live_of_torch(step) if library_name == "torch" else live_of_tensorplug(step)


def in_a_process(*arguments: str) -> int:
    """Return what :func:`measure` returns in a new process."""
    command = [sys.executable, "-m", "benchmarks.memory", "--one", *arguments]
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **threads}, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return int(json.loads(done.stdout))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table of both measures for each network, with and without checkpointing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--one", nargs=4, metavar=("LIBRARY", "NETWORK", "WAY", "MEASURE"))
    options = parser.parse_args(arguments)
    if options.one:
        library, name, way, what = options.one
        print(json.dumps(measure(library, name, way == "checkpoint", what == "live")))
        return 0
    print(
        f"{'network':<12} {'way':<11} {'measure':<9} {'tensorplug':>11} {'torch':>10} {'ratio':>6}"
    )
    for name in NETWORKS:
        for way in ("plain", "checkpoint"):
            for what in ("resident", "live"):
                ours, theirs = [in_a_process(lib, name, way, what) / MIB for lib in LIBRARIES]
                print(
                    f"{name:<12} {way:<11} {what:<9} {ours:>7.1f} MiB {theirs:>6.1f} MiB "
                    f"{ours / theirs:>6.2f}"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
