"""A user's training script, which type checkers find nothing wrong with in their strict modes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, assert_type

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug import Tensor, nn
from tensorplug.autograd import Function
from tensorplug.utils.data import DataLoader, Dataset, TensorDataset, random_split


@dataclass
class Options:
    """What a run can be told."""

    epochs: int = 2
    batch_size: int = 8
    lr: float = 1e-2
    device: str = "cpu"
    seed: int = 0


class Points(Dataset[tuple[Tensor, Tensor]]):
    """Points in the plane, and whether they lie in the unit circle."""

    def __init__(self, count: int, generator: tp.Generator) -> None:
        self.points = tp.rand(count, 2, generator=generator) * 2 - 1
        self.labels = (self.points.square().sum(1) < 1).long()

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.points[index], self.labels[index]


class Scale(Function):
    """Multiply by a number, as a custom function."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return input * factor

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output * ctx.factor, None


class Block(nn.Module):
    """A linear map, normalized, with a residual connection."""

    def __init__(self, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.norm(x)
        return x + self.dropout(F.gelu(self.linear(hidden)))


class Classifier(nn.Module):
    """Blocks between an embedding of the points and the scores of two classes."""

    scale: Tensor

    def __init__(self, width: int = 16, depth: int = 2) -> None:
        super().__init__()
        self.embed = nn.Linear(2, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(width, 2))
        self.bias = nn.Parameter(tp.zeros(2))
        self.register_buffer("scale", tp.ones(()))

    def forward(self, points: Tensor) -> Tensor:
        x: Tensor = self.embed(points) * self.scale
        for block in self.blocks:
            x = block(x)
        scores: Tensor = self.head(x)
        return scores + self.bias


def batches(loader: DataLoader[Any], device: tp.device) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield what the loader does, on the device."""
    for points, labels in loader:
        yield points.to(device), labels.to(device)


@tp.no_grad()
def accuracy(model: nn.Module, loader: DataLoader[Any], device: tp.device) -> float:
    """Return the share of points that are told right."""
    model.eval()
    right, count = 0.0, 0
    for points, labels in batches(loader, device):
        scores: Tensor = model(points)
        best = scores.max(1)
        assert_type(best.indices, Tensor)
        right += (best.indices == labels).sum().item()
        count += labels.shape[0]
    return right / max(count, 1)


def rate(step: int, steps: int) -> float:
    """Return the factor of the learning rate: half a cosine."""
    return 0.5 * (1 + math.cos(math.pi * step / steps))


def train(options: Options) -> tuple[Classifier, list[float]]:
    """Train, and return the model and the losses."""
    tp.manual_seed(options.seed)
    device = tp.device(options.device)
    generator = tp.Generator().manual_seed(options.seed)
    data = Points(64, generator)
    training, validation = random_split(data, [48, 16], generator=generator)
    loader = DataLoader(training, batch_size=options.batch_size, shuffle=True, generator=generator)
    held_out = DataLoader(validation, batch_size=options.batch_size)
    model = Classifier().to(device)
    optimizer = tp.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=0.01)
    steps = options.epochs * len(loader)
    scheduler = tp.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, steps))
    losses: list[float] = []
    for _ in range(options.epochs):
        model.train()
        for points, labels in batches(loader, device):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(points), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            losses.append(float(loss.item()))
        print(f"accuracy {accuracy(model, held_out, device):.2f}")
    return model, losses


def shapes(x: Tensor) -> list[int]:
    """Return a few sizes, by ways that programs go."""
    rows, columns = x.shape
    values, indices = x.sort(dim=1)
    halves = list(x.chunk(2))
    first = next(iter(x))
    largest, smallest = x.max(), x.min(dim=0)
    scaled: Tensor = Scale.apply(x, 2.0)
    total = (values + indices).sum() + largest + smallest.values.sum() + scaled.mean()
    return [rows, columns, first.numel(), len(halves), total.ndim, x.size(0), *x.size()]


def main() -> None:
    """Train, save, load and go on."""
    model, losses = train(Options())
    tp.save(model.state_dict(), "model.pt")
    state: dict[str, Tensor] = tp.load("model.pt")
    model.load_state_dict(state)
    with tp.inference_mode():
        answer: Tensor = model(tp.zeros(1, 2))
    pairs = TensorDataset(tp.arange(4), tp.arange(4))
    print(len(pairs), losses[-1], answer.tolist(), shapes(tp.ones(4, 3)))


if __name__ == "__main__":
    main()
