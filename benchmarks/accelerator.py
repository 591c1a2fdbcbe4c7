"""What is asked of a device whose work is queued, beside the speed of ops and networks.

::

    python -m benchmarks.accelerator --device cuda

Queueing must not wait, a training loop must not ask the driver for memory again and again, and a step that is
bound by Python must get faster in a captured graph. On a device without streams or graphs the parts that need
them say so.
"""

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import devices
from .libraries import load

PRODUCTS = 1000
STEPS = 20


def queueing(library: Any, device: str, side: int) -> dict[str, float]:
    """Return how long queueing products takes, and how long until they are done."""
    x = library.ones((side, side), device=device)
    x @ x
    devices.wait(library, device)
    start = time.perf_counter()
    for _ in range(PRODUCTS):
        x @ x
    queued = time.perf_counter() - start
    devices.wait(library, device)
    return {"queued_seconds": queued, "done_seconds": time.perf_counter() - start}


def training(library: Any, device: str, full: bool, **options: Any) -> Callable[[], Any]:
    """Return a step of the perceptron that waits for nothing."""
    networks = load(Path(__file__).parent, "networks", library)
    task = networks.make("mlp", full=full)
    task.model.to(device)
    batch = tuple(x.to(device) for x in next(task.batches))
    optimizer = library.optim.AdamW(task.model.parameters(), lr=1e-3, **options)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=False)
        loss = task.loss(task.model, batch)
        loss.backward()
        optimizer.step()
        return loss

    return step


def reservations(library: Any, device: str, full: bool) -> list[int]:
    """Return the bytes that the allocator holds after each of some steps."""
    step, module, held = training(library, device, full), devices.module_of(library, device), []
    for _ in range(4):
        step()
        devices.wait(library, device)
        held.append(int(module.memory_reserved()) if hasattr(module, "memory_reserved") else 0)
    return held


def graphed(library: Any, device: str, full: bool) -> dict[str, float]:
    """Return the seconds of a step as it is, and, where there are graphs, replayed from one."""
    look = devices.clock(device, [library])
    step = training(library, device, full, capturable=device != devices.HOST)

    def several(function: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(STEPS):
                function()

        return run

    found = {"step_seconds": devices.fastest(several(step), look) / STEPS}
    module = devices.module_of(library, device)
    if device != devices.HOST and hasattr(module, "CUDAGraph"):
        side = module.Stream()
        side.wait_stream(module.current_stream())
        with module.stream(side):
            for _ in range(3):
                step()
        module.current_stream().wait_stream(side)
        graph = module.CUDAGraph()
        with module.graph(graph):
            step()
        found["graph_seconds"] = devices.fastest(several(graph.replay), look) / STEPS
    return found


def describe(library: Any, device: str, quick: bool) -> dict[str, Any]:
    """Return all figures of a library."""
    side = 256 if quick else 4096
    figures: dict[str, Any] = {
        "device": devices.module_of(library, device).get_device_name()
        if device != devices.HOST
        else device,
        "copy_bandwidth": devices.copy_bandwidth(device, library),
        "product_peaks": devices.product_peaks(device, library, side if quick else None),
        "mlp": graphed(library, device, not quick),
        "reserved_after_each_step": reservations(library, device, not quick),
    }
    if device != devices.HOST:
        figures["queueing"] = queueing(library, device, side)
    return figures


def verdicts(figures: dict[str, Any]) -> dict[str, bool]:
    """Return what was asked for, and whether it is so."""
    held = figures["reserved_after_each_step"]
    found = {"the second training step reserves no memory": held[1:] == held[1:2] * (len(held) - 1)}
    if "queueing" in figures:
        times = figures["queueing"]
        name = f"queueing {PRODUCTS} products returns before they are done"
        found[name] = times["queued_seconds"] < 0.5 * times["done_seconds"]
    if "graph_seconds" in figures["mlp"]:
        times = figures["mlp"]
        name = "a step in a graph is no slower than without"
        found[name] = times["graph_seconds"] <= times["step_seconds"]
    return found


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; what cannot work ends the program with a message and status 2."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accelerator", description="Figures of a device, beside torch's."
    )
    parser.add_argument("--device", default=devices.HOST, help="of both libraries (default: cpu)")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument(
        "--out", type=Path, default=Path("out/bench"), help="folder to write (default: out/bench)"
    )
    options = parser.parse_args(arguments)
    for name in ("tensorplug", "torch"):
        if importlib.util.find_spec(name) is None:
            parser.error(f"{name} is not installed here; `make bench` sets up what is needed")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    options = parse(arguments)
    import torch

    import tensorplug as tp

    found = {}
    for library in (tp, torch):
        figures = describe(library, options.device, options.quick)
        figures["verdicts"] = verdicts(figures)
        found[library.__name__] = figures
        print(f"{library.__name__}:")
        print(json.dumps(figures, indent=2))
    path = options.out / "accelerator.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
