"""Models whose operations are counted, by module and op."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            p.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            for p in self.qkv(self.norm(x)).split(c, dim=2)
        )
        scores = (q @ k.transpose(-2, -1)) / 8
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c)
        return x + self.mlp(x + self.out(y))


class Products(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.ones(3, 4))
        self.b = nn.Parameter(torch.ones(2, 4, 5))

    def forward(self, x):
        y = torch.einsum("bij,bjk->bik", torch.matmul(x, self.a), self.b)
        return (
            torch.baddbmm(y, torch.bmm(y, y.transpose(1, 2)), y)
            + torch.matmul(self.a.sum(0), self.b).sum()
        )


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(4, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()
        )
        self.depthwise = nn.Conv2d(8, 8, 3, groups=8, stride=2, padding=1)
        self.short = nn.Conv2d(4, 8, 1, stride=2)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        y = self.depthwise(self.conv(x)) + self.short(x)
        return self.head(F.adaptive_avg_pool2d(y, 1).flatten(1))


MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 2, bias=False)), (3, 5)),
    "linear3": (lambda: nn.Linear(5, 7), (2, 3, 5)),
    "linear4": (lambda: nn.Linear(5, 7), (2, 3, 2, 5)),
    "residual": (Residual, (2, 4, 8, 8)),
    "conv1d": (
        lambda: nn.Sequential(nn.Conv1d(2, 6, 3, dilation=2, groups=2), nn.Conv1d(6, 2, 1)),
        (2, 2, 9),
    ),
    "conv3d": (lambda: nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4)),
    "transposed": (
        lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1, groups=2),
        (1, 4, 5, 5),
    ),
    "transformer": (lambda: nn.Sequential(Block(16, 2), Block(16, 2)), (2, 5, 16)),
    "attention": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        (2, 3, 8),
    ),
    "lstm": (lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True), (5, 2, 3)),
    "gru": (lambda: nn.GRU(3, 4), (5, 2, 3)),
    "rnn": (lambda: nn.RNN(3, 4), (5, 2, 3)),
    "embedding": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(6, 3)), (2, 2, 3)),
    "products": (Products, (2, 4, 3)),
}


def counted(name, grad_of_input):
    make, shape = MODELS[name]
    torch.manual_seed(0)
    model = make()
    x = torch.ones(shape, requires_grad=grad_of_input)
    with FlopCounterMode(display=False) as counter:
        y = model(x)
        (y[0] if isinstance(y, tuple) else y).sum().backward()
    counts = {m: {str(op): n for op, n in c.items()} for m, c in counter.get_flop_counts().items()}
    return {"total": counter.get_total_flops(), "counts": counts}


def all_counts():
    return {f"{name} {grad}": counted(name, grad) for name in MODELS for grad in (False, True)}
