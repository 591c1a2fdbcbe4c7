"""What a call gives in one of the libraries, as plain data that can be compared."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

HALF = ("float16", "bfloat16")


def described(result: Any) -> Any:
    """Return a result as plain data: tensors with dtype, shape and values."""
    if isinstance(result, (tuple, list)):
        return [described(item) for item in result]
    if isinstance(result, dict):
        return {name: described(value) for name, value in result.items()}
    if isinstance(result, np.ndarray):
        return ("array", str(result.dtype), result.shape, result.tolist())
    if hasattr(result, "detach"):
        dtype = str(result.dtype).rpartition(".")[2]
        plain = (
            result.detach().resolve_conj().resolve_neg() + 0
        )  # torch keeps some zeros without memory
        values = plain.float() if dtype == "bfloat16" else plain
        return (
            "tensor",
            dtype,
            tuple(result.shape),
            np.array(values.tolist()),
            result.requires_grad,
        )
    return (
        result if isinstance(result, (bool, int, float, complex, str, type(None))) else str(result)
    )


def outcome(call: Callable[[Any], Any], library: Any) -> Any:
    """Return what a function of the library gives: its result, or the error's type with those above it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ("result", described(call(library)))
        except Exception as error:
            return ("error", [kind.__name__ for kind in type(error).__mro__], str(error))


def same(theirs: Any, ours: Any) -> bool:
    """Return whether two outcomes agree; an error may be of a more special type than torch's."""
    if isinstance(theirs, tuple) and theirs[:1] == ("error",):
        kind = theirs[1][0]
        return ours[0] == "error" and (
            kind in ours[1] or (kind[0] == "_" and "RuntimeError" in ours[1])
        )
    if isinstance(theirs, tuple) and theirs[:1] == ("tensor",):
        if not isinstance(ours, tuple) or theirs[1:3] != ours[1:3] or theirs[4] != ours[4]:
            return False
        near = (
            2e-2 if theirs[1] in HALF else 1e-9 if theirs[1] in ("float64", "complex128") else 1e-5
        )
        return np.allclose(theirs[3], ours[3], near, near, equal_nan=True)
    if isinstance(theirs, (tuple, list)):
        return (
            type(theirs) is type(ours) and len(theirs) == len(ours) and all(map(same, theirs, ours))
        )
    if isinstance(theirs, dict):
        return theirs.keys() == ours.keys() and all(
            same(theirs[name], ours[name]) for name in theirs
        )
    if isinstance(theirs, float) and isinstance(ours, float):
        return bool(np.isclose(theirs, ours, 1e-5, 1e-5, equal_nan=True))
    return type(theirs) is type(ours) and bool(theirs == ours)
