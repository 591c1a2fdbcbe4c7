"""What cells do with the gates between the matrix products.

The gates of a cell come in two parts, the input's and the state's, and nothing of them is kept but these:
the derivatives compute the activations once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import cat

if TYPE_CHECKING:
    from tensorplug.core import Tensor


def check_states(name: str, input: Any, *states: Any) -> None:
    """Raise unless input and states of a cell are matrices, with a row for each sample."""
    for value in (input, *states):
        if len(value._shape) != 2:
            error = IndexError if len(value._shape) < 2 else RuntimeError  # torch's
            raise error(
                f"{name}: Dimension out of range: expected input and states of 2 dimensions, got "
                f"{[list(each._shape) for each in (input, *states)]}"
            )
    for number, state in enumerate(states):
        if state._shape[0] != input._shape[0]:
            raise RuntimeError(
                f"Input batch size {input._shape[0]} doesn't match hidden{number} batch size "
                f"{state._shape[0]}"
            )


def _check_gates(count: int, inputs: Any) -> None:
    """Raise unless there are so many gates for each element of the state."""
    gates, _, state = inputs
    if gates._shape[1] != count * state._shape[1]:
        raise RuntimeError(
            f"expected {count} gates per element of the state {list(state._shape)}, got {list(gates._shape)}"
        )


def _check_lstm(inputs: Any) -> None:
    _check_gates(4, inputs)


def _check_lstm_backward(g_hidden: Any, g_state: Any, inputs: Any, state: Any) -> None:
    _check_gates(4, inputs)


def _check_gru(inputs: Any) -> None:
    _check_gates(3, inputs)


def _check_gru_backward(g: Any, inputs: Any) -> None:
    _check_gates(3, inputs)


@composite(
    shapes="inputs.0(N, G), inputs.1(N, G), inputs.2(N, H)",
    rule=_check_lstm,
    method=False,
    outputs="hidden, state",
)
def lstm_cell(inputs: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the next hidden and cell states of an LSTM.

    Parameters
    ----------
    inputs : sequence of three Tensor
        The input's part of the gates (N, 4 H), in the order input, forget, cell, output; the state's part
        (N, 4 H); the cell state (N, H).

    Returns
    -------
    hidden, state : Tensor
        (N, H).
    """
    gates, own, cell = [t.contiguous() for t in inputs]  # results lie row by row
    i, f, g, o = (gates + own).chunk(4, 1)
    state = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * state.tanh(), state


@composite(
    shapes="g_hidden(N, H), g_state(N, H), inputs.0(N, G), inputs.1(N, G), inputs.2(N, H), state(N, H)",
    rule=_check_lstm_backward,
    method=False,
    outputs="g_gates, g_cell",
)
def lstm_cell_backward(
    g_hidden: Tensor, g_state: Tensor, inputs: Sequence[Tensor], state: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of both parts of the gates, which are the same, and of the cell state."""
    gates, own, cell = [t.contiguous() for t in inputs]  # results lie row by row
    i, f, g, o = (gates + own).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    shown = state.tanh()
    total = g_state + g_hidden * o * (1 - shown * shown)
    g_gates = cat(
        [
            total * g * i * (1 - i),
            total * cell * f * (1 - f),
            total * i * (1 - g * g),
            g_hidden * shown * o * (1 - o),
        ],
        1,
    )
    return g_gates, total * f


@composite(shapes="inputs.0(N, G), inputs.1(N, G), inputs.2(N, H)", rule=_check_gru, method=False)
def gru_cell(inputs: Sequence[Tensor]) -> Tensor:
    """Return the next state of a GRU.

    Parameters
    ----------
    inputs : sequence of three Tensor
        The input's part of the gates (N, 3 H), in the order reset, update, new; the state's part (N, 3 H);
        the state (N, H).

    Returns
    -------
    Tensor
        (N, H).
    """
    gates, own, hidden = [t.contiguous() for t in inputs]
    r_in, z_in, n_in = gates.chunk(3, 1)
    r_own, z_own, n_own = own.chunk(3, 1)
    n = (n_in + (r_in + r_own).sigmoid() * n_own).tanh()
    return n + (z_in + z_own).sigmoid() * (hidden - n)


@composite(
    shapes="g(N, H), inputs.0(N, G), inputs.1(N, G), inputs.2(N, H)",
    rule=_check_gru_backward,
    method=False,
    outputs="g_gates, g_own, g_hidden",
)
def gru_cell_backward(g: Tensor, inputs: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of the two parts of the gates, and of the state."""
    gates, own, hidden = [t.contiguous() for t in inputs]
    r_in, z_in, n_in = gates.chunk(3, 1)
    r_own, z_own, n_own = own.chunk(3, 1)
    r, z = (r_in + r_own).sigmoid(), (z_in + z_own).sigmoid()
    n = (n_in + r * n_own).tanh()
    g_new = g * (1 - z) * (1 - n * n)
    g_reset = g_new * n_own * r * (1 - r)
    g_update = g * (hidden - n) * z * (1 - z)
    return cat([g_reset, g_update, g_new], 1), cat([g_reset, g_update, g_new * r], 1), g * z


def conjugates(tensors: Sequence[Any]) -> list[Any]:
    """Return conjugates: what a gradient is multiplied by is the derivative at them."""
    return [tensor._conj() for tensor in tensors]


def _lstm_cell(g_hidden: Any, g_state: Any, inputs: Any, state: Any) -> list[Any]:
    g_gates, g_cell = lstm_cell_backward(g_hidden, g_state, conjugates(inputs), state._conj())
    return [g_gates, g_gates, g_cell]


def _gru_cell(g: Any, inputs: Any) -> list[Any]:
    return list(gru_cell_backward(g, conjugates(inputs)))


DERIVATIVES = [
    derivative("lstm_cell", inputs=_lstm_cell),
    derivative("gru_cell", inputs=_gru_cell),
]
