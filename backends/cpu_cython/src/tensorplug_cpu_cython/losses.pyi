from collections.abc import Callable
from typing import Any

def cross_entropy(
    input: Any,
    target: Any,
    weight: Any,
    ignored: int,
    reduction: str,
    logs: bool,
    fallback: Callable[..., Any],
) -> Any: ...
def cross_entropy_gradient(
    g: Any,
    input: Any,
    target: Any,
    weight: Any,
    ignored: int,
    reduction: str,
    logs: bool,
    fallback: Callable[..., Any],
) -> Any: ...
