"""What the suites need on devices whose work is queued: a clock that waits, precisions, peaks of memory."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

HOST = "cpu"
SIZES = (10_000, 1_000_000, 64_000_000)  # the last of them fits into no cache
#: How the model suite computes: the switches that are set, and what autocast converts to.
PRECISIONS = ("float32", "tf32", "bfloat16", "float16")
COPIED = {"cpu": 50_000_000}
_COPIED = 128_000_000  # numbers, on other devices
_TRIES = 7


def module_of(library: Any, device: str) -> Any:
    """Return a library's module of a device's type, such as ``torch.cuda``."""
    return getattr(library, device.partition(":")[0])


def wait(library: Any, device: str) -> None:
    """Wait until everything queued is done; the host queues nothing."""
    if device != HOST:
        module_of(library, device).synchronize()


def clock(device: str, libraries: Sequence[Any]) -> Callable[[], float]:
    """Return a clock that looks when all that was queued before is done."""
    if device == HOST:
        return time.perf_counter

    def look() -> float:
        for library in libraries:
            wait(library, device)
        return time.perf_counter()

    return look


def fastest(function: Callable[[], Any], look: Callable[[], float], tries: int = _TRIES) -> float:
    """Return the seconds of the quickest of some calls, the first of which is not counted."""
    function()
    best = float("inf")
    for _ in range(tries):
        start = look()
        function()
        best = min(best, look() - start)
    return best


def copy_bandwidth(device: str, library: Any) -> float:
    """Return the bytes per second that copying a large tensor reads and writes."""
    source = library.ones(COPIED.get(device, _COPIED), device=device)
    target = library.empty_like(source)
    look = clock(device, [library])
    return 2 * 4 * source.numel() / fastest(lambda: target.copy_(source), look)


def product_peaks(device: str, library: Any, side: int | None = None) -> dict[str, float]:
    """Return the operations per second of large products, by precision."""
    side = side or (8192 if device != HOST else 1024)
    peaks = {}
    for name in ("float32", "tf32", "bfloat16", "float16") if device != HOST else ("float32",):
        with precision(library, device, name, autocast=False):
            dtype = getattr(library, name, library.float32)
            x = library.ones((side, side), device=device).to(dtype)
            peaks[name] = 2 * side**3 / fastest(lambda x=x: x @ x, clock(device, [library]))
    return peaks


@contextmanager
def precision(library: Any, device: str, name: str, autocast: bool = True) -> Iterator[None]:
    """Compute in a precision within: "float32", "tf32", or with autocast to a half."""
    kind = device.partition(":")[0]
    allowed = name == "tf32"
    if device != HOST:
        getattr(library.backends, kind).matmul.allow_tf32 = allowed
        library.backends.cudnn.allow_tf32 = allowed
    try:
        if autocast and name in ("bfloat16", "float16"):
            with library.autocast(kind, dtype=getattr(library, name)):
                yield
        else:
            yield
    finally:
        if device != HOST:
            getattr(library.backends, kind).matmul.allow_tf32 = False
            library.backends.cudnn.allow_tf32 = False


def reset_peak(library: Any, device: str) -> None:
    """Make the peak of a device's memory start again."""
    module_of(library, device).reset_peak_memory_stats()


def peak_megabytes(library: Any, device: str) -> float:
    """Return the most megabytes of the device that tensors took."""
    return module_of(library, device).max_memory_allocated() / 2**20
