"""What installed plugins cost those who use none of them: import time, and the time of an op.

::

    python -m benchmarks.plugins
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

COUNT = 20
ROUNDS = 15

# Imports, a first op, and then ops whose time hardly is the kernel's.
PROGRAM = """
import time
start = time.process_time()
import tensorplug as tp
imported = time.process_time()
x = tp.ones(4) + 1
first = time.process_time()
for _ in range(20_000):
    x + x
print(imported - start, first - imported, (time.process_time() - first) / 20_000)
"""

MODULE = '''"""A plugin that brings {what}."""

from tensorplug.plugin import {imports}, hookimpl

{body}


class Plugin:
    name = "{name}"

    @hookimpl
    def {hook}(self):
        return [{returned}]


plugin = Plugin()
'''
DEVICE = """
class Runtime(DeviceRuntime):
    type, array_type = "{name}", type("Array", (), {{}})

    def dtype(self, *values):
        raise NotImplementedError

    empty = scalar = copy_into = from_host = to_host = dtype"""
EXTENSION = '''
@composite(name="{name}.twice", method=False)
def twice(input):
    """Return twice the input."""
    return input + input'''


def write_packages(folder: Path, count: int = COUNT) -> list[str]:
    """Write what installing that many packages leaves: half of them devices, half extensions.

    Returns
    -------
    list of str
        The names of their modules.
    """
    names = []
    for number in range(count):
        if number % 2:
            kind, name, prefix = EXTENSION, f"manyext{number}", "extension."
            what = ("an op", "composite", "tensorplug_ops", "twice")
        else:
            kind, name, prefix = DEVICE, f"manydev{number}", ""
            what = ("a device", "DeviceRuntime", "tensorplug_devices", "Runtime()")
        described, imports, hook, returned = what
        source = MODULE.format(
            what=described, imports=imports, hook=hook, returned=returned, name=name,
            body=kind.format(name=name).strip(),
        )  # fmt: skip
        (folder / f"tensorplug_{name}.py").write_text(source, "utf-8")
        info = folder / f"tensorplug_{name}-1.0.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: tensorplug-{name}\nVersion: 1.0\n"
        (info / "METADATA").write_text(metadata, "utf-8")
        label = f"{prefix}{name}" if prefix else f"{name}.main"
        points = f"[tensorplug.v1]\n{label} = tensorplug_{name}:plugin\n"
        (info / "entry_points.txt").write_text(points, "utf-8")
        names.append(f"tensorplug_{name}")
    return names


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a process that finds the packages of a folder."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(folder)}


def measure(folder: Path) -> list[float]:
    """Return the processor's seconds for import, first op and later ops, in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment(folder), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [float(seconds) for seconds in done.stdout.split()]


def main() -> None:
    """Measure with and without, in turns, and print the least: other processes only ever add."""
    with tempfile.TemporaryDirectory() as name:
        none, many = Path(name) / "none", Path(name) / "many"
        none.mkdir()
        many.mkdir()
        write_packages(many)
        measure(many)
        turns = [(measure(none), measure(many)) for _ in range(ROUNDS)]
    for place, (what, unit, scale) in enumerate(
        (("import", "ms", 1e3), ("first op", "ms", 1e3), ("an op", "ns", 1e9))
    ):
        bare, full = (min(turn[side][place] for turn in turns) * scale for side in (0, 1))
        print(
            f"{what:10} {bare:8.1f} {unit} without, {full:8.1f} {unit} with {COUNT} plugins, "
            f"ratio {full / bare:.3f}"
        )


if __name__ == "__main__":
    main()
