"""``python -m tensorplug.compat program.py``."""

from __future__ import annotations

import sys

from . import run

USAGE = "usage: python -m tensorplug.compat (PROGRAM.py | -m MODULE) [ARGUMENT ...]"

if __name__ == "__main__":
    arguments = sys.argv[1:]
    module = arguments[:1] == ["-m"]
    del arguments[:module]
    if not arguments or arguments[0].startswith("-"):
        sys.exit(USAGE)
    run(arguments[0], arguments[1:], module=module)
