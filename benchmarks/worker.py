"""A process that runs one model in one library, a turn at a time.

Each library has a process of its own, so that neither's threads wait busily beside the other's work, and
that the peak of the memory is its own.
"""

import importlib
import os
import resource
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from . import devices
from .libraries import EXAMPLES, load

TABLE1 = ("alexnet", "vgg19", "resnet50", "mobilenet", "gnmt", "ncf")
OTHERS = ("vit", "gpt", "mlp")
MALLOC_TUNED = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 60)}  # of glibc
PRODUCT_SIDE = 2048
THREAD_VARIABLES = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "VECLIB_MAXIMUM")


@dataclass(frozen=True)
class Work:
    """What both libraries run.

    Parameters
    ----------
    model : str
        One of `TABLE1` or `OTHERS`.
    full : bool
        The published sizes, or small ones.
    batch : int, optional
        Instead of the model's usual batch.
    threads : int
        In each library.
    channels_last : bool
        Whether weights and images are given in that order of memory.
    processor_time : bool
        Whether the seconds of all threads on a processor count, not those on the clock.
    device : str
        Where both compute; each step ends with a loss on the host, so nothing is left in a queue.
    precision : str
        One of `devices.PRECISIONS`.
    malloc_tuned : bool
        Whether the C library keeps all memory that it ever had, instead of returning large blocks.
    """

    model: str
    full: bool = False
    batch: int | None = None
    threads: int = 1
    channels_last: bool = False
    processor_time: bool = False
    device: str = "cpu"
    malloc_tuned: bool = False
    precision: str = "float32"


class Worker:
    """The other end of the process: each method sends it a request and waits for the answer.

    Parameters
    ----------
    library : str
        "tensorplug" or "torch".
    work : Work
    """

    def __init__(self, library: str, work: Work) -> None:
        context = get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(other, library, work), daemon=True, name=library
        )
        before = dict(os.environ)
        # The libraries read it once, when they load.
        os.environ.update({f"{name}_NUM_THREADS": str(work.threads) for name in THREAD_VARIABLES})
        if work.malloc_tuned:
            os.environ.update(MALLOC_TUNED)
        try:
            self._process.start()
        finally:
            os.environ.clear()
            os.environ.update(before)
        other.close()

    def save(self, path: Path) -> None:
        """Write the weights to a file."""
        self._ask("save", path)

    def load(self, path: Path) -> None:
        """Take the weights from a file."""
        self._ask("load", path)

    def mode(self, training: bool) -> None:
        """Train, or only compute the loss, from now on; the peak of the memory starts afresh."""
        self._ask("mode", training)

    def run(self, calls: int) -> tuple[float, float]:
        """Return the seconds that so many calls take, and the last one's loss."""
        return self._ask("run", calls)

    def peak(self) -> float:
        """Return the most megabytes that the process held since `mode`."""
        return self._ask("peak", None)

    def faults(self) -> float:
        """Return the page faults of a call."""
        return self._ask("faults", None)

    def operations(self) -> tuple[float, float]:
        """Return the floating-point operations of inference and of a training step."""
        return self._ask("operations", None)

    def product_peak(self) -> float:
        """Return the operations per second of large products."""
        return self._ask("product_peak", None)

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _ask(self, request: str, argument: Any) -> Any:
        try:
            self._pipe.send((request, argument))
            worked, answer = self._pipe.recv()
        except (EOFError, BrokenPipeError) as error:
            self._process.join(10)
            code = self._process.exitcode
            raise RuntimeError(f"{self._process.name} ended with status {code}") from error
        if not worked:
            raise RuntimeError(f"{self._process.name}: {answer}")
        return answer


def _serve(pipe: Any, library: str, work: Work) -> None:
    session: Any = None
    while True:
        try:
            request, argument = pipe.recv()
        except EOFError:
            return
        try:
            session = session or Session(importlib.import_module(library), work)
            pipe.send((True, getattr(session, request)(argument)))
        except Exception as error:
            pipe.send((False, f"{type(error).__name__}: {error}"))


