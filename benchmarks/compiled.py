"""Inference of whole networks, compiled and not: torch, torch.compile, tensorplug, tp.compile, ONNX Runtime.

::

    python -m benchmarks.compiled
    python -m benchmarks.compiled --threads 2 --filter 'resnet|vit' --rounds 9

All have the same weights and the same batch, and take turns in one process; medians are in milliseconds. What
is not installed, or cannot run the network, has none. The last lines are chains of pointwise ops. Columns
behind the times:

- to best: tp.compile's time over the better one of torch.compile's and ONNX Runtime's
- peak: the operations of products and convolutions, as the network has them, over tp.compile's time, as a
  share of what the product of two large matrices reaches. Winograd's way takes fewer: this may be above 1
- start, pays: the seconds that the first three calls take above later ones, and after how many calls they
  are made up for, to eager mode; of tp.compile, and of torch.compile
- difference: the largest one between contenders, to the largest number

The exit status is 1 if numbers disagree.
"""

import argparse
import importlib.util
import json
import math
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import numpy as np

from . import devices, overhead
from .libraries import EXAMPLES, load

CONTENDERS = ("torch", "torch.compile", "tensorplug", "tp.compile", "onnxruntime")
#: What is compiled, and what it saves time to.
EAGER = {"tp.compile": "tensorplug", "torch.compile": "torch"}
TABLE1 = EXAMPLES / "table1"
HERE = Path(__file__).parent
#: Relative to the largest number.
TOLERANCE = 2e-4
#: Of the matrices whose product is the measure of a network's operations.
PRODUCT_SIDE = 2048
#: Calls that capture, compile, and run what was compiled for the first time.
FIRST_CALLS = 3


class Turns(NamedTuple):
    """What contenders take.

    Attributes
    ----------
    times : dict
        Milliseconds of a call, by contender.
    start : dict
        Seconds of the first calls above later ones.
    difference : float
        The largest one to the first contender's numbers, to the largest of these.
    """

    times: dict[str, float]
    start: dict[str, float]
    difference: float

    def pays(self, name: str, eager: str) -> float:
        """Return after how many calls a compiled contender has made up for its start."""
        saved = self.times.get(eager, 0.0) - self.times.get(name, math.inf)
        return max(1e3 * self.start[name] / saved, 1.0) if saved > 0 else math.inf


class Case(NamedTuple):
    """A network and its batch.

    Attributes
    ----------
    folder, module : Path, str
        Where its source is.
    make : callable
        Given the module, returns the network.
    shape : tuple of int
        Of its input.
    vocabulary : int
        If not 0, the input is whole numbers below that.
    """

    folder: Path
    module: str
    make: Callable[[Any], Any]
    shape: tuple[int, ...]
    vocabulary: int = 0


CASES = {
    "resnet50": Case(TABLE1, "resnet50", lambda m: m.ResNet50(), (2, 3, 224, 224)),
    "mobilenet": Case(TABLE1, "mobilenet", lambda m: m.MobileNetV2(), (4, 3, 224, 224)),
    "vgg19": Case(TABLE1, "vgg19", lambda m: m.VGG19(), (1, 3, 224, 224)),
    "alexnet": Case(TABLE1, "alexnet", lambda m: m.AlexNet(), (8, 3, 224, 224)),
    "vit-tiny": Case(
        HERE, "networks", lambda m: m.ViT(224, 16, 192, 12, 3), (2, 3, 224, 224)
    ),
    "gpt": Case(HERE, "networks", lambda m: m.GPT(8192, 256, 384, 6, 6), (2, 256), 8192),
}  # fmt: skip
CHAINS: dict[str, Callable[[Any], Any]] = {
    "ten cheap ops": lambda x: (
        (((x * 2 + 1).relu() - 0.5).abs().sqrt() * 3).clamp(0, 2).neg().square()
    ),
    "ten ops, three of them functions": lambda x: (
        ((x * 0.5 + 1).sigmoid() - 0.5).tanh().mul(3).clamp(-2, 2).exp().add(1).abs().square()
    ),
}


