"""CUDA graphs, as ``tp.cuda`` shows them: work that is captured once and queued again as a whole."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from typing import Any

import numpy as np

from tensorplug.plugin import generator_of

from . import replays
from ._cupy import cp
from .memory import allocator_of
from .presence import DRIVER
from .streams import Stream

_WORDS_PER_BLOCK = 4
_MODES = {
    "global": "streamCaptureModeGlobal",
    "thread_local": "streamCaptureModeThreadLocal",
    "relaxed": "streamCaptureModeRelaxed",
}


def graph_pool_handle() -> Any:
    """Return memory that several graphs may share, for their ``pool``."""
    return cp.cuda.MemoryPool()


class CUDAGraph:
    """Work that is captured once and then queued again as a whole.

    What runs under :class:`graph` is not executed but noted, with the addresses of its arrays, whose memory
    the graph keeps; so inputs are written into the same tensors before each :meth:`replay`. Nothing within
    may wait for the device: no ``item()``, no copies to the host, no new kernels to compile, so run the
    same work once or twice before. Numbers that Python computes, such as a learning rate, stay as they
    are; optimizers have ``capturable=True`` for that. Random numbers go on with each replay, as if the
    work had been queued without a graph, where they come from the device's default generator.
    """

    def __init__(self) -> None:
        self._pool: Any = None
        self._graph: Any = None
        self._stream: Any = None
        self._context: ExitStack | None = None
        self._random: tuple[Any, Any, int, int] | None = None

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Begin to capture what this thread queues.

        Parameters
        ----------
        pool : optional
            What :meth:`pool` of another graph returned, to share its memory: then their replays must not
            overlap.
        capture_error_mode : {"global", "thread_local", "relaxed"}
            Whose calls that cannot be captured make it fail: all threads', this one's, or nobody's.

        Raises
        ------
        RuntimeError
            If it captures, or has captured, already.
        ValueError
            If there is no such mode.
        """
        if self._context is not None or self._graph is not None:
            raise RuntimeError("capture_begin(): this graph is in use; reset() it, or make another")
        if capture_error_mode not in _MODES:
            raise ValueError(
                f"capture_begin(): capture_error_mode must be one of {', '.join(_MODES)}, got "
                f"{capture_error_mode!r}"
            )
        mode = getattr(cp.cuda.runtime, _MODES[capture_error_mode])
        self._pool = pool or cp.cuda.MemoryPool()
        if self._stream is None:
            self._stream = cp.cuda.Stream(non_blocking=True)
        shift = replays.Shift(cp.zeros(2, np.uint64))
        generator = generator_of(f"cuda:{int(cp.cuda.runtime.getDevice())}")
        self._random = (shift, generator, *generator.take(0))
        cp.cuda.get_current_stream().synchronize()
        self._stream.synchronize()
        with ExitStack() as context:
            context.enter_context(cp.cuda.using_allocator(_unforbidden(allocator_of(self._pool))))
            context.enter_context(self._stream)
            replays.begin(shift)
            context.callback(replays.end)
            self._stream.begin_capture(mode)
            self._context = context.pop_all()

    def capture_end(self) -> None:
        """End the capture.

        Raises
        ------
        RuntimeError
            If none was begun.
        """
        if self._context is None:
            raise RuntimeError("capture_end(): no capture was begun")
        context, self._context = self._context, None
        with context:
            self._graph = self._stream.end_capture()

    def replay(self) -> None:
        """Queue the work on the current stream.

        Raises
        ------
        RuntimeError
            If nothing was captured.
        """
        if self._graph is None:
            raise RuntimeError("replay(): the graph holds nothing; capture something first")
        self._draw_on()
        self._graph.launch()

    def _draw_on(self) -> None:
        """Let the graph's random numbers go on from where the generator is now."""
        assert self._random is not None
        shift, generator, seed, first = self._random
        if shift.blocks:
            now, offset = generator.take(shift.blocks * _WORDS_PER_BLOCK)
            # The capture took its numbers, too, but used none of them.
            shift.array[0].fill(np.uint64((offset - first) % (1 << 64)))
            shift.array[1].fill(np.uint64(now ^ seed))

    def reset(self) -> None:
        """Drop what was captured, and its memory."""
        self._graph = self._pool = self._random = None

    def pool(self) -> Any:
        """Return the memory of the graph, for graphs that share it."""
        return self._pool


def _unforbidden(allocate: Callable[[int], Any]) -> Callable[[int], Any]:
    """Let an allocator take new memory of the device during a capture, which CUDA's modes forbid.

    They forbid it since it does not happen again at each replay. It need not: the graph keeps the memory.
    """

    def allocate_within(size: int) -> Any:
        with _relaxed():
            return allocate(size)

    return allocate_within


@contextmanager
def _relaxed() -> Generator[None]:
    """Return a context in which this thread's calls are not looked at by captures."""
    exchange = _driver().cuThreadExchangeStreamCaptureMode
    mode = ctypes.c_int(cp.cuda.runtime.streamCaptureModeRelaxed)
    exchange(ctypes.byref(mode))
    try:
        yield
    finally:
        exchange(ctypes.byref(mode))


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL(DRIVER)


class graph(AbstractContextManager[None]):  # noqa: N801  torch's name
    """A context whose work is captured in a :class:`CUDAGraph`.

    Parameters
    ----------
    cuda_graph : CUDAGraph
        Where to.
    pool : optional
        See :meth:`CUDAGraph.capture_begin`.
    stream : Stream, optional
        The stream to capture on; not the default one.
    capture_error_mode : str
        See :meth:`CUDAGraph.capture_begin`.
    """

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Any = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        self._graph = cuda_graph
        self._pool = pool
        self._mode = capture_error_mode
        if stream is not None:
            cuda_graph._stream = stream.raw

    def __enter__(self) -> None:
        gc.collect()  # memory that garbage holds must not be freed during the capture
        cp.cuda.runtime.deviceSynchronize()
        self._graph.capture_begin(self._pool, self._mode)

    def __exit__(self, *exc: object) -> None:
        self._graph.capture_end()
