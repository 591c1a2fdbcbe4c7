"""Values of state that compiled programs keep are renewed, whichever way the state is written."""

import gc
import os

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.core.tensor import exposure
from tensorplug.serialization import safetensors
from tensorplug.testing import children


class Scaled(nn.Module):
    """Uses its state through views, folded values and linear layers."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.scale = nn.Parameter(tp.randn(3))
        self.register_buffer("shift", tp.randn(1, 3))

    def forward(self, x):
        return self.layer(x) * self.scale.exp().abs() + self.shift.t().squeeze(1) * 2


def step(module):
    optimizer = tp.optim.SGD(module.parameters(), lr=0.5)
    with tp.enable_grad():
        module(tp.ones(2, 4)).sum().backward()
    optimizer.step()


def foreach_step(module):
    optimizer = tp.optim.Adam(module.parameters(), lr=0.5)
    with tp.enable_grad():
        module(tp.ones(2, 4)).sum().backward()
    optimizer.step()


def vector(module):
    parameters = list(module.parameters())
    found = tp.nn.utils.parameters_to_vector(parameters)
    tp.nn.utils.vector_to_parameters(found * 2, parameters)


WAYS = {
    "in place": lambda m: m.scale.add_(1),
    "through a view": lambda m: m.layer.weight.view(-1)[2:5].fill_(3),
    "through detach": lambda m: m.layer.weight.detach().mul_(2),
    "through data": lambda m: m.layer.bias.data.add_(1),
    "data rebound": lambda m: setattr(m.scale, "data", tp.ones(3)),
    "an index": lambda m: m.shift.__setitem__((0, 1), 9.0),
    "out": lambda m: tp.add(m.shift, 1, out=m.shift),
    "copy_": lambda m: m.layer.weight.copy_(tp.ones(3, 4)),
    "a new parameter": lambda m: setattr(m, "scale", nn.Parameter(tp.ones(3))),
    "a new buffer": lambda m: setattr(m, "shift", tp.ones(1, 3)),
    "load_state_dict": lambda m: m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()}),
    "init": lambda m: nn.init.normal_(m.layer.weight),
    "an optimizer": step,
    "another optimizer": foreach_step,
    "a vector": vector,
    "swapped": lambda m: tp._foreach_mul_([m.scale, m.shift], 2.0),
    "random": lambda m: m.scale.uniform_(),
    "zero_": lambda m: m.shift.zero_(),
    "NumPy": lambda m: m.scale.detach().numpy().__setitem__(0, 7.0),
    "NumPy of a view": lambda m: m.layer.weight.detach()[1:].numpy().__setitem__((0, 0), 7.0),
    "NumPy by force": lambda m: m.scale.numpy(force=True).__setitem__(0, 7.0),
    "an array of NumPy": lambda m: np.asarray(m.shift).__setitem__((0, 0), 7.0),
    "data of a view": lambda m: m.layer.weight[1].data.zero_(),
    "storage": lambda m: m.shift.untyped_storage().fill_(0),
    "memory of DLPack": lambda m: tp.from_dlpack(m.scale.detach()).add_(1),
}


@pytest.mark.parametrize("way", WAYS)
def test_state_that_was_written(way):
    tp.manual_seed(0)
    module = Scaled()
    compiled = tp.compile(module)
    with tp.no_grad():
        for _ in range(3):
            x = tp.randn(5, 4)
            compiled(x)
        before = module(x)
        WAYS[way](module)
        assert not tp.equal(module(x), before)
        for _ in range(3):
            tp.testing.assert_close(compiled(x), module(x))


def test_memory_that_was_handed_out_may_be_written_any_time():
    module = Scaled()
    compiled = tp.compile(module)
    x = tp.randn(5, 4)
    with tp.no_grad():
        for _ in range(3):
            compiled(x)
        held = module.scale.data, module.layer.weight.detach().numpy()
        for write in range(6):
            held[0][write % 3] += 1
            held[1][0, write % 4] += 1
            for _ in range(2):
                tp.testing.assert_close(compiled(x), module(x))


def _fill(module):
    module.layer.weight.data.fill_(7)
    module.scale.data.fill_(7)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is forked")
@pytest.mark.parametrize("first", ["shared", "compiled"])
def test_memory_that_another_process_writes(first):
    module = Scaled()
    if first == "shared":
        module.share_memory()
    compiled = tp.compile(module)
    x = tp.randn(5, 4)
    with tp.no_grad():
        for _ in range(3):
            compiled(x)
        module.share_memory()
        status, _ = children.in_child(lambda tell: _fill(module), seconds=60)
        assert status == 0
        tp.testing.assert_close(compiled(x), module(x))


FILES = {
    "save": lambda module, path: tp.save(module.state_dict(), path),
    "safetensors": lambda module, path: safetensors.save_model(module, path),
    "export": lambda module, path: tp.export.save(tp.export.export(module, (tp.ones(2, 4),)), path),
    "ONNX": lambda module, path: tp.onnx.export(module, (tp.ones(2, 4),), path),
}


@pytest.mark.parametrize("kind", FILES)
def test_what_writes_files_hands_no_memory_out(kind, tmp_path):
    if kind == "ONNX":
        pytest.importorskip("onnx", reason="onnx is not installed")
    module = Scaled()
    compiled = tp.compile(module)
    with tp.no_grad():
        for _ in range(3):
            compiled(tp.randn(5, 4))
    before = exposure.handed_out.count
    FILES[kind](module, tmp_path / "file")
    assert exposure.handed_out.count == before


def test_nothing_is_watched_for_programs_that_are_gone():
    gc.collect()
    before = set(exposure.watched)  # by programs of other tests, which may go meanwhile
    module = Scaled()
    compiled = tp.compile(module.forward)
    with tp.no_grad():
        for _ in range(3):
            compiled(tp.randn(5, 4))
    assert set(exposure.watched) - before
    del compiled
    gc.collect()
    assert set(exposure.watched) <= before


@pytest.mark.skipif(tp.compiled(), reason="compiled code does not look functions up in its module")
def test_a_planted_fault_is_found(monkeypatch):
    from tensorplug.graph import entries

    monkeypatch.setattr(entries, "version_of", lambda tensor: 0)
    with pytest.raises(AssertionError):
        test_state_that_was_written("in place")


def test_tuples_that_refuse_to_tell_their_length():
    class Parts(tuple):  # noqa: SLOT001
        def __len__(self):
            raise NotImplementedError

    module = Scaled()
    module.parts = Parts((tp.tensor(2.0), 3))
    forward = module.forward
    module.forward = lambda x: forward(x) * next(iter(module.parts))
    x = tp.randn(5, 4)
    compiled = tp.compile(module)
    for _ in range(3):
        tp.testing.assert_close(compiled(x), module(x))
        module.parts = Parts((module.parts[0] + 1, 3))
