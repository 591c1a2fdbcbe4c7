"""Tensors of another library that has torch's protocol are refused, and ours are there."""

from __future__ import annotations

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F

torch = pytest.importorskip("torch", reason="torch has the other tensors")


def other(*sizes):
    return torch.ones(*sizes)


CALLS = {
    "op": lambda: tp.add(other(2), 1),
    "second argument": lambda: tp.where(tp.tensor([True]), other(1), 1),
    "operator": lambda: tp.ones(2) + other(2),
    "operator, the other first": lambda: other(2) + tp.ones(2),
    "in place": lambda: tp.ones(2).add_(other(2)),
    "list": lambda: tp.stack((other(2), other(2))),
    "activation": lambda: F.relu(other(2)),
    "weight": lambda: F.linear(tp.ones(2, 2), other(2, 2)),
    "module": lambda: tp.nn.Linear(2, 2)(other(2)),
    "pooling": lambda: F.avg_pool3d(other(1, 1, 4, 4, 4), 2),
    "its function": lambda: torch.add(tp.ones(2), 1),
    "its method": lambda: other(2).add(tp.ones(2)),
}


def assign(key):
    tp.ones(2, 3)[key] = 0


INDICES = {
    "one element": lambda: torch.tensor([0]),
    "several": lambda: torch.tensor([0, 1]),
    "in a tuple": lambda: (slice(None), torch.tensor([0])),
    "mask": lambda: torch.tensor([True, False]),
}
CALLS |= {
    f"{verb} {name}": lambda make=make, call=call: call(make())
    for verb, call in (("index by", tp.ones(2, 3).__getitem__), ("write to", assign))
    for name, make in INDICES.items()
}


def test_a_number_of_another_library_is_an_index():
    assert tp.arange(3)[torch.tensor(1)].item() == 1


@pytest.mark.parametrize("name", CALLS)
def test_a_mixed_call_is_a_type_error(name):
    with pytest.raises(TypeError):
        CALLS[name]()
    assert tp.ones(2).add(1).tolist() == [2.0, 2.0]


def test_the_error_says_what_to_do():
    with pytest.raises(TypeError, match=r"torch\.Tensor.* from_dlpack\(\)"):
        tp.add(other(2), 1)
    assert tp.from_dlpack(other(2)).tolist() == [1.0, 1.0]
