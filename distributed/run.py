"""Start a program as several processes: ``python -m tensorplug.distributed.run``, with torchrun's arguments.

Each process finds its place in the environment, as torchrun sets it, where ``init_process_group`` reads it.
Lines of output begin with the rank. When a process fails, all are ended, and the exit status is its own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from tensorplug.core.processors import available_processors

__all__ = ["get_args_parser", "main", "parse_args", "run"]

# After a polite signal, processes have so long to end.
_GRACE = 2.0
# So often the launchers of several machines look whether another has failed, in seconds.
_LOOK = 0.5
_OURS = "tensorplug.distributed._rank"


def get_args_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line: torchrun's arguments, with "-" or "_" in their names.

    Examples
    --------
    >>> from tensorplug.distributed import run
    >>> run.get_args_parser().parse_args(["--nproc-per-node", "4", "train.py"]).training_script
    'train.py'
    """
    parser = argparse.ArgumentParser(
        prog="python -m tensorplug.distributed.run",
        description=__doc__.partition("\n\n")[2] if __doc__ else "",
    )

    def add(name: str, *short: str, **options: Any) -> None:
        under = f"--{name.replace('-', '_')}"
        names = dict.fromkeys([*short, f"--{name}", under])
        parser.add_argument(*names, dest=name.replace("-", "_"), **options)

    add(
        "nproc-per-node",
        default="1",
        help='processes on this machine; "auto" and "cpu": as many as cores, "gpu": as devices',
    )
    add("nnodes", default="1", help="machines; this command is started on each of them")
    add("node-rank", type=int, default=0, help="this machine's number")
    add("master-addr", default="", help="host of rank 0")
    add(
        "master-port",
        type=int,
        default=0,
        help="a port of that host; chosen where there is one machine",
    )
    add("rdzv-endpoint", default="", help="host:port, for --master-addr and --master-port")
    add("standalone", action="store_true", help="one machine, with a port of its own")
    add(
        "max-restarts",
        type=int,
        default=0,
        help="how often to start anew after a failure, on one machine",
    )
    add("monitor-interval", type=float, default=0.05, help="seconds between looks at the processes")
    add("log-dir", default=None, help="folder for a file of each rank's output")
    add("redirects", "-r", default="0", help="3: output goes to --log-dir alone")
    add("tee", "-t", default="0", help="3: output goes to --log-dir as well")
    add("local-ranks-filter", default="", help="ranks whose output is shown: 0,1")
    add("module", "-m", action="store_true", help="the program is the name of a module")
    add("no-python", action="store_true", help="the program is no Python script")
    for name in (
        "rdzv-backend",
        "rdzv-id",
        "rdzv-conf",
        "start-method",
        "role",
        "local-addr",
        "signals-to-handle",
    ):
        add(name, default="", help=argparse.SUPPRESS)  # torchrun's, without meaning here
    add("run-path", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """Return the parsed command line; None stands for this process's."""
    return get_args_parser().parse_args(args)


def _processes(wish: str) -> int:
    """Return how many processes ``--nproc-per-node`` means."""
    if wish in ("auto", "cpu", "gpu", "xpu"):
        devices = 0 if wish == "cpu" else _devices()
        if devices:
            return devices
        if wish in ("gpu", "xpu"):
            raise SystemExit(f"--nproc-per-node {wish}: there is no such device")
        return available_processors()
    if not wish.isdecimal() or int(wish) < 1:
        raise SystemExit(f"--nproc-per-node: expected a number, auto, cpu or gpu, got {wish!r}")
    return int(wish)


def _devices() -> int:
    """Return how many devices beside the host's processor the installed plugins find."""
    from tensorplug.core.plugins import discovery, entry_points, manager

    discovery.load_all()
    types = manager.runtimes().keys() - {"cpu", "meta"} - entry_points.NO_DEVICES
    found = [discovery.find_runtime(type_) for type_ in types]
    counts = [runtime.device_count() for runtime in found if runtime.unavailable_reason() is None]
    return max(counts, default=0)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


class _Member:
    """A process of this machine: its place in the world, and what carries its output on."""

    def __init__(
        self, command: list[str], local: int, place: dict[str, str], shown: bool, log: Path | None
    ) -> None:
        self.rank = int(place["RANK"])
        environment = {**os.environ, **place, "LOCAL_RANK": str(local)}
        self.process = subprocess.Popen(
            command, env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,  # so that it can be ended with all that it has started
        )  # fmt: skip
        self.file = None if log is None else (log / f"rank-{self.rank}.log").open("ab")
        self.readers = [
            threading.Thread(target=self._carry, args=(source, target, shown), daemon=True)
            for source, target in (
                (self.process.stdout, sys.stdout.buffer), (self.process.stderr, sys.stderr.buffer),
            )
        ]  # fmt: skip
        for reader in self.readers:
            reader.start()

    def _carry(self, source: IO[bytes], target: Any, shown: bool) -> None:
        """Pass lines on as they come, each with the rank in front."""
        for line in source:
            if self.file is not None:
                self.file.write(line)
                self.file.flush()
            if shown:
                end = b"" if line.endswith(b"\n") else b"\n"
                target.write(b"[rank%d]: %s%s" % (self.rank, line, end))
                target.flush()

    def signal(self, number: int) -> None:
        """Send a signal to the process and what it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def close(self) -> None:
        """Carry on what is left of the output."""
        for reader in self.readers:
            reader.join(timeout=_GRACE)
        if self.file is not None:
            self.file.close()


def _nodes(args: argparse.Namespace) -> int:
    return int(str(args.nnodes).rpartition(":")[2])


def _place(args: argparse.Namespace) -> tuple[str, int]:
    """Return the host of rank 0, and its port."""
    host, _, port = args.rdzv_endpoint.partition(":")
    number = args.master_port or int(port or 0)
    if not number or args.standalone:
        number = _free_port() if _nodes(args) == 1 else 29500
    return args.master_addr or host or "localhost", number


class _Others:
    """The launchers of the other machines, which end their processes when one fails, here or there.

    The first serves a store to them, at the port after that of rank 0.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        from .tcp_store import TCPStore

        host, port = _place(args)
        self.nodes, self.number = _nodes(args), args.node_rank
        self.store = TCPStore(host, port + 1, self.nodes, is_master=self.number == 0)
        self.looked = 0.0

    def failure(self) -> str:
        """Return what another has said of its failure, "" if none has failed."""
        if time.monotonic() - self.looked < _LOOK:
            return ""
        self.looked = time.monotonic()
        try:
            return self.store.get("failed").decode() if self.store.check(["failed"]) else ""
        except RuntimeError as error:
            return f"node 0 cannot be reached ({error})"

    def tell(self, failure: str) -> None:
        """Tell the others of a failure here."""
        with contextlib.suppress(RuntimeError):
            self.store.set("failed", f"node {self.number}: {failure}")

    def leave(self) -> str:
        """Note that all went well here; the first waits for the others. Return what failed, or ""."""
        try:
            done = self.store.add("done", 1)
        except RuntimeError as error:
            return f"node 0 cannot be reached ({error})"
        while self.number == 0 and done < self.nodes:
            if failure := self.failure():
                return failure
            time.sleep(0.05)
            done = self.store.add("done", 0)
        return ""


def _start(args: argparse.Namespace, attempt: int) -> list[_Member]:
    count = _processes(str(args.nproc_per_node))
    nodes = _nodes(args)
    address, number = _place(args)
    size = count * nodes
    common = {
        "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": count, "GROUP_RANK": args.node_rank,
        "GROUP_WORLD_SIZE": nodes, "ROLE_NAME": args.role or "default", "ROLE_WORLD_SIZE": size,
        "MASTER_ADDR": address, "MASTER_PORT": number, "TORCHELASTIC_RUN_ID": args.rdzv_id or "none",
        "TORCHELASTIC_RESTART_COUNT": attempt, "TORCHELASTIC_MAX_RESTARTS": args.max_restarts,
        "TENSORPLUG_LAUNCHER": os.getpid(), "PYTHONUNBUFFERED": 1,
    }  # fmt: skip
    if count > 1 and "OMP_NUM_THREADS" not in os.environ:
        common["OMP_NUM_THREADS"] = 1  # as torchrun does: the processes share the cores
    program = [args.training_script, *args.training_script_args]
    if not args.no_python:
        program = [sys.executable, "-m", _OURS, *(["-m"] if args.module else []), *program]
    shown = {int(rank) for rank in args.local_ranks_filter.split(",") if rank}
    log = None
    if args.log_dir is not None:
        log = Path(args.log_dir)
        log.mkdir(parents=True, exist_ok=True)
    members: list[_Member] = []
    try:
        for local in range(count):
            rank = args.node_rank * count + local
            place = {key: str(value) for key, value in common.items()}
            place |= {"RANK": str(rank), "ROLE_RANK": str(rank)}
            visible = (not shown or local in shown) and not (
                log is not None and args.redirects == "3"
            )
            members.append(_Member(program, local, place, visible, log))
    except BaseException:
        _end(members)
        raise
    return members


def _end(members: Sequence[_Member]) -> None:
    """End all processes that still run, and all that they have started."""
    for member in members:
        member.signal(signal.SIGTERM)
    deadline = time.monotonic() + _GRACE
    for member in members:
        with contextlib.suppress(subprocess.TimeoutExpired):
            member.process.wait(timeout=max(deadline - time.monotonic(), 0.01))
    for member in members:
        member.signal(signal.SIGKILL)
        member.process.wait()
        member.close()


def _watch(
    members: Sequence[_Member], interval: float, others: _Others | None
) -> _Member | str | None:
    """Wait for all processes; return the first that fails, or what another machine says."""
    running = list(members)
    while running:
        if others is not None and (failure := others.failure()):
            return failure
        for member in list(running):
            status = member.process.poll()
            if status is None:
                continue
            if status != 0:
                return member
            running.remove(member)
        time.sleep(interval)
    return (others is not None and others.leave()) or None


def _described(member: _Member) -> str:
    status = member.process.returncode
    who = f"rank {member.rank} (pid {member.process.pid})"
    if status >= 0:
        return f"{who} failed with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = "unknown"
    return f"{who} was ended by signal {-status} ({name})"


def run(args: argparse.Namespace) -> int:
    """Start the processes, wait for them, and return the exit status: that of the first failure."""
    others = _Others(args) if _nodes(args) > 1 else None
    for attempt in range(args.max_restarts + 1):
        members = _start(args, attempt)

        def interrupt(number: int, _: Any, members: list[_Member] = members) -> NoReturn:
            _end(members)
            raise SystemExit(128 + number)

        before = {
            number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            failed = _watch(members, args.monitor_interval, others)
            if isinstance(failed, _Member):
                failed.close()  # its traceback comes before what others say of it
                if others is not None:
                    others.tell(_described(failed))
        finally:
            _end(members)
            for number, handler in before.items():
                signal.signal(number, handler)
        if failed is None:
            return 0
        if isinstance(failed, str):
            sys.stderr.write(f"{args.training_script}: {failed}; all processes here were ended\n")
            return 1
        last = attempt == args.max_restarts or others is not None
        then = "all others were ended" if last else "starting anew"
        sys.stderr.write(f"{args.training_script}: {_described(failed)}; {then}\n")
        if last:
            status = failed.process.returncode
            return status if status > 0 else 128 - status
    raise AssertionError("the last attempt returns")


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, and exit."""
    raise SystemExit(run(parse_args(args)))


if __name__ == "__main__":
    main()
