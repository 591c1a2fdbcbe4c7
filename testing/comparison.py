"""Comparison of tensors with a message that tells where they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorplug.core.device.device import CPU
from tensorplug.core.device.dtypes import DType, complex32, complex64
from tensorplug.core.errors import check_flag
from tensorplug.core.ops.comparison import check_tolerances
from tensorplug.core.tensor.layout import strided
from tensorplug.core.tensor.tensor import Tensor

#: (rtol, atol) by dtype, as torch.testing has them; integers and bool compare exactly.
TOLERANCES: Mapping[str, tuple[float, float]] = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5),
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
    actual, expected : Tensor, NumPy array, number, None, sequence or mapping
        Of the same structure.
    allow_subclasses : bool
        Whether the classes of tensors may differ.
    rtol, atol : float, optional
        Both or neither; by default those of the dtypes.
    equal_nan : bool
        Whether NaN equals NaN.
    check_device, check_dtype, check_layout, check_stride : bool
        Whether these have to be equal too; for Python numbers the dtype is their type. Sparse tensors of
        one layout are compared part by part: their indices exactly, then their values.
    msg : str or callable, optional
        Instead of the generated message, or called with it.

    Raises
    ------
    ValueError
        If only one of `rtol` and `atol` is given.
    TypeError
        If two values are of kinds that cannot be compared.

    Examples
    --------
    >>> import tensorplug as tp
    >>> assert_close(tp.tensor([1.0, 2.0]), tp.tensor([1.0, 2.0 + 1e-7]))
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
        )
    if rtol is not None and atol is not None:
        check_tolerances("assert_close", rtol, atol)
    check_flag(equal_nan, "assert_close", "equal_nan")
    wanted = _Wanted(
        None if rtol is None or atol is None else (rtol, atol),
        equal_nan,
        allow_subclasses,
        check_device,
        check_dtype,
        check_layout,
        check_stride,
    )
    problem = wanted.difference(actual, expected)
    if problem is not None:
        raise AssertionError(msg(problem) if callable(msg) else msg or problem)


@dataclass(frozen=True)
class _Wanted:
    """What has to be equal, and how close; each method returns a message, None where all is well."""

    tolerances: tuple[float, float] | None
    equal_nan: bool
    subclasses: bool
    device: bool
    dtype: bool
    layout: bool
    stride: bool

    def difference(self, actual: Any, expected: Any, where: str = "") -> str | None:
        """Compare two values, of any kind; `where` is their place in a structure."""
        if _is_sequence(actual) and _is_sequence(expected):
            return self._sequences(actual, expected, where)
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            return self._mappings(actual, expected, where)
        problem = self._single(actual, expected)
        if problem is None or not where:
            return problem
        return f"{problem}\n\nThe failure occurred for item {where}"

    def _mappings(
        self, actual: Mapping[Any, Any], expected: Mapping[Any, Any], where: str
    ) -> str | None:
        if set(actual) != set(expected):
            return (
                f"The keys of the mappings do not match{_at(where)}:\n"
                f"Missing keys in the actual mapping: {_sorted(set(expected) - set(actual))}\n"
                f"Additional keys in the actual mapping: {_sorted(set(actual) - set(expected))}"
            )
        found = (self.difference(actual[k], expected[k], f"{where}[{k!r}]") for k in expected)
        return next((problem for problem in found if problem), None)

    def _sequences(self, actual: Sequence[Any], expected: Sequence[Any], where: str) -> str | None:
        if len(actual) != len(expected):
            return (
                f"The length of the sequences mismatch{_at(where)}: {len(actual)} != "
                f"{len(expected)}"
            )
        pairs = enumerate(zip(actual, expected, strict=True))
        found = (self.difference(*pair, f"{where}[{number}]") for number, pair in pairs)
        return next((problem for problem in found if problem), None)

    def _single(self, actual: Any, expected: Any) -> str | None:
        if actual is None or expected is None:
            return None if actual is expected else f"None mismatch: {actual!r} is not {expected!r}"
        if isinstance(actual, Tensor) and isinstance(expected, Tensor):
            return self._tensors(actual, expected)
        arrays = (np.ndarray, np.generic)
        if isinstance(actual, arrays) and isinstance(expected, arrays):
            return self._numpy(np.asarray(actual), np.asarray(expected))
        if isinstance(actual, _BOOLS) and isinstance(expected, _BOOLS):
            equal = bool(actual) is bool(expected)
            return None if equal else f"Booleans mismatch: {actual!r} is not {expected!r}"
        if isinstance(actual, _NUMBERS) and isinstance(expected, _NUMBERS):
            return self._numbers(actual, expected)
        raise TypeError(
            "assert_close(): No comparison pair was able to handle inputs of type "
            f"{type(actual)} and {type(expected)}."
        )

    def _numbers(self, actual: Any, expected: Any) -> str | None:
        if self.dtype and type(actual) is not type(expected):
            return f"The (d)types do not match: {type(actual)} != {type(expected)}."
        default = (0.0, 0.0) if isinstance(actual, int) and isinstance(expected, int) else _DOUBLE
        rtol, atol = self.tolerances or default
        close, errors, ratios = _compared(actual, expected, rtol, atol, self.equal_nan)
        if close.all():
            return None
        if not rtol and not atol:
            return (
                f"Scalars are not equal!\n\nExpected {expected} but got {actual}.\n"
                f"Absolute difference: {errors}\nRelative difference: {ratios}"
            )
        return (
            f"Scalars are not close!\n\nExpected {expected} but got {actual}.\n"
            f"Absolute difference: {errors} (up to {atol} allowed)\n"
            f"Relative difference: {ratios} (up to {rtol} allowed)"
        )

    def _numpy(self, actual: Any, expected: Any) -> str | None:
        if actual.shape != expected.shape:
            return _attribute("shape", actual.shape, expected.shape)
        if self.dtype and actual.dtype != expected.dtype:
            return _attribute("dtype", actual.dtype, expected.dtype)
        if self.stride and actual.strides != expected.strides:
            return _attribute("stride()", actual.strides, expected.strides)
        names = [dtype.name for dtype in (actual.dtype, expected.dtype)]
        return self._values(actual, expected, *self._limits(*names))

    def _tensors(self, actual: Tensor, expected: Tensor) -> str | None:
        if not self.subclasses and type(actual) is not type(expected):
            raise TypeError(
                "assert_close(): No comparison pair was able to handle inputs of type "
                f"{type(actual)} and {type(expected)}, as allow_subclasses is False."
            )
        if actual.shape != expected.shape:
            return _attribute("shape", actual.shape, expected.shape)
        if self.layout and actual.layout is not expected.layout:
            return _attribute("layout", actual.layout, expected.layout)
        if self.dtype and actual.dtype is not expected.dtype:
            return _attribute("dtype", actual.dtype, expected.dtype)
        if self.device and actual.device != expected.device:
            return _attribute("device", actual.device, expected.device)
        have_strides = actual.layout is strided is expected.layout
        if self.stride and have_strides and actual.stride() != expected.stride():
            return _attribute("stride()", actual.stride(), expected.stride())
        if actual.is_meta or expected.is_meta:
            return None  # there are no values
        limits = self._limits(actual.dtype.name, expected.dtype.name)
        if actual.layout is not expected.layout:
            actual, expected = actual.to_dense(), expected.to_dense()
        elif actual.layout is not strided:
            return self._sparse(actual, expected, limits)
        return self._values(as_exact(actual), as_exact(expected), *limits)

    def _sparse(self, actual: Any, expected: Any, limits: tuple[float, float]) -> str | None:
        """Compare two sparse tensors of one layout, part by part."""
        kind = actual.layout.name.removeprefix("sparse_").upper()
        if actual.is_sparse:
            names: tuple[str, ...] = ("_indices", "_values")
            if actual.sparse_dim() != expected.sparse_dim():
                return (
                    f"The number of sparse dimensions in sparse {kind} tensors does not match: "
                    f"{actual.sparse_dim()} != {expected.sparse_dim()}"
                )
        else:
            names = (*actual.layout.names, "values")
        if actual._nnz() != expected._nnz():
            return (
                f"The number of specified values in sparse {kind} tensors does not match: "
                f"{actual._nnz()} != {expected._nnz()}"
            )
        for name in names:
            ours, theirs = [as_exact(getattr(each, name)()) for each in (actual, expected)]
            rtol, atol = limits if name.endswith("values") else (0.0, 0.0)
            named = f"Sparse {kind} {name.removeprefix('_')}"
            problem = self._values(ours, theirs, rtol, atol, named)
            if problem is not None:
                return problem
        return None

    def _limits(self, *names: str) -> tuple[float, float]:
        if self.tolerances is not None:
            return self.tolerances
        known = [TOLERANCES.get(name, (0.0, 0.0)) for name in names]
        return max(k[0] for k in known), max(k[1] for k in known)

    def _values(
        self,
        actual: Any,
        expected: Any,
        rtol: float,
        atol: float,
        named: str = "Tensor-likes",
    ) -> str | None:
        close, errors, ratios = _compared(actual, expected, rtol, atol, self.equal_nan)
        if close.all():
            return None
        if not close.ndim:
            return self._scalars(actual, expected, errors, ratios, rtol, atol)
        exact = not rtol and not atol
        wrong = int((~close).sum())
        lines = [f"{named} are not {'equal' if exact else 'close'}!\n"]
        lines.append(
            f"Mismatched elements: {wrong} / {close.size} ({100 * wrong / close.size:.1f}%)"
        )
        for name, values, limit in (("absolute", errors, atol), ("relative", ratios, rtol)):
            # Among those that differ; one that is not a number counts as the greatest.
            numbers = values.astype(np.float64)
            ranked = np.where(close, -1.0, np.where(np.isnan(numbers), np.inf, numbers))
            place = tuple(map(int, np.unravel_index(ranked.argmax(), ranked.shape)))
            allowed = "" if exact else f" (up to {limit} allowed)"
            lines.append(f"Greatest {name} difference: {values[place]} at index {place}{allowed}")
        place = tuple(map(int, np.argwhere(~close)[0]))
        lines.append(f"First at index {place}: got {actual[place]}, expected {expected[place]}")
        return "\n".join(lines)

    def _scalars(
        self, actual: Any, expected: Any, error: Any, ratio: Any, rtol: float, atol: float
    ) -> str:
        exact = not rtol and not atol
        of_error, of_ratio = [
            "" if exact else f" (up to {limit} allowed)" for limit in (atol, rtol)
        ]
        return (
            f"Scalars are not {'equal' if exact else 'close'}!\n\n"
            f"Expected {expected} but got {actual}.\n"
            f"Absolute difference: {error}{of_error}\nRelative difference: {ratio}{of_ratio}"
        )


_BOOLS = (bool, np.bool_)
_NUMBERS = (int, float, complex)
_DOUBLE = TOLERANCES["float64"]


def _at(where: str) -> str:
    return f" at {where}" if where else ""


def _sorted(keys: set[Any]) -> list[Any]:
    return sorted(keys, key=str)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _attribute(name: str, actual: Any, expected: Any) -> str:
    return f"The values for attribute '{name}' do not match: {actual} != {expected}."


def as_exact(tensor: Tensor) -> Any:
    """Return a tensor's elements as a NumPy array wide enough to compare in."""
    if tensor.dtype is complex32:
        tensor = tensor.to(complex64)
    array = tensor.detach().to(CPU).numpy(force=True)
    if tensor.dtype.is_floating_point:
        return array.astype(np.float64)
    return array.astype(np.complex128) if tensor.dtype.is_complex else array


