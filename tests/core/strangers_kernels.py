"""Kernels that a plugin brings for composites without a derivative, and what calls of them come to."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tensorplug as tp
from tensorplug.core.dispatch.keys import dispatch_key
from tensorplug.core.dispatch.layers import isolated
from tensorplug.core.dispatch.op_registry import Op, get_op
from tensorplug.core.tensor.base import wrap
from tensorplug.plugin import KernelTable, hookimpl
from tensorplug.testing import cases
from tensorplug.testing.records import OpRecord, Sample, all_records

PRIORITY = 10_000


def records() -> list[OpRecord]:
    """Return the records of composites that are differentiated through their decompositions."""
    found = []
    for record in all_records():
        op = get_op(record.op)
        if op.kind != "composite" or op.derivative is not None or op.writes or op.random:
            continue
        if "empty" in op.name or not record.gradient:
            continue
        found.append(record)
    return found


class Stranger:
    """A plugin with a kernel for each of some composites: its decomposition, on arrays."""

    name = "stranger"

    def __init__(self, ops: list[str], counted: Callable[[Any], bool]) -> None:
        self.ops = ops
        self.counted = counted
        self.calls: dict[str, int] = dict.fromkeys(ops, 0)

    @hookimpl
    def tensorplug_kernels(self) -> KernelTable:
        table = KernelTable("cpu", priority=PRIORITY)
        for name in self.ops:
            table.add(name, self._kernel(get_op(name)))
        return table

    def _kernel(self, op: Op) -> Callable[..., Any]:
        runtime = dispatch_key(tp.device("cpu"), tp.float32).runtime

        def as_tensor(value: Any) -> Any:
            if isinstance(value, (np.ndarray, np.generic)):
                return wrap(value, dispatch_key(tp.device("cpu"), runtime.dtype(value)))
            if type(value) in (list, tuple):
                return type(value)([as_tensor(item) for item in value])
            return value

        def as_array(value: Any) -> Any:
            if isinstance(value, tp.Tensor):
                return np.array(value._array)  # memory of its own, as a kernel's results have
            if isinstance(value, (list, tuple)):
                return tuple([as_array(item) for item in value])
            return value

        def kernel(*arguments: Any) -> Any:
            self.calls[op.name] += self.counted(arguments)
            with isolated(), tp.no_grad():
                return as_array(op.decompose(tuple([as_tensor(value) for value in arguments])))

        return kernel


@contextlib.contextmanager
def registered(
    ops: list[str], counted: Callable[[Any], bool] = lambda arguments: True
) -> Iterator[Stranger]:
    """Have a plugin with kernels for some ops, which counts calls with such arguments."""
    plugin = Stranger(ops, counted)
    tp.plugins.register(plugin)
    try:
        yield plugin
    finally:
        tp.plugins.unregister(plugin.name)


def weights_like(output: tp.Tensor, number: int) -> tp.Tensor:
    """Return numbers of an output's shape and dtype, always the same ones."""
    numbers = np.sin(np.arange(1 + number, output.numel() + 1 + number) * 1.7)
    return tp.tensor(numbers.reshape(output.shape)).to(output.dtype)


def is_leaf(tensor: tp.Tensor) -> bool:
    """Return whether a tensor has derivatives."""
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


class Call:
    """A sample of an op, as a function of its differentiable tensors."""

    def __init__(self, record: OpRecord, dtype: Any, sample: Sample, number: int) -> None:
        self.op = get_op(record.op)
        self.said = f"sample {number} of {record.op}, {dtype.name}"
        self.given = (sample.args, sample.kwargs)
        self.points = [t.detach() for t in cases.tensors_in(self.given) if is_leaf(t)]

    def __call__(self, *points: tp.Tensor, **options: Any) -> Any:
        there = iter(points)
        args, kwargs = cases.map_tensors(self.given, lambda t: next(there) if is_leaf(t) else t)
        return self.op.call(*args, **kwargs, **options)

    def leaves(self, tracked: tuple[int, ...]) -> tuple[list[tp.Tensor], list[tp.Tensor]]:
        """Return new tensors for all points, and those that require grad."""
        made = [
            point.clone().requires_grad_(number in tracked)
            for number, point in enumerate(self.points)
        ]
        return made, [made[number] for number in tracked]

    def differentiated(self, tracked: tuple[int, ...], asked: int | None, second: bool) -> Any:
        """Return results and the gradients of some tensors, of all outputs or one; or of their squares."""
        points, wanted = self.leaves(tracked)
        every = list(cases.tensors_in((self(*points),)))
        chosen = [
            (output, weights_like(output, number))
            for number, output in enumerate(every)
            if output.requires_grad and asked in (None, number)
        ]
        if not chosen:
            zeros = [tp.zeros_like(leaf) for leaf in wanted] if second else []
            return seen(every), [*[None] * len(wanted), *seen(zeros)]
        outputs, weights = zip(*chosen, strict=True)
        options = {"allow_unused": True, "create_graph": second}
        found = tp.autograd.grad(outputs, wanted, weights, **options)
        gradients = [seen(gradient) for gradient in found]
        if second:
            sums = [(g * g.conj()).real.sum() for g in found if g is not None and g.requires_grad]
            again = (
                tp.autograd.grad(sum(sums), wanted, materialize_grads=True, allow_unused=True)
                if sums
                else [tp.zeros_like(leaf) for leaf in wanted]
            )
            gradients += [seen(gradient) for gradient in again]
        return seen(every), gradients


