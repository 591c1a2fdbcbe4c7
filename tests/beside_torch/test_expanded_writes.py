"""Writes to tensors of which several elements are one in memory: those that torch does, and gradients."""

import warnings

import pytest
from listed_rows import agree

import tensorplug as tp

torch = pytest.importorskip("torch", reason="which writes are done is what it does")

LAYOUTS = {
    "columns": lambda x: x.view(3, 1).expand(3, 4),
    "rows": lambda x: x.view(1, 3).expand(4, 3),
    "both ends": lambda x: x.view(1, 3, 1).expand(2, 3, 4),
    "one element": lambda x: x[1].expand(5),
    "a part": lambda x: x[1:].view(2, 1).expand(2, 3).t(),
    "strided": lambda x: x.as_strided((3, 2), (1, 0)),
}


def every_other(t, *sizes):
    count = t.zeros(sizes).numel()
    return (t.arange(count) % 2 == 0).view(sizes)


def positions(t, x):
    return t.arange(x.shape[0] - 1, -1, -2)


WRITES = {
    "fill_": lambda t, x: x.fill_(5),
    "zero_": lambda t, x: x.zero_(),
    "masked_fill_": lambda t, x: x.masked_fill_(every_other(t, *x.shape), 5),
    "masked_fill_, a tensor": lambda t, x: x.masked_fill_(every_other(t, *x.shape), t.tensor(5.0)),
    "masked_fill_, of less": lambda t, x: x.masked_fill_(every_other(t, x.shape[-1]), 5),
    "masked_fill_, nothing": lambda t, x: x.masked_fill_(x > 99, 5),
    "by a mask": lambda t, x: x.__setitem__(every_other(t, *x.shape), 5),
    "by a mask, a tensor": lambda t, x: x.__setitem__(every_other(t, *x.shape), t.tensor([5.0])),
    "by a mask of rows": lambda t, x: x.__setitem__(every_other(t, x.shape[0]), 5),
    "by positions": lambda t, x: x.__setitem__(positions(t, x), 5),
    "by positions, rows": lambda t, x: x.__setitem__(positions(t, x), x[:1].detach().clone() + 7),
    "by positions, repeated": lambda t, x: x.__setitem__([0, 0], 5),
    "by positions and a part": lambda t, x: x.__setitem__((positions(t, x), ..., slice(1)), 5),
    "at the end": lambda t, x: x.__setitem__((..., [0, 1]), 5),
    "index_put_": lambda t, x: x.index_put_((positions(t, x),), t.tensor(5.0)),
    "index_put_, added": lambda t, x: x.index_put_((positions(t, x),), t.tensor(5.0), True),
    "index_fill_": lambda t, x: x.index_fill_(0, positions(t, x), 5),
    "index_fill_, last": lambda t, x: x.index_fill_(-1, t.tensor([1]), 5),
    "index_fill_, a tensor": lambda t, x: x.index_fill_(-1, t.tensor([1]), t.tensor(5.0)),
    "index_fill_, nowhere": lambda t, x: x.index_fill_(0, t.tensor([], dtype=t.int64), 5),
    "index_fill_, beyond": lambda t, x: x.index_fill_(0, t.tensor([9]), 5),
    "index_add_": lambda t, x: x.index_add_(0, t.tensor([0]), x[:1].clone()),
    "index_copy_": lambda t, x: x.index_copy_(0, t.tensor([0]), x[:1].clone()),
    "masked_scatter_": lambda t, x: x.masked_scatter_(every_other(t, *x.shape), t.ones(24)),
    "scatter_": lambda t, x: x.scatter_(0, t.zeros(x.shape, dtype=t.int64), 5),
    "put_": lambda t, x: x.put_(t.tensor([0]), t.tensor([5.0])),
    "copy_": lambda t, x: x.copy_(t.tensor(5.0)),
    "a part": lambda t, x: x.__setitem__(slice(0, 2), 5),
    "add_": lambda t, x: x.add_(1),
    "tril_": lambda t, x: x.tril_(),
    "tril_, nothing": lambda t, x: x.tril_(9),
    "tril_, by name": lambda t, x: x.tril_(diagonal=-1),
    "triu_": lambda t, x: x.triu_(),
    "triu_, less": lambda t, x: x.triu_(-1),
}


def written(t, layout, write, requires_grad=False):
    """Return what a write leaves in memory, whether it warns, and the gradient of a sum with weights."""
    leaf = t.arange(1.0, 4.0, requires_grad=requires_grad)
    memory = leaf * 1.0
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            WRITES[write](t, LAYOUTS[layout](memory))
        except Exception as error:
            return error
    if requires_grad:
        (memory * t.tensor([1.0, 10.0, 100.0])).sum().backward()
    return memory.detach(), bool(warned), leaf.grad


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("write", WRITES)
def test_writes_to_expanded_tensors(write, layout):
    ours, theirs = written(tp, layout, write), written(torch, layout, write)
    assert agree(ours, theirs), (ours, theirs)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("write", WRITES)
def test_recorded_writes_to_expanded_tensors(write, layout):
    """What was overwritten has no gradient. torch, which also writes, raises in the backward."""
    found = written(tp, layout, write, requires_grad=True)
    if isinstance(found, Exception):
        assert isinstance(found, type(written(tp, layout, write)))
        return
    memory, _, gradient = found
    kept = (memory == tp.arange(1.0, 4.0)) | ("added" in write)
    assert gradient.tolist() == (kept * tp.tensor([1.0, 10.0, 100.0])).tolist()
