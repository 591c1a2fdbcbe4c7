"""KeyboardInterrupt at a chosen point of a program.

Signals are handled when a Python function begins and when a call of C is over. A profile function is called
just there, and so can send the process a signal at the n-th point.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any


class Interrupts:
    """Calls a function with an interrupt at one point of it.

    Attributes
    ----------
    count : int
        How many points the last call had, up to the interrupt.
    error : KeyboardInterrupt or None
        What came out of it, with its traceback.
    lines : list of (str, int)
        File and line at each point of a call without interrupt.
    """

    def __init__(self) -> None:
        self.count, self.point = 0, 0
        self.error: KeyboardInterrupt | None = None
        self.lines: list[tuple[str, int]] = []

    def _note(self, frame: Any, event: str, argument: Any) -> None:
        if event in ("call", "c_return"):
            self.count += 1
            if not self.point:
                self.lines.append((frame.f_code.co_filename, frame.f_lineno))
            if self.count == self.point and os.getpid() == self._process:
                signal.raise_signal(signal.SIGINT)

    def run(self, function: Callable[[], object], point: int) -> None:
        """Call a function, and interrupt it at a point; at none if that is 0."""
        self.count, self.point, self.error = 0, point, None
        if not point:
            self.lines.clear()
        self._process = os.getpid()
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        profile = sys.getprofile()
        sys.setprofile(self._note)
        try:
            function()
        except KeyboardInterrupt as error:
            self.error = error
        finally:
            sys.setprofile(profile)
            signal.signal(signal.SIGINT, handler)


def chosen_points(
    interrupts: Interrupts, function: Callable[[], object], sample: int, within: Sequence[str] = ()
) -> Sequence[int]:
    """Return points at which to interrupt a function: all, or so many of them where there are more.

    With `within` there are also the first ones of all lines in files whose path ends with one of these.
    With ``TENSORPLUG_FUZZ`` in the environment it is all in any case.
    """
    for _ in range(3):  # caches fill
        interrupts.run(function, 0)
    points = range(1, interrupts.count + 1)
    if len(points) <= sample or os.environ.get("TENSORPLUG_FUZZ"):
        return points
    first: dict[tuple[str, int], int] = {}
    for point, line in enumerate(interrupts.lines, 1):
        if line[0].endswith(tuple(within)):
            first.setdefault(line, point)
    return sorted({*first.values(), *random.Random(0).sample(points, sample)})
