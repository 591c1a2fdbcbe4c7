"""How long the import of each library takes, in new processes that find their bytecode, as a user's do."""

import math
import os
import subprocess
import sys
import tempfile
from statistics import median

from .harness import Result, duration

STATEMENTS = {
    "import": "import {} as lib; number = 0",
    "import, and a first addition": "import {} as lib; number = (lib.ones(1) + 1).item()",
}
LIBRARIES = ("tensorplug", "torch", "numpy")
STOPWATCH = """
import time
start = time.perf_counter()
{}
print(time.perf_counter() - start, number)
"""


def measure_import(name: str, rounds: int) -> tuple[Result, str]:
    """Time one of the `STATEMENTS`.

    Parameters
    ----------
    name : str
        Which of them.
    rounds : int
        How many processes each library gets, in turns.

    Returns
    -------
    result : Result
        Of tensorplug and torch.
    note : str
        What NumPy alone takes, which tensorplug's time contains, and what both add to it.
    """
    statement = STATEMENTS[name]
    try:
        with tempfile.TemporaryDirectory() as bytecode:
            for lib in LIBRARIES:
                run(statement.format(lib), bytecode)  # writes it
            turns = [
                [run(statement.format(lib), bytecode) for lib in LIBRARIES] for _ in range(rounds)
            ]
    except subprocess.CalledProcessError as error:
        message = error.stderr.strip().splitlines()[-1]
        return Result(name, math.nan, math.nan, math.nan, 0.0, message), ""
    ours, theirs, numpys = (median(s for s, _ in column) for column in zip(*turns, strict=True))
    difference = abs(turns[0][0][1] - turns[0][1][1])
    note = (
        f"{name}: NumPy alone takes {duration(numpys)}; tensorplug adds {1e3 * (ours - numpys):.0f} ms, "
        f"torch {1e3 * (theirs - numpys):.0f} ms"
    )
    return Result(name, ours, theirs, difference, tolerance=0.0), note


def run(statement: str, bytecode: str) -> tuple[float, float]:
    """Return the seconds that a statement takes in a new process, and the `number` it computes.

    The process keeps compiled modules in the folder `bytecode`.
    """
    command = [sys.executable, "-c", STOPWATCH.format(statement)]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    seconds, number = done.stdout.split()
    return float(seconds), float(number)
