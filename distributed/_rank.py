"""One rank of ``python -m tensorplug.distributed.run``: runs the program, and ends the world if it fails.

A rank that fails must not leave in the ordinary way: leaving is a collective, and the others would not come.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
import traceback
from pathlib import Path


def _end_with_the_launcher() -> None:
    """Have the system end this process when its parent ends, however that may be."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != int(os.environ.get("TENSORPLUG_LAUNCHER", os.getppid())):
            os._exit(1)


def main(arguments: list[str]) -> None:
    """Run ``[-m] program argument...`` as if it were called directly."""
    _end_with_the_launcher()
    by_name = arguments[0] == "-m"
    sys.argv = arguments[1:] if by_name else arguments
    try:
        if by_name:
            sys.path[0] = str(Path.cwd())
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as error:
        code = error.code
        if code is None or code == 0:
            return
        if not isinstance(code, int):
            sys.stderr.write(f"{code}\n")
            code = 1
        _leave(code)
    except BaseException as error:
        _show(error)
        _leave(1)


def _show(error: BaseException) -> None:
    """Print the traceback as the program called directly would: without what is above it."""
    ours = {__file__, runpy.__file__}
    place = error.__traceback__
    while place is not None and (
        place.tb_frame.f_code.co_filename in ours
        or "<frozen runpy>" in place.tb_frame.f_code.co_filename
    ):
        place = place.tb_next
    traceback.print_exception(error.with_traceback(place))


def _leave(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
