"""Three more networks to time: a vision transformer, a language model, a perceptron.

They import tensorplug, and run under torch through `benchmarks.libraries.load`.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug import nn

NAMES = ("vit", "gpt", "mlp")
Batch = tuple[tp.Tensor, ...]


class Task(NamedTuple):
    """A network ready to be trained, as in `examples/table1/tasks.py`."""

    model: nn.Module
    optimizer: Any
    batches: Iterator[Batch]
    loss: Callable[[nn.Module, Batch], tp.Tensor]
    unit: str


class Block(nn.Module):
    """Attention and a perceptron, both after a layer normalisation and added to their input.

    Parameters
    ----------
    size : int
        Of a token.
    heads : int
        Of the attention.
    causal : bool
        Whether a token sees only those before it.
    """

    def __init__(self, size: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(size)
        self.qkv = nn.Linear(size, 3 * size)
        self.proj = nn.Linear(size, size)
        self.norm2 = nn.LayerNorm(size)
        self.fc1 = nn.Linear(size, 4 * size)
        self.fc2 = nn.Linear(4 * size, size)
        self.heads = heads
        self.causal = causal

    def forward(self, x: tp.Tensor) -> tp.Tensor:
        """Return tokens ``(N, T, size)`` for tokens of that shape."""
        n, t, size = x.shape
        split = self.qkv(self.norm1(x)).reshape(n, t, 3, self.heads, size // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        found = F.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        x = x + self.proj(found.transpose(1, 2).reshape(n, t, size))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class ViT(nn.Module):
    """A vision transformer: https://arxiv.org/abs/2010.11929, ViT-S/16 at its full size.

    The names of the weights are those of the package timm.
    """

    def __init__(self, side: int, patch: int, size: int, depth: int, heads: int) -> None:
        super().__init__()
        self.cls_token = nn.Parameter(tp.zeros(1, 1, size))
        self.pos_embed = nn.Parameter(tp.randn(1, (side // patch) ** 2 + 1, size) * 0.02)
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(3, size, patch, stride=patch)
        self.blocks = nn.Sequential(*[Block(size, heads, causal=False) for _ in range(depth)])
        self.norm = nn.LayerNorm(size)
        self.head = nn.Linear(size, 1000)

    def forward(self, images: tp.Tensor) -> tp.Tensor:
        """Return the scores ``(N, 1000)`` of images ``(N, 3, side, side)``."""
        patches = self.patch_embed.proj(images).flatten(2).transpose(1, 2)
        first = self.cls_token.expand(len(images), -1, -1)
        x = tp.cat((first, patches), dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


class GPT(nn.Module):
    """A stack of causal blocks between an embedding and a score for each next token.

    "Language models are unsupervised multitask learners", Radford and others, 2019.
    """

    def __init__(self, vocabulary: int, length: int, size: int, depth: int, heads: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, size)
        self.places = nn.Embedding(length, size)
        self.blocks = nn.Sequential(*[Block(size, heads, causal=True) for _ in range(depth)])
        self.norm = nn.LayerNorm(size)
        self.head = nn.Linear(size, vocabulary, bias=False)

    def forward(self, tokens: tp.Tensor) -> tp.Tensor:
        """Return the scores ``(N, T, vocabulary)`` of what follows each of the tokens ``(N, T)``."""
        places = tp.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.places(places))))


def make(name: str, *, full: bool = False, batch: int | None = None, seed: int = 0) -> Task:
    """Set one of the three up, on random data.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    full : bool
        ViT-S/16 on 224 × 224 pixels, 6 blocks of 384 over 256 tokens, or 4 layers of 2048; else small.
    batch : int, optional
        Images, sequences or rows in a batch.
    seed : int
        Fixes weights and data.

    Returns
    -------
    Task
    """
    tp.manual_seed(seed)
    generator = np.random.default_rng(seed)
    if name == "vit":
        side, patch, size, depth, heads = (224, 16, 384, 12, 6) if full else (32, 8, 64, 2, 4)
        model: nn.Module = ViT(side, patch, size, depth, heads)
        batches = _labelled(generator, (batch or 8, 3, side, side), 1000)
        loss = _label_loss
    elif name == "gpt":
        vocabulary, length, size, depth, heads = (
            (8192, 256, 384, 6, 6) if full else (128, 32, 64, 2, 4)
        )
        model = GPT(vocabulary, length, size, depth, heads)
        batches = _text(generator, (batch or 8, length + 1), vocabulary)
        loss = _next_token_loss
    elif name == "mlp":
        widths = (784, 2048, 2048, 2048, 10) if full else (64, 128, 128, 10)
        layers: list[nn.Module] = []
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), nn.ReLU()]
        model = nn.Sequential(*layers[:-1])
        batches = _labelled(generator, (batch or 128, widths[0]), 10)
        loss = _label_loss
    else:
        raise ValueError(f"no network is called {name!r}; there are {', '.join(NAMES)}")
    optimizer = tp.optim.AdamW(model.parameters(), lr=1e-3)
    return Task(
        model, optimizer, batches, loss, {"vit": "image", "gpt": "sequence"}.get(name, "row")
    )


def _labelled(generator: Any, shape: tuple[int, ...], classes: int) -> Iterator[Batch]:
    while True:
        values = generator.standard_normal(shape, dtype=np.float32)
        labels = generator.integers(classes, size=shape[0])
        yield tp.from_numpy(values), tp.from_numpy(labels)


def _text(generator: Any, shape: tuple[int, int], vocabulary: int) -> Iterator[Batch]:
    while True:
        yield (tp.from_numpy(generator.integers(vocabulary, size=shape)),)


def _label_loss(model: nn.Module, batch: Batch) -> tp.Tensor:
    values, labels = batch
    return F.cross_entropy(model(values), labels)


def _next_token_loss(model: nn.Module, batch: Batch) -> tp.Tensor:
    (tokens,) = batch
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
