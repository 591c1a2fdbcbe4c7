"""What a row of the tables is, and how its outcome is held to what is expected and to torch's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

#: No expectation of its own: torch alone says what is right.
TORCH_SAYS = object()


@dataclass
class Row:
    """A call of either library, and what it gives.

    Attributes
    ----------
    call : function
        Takes the library; returns tensors, numbers, tuples of them, or raises.
    expected : object
        Numbers in nested lists for tensors, or the type of the error, by arithmetic rather than by torch.
    deviation : str
        Words of the row in docs/deviations.md that says why torch gives something else.
    """

    call: Callable[[Any], Any]
    expected: Any = TORCH_SAYS
    deviation: str = ""


def outcome(call: Callable[[Any], Any], library: Any) -> Any:
    """Return the result of a call, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(library)
        except Exception as error:
            return error


def is_tensor(value: Any) -> bool:
    return hasattr(value, "requires_grad")


def numbers(tensor: Any) -> Any:
    plain = tensor.detach().resolve_conj().resolve_neg()
    wide = plain.float() if str(plain.dtype).endswith("float16") else plain
    return np.array(wide.tolist())


def near(a: Any, b: Any, rate: float) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    if a.size == b.size == 0:
        return a.shape == b.shape
    return a.shape == b.shape and np.allclose(a, b, rate, rate, equal_nan=True)


def holds(result: Any, expected: Any) -> bool:
    """Return whether a result is what is expected of it."""
    if isinstance(expected, type) and issubclass(expected, Exception):
        return isinstance(result, expected)
    if isinstance(result, Exception):
        return False
    if is_tensor(result):
        return near(numbers(result), expected, 1e-3 if "16" in str(result.dtype) else 1e-5)
    if isinstance(result, (tuple, list)):
        return len(result) == len(expected) and all(map(holds, result, expected))
    if isinstance(expected, float):
        return near(result, expected, 1e-5)
    return bool(result == expected)


def form(tensor: Any) -> tuple[Any, ...]:
    """Return what two tensors have to share besides values."""
    dtype = str(tensor.dtype).rpartition(".")[2]
    # Nothing is read by the strides of a tensor without elements, nor by those of a size of 1.
    sizes = zip(tensor.stride(), tensor.shape, strict=True) if tensor.numel() else ()
    strides = [stride for stride, size in sizes if size != 1]
    return dtype, tuple(tensor.shape), strides, tensor.requires_grad


def agree(ours: Any, theirs: Any) -> bool:
    """Return whether outcomes agree: values, dtype, shape, strides, `requires_grad`, or the error's type."""
    if isinstance(theirs, Exception):
        kind = type(theirs).__name__
        return kind in [base.__name__ for base in type(ours).__mro__] or (
            kind.startswith("_") and isinstance(ours, RuntimeError)
        )
    if isinstance(ours, Exception):
        return False
    if is_tensor(theirs):
        rate = 2e-2 if "16" in str(theirs.dtype) else 1e-5
        return (
            is_tensor(ours)
            and form(ours) == form(theirs)
            and near(numbers(ours), numbers(theirs), rate)
        )
    if isinstance(theirs, (tuple, list)):
        return len(ours) == len(theirs) and all(map(agree, ours, theirs))
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(agree(ours[k], theirs[k]) for k in theirs)
    if type(theirs).__module__.startswith("torch."):  # an object of its own: a loader, a sampler
        return type(ours).__name__ == type(theirs).__name__
    if isinstance(theirs, float):
        return isinstance(ours, float) and near(ours, theirs, 1e-5)
    if isinstance(theirs, np.ndarray):
        return (
            isinstance(ours, np.ndarray) and ours.dtype == theirs.dtype and near(ours, theirs, 1e-5)
        )
    return type(ours).__name__ == type(theirs).__name__ and bool(ours == theirs)
