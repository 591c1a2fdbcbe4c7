"""All operators at each SIMD level of the processor beside the level below: ``python -m benchmarks.levels``.

Kernels are compiled once per level, and a compiler may make something else of the same line at each: an
operator that takes longer at the higher level is such a case. The breadth table is measured once per level,
in a process of its own; what this module does not know is given on to it (``--filter``, ``--sizes``, …).
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean

import tensorplug as tp

from .breadth_page import cells_of

LEVELS = ("v2", "v3", "v4")
WORST = 20
#: Times the level below, above which an operator is named and the status is 1: calls of microseconds vary.
TOO_MUCH = 1.3

Case = tuple[str, str, str]


def measured(level: str, arguments: Sequence[str], folder: Path) -> dict[Case, float]:
    """Return the seconds of operators in a process that is held to a level, by name, size and way."""
    out = folder / level
    command = [sys.executable, "-m", "benchmarks.breadth", "--out", str(out), *arguments]
    environment = os.environ | {"TENSORPLUG_CPU_SIMD": level}
    # Its status is of the numbers, which `make bench` looks at.
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
    cells = cells_of(out / "breadth.json")
    return {(one.name, one.size, one.way): one.ours for one in cells if not one.error}


def compared(higher: dict[Case, float], lower: dict[Case, float]) -> list[tuple[float, Case]]:
    """Return the ratios of what both levels measured, worst first."""
    return sorted(
        ((higher[case] / lower[case], case) for case in higher.keys() & lower), reverse=True
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each level but the lowest, and its worst; the status is 1 if one is too slow."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.levels",
        description="All operators at each SIMD level. Other options are those of benchmarks.breadth.",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/bench/levels"), help="folder to write"
    )
    options, passed = parser.parse_known_args(arguments)
    best = getattr(tp.cpu, "simd_level", lambda: "none")()
    if best not in LEVELS[1:]:
        print(f"there are no kernels at several levels here: {best}", file=sys.stderr)
        return 2
    slow = False
    lower = measured(LEVELS[0], passed, options.out)
    for level in LEVELS[1 : LEVELS.index(best) + 1]:
        higher = measured(level, passed, options.out)
        ratios = compared(higher, lower)
        if not ratios:
            print("error: nothing was measured at both levels", file=sys.stderr)
            return 2
        mean = geometric_mean([ratio for ratio, _ in ratios])
        print(f"{level}: {mean:.2f} of the level below, {len(ratios)} measured", flush=True)
        for ratio, case in ratios[:WORST]:
            if ratio > TOO_MUCH:
                slow = True
                print(f"  {ratio:6.2f}  {' '.join(case)}", flush=True)
        lower = higher
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