def contenders(case: Case) -> tuple[dict[str, Callable[[], Any]], float]:
    """Return what runs a network and returns its result as an array, by contender, and its operations."""
    import tensorplug as tp
    from tensorplug.utils.flop_counter import FlopCounterMode

    tp.manual_seed(0)
    ours = case.make(load(case.folder, case.module, tp)).eval()
    for module in ours.modules():  # the statistics of a network that was trained
        if hasattr(module, "running_var"):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    generator = np.random.default_rng(0)
    if case.vocabulary:
        batch = generator.integers(case.vocabulary, size=case.shape)
    else:
        batch = generator.standard_normal(case.shape, dtype=np.float32)
    x = tp.from_numpy(batch)
    compiled = tp.compile(ours)
    with FlopCounterMode(display=False) as counter:
        ours(x)
    found: dict[str, Callable[[], Any]] = {
        "tensorplug": lambda: ours(x).numpy(),
        "tp.compile": lambda: compiled(x).numpy(),
    }
    if importlib.util.find_spec("torch") is not None:
        import torch

        theirs = case.make(load(case.folder, case.module, torch)).eval()
        theirs.load_state_dict(
            {
                name: torch.from_numpy(value.numpy().copy())
                for name, value in ours.state_dict().items()
            }
        )
        y = torch.from_numpy(batch)
        fast = torch.compile(theirs)
        found["torch"] = torch.no_grad()(lambda: theirs(y).numpy())
        found["torch.compile"] = torch.no_grad()(lambda: fast(y).numpy())
    if importlib.util.find_spec("onnxruntime") is not None:
        with suppress(Exception):
            found["onnxruntime"] = _by_onnxruntime(ours, x)
    return found, float(counter.get_total_flops())


def _by_onnxruntime(network: Any, x: Any) -> Callable[[], Any]:
    import onnxruntime

    import tensorplug as tp

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = tp.get_num_threads()
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "network.onnx")
        tp.onnx.export(network, (x,), path)
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = {session.get_inputs()[0].name: x.numpy()}
    return lambda: session.run(None, given)[0]


def in_turns(
    calls: dict[str, Callable[[], Any]],
    rounds: int,
    clock: Callable[[], float],
    typical: Callable[[list[float]], float] = median,
) -> Turns:
    """Return what contenders take, by what is typical of a list of times."""
    results: dict[str, Any] = {}
    working: dict[str, Callable[[], Any]] = {}
    first: dict[str, float] = {}
    for name in CONTENDERS:
        if name in calls:
            try:
                started = clock()
                for _ in range(FIRST_CALLS):
                    results[name] = calls[name]()
                first[name] = clock() - started
                working[name] = calls[name]
            except Exception as error:
                print(f"  {name} cannot run it: {str(error).splitlines()[0]}", file=sys.stderr)
    times: dict[str, list[float]] = {name: [] for name in working}
    for turn in range(rounds):
        for name in list(working)[:: 1 if turn % 2 == 0 else -1]:
            working[name]()  # the threads of the one before, which wait busily, have gone to sleep
            started = clock()
            working[name]()
            times[name].append(1e3 * (clock() - started))
    numbers = next(iter(results.values()))
    scale = float(np.abs(numbers).max()) or 1.0
    difference = max(float(np.abs(value - numbers).max()) / scale for value in results.values())
    taken = {name: typical(found) for name, found in times.items()}
    start = {name: max(first[name] - FIRST_CALLS * taken[name] / 1e3, 0.0) for name in working}
    return Turns(taken, start, difference)


def product_peak(clock: Callable[[], float]) -> float:
    """Return the operations per second of the product of two large matrices."""
    import tensorplug as tp

    x = tp.ones(PRODUCT_SIDE, PRODUCT_SIDE)
    return 2 * PRODUCT_SIDE**3 / devices.fastest(lambda: x @ x, clock)


def row(name: str, turns: Turns, share: float) -> str:
    """Return a line of the table; the share is that of the peak of products."""
    times = turns.times
    cells = [f"{times[key]:13.1f}" if key in times else f"{'-':>13}" for key in CONTENDERS]
    starts = [
        f"{turns.start[key]:6.1f} {turns.pays(key, eager):5.0f}" if key in times else f"{'-':>12}"
        for key, eager in EAGER.items()
    ]
    part = f"{share:6.2f}" if math.isfinite(share) else f"{'-':>6}"
    return " ".join(
        [f"{name:34}" + " ".join(cells), f"{_to_best(times):9.2f}", part, *starts,
         f"{turns.difference:10.1e}"]
    )  # fmt: skip


