"""Calls that the caches serve, against the same calls with all caches cleared, at random.

Arguments alternate that are equal as keys or nearly so: 1, 1.0 and True, zeros of both signs, in complex
numbers and in tuples too, NaN of several payloads, scalars of NumPy, calls that fail between others.
``make fuzz`` draws more.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from scalar_cases import described, drawn, near, outcome, records, slots_of

import tensorplug as tp
from tensorplug.core.dispatch.call_cache import clear_call_caches
from tensorplug.core.dispatch.keys import all_keys
from tensorplug.core.dispatch.op_registry import all_ops, get_op
from tensorplug.testing import cases

MEMORY = "whatever the memory held"
EMPTY = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
SKIPPED = {
    **dict.fromkeys(EMPTY, MEMORY),
    "place": "takes the sizes of a view that is there",
}
COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "320"))


def is_taken(record: Any) -> bool:
    """Return whether an op's result follows from its arguments."""
    return record.op not in SKIPPED


def clear() -> None:
    """Forget all calls, numbers and programs of formulas."""
    clear_call_caches()
    for key in all_keys():
        key.scalars.clear()
    for op in all_ops():
        for plan in getattr(op.derivative, "plans", {}).values():
            for formula in plan.formulas:
                formula.programs.clear()


def with_gradient(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a call and its backward pass come to."""
    leaves: list[tp.Tensor] = []

    def leaf(tensor: tp.Tensor) -> tp.Tensor:
        tensor = tensor.detach().clone()
        if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            leaves.append(tensor.requires_grad_())
        return tensor

    args, kwargs = cases.map_tensors((args, kwargs), leaf)

    def call() -> Any:
        result = op.call(*args, **kwargs)
        before = described(result)
        for tensor in cases.tensors_in((result,)):
            if tensor.requires_grad:
                tensor.backward(tensor.detach().clone() + 1, retain_graph=True)
        return before, [tensor.grad for tensor in leaves]

    return outcome(call)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("share", range(4))
def test_cached_calls(share: int) -> None:
    rng = np.random.default_rng(share)
    for record, dtype, sample, slot in drawn(rng, COUNT // 4, is_taken):
        op = get_op(record.op)
        values = near(slot.value)
        picked = rng.permutation(len(values))[:7]
        calls = [slot.filled(sample, values[place]) for place in picked]
        alone = []
        for args, kwargs in calls:
            clear()
            alone.append(with_gradient(op, args, kwargs))
        clear()
        for number in rng.integers(len(calls), size=2 * len(calls)):
            args, kwargs = calls[number]
            got = with_gradient(op, args, kwargs)
            assert got == alone[number], (
                f"{record.op} {dtype.name}: {args} {kwargs} after others like it differs"
            )


def scalar_slots() -> list[Any]:
    """Return (op, sample, slot) for each scalar argument of each op, in the first dtype that has a sample."""
    found: dict[Any, Any] = {}
    for record in filter(is_taken, records()):
        dtypes = [tp.float32] if tp.float32 in record.dtypes else list(record.dtypes)[:1]
        for dtype in dtypes:
            for sample in cases.samples_of(record, "cpu", dtype):
                for slot in slots_of(sample):
                    found.setdefault((record.op, slot.where), (record.op, sample, slot))
    return list(found.values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_tensors_where_numbers_stand() -> None:
    """A 0-d tensor for each scalar argument: a call is not taken for one with another number in it."""
    served = 0
    for name, sample, slot in scalar_slots():
        op = get_op(name)
        values = [tp.tensor(value) for value in (slot.value, 0, 1)]
        calls = [slot.filled(sample, value) for value in values]
        alone = []
        for args, kwargs in calls:
            clear()
            alone.append(outcome(lambda op=op, args=args, kwargs=kwargs: op.call(*args, **kwargs)))
        served += not all(isinstance(result, str) for result in alone)
        for number in (0, 1, 0, 2, 1):
            args, kwargs = calls[number]
            got = outcome(lambda op=op, args=args, kwargs=kwargs: op.call(*args, **kwargs))
            assert got == alone[number], f"{name}: {slot.where} after another tensor differs"
    assert served > 100


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_tensors_given_by_name() -> None:
    """Of each op: tensors by name, with other values and shapes in turn, are not taken for those before."""
    served = 0
    for record in filter(is_taken, records()):
        op = get_op(record.op)
        dtype = tp.float32 if tp.float32 in record.dtypes else record.dtypes[0]
        for sample in cases.samples_of(record, "cpu", dtype)[:1]:
            named = dict(zip(op.names[1:], sample.args[1:], strict=False)) | sample.kwargs
            if len(sample.args) > len(op.names) or not list(cases.tensors_in(named)):
                continue
            calls = [
                (sample.args[:1], cases.map_tensors(named, change))
                for change in (
                    tp.Tensor.clone,
                    lambda t: t.flip(0) if t.ndim else t + t,
                    lambda t: t.unsqueeze(0),
                )
            ]
            alone = []
            for args, kwargs in calls:
                clear()
                alone.append(with_gradient(op, args, kwargs))
            served += not all(isinstance(result, str) for result in alone)
            clear()
            for number in (0, 1, 2, 1, 0):
                got = with_gradient(op, *calls[number])
                assert got == alone[number], f"{record.op} {sample}: after other tensors differs"
    assert served > 100
