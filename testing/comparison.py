"""Comparison of tensors with a message that tells where they differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensorplug.core.devices import CPU
from tensorplug.core.dtypes import DType
from tensorplug.core.tensor import Tensor

#: (rtol, atol) by dtype, as torch.testing has them; integers and bool compare exactly.
TOLERANCES: Mapping[str, tuple[float, float]] = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def default_tolerances(*dtypes: DType) -> tuple[float, float]:
    """Return the (rtol, atol) of the least precise of some dtypes."""
    known = [TOLERANCES.get(dtype.name, (0.0, 0.0)) for dtype in dtypes]
    return max(k[0] for k in known), max(k[1] for k in known)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless ``|actual - expected| <= atol + rtol * |expected|`` everywhere.

    Parameters
    ----------
    actual, expected : Tensor, number, sequence or mapping
        Of the same structure.
    rtol, atol : float, optional
        Both or neither; by default those of the dtype.
    equal_nan : bool
        Whether NaN equals NaN.
    check_device, check_dtype, check_stride : bool
        Whether these have to be equal too.
    msg : str or callable, optional
        Instead of the generated message, or called with it.

    Examples
    --------
    >>> import tensorplug as tp
    >>> assert_close(tp.tensor([1.0, 2.0]), tp.tensor([1.0, 2.0 + 1e-7]))
    """
    if (rtol is None) != (atol is None):
        raise ValueError("assert_close(): rtol and atol must be given together, or neither")
    problem = _difference(
        actual, expected, rtol, atol, equal_nan, check_device, check_dtype, check_stride, ""
    )
    if problem is not None:
        raise AssertionError(msg(problem) if callable(msg) else msg or problem)


def _difference(
    actual: Any,
    expected: Any,
    rtol: float | None,
    atol: float | None,
    equal_nan: bool,
    check_device: bool,
    check_dtype: bool,
    check_stride: bool,
    where: str,
) -> str | None:
    options: Any = (rtol, atol, equal_nan, check_device, check_dtype, check_stride)
    place = f" (at {where})" if where else ""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            return f"The keys differ{place}: {sorted(map(str, actual))} and {sorted(map(str, expected))}"
        for key in actual:
            found = _difference(actual[key], expected[key], *options, f"{where}[{key!r}]")
            if found:
                return found
        return None
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The lengths differ{place}: {len(actual)} and {len(expected)}"
        for number, pair in enumerate(zip(actual, expected, strict=True)):
            found = _difference(*pair, *options, f"{where}[{number}]")
            if found:
                return found
        return None
    if isinstance(actual, Tensor) != isinstance(expected, Tensor):
        return f"The types differ{place}: {type(actual).__name__} and {type(expected).__name__}"
    if isinstance(actual, Tensor):
        return _tensors(actual, expected, *options, place)
    return _arrays(
        np.asarray(actual), np.asarray(expected), *_tolerances(rtol, atol), equal_nan, place
    )


def _tolerances(rtol: float | None, atol: float | None, *dtypes: DType) -> tuple[float, float]:
    if rtol is not None and atol is not None:
        return rtol, atol
    return default_tolerances(*dtypes) if dtypes else TOLERANCES["float64"]


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _tensors(
    actual: Tensor,
    expected: Tensor,
    rtol: float | None,
    atol: float | None,
    equal_nan: bool,
    check_device: bool,
    check_dtype: bool,
    check_stride: bool,
    place: str,
) -> str | None:
    if actual.shape != expected.shape:
        return f"The shapes differ{place}: {list(actual.shape)} and {list(expected.shape)}"
    if check_dtype and actual.dtype is not expected.dtype:
        return f"The dtypes differ{place}: {actual.dtype} and {expected.dtype}"
    if check_device and actual.device is not expected.device:
        return f"The devices differ{place}: {actual.device} and {expected.device}"
    if check_stride and actual.stride() != expected.stride():
        return f"The strides differ{place}: {actual.stride()} and {expected.stride()}"
    tolerances = _tolerances(rtol, atol, actual.dtype, expected.dtype)
    return _arrays(as_exact(actual), as_exact(expected), *tolerances, equal_nan, place)


def as_exact(tensor: Tensor) -> Any:
    """Return a tensor's elements as a NumPy array wide enough to compare in."""
    array = tensor.detach().to(CPU).numpy(force=True)
    if tensor.dtype.is_floating_point:
        return array.astype(np.float64)
    return array.astype(np.complex128) if tensor.dtype.is_complex else array


def _arrays(
    actual: Any, expected: Any, rtol: float, atol: float, equal_nan: bool, place: str
) -> str | None:
    with np.errstate(all="ignore"):
        if actual.dtype.kind in "iub" and expected.dtype.kind in "iub" and not rtol and not atol:
            equal = np.asarray(actual == expected)
        else:
            wide = np.result_type(actual, expected, np.float64)
            a, b = actual.astype(wide), expected.astype(wide)
            equal = (a == b) | (np.abs(a - b) <= atol + rtol * np.abs(b))
            if equal_nan:
                equal |= np.isnan(a) & np.isnan(b)
    if equal.all():
        return None
    wrong = np.argwhere(~equal)
    index = tuple(int(i) for i in wrong[0])
    got, wanted = actual[index], expected[index]
    share = 100 * len(wrong) / max(math.prod(equal.shape), 1)
    return (
        f"Tensors are not close{place}: {len(wrong)} of {equal.size} elements differ ({share:.1f} %). "
        f"First at index {index}: got {got!r}, expected {wanted!r} "
        f"(difference {abs(got - wanted) if equal.dtype != object else ''}; rtol {rtol:g}, atol {atol:g})"
    )