def seen(value: Any) -> Any:
    """Return tensors as dtypes and arrays."""
    if isinstance(value, tp.Tensor):
        return str(value.dtype), np.array(value.detach().resolve_conj().tolist())
    if isinstance(value, (list, tuple)):
        return [seen(item) for item in value]
    return value


def vmapped(call: Call) -> Any:
    stacked = [tp.stack([point, point * 0.9]) for point in call.points]
    return seen(tp.func.vmap(call)(*stacked))


def vmapped_gradients(call: Call) -> Any:
    def total(*points: tp.Tensor) -> tp.Tensor:
        outputs = [o for o in cases.tensors_in((call(*points),)) if is_leaf(o)]
        return sum([(o * o.conj()).real.sum() for o in outputs])

    stacked = [tp.stack([point, point * 0.9]) for point in call.points]
    return seen(tp.func.vmap(tp.func.grad(total, tuple(range(len(stacked)))))(*stacked))


def tangents(call: Call) -> Any:
    found = []
    for number in (*range(len(call.points)), None):
        tangent = [
            weights_like(point, n) if number in (n, None) else tp.zeros_like(point)
            for n, point in enumerate(call.points)
        ]
        found.append(seen(tp.func.jvp(call, tuple(call.points), tuple(tangent))))
    return found


def compiled(call: Call) -> Any:
    function = tp.compile(call)
    found = []
    for tracked in (range(len(call.points)), (0,)):
        points, wanted = call.leaves(tuple(tracked))
        outputs = list(cases.tensors_in((function(*points),)))
        found.append(seen(outputs))
        outputs = [output for output in outputs if output.requires_grad]
        if outputs:
            weights = [weights_like(output, n) for n, output in enumerate(outputs)]
            found.append(seen(tp.autograd.grad(outputs, wanted, weights, allow_unused=True)))
    return found


def autocast(call: Call) -> Any:
    points, wanted = call.leaves(tuple(range(len(call.points))))
    with tp.autocast("cpu", tp.bfloat16):  # which a kernel does not see, but a body does
        outputs = list(cases.tensors_in((call(*points),)))
    outputs = [output.float() for output in outputs if output.requires_grad]
    if not outputs:
        return None
    weights = [weights_like(output, number) for number, output in enumerate(outputs)]
    return seen(outputs), seen(tp.autograd.grad(outputs, wanted, weights, allow_unused=True))


def written_out(call: Call) -> Any:
    targets = cases.map_tensors(call(*call.points), tp.empty_like)
    result = call(*call.points, out=targets)
    return seen(result), seen(targets)


def written_in_place(call: Call) -> Any:
    if call.op.inplace is None:
        return None
    points, wanted = call.leaves(tuple(range(len(call.points))))
    changed = points[0] * 1
    points[0] = changed
    there = iter(points)
    args, kwargs = cases.map_tensors(call.given, lambda t: next(there) if is_leaf(t) else t)
    result = getattr(args[0], call.op.inplace)(*args[1:], **kwargs)
    gradients = tp.autograd.grad(changed, wanted, weights_like(changed, 0), allow_unused=True)
    return result is changed, seen(changed), seen(gradients)


WAYS = {
    function.__name__: function
    for function in (
        vmapped,
        vmapped_gradients,
        tangents,
        compiled,
        autocast,
        written_out,
        written_in_place,
    )
}


def outcome(function: Callable[[], Any]) -> Any:
    """Return what a call comes to, or the error's type."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function()
        except Exception as error:
            return type(error).__name__, str(error)


def alike(expected: Any, found: Any, tolerance: float) -> bool:
    """Return whether two outcomes agree; of errors the types are compared."""
    if isinstance(expected, np.ndarray):
        return (
            isinstance(found, np.ndarray)
            and expected.shape == found.shape
            and np.allclose(
                expected, found, tolerance, tolerance * larger(expected), equal_nan=True
            )
        )
    if isinstance(expected, (list, tuple)):
        if is_error(expected):
            return is_error(found) and expected[0] == found[0]
        return (
            isinstance(found, (list, tuple))
            and len(expected) == len(found)
            and all([alike(a, b, tolerance) for a, b in zip(expected, found, strict=True)])
        )
    return bool(expected == found)


def larger(array: Any) -> float:
    """Return the largest size of an array's finite numbers, or 1."""
    sizes = np.abs(array[np.isfinite(array)]).astype(float)
    return max(1.0, sizes.max(initial=0.0))


def is_error(value: Any) -> bool:
    """Return whether an outcome is an error."""
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and str(value[0]).endswith(("Error", "Exception"))
    )
