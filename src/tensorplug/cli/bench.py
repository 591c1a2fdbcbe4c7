"""``tensorplug bench``: time some ops on a device beside the CPU."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorplug
from tensorplug import Tensor
from tensorplug.core.device.device import Device
from tensorplug.core.dispatch.keys import canonical_device
from tensorplug.core.errors import DeviceNotAvailableError, KernelNotFoundError
from tensorplug.core.plugins.discovery import find_runtime

from .output import complain, heading, positive, print_json, table

ROUNDS = 15
SECONDS_A_ROUND = 0.02

Operation = Callable[[Tensor, Tensor], Any]

# On two square matrices.
OPERATIONS: dict[str, Operation] = {
    "add": lambda a, b: a + b,
    "exp": lambda a, b: a.exp(),  # noqa: ARG005
    "sum": lambda a, b: a.sum(),  # noqa: ARG005
    "sum of rows": lambda a, b: a.sum(1),  # noqa: ARG005
    "softmax": lambda a, b: a.softmax(1),  # noqa: ARG005
    "transposed copy": lambda a, b: a.t().contiguous(),  # noqa: ARG005
    "matmul": lambda a, b: a @ b,
    "matmul and backward": lambda a, b: (a.detach().requires_grad_() @ b).sum().backward(),
}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "bench",
        help="time some ops on a device beside the CPU",
        description="Time ops on square matrices of float32, in turns on the device and on the CPU; "
        "medians. A first look: the repository's `make bench` compares with PyTorch.",
    )
    command.add_argument("--device", default="cpu", help="the device; cpu unless given")
    command.add_argument("--sizes", type=positive, nargs="+", default=[4, 64, 512], metavar="N",
                         help="the matrices are N by N; 4 64 512 unless given")  # fmt: skip
    command.add_argument("--json", action="store_true", help="print the times as JSON")
    command.set_defaults(run=_bench)


def _bench(chosen: argparse.Namespace) -> int:
    try:
        index = canonical_device(Device(chosen.device))
    except (DeviceNotAvailableError, RuntimeError, ValueError) as error:
        return complain(str(error))
    rows = measure(index, chosen.sizes)
    if chosen.json:
        print_json(rows)
        return 0
    heading(f"{index} beside cpu, {tensorplug.get_num_threads()} threads on the CPU: µs per call")
    table(
        ("op", "size", str(index), "cpu", "ratio"),
        [
            (
                row["op"],
                row["size"],
                _microseconds(row["seconds"]),
                _microseconds(row["cpu"]),
                "" if row["seconds"] is None else f"{row['seconds'] / row['cpu']:.2f}",
            )
            for row in rows
        ],
    )
    return 0


def _microseconds(seconds: float | None) -> str:
    return "no kernel" if seconds is None else f"{seconds * 1e6:.1f}"


def measure(place: Device, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Return a row for each op and size: the median seconds per call on the device and the CPU.

    Rounds on the two alternate, so that whatever else the machine does falls on both.
    """
    return [
        {"op": name, "size": size, "device": str(place), **_compare(operation, place, size)}
        for size in sizes
        for name, operation in OPERATIONS.items()
    ]


def _compare(operation: Operation, index: Device, size: int) -> dict[str, float | None]:
    devices = {"seconds": index, "cpu": Device("cpu")}
    times: dict[str, list[float]] = {name: [] for name in devices}
    calls: dict[str, tuple[Callable[[int], float], int]] = {}
    for name, device in devices.items():
        run = _timer(operation, device, size)
        try:
            run(1)
        except KernelNotFoundError:
            times[name] = []
            continue
        calls[name] = run, max(1, int(SECONDS_A_ROUND / max(run(1), 1e-9)))
    for _ in range(ROUNDS):
        for name, (run, count) in calls.items():
            times[name].append(run(count) / count)
    return {name: statistics.median(own) if own else None for name, own in times.items()}


def _timer(operation: Operation, device: Device, size: int) -> Callable[[int], float]:
    tensorplug.manual_seed(0)
    a, b = (tensorplug.rand(size, size).to(device) for _ in range(2))
    runtime = find_runtime(device.type)
    index = runtime.current_device() if device.index is None else device.index

    def run(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            operation(a, b)
        runtime.synchronize(index)
        return time.perf_counter() - start

    return run
