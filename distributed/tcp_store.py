"""A store that one process serves to the others by TCP."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
import time
from datetime import timedelta
from typing import Any

from .errors import DistNetworkError, DistQueueEmptyError, DistStoreError
from .stores import DEFAULT_TIMEOUT, Store, Table, in_seconds, inward, json_line, outward

__all__ = ["TCPStore"]


class _Conversation(socketserver.StreamRequestHandler):
    """What one client asks: a line of JSON for each operation, and one for its answer."""

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            for line in self.rfile:
                self.wfile.write(json_line(self._answer(json.loads(line))))

    def _answer(self, asked: list[Any]) -> list[Any]:
        name, timeout, *arguments = asked
        table: Table = self.server.table  # type: ignore[attr-defined]
        try:
            return ["", outward(table.do(name, [inward(a) for a in arguments], timeout))]
        except (DistStoreError, ValueError) as error:
            return [type(error).__name__, str(error)]


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("", port), _Conversation)
        self.table = Table()
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()


class TCPStore(Store):
    """A store that one process serves to all others by TCP.

    Anybody who reaches the port can read and write it: for networks whose members trust each other.

    Parameters
    ----------
    host_name : str
        Where the serving process runs.
    port : int
        Where it listens; 0 on it takes a free one, which ``port`` has.
    world_size : int, optional
        How many processes come; None if that is open.
    is_master : bool
        Whether this process serves.
    timeout : timedelta
        How long to wait for the others, and for keys; 5 minutes by default.
    wait_for_workers : bool
        Whether the serving process waits until all have come.
    multi_tenant, master_listen_fd, use_libuv
        Are accepted for torch's sake.

    Raises
    ------
    DistNetworkError
        If nobody listens there in time, or this process cannot.

    Examples
    --------
    >>> from tensorplug.distributed import TCPStore
    >>> store = TCPStore("localhost", 0, is_master=True)
    >>> other = TCPStore("localhost", store.port)
    >>> other.set("name", "value")
    >>> store.get("name")
    b'value'
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        self._timeout = timeout
        self._server: _Server | None = None
        if is_master:
            try:
                self._server = _Server(port)
            except OSError as error:
                raise DistNetworkError(f"cannot listen at port {port}: {error}") from error
            port = self._server.server_address[1]
        self.host = host_name
        self.port = port
        self._lock = threading.Lock()
        self._connect("localhost" if is_master else host_name)
        if world_size is not None and world_size > 0 and wait_for_workers:
            if self.add("init/", 1) == world_size:
                self.set("init/all", "")
            if is_master:
                self.wait(["init/all"])

    def _connect(self, host: str) -> None:
        deadline = time.monotonic() + self._timeout.total_seconds()
        while True:
            try:
                self._socket = socket.create_connection((host, self.port), timeout=5)
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise DistNetworkError(
                        f"nobody listens at {host}:{self.port} after {self._timeout}: {error}"
                    ) from error
                time.sleep(0.05)
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def _do(self, name: str, *arguments: Any) -> Any:
        asked = [outward(a) for a in in_seconds(arguments)]
        with self._lock:
            try:
                self._socket.sendall(json_line([name, self._timeout.total_seconds(), *asked]))
                answer = self._file.readline()
            except OSError as error:
                raise DistNetworkError(f"the store at {self.host}:{self.port}: {error}") from error
        if not answer:
            raise DistNetworkError(f"the store at {self.host}:{self.port} has gone")
        failed, value = json.loads(answer)
        if failed:
            kinds = {"DistQueueEmptyError": DistQueueEmptyError, "ValueError": ValueError}
            raise kinds.get(failed, DistStoreError)(value)
        return inward(value)

    def clone(self) -> TCPStore:
        """Return a store with a connection of its own."""
        return TCPStore(self.host, self.port, timeout=self._timeout)

    def __repr__(self) -> str:
        return f"TCPStore({self.host!r}, {self.port}, is_master={self._server is not None})"

    def __del__(self) -> None:
        for held in ("_file", "_socket"):
            if hasattr(self, held):
                getattr(self, held).close()
        server = getattr(self, "_server", None)
        if server is not None:
            server.shutdown()
            server.server_close()
