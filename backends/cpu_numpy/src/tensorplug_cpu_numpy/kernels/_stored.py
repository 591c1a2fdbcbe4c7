"""Which kernels take dtypes that memory is kept in: those that move elements, and few that look at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from tensorplug.plugin import FLOAT8, DType, Kernel, Number, complex32, dtype_named

from ..runtime import NATIVES, pairs_of_halves

_MOVING = frozenset(
    {
        # views
        "as_strided", "basic_index", "diagonal", "expand", "permute", "reshape", "unfold", "view",
        "view_dtype",
        # copies
        "cat", "clone", "copy", "fill_new", "index", "index_put", "index_select",
        "masked_select", "place", "stack", "where",
    }
)  # fmt: skip
_LOOKING = frozenset({"cast", "abs", "eq", "ne"})

Array = np.ndarray[Any, Any]


def kernels(settled: Iterable[Kernel]) -> list[Kernel]:
    """Return all kernels: with those that move elements for the dtypes that memory is kept in."""
    made = []
    for kernel in settled:
        if kernel.dtypes is None:
            if kernel.op == "cast":
                kernel = replace(kernel, function=_casting(kernel.function))
                made.append(replace(kernel, dtypes=frozenset({complex32})))
            if kernel.op in _MOVING or kernel.op in _LOOKING:
                made.append(replace(kernel, dtypes=frozenset(FLOAT8)))
            if kernel.op in _PAIRS or kernel.op in _MOVING or kernel.op == "gather":
                function = _PAIRS.get(kernel.op, kernel.function)
                made.append(replace(kernel, function=function, dtypes=frozenset({complex32})))
            if kernel.op == "index_put":
                made[-1] = replace(made[-1], function=_putting(kernel.function))
            if kernel.op == "view_as_complex":
                made.append(
                    replace(kernel, function=_pairs, dtypes=frozenset({dtype_named("float16")}))
                )
        made.append(kernel)
    return made


def _casting(cast: Any) -> Any:
    """Return the conversion of elements, to and from pairs of halves as well."""

    def convert(input: Array, dtype: DType) -> Any:
        if input.dtype.names:
            input = _wide(input)
        return pairs_of_halves(input) if dtype is complex32 else cast(input, dtype)

    return convert


def _wide(pairs: Array) -> Array:
    """Return pairs of halves as complex numbers that NumPy computes with."""
    wide = np.empty_like(pairs, np.complex64)
    wide.real, wide.imag = pairs["re"], pairs["im"]
    return wide


def _putting(put: Any) -> Any:
    """Return the writing of elements, which moves them unless it adds them."""

    def put_pairs(
        input: Array, indices: list[Any], values: Array, accumulate: bool, out: Array | None = None
    ) -> Any:
        if not accumulate:
            return put(input, indices, values, accumulate, out)
        added = pairs_of_halves(put(_wide(input), indices, _wide(values), accumulate))
        if out is None:
            return added
        out[...] = added
        return out

    return put_pairs


def _fill_new(shape: tuple[int, ...], value: Number, dtype: DType) -> Array:
    return np.full(shape, pairs_of_halves(np.asarray(value)), NATIVES[dtype])


def _pairs(input: Array) -> Array:
    return input.view(NATIVES[complex32])[..., 0]


def _view_as_real(input: Array) -> Array:
    return input[..., None].view(np.float16)


def _nonzero(input: Array) -> Array:
    there = (input["re"] != 0) | (input["im"] != 0)
    if not input.ndim:
        return np.zeros((int(there), 0), np.int64)
    return np.stack(np.nonzero(there), axis=1)


_PAIRS: dict[str, Callable[..., Any]] = {
    "fill_new": _fill_new,
    "nonzero": _nonzero,
    "view_as_real": _view_as_real,
}
