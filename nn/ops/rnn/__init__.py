"""Recurrent networks."""

from __future__ import annotations

from . import cells, layers
from .cells import check_states
from .networks import (
    gru,
    gru_step,
    lstm,
    lstm_step,
    relu_step,
    rnn_relu,
    rnn_tanh,
    run_layers,
    tanh_step,
)

__all__ = [
    "DERIVATIVES",
    "check_states",
    "gru",
    "gru_step",
    "lstm",
    "lstm_step",
    "relu_step",
    "rnn_relu",
    "rnn_tanh",
    "run_layers",
    "tanh_step",
]

DERIVATIVES = [*cells.DERIVATIVES, *layers.DERIVATIVES]
