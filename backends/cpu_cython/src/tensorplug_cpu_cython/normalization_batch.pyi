from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

def batch_normalize(
    inputs: Sequence[Array], eps: float, low: float = ..., high: float = ...
) -> tuple[Array, Array, Array]: ...
def batch_normalize_backward(
    g_output: Array,
    g_mean: Array,
    g_rstd: Array,
    input: Array,
    weight: Array,
    mean: Array,
    rstd: Array,
) -> tuple[Array, Array, Array]: ...
def half_by_statistics(
    image: Array,
    running_mean: Array,
    running_var: Array,
    weight: Array | None,
    bias: Array | None,
    eps: float,
) -> Array: ...
