"""Linear layers whose weights were laid out once, against the layers op by op."""

import pytest

pytest.importorskip("tensorplug_cpu_cython.onednn_network", reason="oneDNN is not there")
import tensorplug as tp
from tensorplug import nn
from tensorplug_cpu_cython import linear_regions


def fused(compiled):
    programs = [e.program for found in compiled._entries.values() for e in found if e.program]
    steps = [step for program in programs for step in program.steps]
    return len([step for step in steps if hasattr(step, "fuser") and step.fuser.name == "linear"])


@pytest.mark.parametrize(
    ("shape", "size", "bias", "served"),
    [
        ((2, 7), 5, True, 1), ((8, 300), 64, True, 1), ((2, 3, 17), 33, False, 1), ((2, 1, 4, 9), 1, True, 1),
        ((1, 30), 20, True, 0), ((30,), 20, True, 0), ((1500, 8), 4, True, 0), ((100, 1100), 3, True, 0),
    ],
)  # fmt: skip
def test_layers(shape, size, bias, served):
    layer = nn.Linear(shape[-1], size, bias=bias)
    compiled = tp.compile(layer.forward)
    with tp.no_grad():
        for write in range(3):
            for _ in range(3):
                x = tp.randn(shape)
                tp.testing.assert_close(compiled(x), layer(x), rtol=1e-5, atol=1e-5)
            assert fused(compiled) == served
            layer.weight.mul_(-1.5 - write)
        x = tp.randn(shape)
        x[..., 0] = float("nan")
        assert compiled(x).isnan().all()
    assert not [q for q in tp.plugins.quarantined_fusers() if q.plugin.startswith("cpu_cython")]


def test_weights_that_are_arguments_are_left_to_the_kernel():
    compiled = tp.compile(nn.functional.linear)
    x, weight = tp.randn(4, 8), tp.randn(3, 8)
    with tp.no_grad():
        for _ in range(3):
            assert tp.equal(compiled(x, weight), nn.functional.linear(x, weight))
    assert not fused(compiled)


@pytest.mark.parametrize(("level", "rows", "served"), [("v3", 2, 1), ("v3", 8, 0), ("v4", 8, 1)])
def test_large_weights_lie_as_they_do_without_avx512(level, rows, served, monkeypatch):
    monkeypatch.setattr(linear_regions, "_LARGE", 400)
    monkeypatch.setattr(linear_regions.cpu_features, "level", lambda: level)
    layer = nn.Linear(20, 20)
    compiled = tp.compile(layer.forward)
    with tp.no_grad():
        for _ in range(3):
            x = tp.randn(rows, 20)
            tp.testing.assert_close(compiled(x), layer(x), rtol=1e-5, atol=1e-5)
    assert fused(compiled) == served
