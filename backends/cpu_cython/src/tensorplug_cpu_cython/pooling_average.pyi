from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
Shape: TypeAlias = tuple[int, ...]

def avg_pool(
    input: Array,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Array: ...
def avg_pool_backward(
    gradient: Array,
    size: Shape,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Array: ...
def adaptive_avg_pool(input: Array, size: Shape) -> Array: ...
def adaptive_avg_pool_backward(gradient: Array, shape: Shape) -> Array: ...
