"""Gradients of several processes brought together while backward still runs.

Parameters are put into buckets in reverse order: the order in which backward comes by them. A parameter's
gradient is copied to its place in the bucket as soon as it is accumulated, and a full bucket is sent off
without waiting. The end of the pass waits for all of them, and writes the means back. A large gradient is a
bucket by itself, and is reduced where it is: that takes one more collective, and two copies less.

Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", 2020.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tensorplug.autograd import Variable, no_grad
from tensorplug.autograd.graph import Node
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import int32
from tensorplug.core.ops import zeros, zeros_like
from tensorplug.core.tensor.base import extra_of
from tensorplug.core.tensor.creation import tensor
from tensorplug.core.tensor.layout import strided

from . import distributed_c10d as c10d

__all__ = ["GradBucket", "Reducer"]

MIB = 1024 * 1024
#: Gradients of this size are reduced where they are, unless a hook wants buckets.
_LARGE = MIB
#: The first bucket is small, so that the first collective starts early.
FIRST_BUCKET_BYTES = MIB
BUCKET_MIB = 25


class GradBucket:
    """What a communication hook gets: the gradients of some parameters in one flat tensor.

    Examples
    --------
    >>> def hook(state, bucket):  # sums in half the bytes
    ...     half = bucket.buffer().half().div_(tp.distributed.get_world_size())
    ...     work = tp.distributed.all_reduce(half, async_op=True)
    ...     return work.get_future().then(lambda done: done.value()[0].to(bucket.buffer().dtype))
    """

    def __init__(
        self, reducer: Reducer, number: int, indices: Sequence[int], *, in_place: bool
    ) -> None:
        parameters = [reducer.parameters[i] for i in indices]
        first = parameters[0]
        self.number = number
        self.indices = indices
        self._parameters = parameters
        self._reducer = weakref.ref(reducer)
        #: Of one parameter, whose gradient is itself the flat tensor while it is reduced.
        self.in_place = in_place
        self.views: dict[int, Tensor] = {}
        if not in_place:
            size = sum([p.numel() for p in parameters])
            self.hold(zeros(size, dtype=first.dtype, device=first.device))
        self.pending = len(indices)
        #: Waits for the reduction, and returns the reduced flat tensor.
        self.finish: Callable[[], Tensor] | None = None
        self.is_completed: Callable[[], object] | None = None

    def hold(self, flat: Tensor) -> None:
        """Take a flat tensor for the gradients."""
        self.flat = flat
        pieces = flat.split([p.numel() for p in self._parameters])
        self.views = {
            i: piece.view(p.shape)
            for i, piece, p in zip(self.indices, pieces, self._parameters, strict=True)
        }

    def zero(self) -> None:
        """Take part without gradients."""
        if self.in_place:
            self.hold(zeros_like(self._parameters[0]).reshape(-1))
        else:
            self.flat.zero_()

    def index(self) -> int:
        """Return the bucket's number; buckets are reduced in this order."""
        return self.number

    def buffer(self) -> Tensor:
        """Return the flat tensor."""
        return self.flat

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace the values of the flat tensor."""
        if buffer is not self.flat:
            self.flat.copy_(buffer)

    def gradients(self) -> list[Tensor]:
        """Return the gradients, views of the flat tensor."""
        return list(self.views.values())

    def parameters(self) -> list[Tensor]:
        """Return the parameters, in the order of :meth:`gradients`."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Return whether it is the last to be reduced."""
        reducer = self._reducer()
        return reducer is None or self.number == len(reducer.buckets) - 1


