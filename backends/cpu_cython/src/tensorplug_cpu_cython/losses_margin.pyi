from typing import Any

def margin_losses(
    input: Any, target: Any, weight: Any, squared: bool, margin: float, several: bool
) -> Any: ...
def margin_gradient(
    g: Any,
    input: Any,
    target: Any,
    weight: Any,
    squared: bool,
    margin: float,
    several: bool,
    scale: float,
) -> Any: ...
