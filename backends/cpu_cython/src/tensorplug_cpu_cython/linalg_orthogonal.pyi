from collections.abc import Callable, Mapping
from typing import Any

def kernels(below: Callable[[str], Callable[..., Any]]) -> Mapping[str, Callable[..., Any]]: ...
