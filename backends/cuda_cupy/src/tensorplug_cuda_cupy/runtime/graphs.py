"""CUDA graphs, as ``tp.cuda`` shows them: work that is captured once and queued again as a whole."""

from __future__ import annotations

import gc
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any

import numpy as np

from tensorplug.plugin import generator_of

from .._cupy import cp
from . import captures, generator_state, scalars
from .memory import allocator_of
from .streams import Stream, current_stream

_WORDS_PER_BLOCK = 4
_MODES = {
    "global": "streamCaptureModeGlobal",
    "thread_local": "streamCaptureModeThreadLocal",
    "relaxed": "streamCaptureModeRelaxed",
}


def graph_pool_handle() -> Any:
    """Return memory that several graphs may share, for their ``pool``."""
    return captures.pool()


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
        self._stream: Stream | None = None
        self._index = 0
        self._context: ExitStack | None = None
        self._random: tuple[Any, Any, int, int] | None = None
        self._held: list[Any] = []  # memory from elsewhere that the work reads

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
        if self._stream is None:
            self._stream = Stream()
        self._index = self._stream.device_index
        with ExitStack() as context:
            context.enter_context(cp.cuda.Device(self._index))
            current_stream().synchronize()
            context.enter_context(self._stream)
            self._pool = captures.pool() if pool is None else pool
            context.enter_context(cp.cuda.using_allocator(allocator_of(self._pool)))
            shift = generator_state.Shift(cp.zeros(2, np.uint64))
            generator = generator_of(f"cuda:{self._index}")
            self._random = (shift, generator, *generator.take(0))
            self._stream.synchronize()
            generator_state.begin(shift)
            context.callback(generator_state.end)
            self._held = scalars.living()
            captures.begin(self._held)
            context.callback(captures.end, self._held)
            self._stream.raw.begin_capture(mode)
            self._context = context.pop_all()

    def capture_end(self) -> None:
        """End the capture.

        Raises
        ------
        RuntimeError
            If none was begun, or something within could not be captured: then the graph holds nothing.
        """
        if self._context is None or self._stream is None:
            raise RuntimeError("capture_end(): no capture was begun")
        context, self._context = self._context, None
        assert self._random is not None
        shift, generator, *_ = self._random
        generator.take(-shift.blocks * _WORDS_PER_BLOCK)  # no numbers were drawn yet
        try:
            with context:
                self._graph = self._stream.raw.end_capture()
        except BaseException:
            self.reset()
            raise

    def replay(self) -> None:
        """Queue the work on the current stream of the device on which it was captured.

        Raises
        ------
        RuntimeError
            If nothing was captured.
        """
        if self._graph is None:
            raise RuntimeError("replay(): the graph holds nothing; capture something first")
        with cp.cuda.Device(self._index):
            self._draw_on()
            self._graph.launch()

    def _draw_on(self) -> None:
        """Let the graph's random numbers go on from where the generator is now."""
        assert self._random is not None
        shift, generator, seed, first = self._random
        if shift.blocks:
            now, offset = generator.take(shift.blocks * _WORDS_PER_BLOCK)
            shift.array[0].fill(np.uint64((offset - first) % (1 << 64)))
            shift.array[1].fill(np.uint64(now ^ seed))

    def reset(self) -> None:
        """Drop what was captured, and its memory."""
        self._graph = self._pool = self._random = None
        self._held = []

    def pool(self) -> Any:
        """Return the memory of the graph, for graphs that share it."""
        return self._pool


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
            cuda_graph._stream = stream

    def __enter__(self) -> None:
        gc.collect()  # memory that garbage holds must not be freed during the capture
        cp.cuda.runtime.deviceSynchronize()
        cp.get_default_memory_pool().free_all_blocks()  # the graph's pool takes its own
        self._graph.capture_begin(self._pool, self._mode)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._graph.capture_end()
            return
        with suppress(cp.cuda.runtime.CUDARuntimeError):  # which tells of no more than this error
            self._graph.capture_end()
        self._graph.reset()
        if isinstance(error, RuntimeError) and "aptur" in str(error):
            raise RuntimeError(
                "graph(): what ran cannot be captured in a CUDA graph. Nothing within may wait for the "
                "device, as item(), tolist(), cpu(), a truth value and ops whose shape depends on values "
                f"do; and none may use a stream that does not wait for the captured one: {error}"
            ) from error
