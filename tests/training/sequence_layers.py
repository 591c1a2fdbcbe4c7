"""Layers of random networks for sequences: functions of the library, a source of choices and the width.

Each returns a module that keeps the shape: batch, places, width.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from typing import Any

from building_blocks import activation, around, every_second_in_place, residual, transposed

PLACES = 6
SEQUENCE_LAYERS: dict[str, Callable[[Any, Random, int], Any]] = {}


def layer(function: Any) -> Any:
    """Make a layer known by its function's name."""
    SEQUENCE_LAYERS[function.__name__] = function
    return function


@layer
def linear(lib: Any, draw: Random, width: int) -> Any:
    """Return a linear layer."""
    return lib.nn.Linear(width, width, bias=draw.random() < 0.7)


@layer
def layer_norm(lib: Any, draw: Random, width: int) -> Any:
    """Return layer norm or RMS norm."""
    if draw.random() < 0.3:
        return lib.nn.RMSNorm(width, elementwise_affine=draw.random() < 0.7)
    return lib.nn.LayerNorm(width, bias=draw.random() < 0.7)


@layer
def pointwise(lib: Any, draw: Random, width: int) -> Any:
    """Return an activation."""
    return activation(lib, draw)


@layer
def convolution(lib: Any, draw: Random, width: int) -> Any:
    """Return a convolution along the places."""
    mode = draw.choice(["zeros", "circular", "reflect"])
    groups = draw.choice([1, 2, width])
    return around(lib)(
        transposed, lib.nn.Conv1d(width, width, 3, padding=1, groups=groups, padding_mode=mode)
    )


@layer
def batch_norm(lib: Any, draw: Random, width: int) -> Any:
    """Return batch norm of sequences."""
    return around(lib)(transposed, lib.nn.BatchNorm1d(width))


def first(x: Any, module: Any) -> Any:
    """Return the first of a module's results."""
    return module(x)[0]


def packed(x: Any, module: Any) -> Any:
    """Run a recurrent module on sequences of several lengths."""
    rnn = sys.modules[type(module).__module__.partition(".")[0]].nn.utils.rnn
    lengths = [PLACES - (number * 2) % PLACES for number in range(x.shape[0])]
    pack = rnn.pack_padded_sequence(
        x, lengths, batch_first=module.batch_first, enforce_sorted=False
    )
    output, last = module(pack)
    states = last if isinstance(last, tuple) else (last,)
    padded, _ = rnn.pad_packed_sequence(
        output, batch_first=module.batch_first, total_length=PLACES, padding_value=0.5
    )
    return padded + sum(state.mean() for state in states)


@layer
def recurrent(lib: Any, draw: Random, width: int) -> Any:
    """Return one of the recurrent modules."""
    name, both = draw.choice(["RNN", "LSTM", "GRU"]), draw.random() < 0.4
    hidden = width // 2 if both else width
    options: dict[str, Any] = {
        "num_layers": draw.choice([1, 2]),
        "batch_first": draw.random() < 0.7,
        "bidirectional": both,
        "bias": draw.random() < 0.7,
    }
    if name == "RNN":
        options["nonlinearity"] = draw.choice(["tanh", "relu"])
    if name == "LSTM" and draw.random() < 0.3:
        options["proj_size"], hidden = hidden, hidden + 3
    module = getattr(lib.nn, name)(width, hidden, **options)
    return around(lib)(packed if options["batch_first"] and draw.random() < 0.5 else first, module)


def cells(x: Any, cell: Any) -> Any:
    """Run a cell along the places."""
    lib = sys.modules[type(cell).__module__.partition(".")[0]]
    states, found = None, []
    for place in x.unbind(1):
        states = cell(place, states)
        found.append(states[0] if isinstance(states, tuple) else states)
    return lib.stack(found, 1)


@layer
def recurrent_cell(lib: Any, draw: Random, width: int) -> Any:
    """Return a cell in a loop."""
    cell = draw.choice([lib.nn.RNNCell, lib.nn.LSTMCell, lib.nn.GRUCell])
    return around(lib)(cells, cell(width, width, bias=draw.random() < 0.7))


def attended(x: Any, module: Any, mask: Any) -> Any:
    """Return self-attention alone, without weights."""
    return module(x, x, x, attn_mask=mask, need_weights=False)[0]


