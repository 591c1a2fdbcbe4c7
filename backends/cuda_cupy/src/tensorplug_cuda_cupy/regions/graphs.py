"""Parts of compiled programs as CUDA graphs, with ``tp.compile(..., mode="reduce-overhead")``.

A graph has addresses in it. So the first calls of a region run by its kernels while the addresses of what
goes in are watched: what stays where it is, such as weights and what another graph has made, is read there at
each replay; what moves, such as batches, is copied to a place of the graph's own. Results lie in the graph's
memory, which the next replay overwrites. While somebody holds one, the kernels run instead, and from then on
that result is copied out. Each result's memory has a Python object of its own, by whose end that is known.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tensorplug.plugin import (
    FUSED,
    FusedCall,
    Fuser,
    FusionProgram,
    FusionStep,
    Operand,
    Region,
    deterministic_wanted,
)

from .._cupy import cp
from ..kernels.matmul import allows_tf32
from ..kernels.strided import storage
from ..libraries import cudnn_attention, cudnn_graphs
from ..runtime import captures
from ..runtime.graphs import CUDAGraph, graph

_MODES = ("reduce-overhead", "max-autotune")
_STEADY = 2  # calls after which an address that stayed counts as fixed
_MOVED = 3  # changes after which it counts as one that moves
_STRAYED = 2  # calls in succession that a graph does not serve, until another is captured
_MOST_CAPTURES = 8


class GraphFuser(Fuser):
    """Takes all steps between calls that draw random numbers, write, or read data."""

    name = "cuda_graphs"
    device_type = "cuda"
    priority = -100  # what other fusers make is captured, too

    def regions(self, program: FusionProgram) -> Iterable[Region]:
        """Return runs of steps with two launches or more."""
        if program.mode not in _MODES:
            return
        run: list[int] = []
        for number, step in enumerate([*program.steps, None]):
            if step is not None and number in program.free:
                run.append(number)
                continue
            launches = [n for n in run if not _launches_nothing(program.steps[n])]
            if len(launches) > 1:
                yield Region(tuple(run), float(len(launches)))
            run = []

    def compile(
        self,
        program: FusionProgram,
        region: Region,
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> FusedCall | None:
        """Return what captures the steps once it can, and replays them then."""
        steps: list[Any] = [program.steps[number] for number in sorted(region.steps)]
        gone = _gone(steps, outputs)
        return Replayed(lambda arrays: _run(steps, gone, inputs, outputs, arrays))


def _launches_nothing(step: FusionStep | None) -> bool:
    return step is None or step.view


def _gone(steps: Sequence[FusionStep], outputs: Sequence[int]) -> list[list[int]]:
    """Return for each step the places of arrays that nobody needs after it."""
    last = {place: n for n, step in enumerate(steps) for place in (*step.outputs, *step.inputs)}
    gone: list[list[int]] = [[] for _ in steps]
    for place, number in last.items():
        if place not in outputs:
            gone[number].append(place)
    return gone


def _run(
    steps: Sequence[FusionStep],
    gone: Sequence[Sequence[int]],
    inputs: Sequence[int],
    outputs: Sequence[int],
    arrays: Sequence[Any],
) -> list[Any]:
    """Return what steps make of the arrays that go into them."""
    values = dict(zip(inputs, arrays, strict=True))
    for step, places in zip(steps, gone, strict=True):
        results = step.kernel(*[_given(argument, values) for argument in step.arguments])
        if results is None and step.op == FUSED:
            raise RuntimeError("a region that its fuser leaves to the kernels")
        several = step.op == FUSED or len(step.outputs) > 1
        made: Any = results if several else (results,)
        values.update(zip(step.outputs, made, strict=True))
        for place in places:
            del values[place]
        results = made = None  # or the last ones would live on
    return [values[place] for place in outputs]


def _given(argument: Any, values: dict[int, Any]) -> Any:
    if type(argument) is Operand:
        return values[argument.place]
    if type(argument) is list:
        return [_given(item, values) for item in argument]
    return argument


def _settings() -> tuple[Any, ...]:
    """Return what decides which kernels run, beside their arguments."""
    return (
        deterministic_wanted(),
        allows_tf32(),
        cudnn_graphs.enabled(),
        cudnn_graphs.allows_tf32(),
        cudnn_attention.allowed(),
    )


class _Held:
    """Is there as long as somebody holds a result's memory, and holds the graph."""

    __slots__ = ("__weakref__", "graph")

    def __init__(self, graph: CUDAGraph) -> None:
        self.graph = graph


def _is_held(array: Any) -> bool:
    return isinstance(getattr(array.data.mem, "_owner", None), _Held)


class _Memory(NamedTuple):
    """Memory of the graph with results in it."""

    address: int
    size: int


class _Result(NamedTuple):
    """Where a result lies: in which memory, or behind which input's first element."""

    memory: int
    of_input: bool
    offset: int
    shape: tuple[int, ...]
    dtype: Any
    strides: tuple[int, ...]


