"""cuDNN's front end takes the graphs as they are described; nothing is built or run."""

import types

import numpy as np
import pytest

from tensorplug_cuda_cupy.libraries import cudnn_graphs
from tensorplug_cuda_cupy.libraries.cudnn_graphs import Options

OPTIONS = Options((2, 1), (1, 0), (1, 2))


def arrays(kind, dtype):
    image, weight, output = ((2, 4, 9, 8), (6, 2, 3, 3), (2, 6, 5, 4))
    order = {
        "conv_fprop": (image, weight, output),
        "conv_dgrad": (output, weight, image),
        "conv_wgrad": (image, output, weight),
    }[kind]
    return tuple(np.zeros(shape, dtype) for shape in order)


@pytest.mark.parametrize("kind", ["conv_fprop", "conv_dgrad", "conv_wgrad"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_front_end_takes_the_graph(kind, dtype):
    cudnn = pytest.importorskip("cudnn", reason="nvidia-cudnn-frontend is not installed")
    given = arrays(kind, dtype)
    handle = 1  # no real one, which would need the library; it serves where a graph is built
    _, (first, second, output) = cudnn_graphs.described(cudnn, handle, kind, given, OPTIONS)
    for tensor, array in zip((first, second, output), given, strict=True):
        assert list(tensor.get_dim()) == list(array.shape)
        assert list(tensor.get_stride()) == [stride // array.itemsize for stride in array.strides]


def test_without_the_front_end_it_says_so(monkeypatch):
    monkeypatch.setattr(cudnn_graphs, "library", lambda: None)
    given = arrays("conv_fprop", "float32")
    assert not cudnn_graphs.convolve("conv_fprop", *given, OPTIONS)


def test_integers_are_not_for_it():
    given = arrays("conv_fprop", "int64")
    assert not cudnn_graphs.convolve("conv_fprop", *given, OPTIONS)


def test_a_graph_is_made_once(monkeypatch):
    """The second call of the same shapes, layouts and options uses the first one's graph."""
    made, ran = [], []

    class Graph:
        def execute(self, bound, workspace, handle):
            ran.append((sorted(bound.values()), workspace, handle))

    def built(kind, handle, given, options, exact, repeatable):
        made.append((kind, exact, repeatable))
        return cudnn_graphs._Graph(Graph(), ("x", "w", "y"), 64)

    def on_device(array):
        return types.SimpleNamespace(
            shape=array.shape, strides=array.strides, dtype=array.dtype, itemsize=array.itemsize,
            device=types.SimpleNamespace(id=0), data=types.SimpleNamespace(ptr=array.ctypes.data),
        )  # fmt: skip

    workspace = types.SimpleNamespace(data=types.SimpleNamespace(ptr=7))
    monkeypatch.setattr(cudnn_graphs, "library", lambda: object())
    monkeypatch.setattr(cudnn_graphs, "handle_of", lambda device: "handle")
    monkeypatch.setattr(cudnn_graphs, "_built", built)
    monkeypatch.setattr(cudnn_graphs, "_graphs", {})
    monkeypatch.setattr(cudnn_graphs, "cp", types.SimpleNamespace(empty=lambda *_: workspace))
    given = tuple(map(on_device, arrays("conv_fprop", "float32")))
    for _ in range(2):
        assert cudnn_graphs.convolve("conv_fprop", *given, OPTIONS)
    assert cudnn_graphs.convolve("conv_fprop", *given, OPTIONS._replace(stride=(1, 1)))
    assert made == [("conv_fprop", True, False)] * 2
    assert len(ran) == 3
    assert ran[0] == (sorted(array.data.ptr for array in given), 7, "handle")
