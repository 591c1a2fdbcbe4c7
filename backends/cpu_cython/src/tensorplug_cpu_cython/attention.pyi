from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

def attention(
    inputs: Sequence[Array], mask: Array | None, is_causal: bool, scale: float
) -> tuple[Array, Array]: ...
def attention_backward(
    g_output: Array,
    g_logsumexp: Array,
    inputs: Sequence[Array],
    mask: Array | None,
    output: Array,
    logsumexp: Array,
    is_causal: bool,
    scale: float,
) -> tuple[Array, Array, Array]: ...
