"""Count the instructions of small programs, and hold the counts to committed figures.

::

    python -m benchmarks.instructions            # compare; exit status 1 if a program has become slower
    python -m benchmarks.instructions --renew    # write the figures anew

Times depend on the machine and on what else runs there; the number of instructions hardly does. Valgrind
counts them in one process: it writes a total each time the process asks for its parent's id, which is what
stands between two measurements. A program runs `CALLS` and three times `CALLS` times, and the difference is
taken, so neither start-up nor the loop around the calls counts.

Counts depend on the versions of Python and NumPy, and on the processor for which OpenBLAS, NumPy and the C
library choose their kernels, so the figures have a section for each of these, and for the pure and the
compiled hot path. Where there is no section, nothing is compared. The processor is the one that Valgrind
shows to the program: Valgrind 3.19 shows a Haswell, also on one with AVX-512.
"""

import argparse
import gc
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).with_name("instructions.json")
TOLERANCE = 0.05
CALLS = 20
WARM_UP = 30
MARK = "getppid"
# With these one chooses other kernels than those that the processor would get.
CHOICES = ("GLIBC_TUNABLES", "NPY_DISABLE_CPU_FEATURES", "OPENBLAS_CORETYPE")

Programs = dict[str, Callable[[], Any]]


def programs() -> Programs:
    """Return ten programs of calls that come to a kernel each, and ten calls that other ops make up."""
    import tensorplug as tp

    from .cases import mlp_step, mul_add_chain, tensors

    a, b = tensors(tp, (10,), (10,))
    x, y = tensors(tp, (10,), (10,), grad=True)

    def chain() -> None:
        mul_add_chain(x, a, b).sum().backward()
        x.grad = None

    return {
        "add": lambda: a + b,
        "add, recording": lambda: x + y,
        "add a number": lambda: a + 1.5,
        "exp": lambda: a.exp(),
        "sum": lambda: a.sum(),
        "matmul, recording": lambda: x @ y,
        "reshape": lambda: a.reshape(2, 5),
        "index": lambda: a[3],
        "chain of 100, and backward": chain,
        "training step": mlp_step(tp),
        **_composites(),
    }


def _composites() -> Programs:
    import tensorplug as tp
    from tensorplug.nn import functional as F

    from .cases import tensors

    matrix, weight, bias, stacks, image = tensors(
        tp, (4, 10), (10,), (10,), (3, 4, 4), (2, 3, 8, 8)
    )
    (rows,) = tensors(tp, (4, 10), grad=True)
    mean, variance = tp.zeros(3), tp.ones(3)
    classes = tp.tensor([1, 0, 9, 3])
    mask = matrix > 0

    def with_gradients(function: Callable[[Any], Any]) -> Callable[[], None]:
        def program() -> None:
            function(rows).backward()
            rows.grad = None

        return program

    return {
        "attention": lambda: F.scaled_dot_product_attention(stacks, stacks, stacks),
        "batch_norm, training": lambda: F.batch_norm(image, mean, variance, training=True),
        "cross_entropy, and backward": with_gradients(lambda x: F.cross_entropy(x, classes)),
        "interpolate, bilinear": lambda: F.interpolate(image, scale_factor=2, mode="bilinear"),
        "layer_norm, and backward": with_gradients(
            lambda x: F.layer_norm(x, (10,), weight, bias).sum()
        ),
        "masked_select": lambda: matrix.masked_select(mask),
        "max_pool2d": lambda: F.max_pool2d(image, 2),
        "normalize": lambda: F.normalize(matrix),
        "pad, reflect": lambda: F.pad(image, (1, 1, 1, 1), "reflect"),
        "std": lambda: matrix.std(1),
    }


def run_programs() -> None:
    """Run each program between marks, and print the section: what happens inside of Valgrind."""
    gc.disable()
    for program in programs().values():
        for calls in (WARM_UP, CALLS, 3 * CALLS):
            os.getppid()
            for _ in repeat(None, calls):
                program()
    os.getppid()
    print(section())


def count(valgrind: str) -> tuple[str, dict[str, int]] | None:
    """Return the section and the instructions of one call of each program; None if Valgrind lacks some."""
    environment = {name: value for name, value in os.environ.items() if name not in CHOICES}
    environment["PYTHONHASHSEED"] = "0"
    for library in ("OMP", "OPENBLAS", "MKL"):
        environment[f"{library}_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        command = [
            valgrind, "--tool=callgrind", f"--dump-before={MARK}",
            f"--callgrind-out-file={folder}/out", sys.executable, "-m", "benchmarks.instructions", "--run",
        ]  # fmt: skip
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode and "unhandled instruction bytes" in done.stderr:
            return None
        if done.returncode:
            raise SystemExit(f"valgrind failed:\n{done.stderr}")
        dumps = sorted(Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:]))
        totals = [total(path) for path in dumps]
    # The first dump is the start; then three for each program.
    names = list(programs())
    if len(totals) != 1 + 3 * len(names):
        raise SystemExit(f"valgrind wrote {len(totals)} totals, expected {1 + 3 * len(names)}")
    return done.stdout.strip(), {
        name: round((totals[3 * number + 3] - totals[3 * number + 2]) / (2 * CALLS))
        for number, name in enumerate(names)
    }


def total(path: Path) -> int:
    """Return the instructions that one dump tells of."""
    found = re.search(r"^(?:totals|summary): (\d+)", path.read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{path} tells no total")
    return int(found[1])


def section() -> str:
    """Return what the counts depend on, as a key of the figures."""
    import numpy as np
    from threadpoolctl import threadpool_info

    import tensorplug as tp

    python = ".".join(platform.python_version_tuple()[:2])
    numpy = ".".join(np.__version__.split(".")[:2])
    way = "compiled" if tp.compiled() else "pure"
    processor = next(
        (pool["architecture"] for pool in threadpool_info() if "architecture" in pool), "?"
    )
    return f"{way}, Python {python}, NumPy {numpy}, {platform.machine()}, {processor}"


def report(counts: dict[str, int], known: dict[str, int] | None) -> bool:
    """Print the counts beside the figures; return whether all are within the tolerance."""
    fine = True
    for name, now in counts.items():
        line = f"{name:32} {now:>12,}"
        figure = None if known is None else known.get(name)
        if figure is not None:
            change = now / figure - 1
            line += f" {figure:>12,} {change:+8.1%}"
            if change > TOLERANCE:
                fine = False
                line += "  slower"
        print(line)
    return fine


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions")
    parser.add_argument("--renew", action="store_true", help="write the figures anew")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.run:
        run_programs()
        return 0
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print("skipped: there is no valgrind here to count instructions with")
        return 0
    counted = count(valgrind)
    if counted is None:
        print("skipped: this valgrind does not know an instruction that is used on this processor")
        return 0
    key, counts = counted
    figures = json.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else {}
    known = figures.get(key)
    print(f"{key}\n{'instructions of one call':32} {'now':>12} {'figure':>12}")
    fine = report(counts, known)
    if options.renew:
        figures[key] = counts
        FIGURES.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n", "utf-8")
        print(f"wrote {FIGURES}")
        return 0
    if known is None:
        print("no figures for this section, so nothing was compared; see --renew")
        return 0
    if not fine:
        print(
            f"error: more than {TOLERANCE:.0%} above the figures. If that is meant to be, "
            "`make instructions-renew` writes them anew",
            file=sys.stderr,
        )
    return 0 if fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