def attended_with_weights(x: Any, module: Any, mask: Any) -> Any:
    """Return self-attention and a use of its weights."""
    found, weights = module(x, x, x, attn_mask=mask, average_attn_weights=False)
    return found + (weights * weights).mean()


@layer
def attention(lib: Any, draw: Random, width: int) -> Any:
    """Return attention with a mask of either kind."""
    mask = lib.ones(PLACES, PLACES, dtype=lib.bool).triu(1)
    if draw.random() < 0.5:
        mask = lib.zeros(PLACES, PLACES).masked_fill(mask, -1.5)
    module = lib.nn.MultiheadAttention(
        width,
        2,
        batch_first=True,
        bias=draw.random() < 0.7,
        add_bias_kv=False,
        add_zero_attn=draw.random() < 0.2,
    )
    how = draw.choice([attended, attended_with_weights])
    return around(lib)(how, module, mask=mask)


def encoded(x: Any, module: Any, mask: Any) -> Any:
    """Run an encoder with masks of places and of padding."""
    padding = mask[0].expand(x.shape[0], PLACES)
    return module(x, src_mask=mask, src_key_padding_mask=padding)


@layer
def encoder(lib: Any, draw: Random, width: int) -> Any:
    """Return a transformer's encoder layer, with or without masks."""
    module = lib.nn.TransformerEncoderLayer(
        width, 2, 2 * width, dropout=0.0, activation=draw.choice(["relu", "gelu"]), batch_first=True,
        norm_first=draw.random() < 0.5, bias=draw.random() < 0.8,
    )  # fmt: skip
    if draw.random() < 0.4:
        mask = lib.zeros(PLACES, PLACES, dtype=lib.bool)
        mask[:, -1] = True
        return around(lib)(encoded, module, mask=mask)
    return module


def decoded(x: Any, module: Any) -> Any:
    """Run a decoder on half of the places."""
    return module(x, x[:, ::2])


@layer
def decoder(lib: Any, draw: Random, width: int) -> Any:
    """Return a transformer's decoder layer."""
    module = lib.nn.TransformerDecoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True)
    return around(lib)(decoded, module)


def embedded(x: Any, module: Any, places: Any) -> Any:
    """Add embeddings of fixed indices."""
    return x + module(places)


@layer
def embedding(lib: Any, draw: Random, width: int) -> Any:
    """Return an embedding, one row of which may stand for padding."""
    module = lib.nn.Embedding(
        7, width, padding_idx=draw.choice([None, 2]), scale_grad_by_freq=draw.random() < 0.5
    )
    return around(lib)(embedded, module, places=lib.tensor([0, 2, 5, 5, 6, 2]))


def bagged(x: Any, module: Any, places: Any) -> Any:
    """Add one bag of embeddings."""
    return x + module(places)[:1]


@layer
def embedding_bag(lib: Any, draw: Random, width: int) -> Any:
    """Return bags of embeddings."""
    module = lib.nn.EmbeddingBag(9, width, mode=draw.choice(["sum", "mean", "max"]))
    return around(lib)(bagged, module, places=lib.arange(12).reshape(3, 4) % 9)


def fed_forward(x: Any, first: Any, between: Any, second: Any) -> Any:
    """Run three modules."""
    return second(between(first(x)))


@layer
def tied(lib: Any, draw: Random, width: int) -> Any:
    """Return two linear layers of one weight."""
    first, second = lib.nn.Linear(width, width), lib.nn.Linear(width, width)
    second.weight = first.weight
    return around(lib)(fed_forward, first, activation(lib, draw), second)


def with_reversed(x: Any, module: Any) -> Any:
    """Call a module on the places and on these turned round."""
    return module(x, x.flip(1))


@layer
def bilinear(lib: Any, draw: Random, width: int) -> Any:
    """Return a bilinear form."""
    return around(lib)(with_reversed, lib.nn.Bilinear(width, width, width))


@layer
def perceptron(lib: Any, draw: Random, width: int) -> Any:
    """Return two linear layers, joined to their input or changed in place."""
    nn = lib.nn
    inner = nn.Sequential(
        nn.Linear(width, 2 * width), activation(lib, draw), nn.Linear(2 * width, width)
    )
    return around(lib)(draw.choice([residual, every_second_in_place]), inner)


@layer
def dropout(lib: Any, draw: Random, width: int) -> Any:
    """Return dropout."""
    return draw.choice([lib.nn.Dropout, lib.nn.Dropout1d])(0.3)