class Session:
    """What happens in the process.

    Parameters
    ----------
    library : module
    work : Work
    """

    def __init__(self, library: Any, work: Work) -> None:
        library.set_num_threads(work.threads)
        if work.model in TABLE1:
            # Dropout draws other numbers in the other library.
            tasks, options = load(EXAMPLES / "table1", "tasks", library), {"dropout": 0.0}
        else:
            tasks, options = load(Path(__file__).parent, "networks", library), {}
        self.library = library
        self.work = work
        self.task = tasks.make(work.model, full=work.full, batch=work.batch, **options)
        self.batch = next(self.task.batches)
        self.training = True
        self.clock = time.process_time if work.processor_time else time.perf_counter
        if work.device != "cpu":
            self.task.model.to(work.device)
            self.batch = tuple(x.to(work.device) for x in self.batch)
        if work.channels_last:
            order = library.channels_last
            self.task.model.to(memory_format=order)
            self.batch = tuple(
                x.contiguous(memory_format=order) if x.ndim == 4 else x for x in self.batch
            )

    def save(self, path: Path) -> None:
        """Write the weights, in the order of the state dict."""
        np.savez(path, *[weight.cpu().numpy() for weight in self.task.model.state_dict().values()])

    def load(self, path: Path) -> None:
        """Take the weights, one at a time, so that the peak of the memory hardly rises."""
        with np.load(path) as arrays, self.library.no_grad():
            for number, weight in enumerate(self.task.model.state_dict().values()):
                weight.copy_(self.library.from_numpy(arrays[f"arr_{number}"]))

    def mode(self, training: bool) -> None:
        """Set what `run` does."""
        self.training = training
        self.task.model.train(training)
        reset_peak()
        if self.work.device != devices.HOST:
            devices.reset_peak(self.library, self.work.device)

    def run(self, calls: int) -> tuple[float, float]:
        """Make the calls."""
        loss = 0.0
        call = self._step if self.training else self._evaluate
        # The switches of products hold for the backward pass as well, autocast for the loss alone.
        with devices.precision(self.library, self.work.device, self.work.precision, autocast=False):
            start = self.clock()
            for _ in range(calls):
                loss = call()
            return self.clock() - start, loss

    def peak(self, _: None) -> float:
        """Return the peak of the memory, of the device's where that is another."""
        if self.work.device != devices.HOST:
            return devices.peak_megabytes(self.library, self.work.device)
        return peak_megabytes()

    def faults(self, _: None) -> float:
        """Return the page faults of a call that needed none from the disk."""
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        self.run(1)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    def operations(self, _: None) -> tuple[float, float]:
        """Return the operations of products and convolutions, of inference and of a step."""
        counter = importlib.import_module(f"{self.library.__name__}.utils.flop_counter")
        counts = []
        for training in (False, True):
            self.mode(training)
            with counter.FlopCounterMode(display=False) as mode:
                self.run(1)
            counts.append(float(mode.get_total_flops()))
        return counts[0], counts[1]

    def product_peak(self, _: None) -> float:
        """Return the operations per second of the product of two large matrices."""
        x = self.library.ones((PRODUCT_SIDE, PRODUCT_SIDE))
        return 2 * PRODUCT_SIDE**3 / devices.fastest(lambda: x @ x, self.clock)

    def _loss(self) -> Any:
        half = self.work.precision if self.work.precision in ("bfloat16", "float16") else None
        if half is None:
            return self.task.loss(self.task.model, self.batch)
        kind = self.work.device.partition(":")[0]
        with self.library.autocast(kind, dtype=getattr(self.library, half)):
            return self.task.loss(self.task.model, self.batch)

    def _step(self) -> float:
        self.task.optimizer.zero_grad()
        loss = self._loss()
        loss.backward()
        self.task.optimizer.step()
        return loss.item()

    def _evaluate(self) -> float:
        with self.library.inference_mode():
            return self._loss().item()


def reset_peak() -> None:
    """Make the kernel forget this process's peak of memory, where it is Linux and lets us."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_megabytes() -> float:
    """Return the peak of this process's resident memory."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii").split()
        return int(status[status.index("VmHWM:") + 1]) / 1024
    except (OSError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
