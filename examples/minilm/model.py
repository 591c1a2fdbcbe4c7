"""The encoder BERT (Devlin et al., 2018), with the names that public files give its weights."""

from dataclasses import dataclass

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug import nn

EPSILON = 1e-12


@dataclass
class Config:
    """The size of all-MiniLM-L6-v2."""

    vocabulary: int = 30_522
    positions: int = 512
    kinds: int = 2
    layers: int = 6
    heads: int = 12
    width: int = 384
    inner: int = 1536


class Embeddings(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocabulary, config.width, padding_idx=0)
        self.position_embeddings = nn.Embedding(config.positions, config.width)
        self.token_type_embeddings = nn.Embedding(config.kinds, config.width)
        self.LayerNorm = nn.LayerNorm(config.width, eps=EPSILON)
        self.register_buffer("position_ids", tp.arange(config.positions)[None])

    def forward(self, tokens):
        positions = self.position_embeddings(self.position_ids[:, : tokens.shape[1]])
        kind = self.token_type_embeddings.weight[0]  # all of the first sentence
        return self.LayerNorm(self.word_embeddings(tokens) + positions + kind)


class SelfAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.query = nn.Linear(config.width, config.width)
        self.key = nn.Linear(config.width, config.width)
        self.value = nn.Linear(config.width, config.width)

    def forward(self, x, mask):
        batch, length, width = x.shape
        query, key, value = (
            layer(x).view(batch, length, self.heads, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        y = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return y.transpose(1, 2).reshape(batch, length, width)


class Dense(nn.Module):
    """A linear layer, added to what it went around, normalised."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, outputs)
        self.LayerNorm = nn.LayerNorm(outputs, eps=EPSILON)

    def forward(self, x, around):
        return self.LayerNorm(self.dense(x) + around)


class Attention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.self = SelfAttention(config)
        self.output = Dense(config.width, config.width)

    def forward(self, x, mask):
        return self.output(self.self(x, mask), x)


class Intermediate(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.dense = nn.Linear(config.width, config.inner)

    def forward(self, x):
        return F.gelu(self.dense(x))


class Layer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.intermediate = Intermediate(config)
        self.output = Dense(config.inner, config.width)

    def forward(self, x, mask):
        x = self.attention(x, mask)
        return self.output(self.intermediate(x), x)


class Encoder(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.layer = nn.ModuleList([Layer(config) for _ in range(config.layers)])

    def forward(self, x, mask):
        for layer in self.layer:
            x = layer(x, mask)
        return x


class Pooler(nn.Module):
    """Part of the published weights; sentences are pooled by the mean instead."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.dense = nn.Linear(config.width, config.width)


class Bert(nn.Module):
    """Turns sentences into vectors.

    Dropout is left out: the model is here to be used, not trained.
    """

    def __init__(self, config: Config | None = None) -> None:
        super().__init__()
        config = config or Config()
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)
        self.pooler = Pooler(config)

    def forward(self, tokens, mask):
        """Return a vector per token ``(N, L, 384)``.

        Parameters
        ----------
        tokens : Tensor
            int64, ``(N, L)``.
        mask : Tensor
            bool, ``(N, L)``: False where a shorter sentence is filled up.
        """
        return self.encoder(self.embeddings(tokens), mask[:, None, None, :])

    @tp.no_grad()
    def embed(self, tokens, mask):
        """Return a vector of length 1 per sentence ``(N, 384)``: the mean over its tokens."""
        weights = mask[:, :, None].to(self.pooler.dense.weight.dtype)
        total = (self(tokens, mask) * weights).sum(1)
        return F.normalize(total / weights.sum(1), dim=1)
