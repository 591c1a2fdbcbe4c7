"""A store in a file that processes share."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from .errors import DistStoreError
from .stores import Store, Table, in_seconds, inward, json_line, outward

__all__ = ["FileStore"]


class FileStore(Store):
    """A store in a file that all processes reach.

    Parameters
    ----------
    file_name : str
        The file; it is made if need be. Whoever made it removes it in the end.
    world_size : int
        Is accepted for torch's sake.

    Examples
    --------
    >>> import os, tempfile
    >>> from tensorplug.distributed import FileStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = FileStore(os.path.join(folder, "store"), 2)
    ...     store.set("name", "value")
    ...     FileStore(store.path, 2).get("name")
    b'value'
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self.path = str(file_name)
        self._table, self._read = Table(), 0  # what the file says up to this byte
        Path(self.path).touch()

    @contextlib.contextmanager
    def _locked(self) -> Generator[Any]:
        if sys.platform == "win32":
            raise NotImplementedError("FileStore locks its file as POSIX has it: use TCPStore")
        import fcntl

        with Path(self.path).open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
            yield file

    def _do(self, name: str, *arguments: Any) -> Any:
        arguments = tuple(in_seconds(arguments))
        limit = self._timeout.total_seconds()
        waits = name in ("get", "wait") or (name == "queue_pop" and arguments[1])
        if name == "wait" and arguments[1] is not None:
            limit = arguments[1]
        deadline = time.monotonic() + limit
        while True:
            last = time.monotonic() >= deadline
            try:
                return self._once(name, arguments)
            except DistStoreError as error:
                if not waits:
                    raise
                if last:
                    raise DistStoreError(
                        str(error).replace("after 0ms", f"after {limit:g}s")
                    ) from None
            time.sleep(0.005)

    def _once(self, name: str, arguments: Sequence[Any]) -> Any:
        """Do an operation on what the file has, without waiting; write down what changes it."""
        if name == "wait":
            arguments = [arguments[0], 0.0]
        with self._locked() as file:
            table = self._table
            file.seek(self._read)
            for line in file:
                done, *given = json.loads(line)
                table.do(done, [inward(a) for a in given], 0)
            self._read = file.tell()
            found = table.do(name, arguments, 0)
            if name not in ("get", "wait", "check", "list_keys", "queue_len"):
                self._read += file.write(json_line([name, *[outward(a) for a in arguments]]))
            return found
