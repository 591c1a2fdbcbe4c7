from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
Shape: TypeAlias = tuple[int, ...]

def max_pool(
    input: Array,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    ceil_mode: bool,
) -> tuple[Array, Array]: ...
def max_pool_values(
    input: Array,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    ceil_mode: bool,
) -> Array: ...
def max_pool_backward(gradient: Array, indices: Array, shape: Shape) -> Array: ...
