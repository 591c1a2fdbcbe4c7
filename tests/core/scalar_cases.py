"""Scalar arguments of the ops' samples, and other spellings of each, for the generators of tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import tensorplug as tp
from tensorplug.core.dispatch.call_cache import clear_call_caches
from tensorplug.core.dispatch.keys import all_keys
from tensorplug.core.dispatch.op_registry import all_ops, get_op
from tensorplug.testing import cases
from tensorplug.testing.records import OpRecord, Sample, all_records

NUMBERS = (bool, int, float, complex)


class Slot(NamedTuple):
    """Where a scalar stands among a sample's arguments: by position or name, and its place in a tuple."""

    where: int | str
    place: int | None
    value: Any

    def filled(self, sample: Sample, value: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the sample's arguments with another value there."""
        args, kwargs = list(sample.args), dict(sample.kwargs)
        target: Any = args if isinstance(self.where, int) else kwargs
        if self.place is not None:
            items = list(target[self.where])
            items[self.place] = value
            value = type(target[self.where])(items)
        target[self.where] = value
        return tuple(args), kwargs


def slots_of(sample: Sample) -> Iterator[Slot]:
    """Yield the scalars among a sample's arguments."""
    for where, value in [*enumerate(sample.args), *sample.kwargs.items()]:
        if type(value) in NUMBERS:
            yield Slot(where, None, value)
        elif type(value) in (tuple, list):
            for place, item in enumerate(value):
                if type(item) in NUMBERS:
                    yield Slot(where, place, item)


def records() -> list[OpRecord]:
    """Return the records of ops whose results follow from their arguments."""
    return [
        record
        for record in all_records()
        if not get_op(record.op).random and "generator" not in get_op(record.op).names
    ]


def drawn(rng: Any, count: int, chosen: Callable[[OpRecord], bool]) -> Iterator[Any]:
    """Yield (record, dtype, sample, slot), drawn at random."""
    known = [record for record in records() if chosen(record)]
    found: dict[Any, list[tuple[Sample, Slot]]] = {}
    while count:
        record = known[rng.integers(len(known))]
        dtype = record.dtypes[rng.integers(len(record.dtypes))]
        if (record.op, dtype) not in found:
            samples = cases.samples_of(record, "cpu", dtype)
            found[record.op, dtype] = [(s, slot) for s in samples for slot in slots_of(s)]
        if not found[record.op, dtype]:
            continue
        count -= 1
        sample, slot = found[record.op, dtype][rng.integers(len(found[record.op, dtype]))]
        yield record, dtype, sample, slot


def of_numpy(value: Any) -> list[Any]:
    """Return scalars of NumPy that are the same number."""
    if isinstance(value, bool):
        return [np.bool_(value)]
    if isinstance(value, int):
        small = [np.uint8(value)] if 0 <= value < 256 else []
        return [np.int64(value), *small] if -(1 << 63) <= value < 1 << 63 else []
    if isinstance(value, float):
        exact = float(np.float32(value)) == value
        return [np.float64(value), *([np.float32(value)] if exact else [])]
    return [np.complex128(value)]


def near(value: Any) -> list[Any]:
    """Return numbers that are equal to one, or nearly, but not the same."""
    found: list[Any] = [value, *of_numpy(value)]
    zeros = [0j, complex(0.0, -0.0), complex(-0.0, 0.0)]
    if isinstance(value, complex):
        found += [complex(value.real, 0.0), complex(value.real, -0.0), complex(-0.0, value.imag)]
        found += zeros
    elif isinstance(value, float) and not math.isfinite(value):
        found += [-value, float("nan"), float("nan"), -math.nan]
    else:
        found += [int(value), float(value), complex(value), complex(value, -0.0), -value]
        found += [bool(value)] if value in (0, 1) else []
        found += [0, 0.0, -0.0, False, *zeros]
        if abs(value) < 1 << 31:  # their keys say nothing of their values
            found += [tp.tensor(value), tp.tensor(0)]
    return found


def outcome(function: Callable[[], Any]) -> Any:
    """Return what a call comes to, to the bit: the error's type, or dtypes, shapes and bytes."""
    try:
        result = function()
    except Exception as error:
        return type(error).__name__
    return described(result)


def described(result: Any) -> Any:
    """Return dtypes, shapes and bytes of the tensors in a result."""
    if isinstance(result, tp.Tensor):
        array = np.ascontiguousarray(result.detach().resolve_conj().numpy())
        return str(result.dtype), tuple(result.shape), array.tobytes()
    if isinstance(result, (list, tuple)):
        return [described(item) for item in result]
    return repr(result)


def clear() -> None:
    """Forget all calls, numbers and programs of formulas."""
    clear_call_caches()
    for key in all_keys():
        key.scalars.clear()
    for op in all_ops():
        for plan in getattr(op.derivative, "plans", {}).values():
            for formula in plan.formulas:
                formula.programs.clear()
