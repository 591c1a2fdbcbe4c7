from collections.abc import Callable
from typing import Any

def index_kernel(fallback: Callable[..., Any]) -> Callable[..., Any]: ...
def index_put(
    input: Any,
    indices: list[Any],
    values: Any,
    accumulate: bool,
    fallback: Callable[..., Any],
    out: Any = None,
) -> Any: ...
def indexed_sum(
    g: Any, shape: tuple[int, ...], indices: list[Any], fallback: Callable[..., Any]
) -> Any: ...
def rows_of(weight: Any, indices: Any, fallback: Callable[..., Any]) -> Any: ...
def rows_sum(
    g: Any, indices: Any, rows: int, padding: int, fallback: Callable[..., Any]
) -> Any: ...
def index_select_kernel(fallback: Callable[..., Any]) -> Callable[..., Any]: ...
def put_slices(
    input: Any,
    dim: int,
    index: Any,
    source: Any,
    accumulate: bool,
    fallback: Callable[..., Any],
) -> Any: ...
def write_slices(
    input: Any,
    dim: int,
    index: Any,
    source: Any,
    accumulate: bool,
    fallback: Callable[..., Any],
) -> None: ...
def chosen(input: Any, mask: Any) -> Any: ...
def put_masked_kernel(fallback: Callable[..., Any]) -> Callable[..., Any]: ...
