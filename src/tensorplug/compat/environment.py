"""What programs ask ``torch.utils.collect_env`` about the machine, for the head of a report."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from typing import Any

_Run = Callable[[str], tuple[int, str, str]]


def run(command: str | list[str]) -> tuple[int, str, str]:
    """Return the exit status of a command, and what it wrote to both streams; 127 if it is not there."""
    try:
        done = subprocess.run(
            command, shell=isinstance(command, str), capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        return 127, "", str(error)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def _first_match(command: str, pattern: str) -> Callable[[_Run], str | None]:
    """Return a function that finds the first group of a pattern in a command's output, or None."""

    def find(run_lambda: _Run) -> str | None:
        status, written, _ = run_lambda(command)
        found = re.search(pattern, written, re.DOTALL) if status == 0 else None
        return found.group(1).strip() if found else None

    return find


ADDITIONS: dict[str, dict[str, Any]] = {
    "torch.utils.collect_env": {
        "run": run,
        "get_clang_version": _first_match("clang --version", r"clang version ([^\n]*)"),
        "get_cmake_version": _first_match("cmake --version", r"cmake version ([^\n]*)"),
        "get_cpu_info": _first_match("lscpu", "(.*)"),
        "get_gcc_version": _first_match("gcc --version", r"gcc ([^\n]*)"),
        "get_gpu_info": _first_match("nvidia-smi -L", "(.*)"),
        "get_nvidia_driver_version": _first_match("nvidia-smi", r"Driver Version: (\S+)"),
    }
}