def _compared(
    actual: Any, expected: Any, rtol: float, atol: float, equal_nan: bool
) -> tuple[Any, Any, Any]:
    """Return where two arrays are close, and the absolute and relative differences."""
    a, b = np.asarray(actual), np.asarray(expected)
    if a.dtype.kind in "iub" and b.dtype.kind in "iub" and not rtol and not atol:
        equal = np.asarray(a == b)
        if equal.all():
            return equal, None, None
        wide: Any = object  # exact, and free of overflow
        a, b = a.astype(wide), b.astype(wide)
        errors = np.asarray(abs(a * 1 - b * 1))
        return equal, errors, _ratios(errors, b)
    with np.errstate(all="ignore"):
        wide = np.result_type(a, b, np.float64)
        a, b = a.astype(wide), b.astype(wide)
        errors = np.abs(a - b)
        # An infinite difference is within no bounds, though atol + rtol * inf is infinite.
        close = (a == b) | (np.isfinite(errors) & (errors <= atol + rtol * np.abs(b)))
        if equal_nan:
            close |= np.isnan(a) & np.isnan(b)
        return np.asarray(close), errors, errors / np.abs(b)


def _ratios(errors: Any, expected: Any) -> Any:
    with np.errstate(all="ignore"):
        return errors.astype(np.float64) / np.abs(expected.astype(np.float64))
