"""``torch._utils.ExceptionWrapper``: an exception on its way to another process."""

from __future__ import annotations

import sys
import traceback
from typing import Any

from tensorplug.data.workers import Failure


class ExceptionWrapper:
    """The type of an exception and its traceback as text, which can be pickled.

    Parameters
    ----------
    exc_info : tuple, optional
        As :func:`sys.exc_info` returns it, which is the default.
    where : str
        Where it was raised, for the message.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        exc_info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self) -> None:
        """Raise the exception again, of the same type if it can be made from a message."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        Failure(self.exc_type, text).reraise()
