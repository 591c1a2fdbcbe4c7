"""Tolerances and samples of what is computed in several steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensorplug.core.device.dtypes import FLOATS, DType

from ..records import OpRecord, Sample

# Half precision rounds at each step of a body, and once in a kernel.
_STEPS = {"float16": 4e-3, "bfloat16": 3e-2}
_STEPS_ABSOLUTE = {"float16": 5e-2, "bfloat16": 5e-1, "float32": 2e-5}


def tensors_of(count: int, *numbers: Any, low: float = 1, high: float = 4) -> Callable[..., Any]:
    """Return samples of so many tensors followed by numbers."""

    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for shape in ((5,), (), (0, 3), (2, 3)):
            tensors = [make(*shape, low=low, high=high, exclude_zero=True) for _ in range(count)]
            yield Sample(*tensors, *numbers)

    return samples


def stepwise(op: str, samples: Any, reference: Any, **options: Any) -> OpRecord:
    options = {"dtypes": FLOATS, "rtol": _STEPS, "atol": _STEPS_ABSOLUTE, **options}
    return OpRecord(op, samples, reference, torch="", **options)
