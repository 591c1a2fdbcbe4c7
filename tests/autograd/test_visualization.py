"""Drawings of the graph."""

from __future__ import annotations

import importlib.util

import pytest

import tensorplug as tp


def test_names_and_shapes():
    model = tp.nn.Sequential(tp.nn.Linear(3, 2), tp.nn.Tanh())
    text = str(tp.autograd.visualize(model(tp.ones(4, 3)).sum(), model))
    assert text.startswith("digraph {")
    assert text.endswith("}")
    assert 'label="0.weight\\n(2, 3)"' in text
    assert 'label="0.bias\\n(2)"' in text
    assert "TanhBackward0\\n(4, 2)" in text
    assert text.count(" -> ") >= 5


def test_shared_nodes_and_several_outputs():
    x = tp.ones(3, 3, requires_grad=True)
    y = x.exp()
    values, vectors = tp.linalg.eigh(y + y.T)
    text = str(tp.autograd.visualize([values.sum() + vectors.sum(), y], {"x": x}))
    assert text.count("ExpBackward0") == 1
    assert text.count("EighBackward0") == 1
    assert text.count('label="x\\n(3, 3)"') == 1


def test_leaves():
    x = tp.ones(2)
    assert " -> " not in str(tp.autograd.visualize(x))
    assert 'a \\"b\\"' in str(tp.autograd.visualize(x, [('a "b"', x)]))
    with pytest.raises(TypeError, match="got float"):
        tp.autograd.visualize([1.0])


def test_deep_graph():
    x = tp.ones(1, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y * 2
    assert str(tp.autograd.visualize(y)).count("MulBackward0") == 20_000


def test_picture():
    drawing = tp.autograd.visualize(tp.ones(2, requires_grad=True).exp())
    if importlib.util.find_spec("graphviz") is None:
        with pytest.raises(ImportError, match="pip install graphviz"):
            drawing.svg()
        assert drawing._repr_mimebundle_() == {"text/plain": str(drawing)}
    else:
        bundle = drawing._repr_mimebundle_()
        assert bundle.keys() <= {"image/svg+xml", "text/plain"}
