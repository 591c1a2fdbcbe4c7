"""How long threads of a team wait busily for the next loop, which their library reads when it is loaded."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["briefly"]

#: About a tenth of a millisecond, from kernel to kernel. GOMP's own is ten times that, in which the threads
#: of two processes on the same cores keep each other from working: steps took four times as long as alone.
_SPINS = "30000"


@contextmanager
def briefly() -> Generator[None, None, None]:
    """Load GOMP so that its threads soon go to sleep, unless the environment says how long they wait."""
    if {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = _SPINS
    try:
        yield
    finally:
        os.environ.pop("GOMP_SPINCOUNT", None)  # other libraries and processes have their own say
