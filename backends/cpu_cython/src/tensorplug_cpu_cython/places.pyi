from collections.abc import Callable
from typing import Any

ADD: int
MULTIPLY: int
MAXIMUM: int
MINIMUM: int

def zeros(shape: tuple[int, ...], descriptor: Any) -> Any: ...
def gather(input: Any, dim: int, index: Any, fallback: Callable[..., Any]) -> Any: ...
def scatter(
    input: Any, dim: int, index: Any, src: Any, fallback: Callable[..., Any], out: Any = None
) -> Any: ...
def combine(
    input: Any,
    dim: int,
    index: Any,
    src: Any,
    way: int,
    fallback: Callable[..., Any],
    out: Any = None,
) -> Any: ...
def gathered_sum(
    g: Any, shape: tuple[int, ...], dim: int, index: Any, fallback: Callable[..., Any]
) -> Any: ...
def index(input: Any, indices: list[Any], fallback: Callable[..., Any]) -> Any: ...
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
def place(input: Any, shape: tuple[int, ...], key: tuple[Any, ...]) -> Any: ...