def _to_best(times: dict[str, float]) -> float:
    """Return our compiled time over the better one of torch.compile and ONNX Runtime."""
    others = [times[key] for key in ("torch.compile", "onnxruntime") if key in times]
    return times["tp.compile"] / min(others) if others and "tp.compile" in times else math.nan


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiled", description=__doc__)
    parser.add_argument("--filter", default="", metavar="PATTERN", help="cases that match a regex")
    parser.add_argument("--threads", type=int, default=1, help="of each library (default: 1)")
    parser.add_argument(
        "--without", action="append", default=[], choices=CONTENDERS[:2], help="leave one out"
    )
    parser.add_argument("--rounds", type=int, default=9, help="turns (default: 9)")
    parser.add_argument(
        "--quickest", action="store_true", help="the quickest turn of each, not the median"
    )
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="count seconds on a processor, not on the clock",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/bench"), help="folder to write (default: out/bench)"
    )
    options = parser.parse_args(arguments)
    import tensorplug as tp

    tp.set_num_threads(options.threads)
    if importlib.util.find_spec("torch") is not None:
        import torch

        torch.set_num_threads(options.threads)
    clock = time.process_time if options.processor_time else time.perf_counter
    print(
        f"{'ms':34}"
        + " ".join([f"{name:>13}" for name in CONTENDERS])
        + f" {'to best':>9} {'peak':>6} {'start':>6} {'pays':>5} {'torch':>6} {'pays':>5} {'difference':>10}"
    )
    peak = product_peak(clock)
    found: dict[str, Any] = {}
    wrong: list[str] = []
    ratios: list[float] = []

    def measured(name: str, calls: dict[str, Callable[[], Any]], operations: float) -> None:
        calls = {key: call for key, call in calls.items() if key not in options.without}
        turns = in_turns(calls, options.rounds, clock, min if options.quickest else median)
        share = 1e3 * operations / turns.times.get("tp.compile", math.nan) / peak
        found[name] = {**turns._asdict(), "share": share}
        print(row(name, turns, share), flush=True)
        if not turns.difference <= TOLERANCE:
            wrong.append(name)

    with warnings.catch_warnings(), tp.no_grad():
        warnings.simplefilter("ignore")
        for name, case in CASES.items():
            if re.search(options.filter, name):
                measured(name, *contenders(case))
                ratios.append(_to_best(found[name]["times"]))
        for name, chain in CHAINS.items():
            if re.search(options.filter, name):
                measured(name, _chain(chain), math.nan)
    ratios = [ratio for ratio in ratios if math.isfinite(ratio)]
    if ratios:
        mean = geometric_mean(ratios)
        print(
            f"geometric mean, tp.compile to the better of torch.compile and onnxruntime: {mean:.2f}"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "compiled.json"
    about = {
        **overhead.about(options.rounds, 0.0),
        "threads": options.threads,
        "product_peak": peak,
    }
    path.write_text(json.dumps({**about, "cases": found}, indent=1) + "\n", "utf-8")
    print(path)
    if wrong:
        print(f"error: numbers disagree: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


def _chain(chain: Callable[[Any], Any]) -> dict[str, Callable[[], Any]]:
    import tensorplug as tp

    x = tp.randn(10_000_000)
    compiled = tp.compile(chain)
    found: dict[str, Callable[[], Any]] = {
        "tensorplug": lambda: chain(x).numpy(),
        "tp.compile": lambda: compiled(x).numpy(),
    }
    if importlib.util.find_spec("torch") is not None:
        import torch

        y = torch.from_numpy(x.numpy())
        fast = torch.compile(chain)
        found["torch"] = lambda: chain(y).numpy()
        found["torch.compile"] = lambda: fast(y).numpy()
    return found


if __name__ == "__main__":
    raise SystemExit(main())
