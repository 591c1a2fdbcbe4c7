"""A decoder-only transformer with the layout, and the names of the weights, of GPT-2."""

import math
from dataclasses import dataclass

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug import nn


@dataclass
class Config:
    """The size of a network; the defaults are those of the smallest GPT-2."""

    vocabulary: int = 50_257
    context: int = 1024
    layers: int = 12
    heads: int = 12
    width: int = 768
    dropout: float = 0.1


class Conv1D(nn.Module):
    """A linear layer whose weight is ``(in, out)``, as GPT-2's files have it."""

    def __init__(self, inputs: int, outputs: int, deviation: float = 0.02) -> None:
        super().__init__()
        self.weight = nn.Parameter(tp.empty(inputs, outputs))
        self.bias = nn.Parameter(tp.zeros(outputs))
        nn.init.normal_(self.weight, std=deviation)

    def forward(self, x):
        return F.linear(x, self.weight.t(), self.bias)


class Attention(nn.Module):
    """Each position looks at itself and at those before it."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads, self.dropout = config.heads, config.dropout
        self.c_attn = Conv1D(config.width, 3 * config.width)
        self.c_proj = Conv1D(config.width, config.width, 0.02 / math.sqrt(2 * config.layers))

    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
        y = self.c_proj(y.transpose(1, 2).reshape(batch, length, width))
        return F.dropout(y, self.dropout, self.training)


class MLP(nn.Module):
    """Two linear layers, the hidden one four times as wide."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.c_fc = Conv1D(config.width, 4 * config.width)
        self.c_proj = Conv1D(4 * config.width, config.width, 0.02 / math.sqrt(2 * config.layers))

    def forward(self, x):
        x = self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))
        return F.dropout(x, self.dropout, self.training)


class Block(nn.Module):
    """Attention and MLP, each normalised before and added to what came in."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.width)
        self.attn = Attention(config)
        self.ln_2 = nn.LayerNorm(config.width)
        self.mlp = MLP(config)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """Predicts the next token at each position (Radford et al., 2019)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        if config.width % config.heads:
            raise ValueError(f"width {config.width} is no multiple of {config.heads} heads")
        self.config = config
        self.wte = nn.Embedding(config.vocabulary, config.width)
        self.wpe = nn.Embedding(config.context, config.width)
        self.h = nn.ModuleList([Block(config) for _ in range(config.layers)])
        self.ln_f = nn.LayerNorm(config.width)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.01)

    def forward(self, tokens):
        """Return scores ``(N, L, vocabulary)`` for tokens ``(N, L)``."""
        length = tokens.shape[1]
        if length > self.config.context:
            raise ValueError(f"{length} tokens, but the context holds {self.config.context}")
        x = self.wte(tokens) + self.wpe(tp.arange(length, device=tokens.device))
        x = F.dropout(x, self.config.dropout, self.training)
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)  # the embedding serves as last layer too

    def loss(self, tokens, targets):
        """Return the mean cross-entropy of the next tokens, in nats."""
        return F.cross_entropy(self(tokens).flatten(0, 1), targets.flatten())

    def load_gpt2(self, weights):
        """Take the weights of a public GPT-2.

        Their files may carry the prefix "transformer.", the mask of each layer, and the last
        layer's weight, which is the embedding's.
        """
        weights = {key.removeprefix("transformer."): value for key, value in weights.items()}
        masks = (".attn.bias", ".attn.masked_bias")
        kept = {
            key: value
            for key, value in weights.items()
            if key != "lm_head.weight" and not key.endswith(masks)
        }
        self.load_state_dict(kept)

    @tp.no_grad()
    def sample(self, tokens, count, temperature=1.0, top_k=None, generator=None):
        """Continue a text.

        Parameters
        ----------
        tokens : Tensor
            int64, ``(N, L)``, what is there already, L at least 1.
        count : int
            How many to append.
        temperature : float
            0 takes the likeliest token each time; above 1 the choice gets wilder.
        top_k : int, optional
            How many of the likeliest tokens are in the choice; all by default.
        generator : Generator, optional
            Draws.

        Returns
        -------
        Tensor
            ``(N, L + count)``.
        """
        self.eval()
        for _ in range(count):
            scores = self(tokens[:, -self.config.context :])[:, -1]
            if top_k is not None:
                least = scores.topk(min(top_k, scores.shape[1])).values[:, -1:]
                scores = scores.masked_fill(scores < least, float("-inf"))
            if temperature == 0:
                chosen = scores.argmax(dim=1, keepdim=True)
            else:
                chances = F.softmax(scores / temperature, dim=1)
                chosen = tp.multinomial(chances, 1, generator=generator)
            tokens = tp.cat([tokens, chosen], dim=1)
        return tokens
