"""The ops of neural networks. They are registered as any extension plugin registers its own."""

from __future__ import annotations

from . import (
    activation,
    attention,
    convolution,
    dropout,
    embedding,
    linear,
    losses,
    normalization,
    pooling,
    rnn,
    softmax,
)

FAMILIES = (
    convolution,
    pooling,
    linear,
    normalization,
    embedding,
    activation,
    dropout,
    losses,
    attention,
    rnn,
    softmax,
)
