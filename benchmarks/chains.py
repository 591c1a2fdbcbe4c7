"""Chains of pointwise ops, compiled and eager, at each SIMD level: ``python -m benchmarks.chains``.

Each op is followed by a product, so that one pass over memory takes the place of two. Kernels are compiled
once per level, and a compiler may make something else of the same line at each: a ratio far above 1 at one
level alone is such a case. Every level has a process of its own; seconds are the processor's.
"""

import argparse
import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import geometric_mean
from typing import Any

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import all_ops

LEVELS = ("v2", "v3", "v4")
ELEMENTS = 1_000_000
#: Composites that are of elements, too.
ACTIVATIONS = frozenset((
    "celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid",
    "mish", "relu6", "selu", "silu", "softplus", "softshrink", "softsign", "tanhshrink",
))  # fmt: skip
WORST = 10
#: Above what a level's ratio makes the status 1: a chain costs its calls, and here it saves a pass.
TOO_MUCH = 2.0
FIRST_CALLS = 4  # in which a call is captured, and its graph made


def cases(dtype: Any) -> Iterator[tuple[str, Callable[..., Any], list[Any]]]:
    """Yield pointwise ops and activations of one or two arguments, followed by a product, with arguments."""
    activations = tp.nn.functional
    for op in sorted(all_ops(), key=lambda op: op.name):
        function = getattr(activations if op.name in ACTIVATIONS else tp, op.name, None)
        if function is None or not (op.pointwise or op.elementwise or op.name in ACTIVATIONS):
            continue
        needed = inspect.signature(function).parameters.values()
        count = len([p for p in needed if p.default is p.empty and p.kind is not p.VAR_POSITIONAL])
        given = [tp.rand(ELEMENTS, dtype=dtype) * 0.8 + 0.1 for _ in range(count)]
        try:
            result = function(*given)
        except (IndexError, RuntimeError, TypeError, ValueError):  # of other dtypes
            continue
        if count in (1, 2) and isinstance(result, tp.Tensor) and result.dtype == dtype:
            yield op.name, lambda *x, function=function: function(*x) * 1.5, given


def seconds(function: Callable[..., Any], given: Sequence[Any], turns: int) -> float:
    """Return the least of some calls."""
    for _ in range(FIRST_CALLS):
        function(*given)
    taken = []
    for _ in range(turns):
        begin = time.process_time()
        function(*given)
        taken.append(time.process_time() - begin)
    return min(taken)


def measured(dtype: Any, turns: int) -> dict[str, float]:
    """Return the ratio of a compiled to an eager call, by op."""
    tp.set_num_threads(1)
    return {
        name: seconds(tp.compile(function), given, turns) / seconds(function, given, turns)
        for name, function, given in cases(dtype)
    }


def at_level(level: str, arguments: Sequence[str]) -> dict[str, float]:
    """Return what a process measures that is held to a level."""
    command = [sys.executable, "-m", "benchmarks.chains", "--json", *arguments]
    environment = os.environ | {"TENSORPLUG_CPU_SIMD": level}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each level; the status is 1 if a chain takes more than twice what its ops do."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.chains", description="Compiled chains beside eager ops."
    )
    parser.add_argument("--dtype", default="float32", help="float32 (default) or float64")
    parser.add_argument("--turns", type=int, default=5, help="of which the least counts")
    parser.add_argument("--json", action="store_true", help="this process's level alone, as JSON")
    options = parser.parse_args(arguments)
    if options.json:
        print(json.dumps(measured(getattr(tp, options.dtype), options.turns)))
        return 0
    best = getattr(tp.cpu, "simd_level", lambda: "none")()
    if best not in LEVELS:
        print(f"there are no chains at several levels here: {best}", file=sys.stderr)
        return 2
    slow = False
    for level in LEVELS[: LEVELS.index(best) + 1]:
        passed = ["--dtype", options.dtype, "--turns", str(options.turns)]
        ratios = at_level(level, passed)
        worst = sorted(ratios.items(), key=lambda item: -item[1])[:WORST]
        slow |= worst[0][1] > TOO_MUCH
        print(
            f"{level}: {geometric_mean(ratios.values()):.2f} of {len(ratios)};",
            ", ".join(f"{name} {ratio:.2f}" for name, ratio in worst),
            flush=True,
        )
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
