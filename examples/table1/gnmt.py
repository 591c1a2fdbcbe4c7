"""GNMT v2, a translator of sentences by LSTMs with attention.

"Google's neural machine translation system", Yonghui Wu and others, 2016, https://arxiv.org/abs/1609.08144,
in the form that the paper on PyTorch and MLPerf measured: four layers in encoder and decoder, the encoder's
first one reads both ways, residuals from the third layer on, and what the attention finds after the
decoder's first layer goes into all layers above it. The attention is that of "Neural machine translation by
jointly learning to align and translate", Dzmitry Bahdanau, Kyunghyun Cho and Yoshua Bengio, 2014,
https://arxiv.org/abs/1409.0473, with normalised weights as in https://arxiv.org/abs/1602.07868.
"""

import math

import tensorplug as tp
from tensorplug import nn

PADDING, BEGIN, END = 0, 1, 2  # the first three tokens of the vocabulary


def lstm(before: int, hidden: int, bidirectional: bool = False) -> nn.LSTM:
    """Return one layer of LSTM whose weights lie between -0.1 and 0.1."""
    layer = nn.LSTM(before, hidden, batch_first=True, bidirectional=bidirectional)
    for weight in layer.parameters():
        nn.init.uniform_(weight, -0.1, 0.1)
    return layer


class Attention(nn.Module):
    """Bahdanau's attention: the score of a query q and a key k is v · tanh(Wq + Uk + b).

    Parameters
    ----------
    size : int
        Of queries, keys and v. The length of v is a weight of its own, which begins at 1 / sqrt(size).
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear_q = nn.Linear(size, size, bias=False)
        self.linear_k = nn.Linear(size, size, bias=False)
        self.linear_att = nn.Parameter(tp.empty(size).uniform_(-0.1, 0.1))
        self.normalize_scalar = nn.Parameter(tp.full((1,), 1 / math.sqrt(size)))
        self.normalize_bias = nn.Parameter(tp.zeros(size))

    def forward(self, queries: tp.Tensor, keys: tp.Tensor, padding: tp.Tensor) -> tp.Tensor:
        """Return, for each query, the mean of the keys weighted by their scores.

        Parameters
        ----------
        queries, keys : Tensor
            ``(N, T, size)`` and ``(N, S, size)``.
        padding : Tensor
            ``(N, S)`` of bool: the keys that do not count.

        Returns
        -------
        Tensor
            ``(N, T, size)``.
        """
        pairs = self.linear_q(queries).unsqueeze(2) + self.linear_k(keys).unsqueeze(1)
        v = self.linear_att / self.linear_att.norm() * self.normalize_scalar
        scores = (pairs + self.normalize_bias).tanh() @ v
        scores = scores.masked_fill(padding.unsqueeze(1), -math.inf)
        return scores.softmax(-1) @ keys


class Encoder(nn.Module):
    """Embedding and a stack of LSTMs, the first of them bidirectional."""

    def __init__(self, embedder: nn.Embedding, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.embedder = embedder
        self.rnn_layers = nn.ModuleList([lstm(hidden, hidden, bidirectional=True)])
        for layer in range(1, layers):
            self.rnn_layers.append(lstm(2 * hidden if layer == 1 else hidden, hidden))
        self.dropout = nn.Dropout(dropout)

    def forward(self, source: tp.Tensor) -> tp.Tensor:
        """Return what the decoder attends to, ``(N, S, hidden)``, for tokens ``(N, S)``."""
        x = self.embedder(source)
        for number, layer in enumerate(self.rnn_layers):
            output, _ = layer(self.dropout(x))
            x = output + x if number >= 2 else output
        return x


class Decoder(nn.Module):
    """Embedding, attention after the first LSTM, three more LSTMs, and a score for each token."""

    def __init__(self, embedder: nn.Embedding, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.embedder = embedder
        self.attention = Attention(hidden)
        self.rnn_layers = nn.ModuleList([lstm(hidden, hidden)])
        for _ in range(1, layers):
            self.rnn_layers.append(lstm(2 * hidden, hidden))
        self.classifier = nn.Linear(hidden, embedder.num_embeddings)
        self.dropout = nn.Dropout(dropout)

    def forward(self, target: tp.Tensor, keys: tp.Tensor, padding: tp.Tensor) -> tp.Tensor:
        """Return the scores of the next tokens, ``(N, T, vocabulary)``, for tokens ``(N, T)``."""
        x, _ = self.rnn_layers[0](self.dropout(self.embedder(target)))
        found = self.attention(x, keys, padding)
        for number, layer in enumerate(self.rnn_layers[1:], start=1):
            output, _ = layer(self.dropout(tp.cat((x, found), dim=2)))
            x = output + x if number >= 2 else output
        return self.classifier(x)


class GNMT(nn.Module):
    """Encoder and decoder with one embedding: 159,593,523 weights at its full size.

    Parameters
    ----------
    vocabulary : int
        The number of tokens in both languages together.
    hidden : int
        The size of embeddings and LSTMs.
    layers : int
        In the encoder and in the decoder.
    dropout : float
        The share of features that training drops before each LSTM.
    """

    def __init__(
        self, vocabulary: int = 31794, hidden: int = 1024, layers: int = 4, dropout: float = 0.2
    ) -> None:
        super().__init__()
        embedder = nn.Embedding(vocabulary, hidden, padding_idx=PADDING)
        nn.init.uniform_(embedder.weight, -0.1, 0.1)
        self.encoder = Encoder(embedder, hidden, layers, dropout)
        self.decoder = Decoder(embedder, hidden, layers, dropout)

    def forward(self, source: tp.Tensor, target: tp.Tensor) -> tp.Tensor:
        """Return the scores of the next tokens.

        Parameters
        ----------
        source, target : Tensor
            Tokens ``(N, S)`` and ``(N, T)``, padded with 0.

        Returns
        -------
        Tensor
            ``(N, T, vocabulary)``: after each token of the target, the scores of the one that follows.
        """
        return self.decoder(target, self.encoder(source), source == PADDING)