class Reducer:
    """Reduces the gradients of parameters over a process group, bucket by bucket.

    Parameters
    ----------
    parameters : list of Tensor
        Those that require grad, in the same order in every process.
    group : ProcessGroup
        Who takes part.
    bucket_bytes : int
        How large a bucket may become.
    find_unused : bool
        Look in each forward pass for parameters that take no part.
    static_graph : bool
        The parameters that take part, and how often, are the same in every iteration.
    gradient_as_bucket_view : bool
        Let ``grad`` be views of the buckets, which saves the memory of one set of gradients.
    names : list of str
        Of the parameters, for errors.
    """

    def __init__(
        self,
        parameters: list[Tensor],
        group: Any,
        *,
        bucket_bytes: int,
        first_bucket_bytes: int,
        find_unused: bool,
        static_graph: bool,
        gradient_as_bucket_view: bool,
        names: list[str],
    ) -> None:
        self.parameters = parameters
        self.names = names
        self.group = group
        self.static_graph = static_graph
        self.find_unused = find_unused
        self.as_views = gradient_as_bucket_view
        self._limits = (first_bucket_bytes, bucket_bytes)
        self._size = c10d.get_world_size(group)
        self._factor = 1.0 / self._size
        self._hook: Callable[[Any, GradBucket], Any] | None = None
        self._hook_state: Any = None
        # --- of one iteration ---
        self._expecting = False
        self._started = False
        self._done: set[int] = set()
        self._unused: list[int] = []
        self._next = 0
        # --- of all ---
        self._arrivals: list[int] = []  # the order in the first backward pass, for better buckets
        self._rebuilt = find_unused and not static_graph
        # Whether the processes find out in this iteration who used what, and what they found.
        self._tracks_use = find_unused or static_graph
        self._used = [0] * len(parameters)
        self._used_anywhere: list[int] | None = None
        self._use: Any = None
        #: With a static graph: how often each parameter's gradient arrives in a pass.
        self._counts: dict[int, int] | None = None
        self._counted: dict[int, int] = {}
        self._make_buckets(range(len(parameters) - 1, -1, -1))
        this: weakref.ref[Reducer] = weakref.ref(self)
        self._handles = [
            parameter.register_post_accumulate_grad_hook(_notifier(this, i))
            for i, parameter in enumerate(parameters)
        ]

    def remove_hooks(self) -> None:
        """Let go of the parameters."""
        for handle in self._handles:
            handle.remove()

    # --- buckets ---

    def _make_buckets(self, order: Iterable[int]) -> None:
        """Put parameters into buckets in the order in which their gradients come."""
        assigned: list[list[int]] = []
        open_ones: dict[Any, tuple[list[int], int]] = {}
        for i in order:
            parameter = self.parameters[i]
            own = self._bytes(i)
            if self._in_place(own):
                assigned.append([i])
                continue
            kind = (parameter.dtype, parameter.device)
            indices, size = open_ones.pop(kind, ([], 0))
            if not indices:
                assigned.append(indices)
            indices.append(i)
            size += own
            if size < self._limits[indices is not assigned[0]]:
                open_ones[kind] = indices, size
        # by when they are full, so that none waits for a later one
        position = {i: place for place, i in enumerate(order)}
        assigned.sort(key=lambda indices: max([position[i] for i in indices]))
        held = {}
        if self.as_views:
            held = {i: p.grad for i, p in enumerate(self.parameters) if p.grad is not None}
        self.buckets = [
            GradBucket(self, n, indices, in_place=self._in_place(self._bytes(indices[0])))
            for n, indices in enumerate(assigned)
        ]
        self._bucket_of = {i: bucket for bucket in self.buckets for i in bucket.indices}
        for i, gradient in held.items():
            view = self._bucket_of[i].views[i]
            view.copy_(gradient)
            self.parameters[i].grad = view

    def _bytes(self, index: int) -> int:
        parameter = self.parameters[index]
        return parameter.numel() * parameter.element_size()

    def _in_place(self, size: int) -> bool:
        """Return whether a gradient of so many bytes is reduced where it is."""
        return size >= _LARGE and self._hook is None and not self.as_views

    def rebuild_buckets(self) -> None:
        """After the first pass: put the parameters into buckets in the order that was seen there."""
        if self._rebuilt or len(set(self._arrivals)) < len(self.parameters):
            return
        order: list[Any] = [list(dict.fromkeys(self._arrivals))]
        c10d.broadcast_object_list(order, c10d.get_global_rank(self.group, 0), self.group)
        with no_grad():
            self._make_buckets(order[0])
        self._rebuilt = True
        self._arrivals = []

    # --- one iteration ---

    def prepare_for_backward(self, outputs: Sequence[Tensor], divisor: float | None = None) -> None:
        """Expect a pass that leads from `outputs` to the parameters."""
        if self._started:
            self._refuse_unfinished()
        self._reset()
        self._expecting = True
        self._factor = 1.0 / (divisor or self._size)
        if self.static_graph and self._counts is not None:
            self._unused = [i for i in range(len(self.parameters)) if i not in self._counts]
        elif self.find_unused and not self.static_graph:
            self._unused = self._search(outputs)

    def expect_nothing(self) -> None:
        """Leave the gradients of the next pass to this process."""
        self._expecting = False

    def _reset(self) -> None:
        self._started = False
        self._done.clear()
        self._counted.clear()
        self._unused = []
        self._next = 0
        for bucket in self.buckets:
            bucket.pending = len(bucket.indices)
            bucket.finish = None
            if bucket.in_place and bucket.views:
                del bucket.flat  # the gradient is the parameter's
                bucket.views = {}

    def _search(self, outputs: Sequence[Tensor]) -> list[int]:
        """Return the parameters from which no output depends."""
        seen: set[Any] = set()
        stack: list[Any] = [o.grad_fn if o.grad_fn is not None else o for o in outputs]
        while stack:
            edge = stack.pop()
            if edge is None or edge in seen:
                continue
            seen.add(edge)
            if isinstance(edge, Node):
                stack.extend(edge.edges)
        return [i for i, parameter in enumerate(self.parameters) if parameter not in seen]

    def arrived(self, index: int) -> None:
        """Note that a parameter's gradient was accumulated."""
        self._used[index] = 1
        if not self._expecting:
            return
        if not self._started:
            self._started = True
            this: weakref.ref[Reducer] = weakref.ref(self)
            Variable._execution_engine.queue_callback(lambda: _finish(this))
            for i in self._unused:
                self._mark(i)
        if not self._rebuilt:
            self._arrivals.append(index)
        if self.static_graph:
            self._counted[index] = self._counted.get(index, 0) + 1
            if self._counts is None or self._counted[index] < self._counts[index]:
                return
        self._mark(index)

    def _mark(self, index: int) -> None:
        """Put a gradient into its bucket, and send off the buckets that are full."""
        if index in self._done:
            raise RuntimeError(
                "Expected to mark a variable ready only once: the gradient of parameter "
                f"{self.names[index]!r} was accumulated twice in one backward pass. Parameters must not be "
                "shared between several reentrant backward passes (use_reentrant=False does without them), "
                "and a module not be used outside its forward(). If the graph is the same in every "
                "iteration, static_graph=True lets it."
            )
        self._done.add(index)
        bucket = self._bucket_of[index]
        parameter = self.parameters[index]
        gradient: Any = parameter.grad
        if gradient is not None and gradient.layout is not strided:
            raise NotImplementedError(
                f"the gradient of {self.names[index]!r} is sparse, and DistributedDataParallel reduces dense "
                "ones only: make the embedding with sparse=False"
            )
        with no_grad():
            if bucket.in_place:
                bucket.hold(_flat(parameter, gradient, bool(self._used[index])))
            elif gradient is None:
                bucket.views[index].zero_()
            elif gradient is not (view := bucket.views[index]):
                view.copy_(gradient)
                if self.as_views:
                    parameter.grad = view
        bucket.pending -= 1
        if not bucket.pending:
            self._launch()
        elif self._next:
            self._progress()

    def _launch(self) -> None:
        """Send off all that are full, in order: every process has the same one."""
        while self._next < len(self.buckets) and not self.buckets[self._next].pending:
            self._reduce(self.buckets[self._next])
            self._next += 1
        if self._next == len(self.buckets) and self._tracks_use:
            self._reduce_use()

    def _reduce(self, bucket: GradBucket) -> None:
        with no_grad():
            if self._hook is not None:
                future = self._hook(self._hook_state, bucket)
                bucket.finish = lambda: _tensor(future.wait())
                bucket.is_completed = future.done
                return
            if self._factor != 1.0:  # before, as torch does: sums of 16 bits overflow sooner
                bucket.flat.mul_(self._factor)
            work: Any = c10d.all_reduce(bucket.flat, group=self.group, async_op=True)
        bucket.is_completed = work.is_completed

        def finish() -> Tensor:
            work.wait()
            return bucket.flat

        bucket.finish = finish

    def _reduce_use(self) -> None:
        """Have the processes find out which parameters any of them used."""
        used = tensor(self._used, dtype=int32, device=self.parameters[0].device)
        work = c10d.all_reduce(used, c10d.ReduceOp.MAX, group=self.group, async_op=True)
        self._use = work, used

    def _progress(self) -> None:
        """Let the transport go on: some only do when they are asked."""
        for bucket in self.buckets[: self._next]:
            if bucket.is_completed is not None and bucket.is_completed():
                bucket.is_completed = None

    def finish(self) -> None:
        """Wait for the reductions, and write the means back: the end of a backward pass."""
        if self.static_graph and self._counts is None:
            self._counts = dict(self._counted)
            for i in range(len(self.parameters)):
                self._mark(i)
        if self._next < len(self.buckets):
            return  # the next iteration says which are missing
        used = self._wait_for_use()
        with no_grad():
            for bucket in self.buckets:
                assert bucket.finish is not None
                result = bucket.finish()
                bucket.finish = bucket.is_completed = None
                bucket.set_buffer(result)
                self._write_back(bucket, used)
        self._reset()
        self._expecting = False

    def _wait_for_use(self) -> list[int] | None:
        """Return for each parameter whether any process used it, if that may be otherwise."""
        if self._tracks_use:
            work, used = self._use
            work.wait()
            self._used_anywhere = used.tolist()
            self._use = None
            self._tracks_use = not self.static_graph
        self._used = [0] * len(self.parameters)
        return self._used_anywhere

    def _write_back(self, bucket: GradBucket, used: list[int] | None) -> None:
        for i, view in bucket.views.items():
            if used is not None and not used[i]:
                continue  # no process used it: its gradient stays as it was
            parameter = self.parameters[i]
            if self.as_views:
                parameter.grad = view
            elif parameter.grad is None:
                parameter.grad = view.clone()
            elif parameter.grad.data_ptr() != view.data_ptr():
                parameter.grad.copy_(view)

    def _refuse_unfinished(self) -> None:
        missing = [self.names[i] for i in range(len(self.parameters)) if i not in self._done]
        raise RuntimeError(
            "Expected to have finished reduction in the prior iteration before starting a new one. These "
            f"parameters on rank {c10d.get_rank(self.group)} received no gradient: {', '.join(missing)}. "
            "If the module has parameters that take no part in some losses, pass "
            "find_unused_parameters=True to DistributedDataParallel; make sure that all of what forward "
            "returns goes into the loss."
        )

    # --- hooks, and processes whose inputs have ended ---

    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        """Let a hook reduce the buckets."""
        if self._hook is not None:
            raise RuntimeError(
                "register_comm_hook can only be called once: there is a communication hook already"
            )
        self._hook, self._hook_state = hook, state
        self._make_buckets([i for bucket in self.buckets for i in bucket.indices])

    def answer_backward(self) -> None:
        """Take part in the reductions of a pass, without gradients."""
        self._reset()
        with no_grad():
            for bucket in self.buckets:
                bucket.zero()
                self._reduce(bucket)
            if self._tracks_use:
                self._used = [0] * len(self.parameters)
                self._reduce_use()
                self._wait_for_use()
            for bucket in self.buckets:
                assert bucket.finish is not None
                bucket.finish()
        self._reset()
        if not self._rebuilt and not self._arrivals:
            self._arrivals = list(range(len(self.parameters) - 1, -1, -1))


def _notifier(reducer: weakref.ref[Reducer], index: int) -> Callable[[Any], None]:
    """Return a hook that does not keep the reducer alive."""

    def hook(_: Any) -> None:
        target = reducer()
        if target is not None:
            target.arrived(index)

    return hook


def _flat(parameter: Tensor, gradient: Tensor | None, arrived: bool) -> Tensor:
    """Return a gradient as a flat tensor to reduce: itself if it is contiguous and nobody else's.

    One that did not arrive stays as it is, unless it turns out that another process used the parameter.
    """
    if gradient is None:
        return zeros_like(parameter).reshape(-1)
    hooks = extra_of(parameter).post_accumulate_hooks or ()
    flat = gradient.detach().reshape(-1)
    return flat if arrived and len(hooks) == 1 else flat.clone()


def _finish(reducer: weakref.ref[Reducer]) -> None:
    target = reducer()
    if target is not None:
        target.finish()


def _tensor(result: Any) -> Tensor:
    """Return the tensor of a future: collectives set a list of one."""
    tensor: Tensor = result[0] if isinstance(result, (list, tuple)) else result
    return tensor
