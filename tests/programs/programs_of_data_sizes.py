"""Programs with sizes that depend on data: some written, others drawn at random."""

import random

import tensorplug as tp
from tensorplug import nn


class Program(nn.Module):
    """A function of one tensor as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def _of_its_size(x):
    chosen = x[x > 0]
    return chosen.sum() / (chosen.shape[0] + 1)


def _twice_masked(x):
    mask = x > 0
    return x[mask] + x.exp()[mask]


def _masked_again(x):
    some = x[x > 0]
    return some[some < 1]


def _unique_in_place(x):
    values, places = tp.unique((2 * x).round(), return_inverse=True)
    return values[places]


#: Of a matrix with five columns.
PROGRAMS = {
    "x[mask]": lambda x: x[x > 0] * 2,
    "rows": lambda x: x[x.sum(1) > 0] @ x.T,
    "inner mask": lambda x: x[:, x[0] > 0].sum(1),
    "one mask, two tensors": _twice_masked,
    "one mask, computed twice": lambda x: x[x > 0] + x.exp()[x > 0],
    "two masks": lambda x: tp.cat([x[x > 0], x[x < -0.5]]),
    "two sizes in a shape": lambda x: x[x.sum(1) > 0] @ x[x.sum(1) < 0].T,
    "nonzero": lambda x: tp.nonzero(x > 0).sum(0),
    "nonzero as tuple": lambda x: tp.nonzero(x > 0, as_tuple=True)[1],
    "where": lambda x: x[tp.where(x > 0)],
    "argwhere": lambda x: tp.argwhere(x > 0),
    "reshape": lambda x: tp.nonzero(x).reshape(-1).view(-1, 2) + 1,
    "masked_select": lambda x: tp.masked_select(x, x[0] > 0).cumsum(0),
    "unique": lambda x: tp.unique(x.round(), return_inverse=True, return_counts=True),
    "unique rows": lambda x: tp.unique(x.round(), dim=0),
    "unique of one": lambda x: tp.unique(x[x > 1e9][:0].sum()[None]),
    "unique, and back": _unique_in_place,
    "unique_consecutive": lambda x: tp.unique_consecutive(x.round()),
    "repeat_interleave": lambda x: tp.repeat_interleave(x, x[:, 0].abs().long(), dim=0),
    "a number": _of_its_size,
    "only the size": lambda x: tp.zeros(x[x > 0].shape[0], 2) + 1,
    "size after size": _masked_again,
    "softmax": lambda x: tp.softmax(x[x.sum(1) > 0], 0),
    "what nobody uses": lambda x: (x[x > 0], x + 1)[1],
}

_STEPS = {
    "rows": lambda h: h[h.sum(1) > 0],
    "few rows": lambda h: h[h[:, 0] > 0.7],
    "nonzero": lambda h: h[tp.nonzero(h[:, 1] > -0.5)[:, 0]],
    "index_select": lambda h: h.index_select(0, tp.where(h[:, 2] < 0.5)[0]),
    "unique": lambda h: h.round().unique(dim=0),
    "repeat": lambda h: h.repeat_interleave(h[:, 0].abs().long() % 3, 0),
    "flip": lambda h: h.flip(0),
    "twice": lambda h: tp.cat([h, h + 1]),
    "cumsum": lambda h: h.cumsum(0).clamp(-2, 2),
    "mean": lambda h: h - h.sum(0) / (h.shape[0] + 1),
    "pad": lambda h: nn.functional.pad(h, (0, 0, 1, 2)),
    "pairs": lambda h: (h @ h.T).softmax(1) @ h,
    "flat": lambda h: h.reshape(-1).view(h.shape[0], 3),
    "new": lambda h: h + tp.arange(h.shape[0])[:, None],
    "expand": lambda h: h[:, None].expand(-1, 2, -1).reshape(-1, 3),
}


def drawn(seed):
    """Return a program of a matrix with three columns, and what it consists of."""
    draw = random.Random(seed)
    names = draw.choices(list(_STEPS), k=draw.randint(2, 6))

    def function(x):
        for name in names:
            x = _STEPS[name](x)
        return x, x.shape[0]

    return Program(function), names


def matrices(seed, columns, rows):
    """Yield a matrix for each number of rows, the last one without a positive number."""
    generator = tp.Generator()
    generator.manual_seed(seed)
    for count in rows:
        yield tp.randn(count, columns, generator=generator)
    yield -tp.ones(rows[-1], columns)
