"""Half precision computed in float32, as torch does where a formula has several steps."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._mlx import mx

_HALVES = (mx.float16, mx.bfloat16)


def through_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of arrays that computes those of half precision in float32."""

    def wide(value: Any) -> Any:
        if isinstance(value, mx.array) and value.dtype in _HALVES:
            return value.astype(mx.float32)
        return value

    @functools.wraps(function)
    def compute(*values: Any) -> Any:
        half = next(v.dtype for v in values if isinstance(v, mx.array) and v.dtype in _HALVES)

        def narrow(value: Any) -> Any:
            return value.astype(half) if value.dtype == mx.float32 else value

        result = function(*[wide(value) for value in values])
        return tuple(map(narrow, result)) if isinstance(result, tuple) else narrow(result)

    return compute