class Replayed:
    """Work on arrays that is captured once what goes in has settled, and replayed then.

    A call returns None where the work is to be done without a graph.

    Parameters
    ----------
    run : callable
        Takes a list of arrays and returns one of results; of the same kind each time.
    """

    def __init__(self, run: Callable[[Sequence[Any]], list[Any]]) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._left = _MOST_CAPTURES
        self._graph: CUDAGraph | None = None
        self._escaping: set[int] = set()  # memories whose results are copied out
        self._places: list[int] = []  # of what goes in
        self._steady: list[int] = []  # for how many calls each has been there
        self._moved: list[int] = []  # how often it moved
        self._moving: set[int] = set()  # what is copied for that
        self._strayed = 0

    def __call__(self, arrays: Sequence[Any]) -> list[Any] | None:
        """Return the results, or None."""
        given_up = self._graph is None and not self._left
        if given_up or captures.underway() or not self._lock.acquire(blocking=False):
            return None
        try:
            if self._graph is not None and not (self._serves(arrays) and self._is_free()):
                self._strayed += 1
                if self._strayed < _STRAYED:
                    return None
                self._stray(arrays)
            self._strayed = 0
            if self._graph is None:
                if not self._left or not self._settled(arrays):
                    return None
                self._capture(arrays)
            return None if self._graph is None else self._replay(arrays)
        finally:
            self._lock.release()

    # --- watching ---

    def _settled(self, arrays: Sequence[Any]) -> bool:
        """Note where arrays are, and return whether it is known which ones stay there."""
        places = [array.data.ptr for array in arrays]
        if not self._places:
            self._places = [0] * len(places)
            self._steady, self._moved = [0] * len(places), [-1] * len(places)
        for number, (place, before) in enumerate(zip(places, self._places, strict=True)):
            stays = place == before
            self._steady[number] = self._steady[number] + 1 if stays else 0
            self._moved[number] += not stays
            if _is_held(arrays[number]):
                self._steady[number] = _STEADY  # where another graph has its results
            elif self._steady[number] < _STEADY and self._moved[number] >= _MOVED:
                self._moving.add(number)
        self._places = places
        pairs = enumerate(self._steady)
        return all([steady >= _STEADY or number in self._moving for number, steady in pairs])

    def _stray(self, arrays: Sequence[Any]) -> None:
        """Drop the graph; what only seemed to stay where it was is copied from now on."""
        self._graph = None
        for number, (array, place) in enumerate(zip(arrays, self._places, strict=True)):
            if array.data.ptr != place and not _is_held(array):
                self._moving.add(number)

    # --- capture ---

    def _capture(self, arrays: Sequence[Any]) -> None:
        """Capture the work, or forgo that for good where it cannot be."""
        self._left -= 1
        device = cp.cuda.runtime.getDevice()
        moving = sorted(self._moving)
        given = list(arrays)
        for number in moving:
            given[number] = cp.empty_like(arrays[number])
            if given[number].strides != arrays[number].strides:  # with gaps, or repeated
                self._left = 0
                return
        if any([array.device.id != device for array in arrays]):
            self._left = 0
            return
        made = CUDAGraph()
        try:
            with graph(made, capture_error_mode="thread_local"):
                results = self._run(given)
        except Exception:  # something that waits for the device, or has no memory left
            self._left = 0
            return
        self._graph = made
        self._stream = cp.cuda.get_current_stream().ptr
        self._kept = _settings()
        self._copied = {number: given[number] for number in moving}
        self._layouts = [array.strides for array in arrays]
        self._memories: list[_Memory] = []
        self._results = [self._described(result, given) for result in results]
        self._lives: list[weakref.ref[_Held] | None] = [None] * len(self._memories)
        self._escaping.intersection_update(range(len(self._memories)))

    def _described(self, result: Any, given: Sequence[Any]) -> _Result:
        """Return where a result of the capture lies."""
        kind = (result.shape, result.dtype, result.strides)
        for number, array in enumerate(given):
            memory = array.data.mem
            if memory.ptr <= result.data.ptr < memory.ptr + memory.size:
                return _Result(number, True, result.data.ptr - array.data.ptr, *kind)
        memory, size = storage(result)
        found = _Memory(memory.ptr, size)
        if found not in self._memories:
            self._memories.append(found)
        return _Result(self._memories.index(found), False, result.data.ptr - memory.ptr, *kind)

    # --- replay ---

    def _is_free(self) -> bool:
        """Return whether nobody holds a result; those that somebody does are copied from now on."""
        held = [
            number
            for number, life in enumerate(self._lives)
            if life is not None and life() is not None
        ]
        self._escaping.update(held)
        return not held

    def _replay(self, arrays: Sequence[Any]) -> list[Any]:
        assert self._graph is not None
        for number, copy in self._copied.items():
            copy.data.copy_from_device_async(
                arrays[number].data, copy.nbytes, cp.cuda.get_current_stream()
            )
        self._graph.replay()
        pointers = [self._pointer(number) for number in range(len(self._memories))]
        return [
            cp.ndarray(
                result.shape,
                result.dtype,
                (arrays[result.memory].data if result.of_input else pointers[result.memory])
                + result.offset,
                result.strides,
            )
            for result in self._results
        ]

    def _serves(self, arrays: Sequence[Any]) -> bool:
        """Return whether arrays are where the graph reads them, and all else is as it was."""
        if cp.cuda.get_current_stream().ptr != self._stream or _settings() != self._kept:
            return False
        copied = self._copied
        for number, (array, place) in enumerate(zip(arrays, self._places, strict=True)):
            if array.strides != self._layouts[number] or (
                array.data.ptr != place and number not in copied
            ):
                return False
        return True

    def _pointer(self, number: int) -> Any:
        """Return the memory of results as an owner of its own, or a copy of it."""
        address, size = self._memories[number]
        assert self._graph is not None
        held = _Held(self._graph)
        own = cp.cuda.UnownedMemory(address, size, held, self._graph._index)
        pointer = cp.cuda.MemoryPointer(own, 0)
        if number not in self._escaping:
            self._lives[number] = weakref.ref(held)
            return pointer
        copy = cp.empty(size, "u1").data
        copy.copy_from_device_async(pointer, size, cp.cuda.get_current_stream())
        own = cp.cuda.UnownedMemory(copy.ptr, size, copy, self._graph._index)
        return cp.cuda.MemoryPointer(own, 0)
