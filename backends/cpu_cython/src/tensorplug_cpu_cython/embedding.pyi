from typing import Any

def embedding_bag(
    weight: Any,
    input: Any,
    offsets: Any,
    by_frequency: bool,
    mode: str,
    factors: Any,
    include_last_offset: bool,
    padding: int | None,
) -> Any: ...
def embedding_bag_backward(
    g: Any,
    weight: Any,
    input: Any,
    offsets: Any,
    by_frequency: bool,
    mode: str,
    factors: Any,
    include_last_offset: bool,
    padding: int | None,
) -> tuple[Any, Any]: ...
def embedding_renorm(weight: Any, indices: Any, max_norm: float, norm_type: float) -> None: ...
