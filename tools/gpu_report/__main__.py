"""The command line of the report; see the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from . import steps, summary


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; what cannot work ends the program with a message and status 2."""
    parser = argparse.ArgumentParser(
        prog="tools/gpu_report.sh",
        description="Test and measure the project on this machine's GPU.",
    )
    parser.add_argument("--out", type=Path, default=Path("out/gpu"), help="folder of the results")
    parser.add_argument("--minutes", type=float, default=9, help="of this slice (default: 9)")
    parser.add_argument("--slice", default="", help="a name for this slice, in the results")
    parser.add_argument(
        "--only",
        default=",".join(steps.PARTS),
        help=f"parts: {', '.join(steps.PARTS)} (default: all)",
    )
    parser.add_argument("--again", action="store_true", help="run what failed once more")
    parser.add_argument("--wheels", type=Path, help="folder of wheels that this machine lacks")
    parser.add_argument("--workers", type=int, default=0, help="of the tests (default: processors)")
    parser.add_argument(
        "--hosted", type=Path, metavar="FOLDER", help="rehearse on the driver that this folder has"
    )
    parser.add_argument("--every", type=int, default=1, help="take every Nth case of conformance")
    parser.add_argument(
        "--write", type=Path, help="write the tables into this page, between its marks"
    )
    options = parser.parse_args(arguments)
    options.only = options.only.split(",")
    unknown = sorted(set(options.only) - set(steps.PARTS))
    if unknown:
        parser.error(
            f"--only: no part is called {', '.join(unknown)}; there are {', '.join(steps.PARTS)}"
        )
    if options.hosted and not (options.hosted / "runtime.so").exists():
        parser.error(
            f"--hosted: {options.hosted} has no driver; python -m cuda_on_host.build builds one"
        )
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    options = parse(arguments)
    options.out = options.out.absolute()
    options.out.mkdir(parents=True, exist_ok=True)
    left = steps.run(options)
    report = summary.report(options.out)
    (options.out / "report.md").write_text(report, encoding="utf-8")
    print(report)
    if options.write:
        summary.write_into(options.write, report)
    if left:
        print(f"to go on: run the same again; left: {', '.join(left)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
