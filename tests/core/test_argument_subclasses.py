"""Arguments of classes derived from Python's own do what those do: sizes, named tuples, enumerations.

Compiled code that names a type in its declarations takes no class derived from it. So every argument of every
op's samples is given as one, one at a time, plainly and recorded, and again once the call is known.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from scalar_cases import outcome, records

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing import cases
from tensorplug.testing.records import OpRecord, Sample

SAMPLES = 2 if "TENSORPLUG_FUZZ" not in os.environ else 1000
PARTS = 4


class Int(int):
    pass


class Float(float):
    pass


class Str(str):
    __slots__ = ()


class Tuple(tuple[Any, ...]):  # as a named tuple or a Size is one
    __slots__ = ()


class List(list[Any]):
    pass


def derived(value: Any) -> list[Any]:
    """Return the value as classes derived from its own; for a sequence its items as such, too."""
    if isinstance(value, enum.Enum):
        return []
    if type(value) is int:
        return [Int(value)]
    if type(value) is float:
        return [Float(value)]
    if type(value) is str:
        return [Str(value)]
    if type(value) not in (tuple, list):
        return []
    found: list[Any] = [Tuple(value) if type(value) is tuple else List(value)]
    if value and all(type(item) is int for item in value):
        found += [tp.Size(value)] if type(value) is tuple else []
        found.append(type(value)([Int(item) for item in value]))
    return found


def spellings(sample: Sample) -> Iterator[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """Yield the arguments with one of them as another class, and what that is."""
    for number, value in enumerate(sample.args):
        for other in derived(value):
            yield other, (*sample.args[:number], other, *sample.args[number + 1 :]), sample.kwargs
    for name, value in sample.kwargs.items():
        for other in derived(value):
            yield other, sample.args, {**sample.kwargs, name: other}


def differing(record: OpRecord, recorded: bool) -> Iterator[str]:
    """Yield the calls that come to something else."""
    op = get_op(record.op)
    dtype = tp.float64 if tp.float64 in record.dtypes else record.dtypes[0]
    for sample in cases.samples_of(record, "cpu", dtype)[:SAMPLES]:
        if recorded:
            for tensor in cases.tensors_in((sample.args, sample.kwargs)):
                if tensor.is_floating_point() and tensor.is_leaf:
                    tensor.requires_grad_()
        plain = outcome(partial(op.call, *sample.args, **sample.kwargs))
        for other, args, kwargs in spellings(sample):
            for turn in range(3):  # the second time the call is known, the third it may be replayed
                found = outcome(partial(op.call, *args, **kwargs))
                if found != plain:
                    short = str(found)[:60], str(plain)[:60]
                    yield f"{record.op}({sample}) with {type(other).__name__}, turn {turn}: {short}"
                    break


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("recorded", [False, True])
def test_arguments_of_derived_classes_are_taken(part: int, recorded: bool) -> None:
    chosen = [r for r in records() if not r.op.startswith(("empty", "new_empty"))][part::PARTS]
    wrong = [said for record in chosen for said in differing(record, recorded)]
    assert not wrong, "\n".join(wrong)
