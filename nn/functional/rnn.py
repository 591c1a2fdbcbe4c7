"""One step of recurrent cells, given the input's part of the gates."""

from __future__ import annotations

from typing import Any

from ..ops.linear import linear
from ..ops.rnn import gru_cell, lstm_cell

States = tuple[Any, ...]


def rnn_step(gates: Any, weight: Any, state: States, bias: Any, relu: bool) -> States:
    """Return the next state of a simple cell.

    Parameters
    ----------
    gates : Tensor
        (N, H): the input's part, bias included.
    weight, bias : Tensor
        The state's.
    state : tuple of Tensor
        (N, H).
    relu : bool
        Whether the nonlinearity is relu rather than tanh.
    """
    total = gates + linear(state[0], weight, bias)
    return (total.relu() if relu else total.tanh(),)


def lstm_step(gates: Any, weight: Any, state: States, bias: Any) -> States:
    """Return the next hidden and cell states; the gates come as input, forget, cell, output."""
    hidden, cell = state
    return lstm_cell([gates, linear(hidden, weight, bias), cell])


def gru_step(gates: Any, weight: Any, state: States, bias: Any) -> States:
    """Return the next state; the gates come as reset, update, new."""
    (hidden,) = state
    return (gru_cell([gates, linear(hidden, weight, bias), hidden]),)
