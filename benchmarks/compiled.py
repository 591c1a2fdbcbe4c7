"""Inference of whole networks, compiled and not: torch, torch.compile, tensorplug, tp.compile, ONNX Runtime.

::

    python -m benchmarks.compiled
    python -m benchmarks.compiled --threads 2 --filter 'resnet|vit' --rounds 9

All have the same weights and the same batch, and take turns in one process; medians are in milliseconds. What
is not installed, or cannot run the network, has none. The last lines are chains of pointwise ops. The exit
status is 1 if numbers disagree.
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

from . import overhead
from .libraries import EXAMPLES, load

CONTENDERS = ("torch", "torch.compile", "tensorplug", "tp.compile", "onnxruntime")
TABLE1 = EXAMPLES / "table1"
HERE = Path(__file__).parent
#: Relative to the largest number.
TOLERANCE = 2e-4


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


def contenders(case: Case) -> dict[str, Callable[[], Any]]:
    """Return what runs a network once and returns its result as an array, by contender."""
    import tensorplug as tp

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
    return found


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
    calls: dict[str, Callable[[], Any]], rounds: int, clock: Callable[[], float]
) -> tuple[dict[str, float], float]:
    """Return medians in milliseconds, and the largest difference to the first contender's numbers."""
    results: dict[str, Any] = {}
    working: dict[str, Callable[[], Any]] = {}
    for name in CONTENDERS:
        if name in calls:
            try:
                for _ in range(3):  # captures, compiles, and the first run of what was compiled
                    results[name] = calls[name]()
                working[name] = calls[name]
            except Exception as error:
                print(f"  {name} cannot run it: {str(error).splitlines()[0]}", file=sys.stderr)
    times: dict[str, list[float]] = {name: [] for name in working}
    for turn in range(rounds):
        for name in list(working)[:: 1 if turn % 2 == 0 else -1]:
            started = clock()
            working[name]()
            times[name].append(1e3 * (clock() - started))
    first = next(iter(results.values()))
    scale = float(np.abs(first).max()) or 1.0
    difference = max(float(np.abs(value - first).max()) / scale for value in results.values())
    return {name: median(taken) for name, taken in times.items()}, difference


def row(name: str, times: dict[str, float], difference: float) -> str:
    """Return a line of the table."""
    cells = [f"{times[key]:13.1f}" if key in times else f"{'-':>13}" for key in CONTENDERS]
    return f"{name:34}" + " ".join(cells) + f" {_to_best(times):9.2f} {difference:10.1e}"


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
        + f" {'to best':>9} {'difference':>10}"
    )
    found: dict[str, Any] = {}
    wrong: list[str] = []
    ratios: list[float] = []

    def measured(name: str, calls: dict[str, Callable[[], Any]]) -> None:
        calls = {key: call for key, call in calls.items() if key not in options.without}
        times, difference = in_turns(calls, options.rounds, clock)
        found[name] = {"times": times, "difference": difference}
        print(row(name, times, difference), flush=True)
        if not difference <= TOLERANCE:
            wrong.append(name)

    with warnings.catch_warnings(), tp.no_grad():
        warnings.simplefilter("ignore")
        for name, case in CASES.items():
            if re.search(options.filter, name):
                measured(name, contenders(case))
                ratios.append(_to_best(found[name]["times"]))
        for name, chain in CHAINS.items():
            if re.search(options.filter, name):
                measured(name, _chain(chain))
    ratios = [ratio for ratio in ratios if math.isfinite(ratio)]
    if ratios:
        mean = geometric_mean(ratios)
        print(
            f"geometric mean, tp.compile to the better of torch.compile and onnxruntime: {mean:.2f}"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "compiled.json"
    about = {**overhead.about(options.rounds, 0.0), "threads": options.threads}
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
