"""One step of recurrent cells, given the input's part of the gates."""

from __future__ import annotations

from typing import Any

from ..ops.linear import linear

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
    total = gates + linear(hidden, weight, bias)
    i, f, g, o = total.chunk(4, 1)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def gru_step(gates: Any, weight: Any, state: States, bias: Any) -> States:
    """Return the next state; the gates come as reset, update, new."""
    (hidden,) = state
    ours = linear(hidden, weight, bias)
    r_in, z_in, n_in = gates.chunk(3, 1)
    r_own, z_own, n_own = ours.chunk(3, 1)
    r = (r_in + r_own).sigmoid()
    z = (z_in + z_own).sigmoid()
    n = (n_in + r * n_own).tanh()
    return (n + z * (hidden - n),)
