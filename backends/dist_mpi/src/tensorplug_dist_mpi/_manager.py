"""A process manager for MPICH: ``python _manager.py HOST PORT SIZE``, by the standard library alone.

The wire protocol is version 1.1 of PMI, one "key=value key=value" line a message, as src/pmi of MPICH has it.
It ends once every rank has left, or a while after standard input is closed.
"""

from __future__ import annotations

import os
import socketserver
import sys
import threading
import time

LINGER = 5.0
LIMITS = "kvsname_max=256 keylen_max=64 vallen_max=1024"


class Manager(socketserver.ThreadingTCPServer):
    """What the ranks tell each other, and who has come to the barrier."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, host: str, port: int, size: int) -> None:
        super().__init__((host, port), Rank)
        self.size = size
        # MPICH names its shared memory after this: no other world may have the same.
        self.name = f"kvs_{os.getpid()}_{os.urandom(8).hex()}_0"
        self.values: dict[str, str] = {}
        self.changed = threading.Condition()
        self.waiting = 0
        self.barriers = 0
        self.left = 0

    def barrier(self) -> None:
        """Return once each rank has called this."""
        with self.changed:
            number = self.barriers
            self.waiting += 1
            if self.waiting == self.size:
                self.waiting = 0
                self.barriers += 1
                self.changed.notify_all()
            else:
                self.changed.wait_for(lambda: self.barriers != number)

    def leave(self) -> None:
        """Count a rank that has gone, and end with the last."""
        with self.changed:
            self.left += 1
            if self.left == self.size:
                threading.Thread(target=self.shutdown).start()


class Rank(socketserver.StreamRequestHandler):
    """The conversation with one rank."""

    def handle(self) -> None:
        """Answer until the rank leaves."""
        manager = self.server
        assert isinstance(manager, Manager)
        known = False
        try:
            for raw in self.rfile:
                line = raw.decode().strip()
                said = {
                    key: value for key, _, value in (part.partition("=") for part in line.split())
                }
                known = True
                for answer in answers(manager, said, line):
                    self.wfile.write(f"{answer}\n".encode())
                    self.wfile.flush()
        except OSError:
            pass
        if known:  # else somebody looked whether we listen
            manager.leave()


def answers(manager: Manager, said: dict[str, str], line: str) -> list[str]:
    """Return the lines that answer one."""
    match said.get("cmd"):
        case "initack":
            rank = said["pmiid"]
            world = f"cmd=set size={manager.size}"
            return ["cmd=initack rc=0", world, f"cmd=set rank={rank}", "cmd=set debug=0"]
        case "init":
            return ["cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"]
        case "get_maxes":
            return [f"cmd=maxes {LIMITS} rc=0"]
        case "get_appnum":
            return ["cmd=appnum appnum=0 rc=0"]
        case "get_my_kvsname":
            return [f"cmd=my_kvsname kvsname={manager.name} rc=0"]
        case "get_universe_size":
            return [f"cmd=universe_size size={manager.size} rc=0"]
        case "put":
            manager.values[said["key"]] = line.partition(" value=")[2]
            return ["cmd=put_result rc=0 msg=success"]
        case "get":
            value = manager.values.get(said["key"])
            if value is None:
                return ["cmd=get_result rc=-1 msg=key_not_found value=unknown"]
            return [f"cmd=get_result rc=0 msg=success value={value}"]
        case "barrier_in":
            manager.barrier()
            return ["cmd=barrier_out rc=0"]
        case "finalize":
            return ["cmd=finalize_ack rc=0"]
        case _:
            return []


def main() -> None:
    """Serve one world."""
    host, port, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    try:
        manager = Manager(host, port, size)
    except OSError as error:
        sys.stdout.write(f"{error}\n")
        return
    sys.stdout.write("ready\n")
    sys.stdout.flush()

    def after_rank_0() -> None:
        while os.read(0, 1):
            pass
        time.sleep(LINGER)  # the others may still be about to leave
        os._exit(0)

    threading.Thread(target=after_rank_0, daemon=True).start()
    manager.serve_forever(poll_interval=0.1)
    os._exit(0)


if __name__ == "__main__":
    main()
