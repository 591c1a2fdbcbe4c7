from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
Given: TypeAlias = tuple[Array, ...] | None

def lstm_cell(inputs: Sequence[Array], given: Given = None) -> tuple[Array, Array]: ...
def lstm_cell_gradient(
    g_hidden: Array, g_state: Array, inputs: Sequence[Array], state: Array, given: Given = None
) -> tuple[Array, Array]: ...
def lstm_step_gradient(
    g_hidden: Array,
    g_state: Array,
    inputs: Sequence[Array],
    state: Array,
    next_hidden: Array,
    next_state: Array,
    given: Given,
) -> None: ...
def gru_cell(inputs: Sequence[Array], given: Given = None) -> Array: ...
def gru_cell_gradient(
    g: Array, inputs: Sequence[Array], given: Given = None
) -> tuple[Array, Array, Array]: ...
def gru_step_gradient(
    g: Array, inputs: Sequence[Array], next: Array, direct: Array, given: Given
) -> None: ...
