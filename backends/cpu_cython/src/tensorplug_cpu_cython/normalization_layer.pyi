from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

def row_norm(input: Array, length: int, eps: float, centred: bool) -> Array: ...
def row_norm_backward(g: Array, input: Array, length: int, eps: float, centred: bool) -> Array: ...
def affine_row_norm(
    inputs: Sequence[Array], length: int, repeat: int, eps: float, centred: bool
) -> Array: ...
def affine_row_norm_backward(
    g: Array, input: Array, weight: Array, length: int, repeat: int, eps: float, centred: bool
) -> tuple[Array, Array, Array]: ...
def channel_norm(inputs: Sequence[Array], eps: float) -> Array: ...
def channel_norm_backward(
    g: Array, input: Array, mean: Array, variance: Array, weight: Array, eps: float
) -> tuple[Array, Array, Array]: ...
def unit_vectors(input: Array, dim: int, eps: float) -> Array: ...
def unit_vectors_gradient(g: Array, input: Array, dim: int, eps: float) -> Array: ...
def update_statistics(
    running_mean: Array,
    running_var: Array,
    mean: Array,
    rstd: Array,
    momentum: float,
    eps: float,
    unbiased: float,
) -> None: ...
