"""Programs that are not captured whole: their modules run compiled each by itself."""

import copy
import pickle

import numpy as np
import pytest

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug import nn
from tensorplug.graph import Uncapturable
from tensorplug.graph.parts import Part


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        return x + self.out(F.gelu(self.norm(x)))


class Counting(nn.Module):
    """Blocks, and a list that grows between them."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
        self.head = nn.Linear(8, 2)
        self.seen = []

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
            self.seen.append(x.shape)
        return self.head(x)


def stepper(model):
    optimizer = tp.optim.Adam(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def test_blocks_of_a_module_that_changes_state():
    model = Counting()
    plain = copy.deepcopy(model)
    compiled = tp.compile(model)
    for _ in range(6):
        x = tp.randn(4, 8)
        for network in (compiled, plain):
            network.zero_grad()
            network(x).sum().backward()
        for p, q in zip(model.parameters(), plain.parameters(), strict=True):
            assert np.array_equal(p.grad.numpy(), q.grad.numpy())
    found = compiled.explain()
    assert "changes" in found.breaks[0].reason
    assert (len(found.graphs), found.calls) == (3, 6)
    assert len(model.seen) == 18
    assert not any(["forward" in vars(module) for module in model.modules()])


def test_a_training_step():
    model = nn.Sequential(Block(), Block(), nn.Linear(8, 1))
    plain = stepper(copy.deepcopy(model))
    compiled = tp.compile(stepper(model))
    for _ in range(6):
        x = tp.randn(4, 8)
        assert compiled(x) == plain(x)
    found = compiled.explain()
    assert found.calls >= 3
    assert "is no op" in found.breaks[0].reason


def test_a_block_that_breaks_runs_in_parts_itself():
    outer = nn.Sequential(Counting(), nn.Linear(2, 2))
    compiled = tp.compile(outer)
    for _ in range(8):
        x = tp.randn(4, 8)
        assert tp.equal(compiled(x), outer(x))
    assert compiled.explain().calls >= 3


def test_copies_and_errors_within_a_part():
    class Copying(nn.Module):
        def __init__(self, block):
            super().__init__()
            self.block = block
            self.made = []

        def forward(self, x):
            self.made.append(copy.deepcopy(self.block))
            pickle.dumps(self.block.state_dict())
            return self.block(x)

    model = Copying(Block())
    compiled = tp.compile(model)
    for _ in range(5):
        compiled(tp.randn(2, 8))
    made = model.made[-1]
    with tp.no_grad():
        made.out.weight.zero_()
        made.out.bias.zero_()
    assert not isinstance(made.forward, Part)
    x = tp.randn(2, 8)
    assert tp.equal(made(x), x)
    with pytest.raises(RuntimeError):
        compiled(tp.randn(2, 7))
    assert "forward" not in vars(model.block)


def test_whole_or_not_at_all():
    compiled = tp.compile(Counting(), fullgraph=True)
    x = tp.randn(4, 8)
    compiled(x), compiled(x)
    with pytest.raises(Uncapturable):  # now that it is plain that the count does not settle
        compiled(x)
