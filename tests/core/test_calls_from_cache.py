"""Calls that the caches serve, against the same calls with all caches cleared, at random.

Arguments alternate that are equal as keys or nearly so: 1, 1.0 and True, zeros of both signs, in complex
numbers and in tuples too, NaN of several payloads, scalars of NumPy, calls that fail between others.
``make fuzz`` draws more.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from scalar_cases import clear, described, drawn, near, outcome, records, slots_of

import tensorplug as tp
from tensorplug.autograd.engine import evaluation
from tensorplug.core.dispatch import call_cache, call_keys, calls, composite_calls, list_calls
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing import cases

MEMORY = "whatever the memory held"
EMPTY = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
SKIPPED = {
    **dict.fromkeys(EMPTY, MEMORY),
    "place": "takes the sizes of a view that is there",
}
# Derivatives call them with sizes of what is there. Of tensors in their place the numbers are not looked at.
SIZED = ("as_strided_backward", "convolution_weight")
IN_MODULES = pytest.mark.skipif(
    tp.compiled(), reason="compiled code does not look functions up in its module"
)
COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "320"))


def is_taken(record: Any) -> bool:
    """Return whether an op's result follows from its arguments."""
    return record.op not in SKIPPED


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


def differing_calls(drawings: Iterable[Any], rng: Any) -> list[str]:
    """Return which calls differ after others like them, of arguments as they are drawn."""
    wrong = []
    for record, dtype, sample, slot in drawings:
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
            if with_gradient(op, args, kwargs) != alone[number]:
                wrong.append(
                    f"{record.op} {dtype.name}: {args} {kwargs} after others like it differs"
                )
                break
    return wrong


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("share", range(4))
def test_cached_calls(share: int) -> None:
    rng = np.random.default_rng(share)
    taken = drawn(rng, COUNT // 4, lambda record: is_taken(record) and record.op not in SIZED)
    wrong = differing_calls(taken, rng)
    assert not wrong, "\n".join(wrong)


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


def differing_numbers(slots: list[Any]) -> tuple[list[str], int]:
    """Return which calls with a 0-d tensor for a number differ after others, and how many compute at all."""
    wrong, served = [], 0
    for name, sample, slot in slots:
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
            if got != alone[number]:
                wrong.append(f"{name}: {slot.where} after another tensor differs")
                break
    return wrong, served


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_tensors_where_numbers_stand() -> None:
    """A 0-d tensor for each scalar argument: a call is not taken for one with another number in it."""
    wrong, served = differing_numbers(scalar_slots())
    assert not wrong, "\n".join(wrong)
    assert served > 100


def differing_names(of: Iterable[Any]) -> tuple[list[str], int]:
    """Return which calls with tensors by name differ after others, and how many compute at all."""
    wrong, served = [], 0
    for record in of:
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
                if with_gradient(op, *calls[number]) != alone[number]:
                    wrong.append(f"{record.op} {sample}: after other tensors differs")
                    break
    return wrong, served


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_tensors_given_by_name() -> None:
    """Of each op: tensors by name, with other values and shapes in turn, are not taken for those before."""
    wrong, served = differing_names(filter(is_taken, records()))
    assert not wrong, "\n".join(wrong)
    assert served > 100


def without_types(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the key of a call in which 1, 1.0 and True are the same."""
    return tuple([part for part in KEY(args, kwargs) if not isinstance(part, type)])


def without_shapes_by_name(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the key of a call that tells no shapes of the tensors that are given by name."""
    named = [(name, getattr(value, "_key", value)) for name, value in kwargs.items()]
    return (*KEY(args, {}), *named)


@contextlib.contextmanager
def planted(modules: tuple[Any, ...], name: str, fault: Any) -> Iterator[None]:
    """Put a function in the place of another, and forget all that was cached meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            patch.setattr(module, name, fault)
        yield
    clear()


KEY = call_keys.call_key
KEYED = calls, composite_calls, list_calls  # where calls are looked up
FAULTS = {
    "a flag and a number": ("cumprod", KEYED, "call_key", without_types),
    "numbers in a tuple": ("amin", (call_keys,), "item_types", lambda values: None),
    "complex zeros": (
        "full_like",
        (call_cache, list_calls),
        "ambiguous",
        lambda values: False,
    ),
    "zeros of both signs": ("leaky_relu", (evaluation,), "exact_key", lambda value: None),
}


@IN_MODULES
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "modules", "function", "fault"), FAULTS.values(), ids=FAULTS)
def test_keys_that_tell_too_little_are_found(
    name: str, modules: tuple[Any, ...], function: str, fault: Any
) -> None:
    def found() -> list[str]:
        rng = np.random.default_rng(0)
        return differing_calls(drawn(rng, 40, lambda record: record.op == name), rng)

    assert not found()
    with planted(modules, function, fault):
        assert found()


@IN_MODULES
@pytest.mark.filterwarnings("ignore")
def test_a_tensor_that_is_not_read_is_found() -> None:
    slots = [found for found in scalar_slots() if found[0] == "huber_loss"]
    with planted((composite_calls,), "reads_tensor", lambda *given: False):
        assert differing_numbers(slots)[0]


@IN_MODULES
@pytest.mark.filterwarnings("ignore")
def test_a_key_without_shapes_is_found() -> None:
    of = [record for record in records() if record.op == "glu_backward"]
    with planted(KEYED, "call_key", without_shapes_by_name):
        assert differing_names(of)[0]
