"""Runs the checks of a file in several processes: ``run("checks_x.py", 2)``, or this file under mpiexec.

A file of checks has functions ``check_…``, which every process calls in the order of the file. The first that
fails ends the run, for the processes may have parted there.
"""

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
import traceback
from datetime import timedelta
from pathlib import Path

HERE = Path(__file__).parent


def missing():
    """Return why nothing can be run here; "" if it can."""
    for package in ("mpi4py", "tensorplug_dist_mpi"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed"
    return "" if launcher() else "there is no mpiexec"


def launcher():
    """Return the path of mpiexec: the environment's, or the system's."""
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def names(file):
    """Return the names of a file's checks."""
    tree = ast.parse((HERE / file).read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [node.name for node in functions if node.name.startswith("check_")]


def run(file, size, folder, only=(), timeout=170):
    """Run the checks in `size` processes; return what each has to say, "" if it passed."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment["TMPDIR"] = str(folder)
    command = [
        launcher(),
        "-n",
        str(size),
        sys.executable,
        str(HERE / "ranks.py"),
        str(HERE / file),
    ]
    done = subprocess.run(
        [*command, str(folder), *only],
        capture_output=True, text=True, timeout=timeout, env=environment, check=False,
    )  # fmt: skip
    said = {}
    for name in only or names(file):
        failures = sorted(Path(folder).glob(f"{name}.*.failed"))
        if failures:
            said[name] = "\n".join(failure.read_text() for failure in failures)
        elif len(list(Path(folder).glob(f"{name}.*.passed"))) == size:
            said[name] = ""
        else:
            said[name] = f"not run to its end: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return said


def main(file, folder, *only):
    import tensorplug.distributed as dist

    sys.path.insert(0, str(HERE))
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    dist.init_process_group("mpi", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    for name in only or names(Path(file).name):
        try:
            getattr(module, name)()
        except BaseException:
            Path(folder, f"{name}.{rank}.failed").write_text(
                f"rank {rank}:\n{traceback.format_exc()}"
            )
            raise
        Path(folder, f"{name}.{rank}.passed").touch()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
