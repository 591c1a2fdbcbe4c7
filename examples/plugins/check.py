"""Build the wheels of tensorplug and of every example plugin, install them, and run each one's tests.

``make plugins`` runs it in an environment of its own. Nothing of the repository is importable there: the
wheels are built from copies, and the tests run in a temporary folder that holds no sources.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NOT_SOURCES = (
    ".git",
    ".venv*",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
    "*.egg-info",
    "build",
    "dist",
    "out",
)

# The compiled hot path takes minutes to build, and has its own tests: `make test-compiled`.
ENVIRONMENT = {"TENSORPLUG_PURE": "1", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}

# Of how many cases of the conformance suite one is taken. Of the ops of "quant" all are.
EVERY = {
    "mps_mlx": 150,
    "tensorplug-jax": 1000,  # XLA compiles each op for each shape
    "tensorplug-opencl": 150,
    "tensorplug-quant": 1,
    "tensorplug-strict": 80,
}


#: What is not among the examples, and checked beside them: its tests need a package that few systems have.
MPS = ROOT / "backends/mps_mlx"

# Where the system's OpenCL is, for a loader that looks elsewhere by itself.
SYSTEM_OPENCL = {"OCL_ICD_VENDORS": "/etc/OpenCL/vendors"}

Variables = Mapping[str, str]


def run(*command: object, folder: Path | None = None, variables: Variables = ENVIRONMENT) -> str:
    """Run a command; end the program with what it said if it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def build(plugins: list[Path], work: Path) -> list[Path]:
    """Return the wheels of tensorplug and the plugins, built from copies of their sources."""
    sources = []
    for source in (ROOT, *plugins):
        sources.append(work / "sources" / source.name)
        ignored = shutil.ignore_patterns(*NOT_SOURCES)
        shutil.copytree(source, sources[-1], symlinks=True, ignore=ignored)
    pip = (
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "wheel",
        "--quiet",
        "--no-deps",
    )
    run(*pip, "--wheel-dir", work / "wheels", *sources)
    return sorted((work / "wheels").glob("*.whl"))


def install(wheels: list[Path]) -> None:
    """Install the wheels anew, with what they and their tests need, into this environment."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    tested = [w for w in wheels if w.name.startswith("tensorplug_") and MPS.name not in w.name]
    run(*pip, *[f"{wheel}[test]" if wheel in tested else wheel for wheel in wheels])
    run(*pip, "--no-deps", "--force-reinstall", *wheels)
    subprocess.run([*pip, "mlx[cpu]>=0.32"], check=False, stdin=subprocess.DEVNULL)
    script = "import sys, tensorplug; assert tensorplug.__file__.startswith(sys.prefix)"
    run(sys.executable, "-I", "-c", script)


def find_mps() -> tuple[Variables, str]:
    """Return the environment of MLX's tests, and "", or why its device cannot be used."""
    script = "from tensorplug_mps_mlx import plugin; print(plugin.runtime.unavailable_reason())"
    reason = run(sys.executable, "-c", script).splitlines()[-1]
    return ENVIRONMENT, "" if reason == "None" else reason


def find_opencl() -> tuple[Variables, str]:
    """Return the environment in which OpenCL works, and "", or why it works in none.

    PoCL as pip has it compiles for no processor that is newer than it is.
    """
    script = "from tensorplug_opencl import plugin; print(plugin.runtime.unavailable_reason())"
    reasons = []
    for variables in (ENVIRONMENT, {**ENVIRONMENT, **SYSTEM_OPENCL}):
        reasons.append(run(sys.executable, "-c", script, variables=variables).splitlines()[-1])
        if reasons[-1] == "None":
            return variables, ""
    return ENVIRONMENT, "; ".join(dict.fromkeys(reasons))


def check(plugin: Path, work: Path) -> str:
    """Run a plugin's tests without its sources; return the last lines.

    Where its device cannot be used, those tests are run that can be, without the conformance suite.
    """
    folder = work / "tests" / plugin.name
    shutil.copytree(plugin, folder, ignore=shutil.ignore_patterns("src", *NOT_SOURCES))
    started = time.monotonic()
    finders = {"tensorplug-opencl": find_opencl, MPS.name: find_mps}
    variables, reason = finders.get(plugin.name, lambda: (ENVIRONMENT, ""))()
    pytest = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    if reason:
        chosen: tuple[object, ...] = ("-o", "addopts=", "tests")
    else:
        chosen = ("--every", EVERY.get(plugin.name, 40))
    if plugin == MPS and not reason:
        # Its pyproject has no options: the repository's would be hidden.
        suite = ("--pyargs", "tensorplug.testing.conformance", "--device", "mps")
        chosen = ("-W", "error", *suite, "tests", *chosen)
    said = run(*pytest, *chosen, folder=folder, variables=variables)
    seconds = time.monotonic() - started
    lines = [f"{plugin.name}: {seconds:.0f} s", *said.strip().splitlines()[-2:]]
    if reason:
        lines.append(
            f"skipped: the conformance suite, and the tests that need the device: {reason}"
        )
    return "\n  ".join(lines)


def main() -> None:
    """Check all plugins, two at a time."""
    started = time.monotonic()
    plugins = [*sorted(path.parent for path in HERE.glob("*/pyproject.toml")), MPS]
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        install(build(plugins, work))
        print(f"{len(plugins)} plugins built and installed in {time.monotonic() - started:.0f} s")
        with ThreadPoolExecutor(2) as pool:
            for result in pool.map(lambda plugin: check(plugin, work), plugins):
                print(result, flush=True)
    print(f"all example plugins passed in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
