"""cuDNN's front end takes the graphs of attention as they are described; nothing is built or run."""

import types

import numpy as np
import pytest

from tensorplug_cuda_cupy.kernels import attention
from tensorplug_cuda_cupy.libraries import cudnn_attention

BATCH, HEADS, LENGTH, SOURCE, SIZE, VALUES = 2, 3, 16, 24, 8, 16


def arrays(kind):
    """Return what a graph takes: in some, the heads of a position lie beside each other."""
    q, k = (np.zeros((BATCH, HEADS, n, SIZE), "f2") for n in (LENGTH, SOURCE))
    v = np.zeros((BATCH, HEADS, SOURCE, VALUES), "f2")
    o = np.zeros((BATCH, LENGTH, HEADS, VALUES), "f2").transpose(0, 2, 1, 3)
    stats = np.zeros((BATCH, HEADS, LENGTH, 1), "f4")
    if kind == "forward":
        return (q, k, v, o, stats), ()
    return (q, k, v, o, np.zeros_like(o), stats), tuple(np.zeros_like(a) for a in (q, k, v))


@pytest.mark.parametrize("kind", ["forward", "backward"])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
def test_the_front_end_takes_the_graph(kind, is_causal, with_bias):
    cudnn = pytest.importorskip("cudnn", reason="nvidia-cudnn-frontend is not installed")
    if kind == "forward":  # of which the front end asks the library's version
        try:
            cudnn.backend_version()
        except RuntimeError:
            pytest.skip("cuDNN's library is not installed")
    given, results = arrays(kind)
    bias = np.zeros((1, HEADS, LENGTH, SOURCE), "f2") if with_bias else None
    handle = 1  # no real one, which would need the library; it serves where a graph is built
    _, tensors = cudnn_attention.described(
        cudnn, handle, kind, given, results, bias, is_causal, 0.5, False
    )
    shown = [*given, *results, *([bias] if with_bias else [])]
    assert len(tensors) == len(shown)
    for tensor, array in zip(tensors, shown, strict=True):
        assert list(tensor.get_dim()) == list(array.shape)
        assert list(tensor.get_stride()) == [stride // array.itemsize for stride in array.strides]
        wide = cudnn.data_type.FLOAT if array.itemsize == 4 else cudnn.data_type.HALF
        assert tensor.get_data_type() == wide


def on_device(array):
    return types.SimpleNamespace(
        shape=array.shape, strides=array.strides, dtype=array.dtype, itemsize=array.itemsize,
        device=types.SimpleNamespace(id=0), data=types.SimpleNamespace(ptr=array.ctypes.data),
    )  # fmt: skip


@pytest.fixture
def ran(monkeypatch):
    """Stand in for the library; return what is run."""
    runs = []

    class Graph:
        def execute(self, bound, workspace, handle):
            runs.append(bound)

    def built(kind, handle, given, results, bias, is_causal, scale, exact):
        names = [str(n) for n in range(len(given) + len(results) + (bias is not None))]
        return None if scale == 7 else cudnn_attention._Graph(Graph(), tuple(names), 64)

    workspace = types.SimpleNamespace(data=types.SimpleNamespace(ptr=7))
    monkeypatch.setattr(cudnn_attention, "library", lambda: object())
    monkeypatch.setattr(cudnn_attention, "handle_of", lambda device: "handle")
    monkeypatch.setattr(cudnn_attention, "_built", built)
    monkeypatch.setattr(cudnn_attention, "_graphs", {})
    monkeypatch.setattr(cudnn_attention, "cp", types.SimpleNamespace(empty=lambda *_: workspace))
    return runs


def test_a_graph_is_run_with_the_arrays_in_their_order(ran):
    given, results = arrays("backward")
    shown = [on_device(a) for a in given], [on_device(a) for a in results]
    for _ in range(2):
        assert cudnn_attention.backward(*shown, None, True, 0.5)
    assert len(cudnn_attention._graphs) == 1
    pointers = [array.data.ptr for array in (*shown[0], *shown[1])]
    assert ran == [dict(zip("012345678", pointers, strict=True))] * 2


def test_what_has_no_engine_is_left_alone(ran):
    given = [on_device(a) for a in arrays("forward")[0]]
    assert not cudnn_attention.forward(given, None, False, 7)
    odd = [on_device(np.zeros((1, 1, 4, 6), "f2"))] * 5
    assert not cudnn_attention.forward(odd, None, False, 1.0)
    wide = [on_device(np.zeros((1, 1, 4, 8), "f4"))] * 5
    assert not cudnn_attention.forward(wide, None, False, 1.0)
    assert ran == []


def test_the_user_may_turn_it_off(ran, monkeypatch):
    import tensorplug as tp

    given = [on_device(a) for a in arrays("forward")[0]]
    tp.backends.cuda.enable_cudnn_sdp(False)
    try:
        assert not cudnn_attention.forward(given, None, False, 0.5)
    finally:
        tp.backends.cuda.enable_cudnn_sdp(True)
    assert cudnn_attention.forward(given, None, False, 0.5)


def test_masks_are_made_finite(monkeypatch):
    monkeypatch.setattr(attention, "cp", np)
    query, key = np.zeros((2, 3, 4, 8), "f2"), np.zeros((2, 3, 5, 8), "f2")
    allowed = np.ones((4, 5), bool)
    allowed[2] = False
    numbers, blocked = attention._finite_mask(allowed, query, key)
    assert numbers.shape == (1, 1, 4, 5)
    assert np.isfinite(numbers).all()
    assert blocked.shape == (2, 3, 4)
    assert blocked[1, 1].tolist() == [False, False, True, False]
    added = np.full((2, 1, 1, 5), -np.inf, "f2")
    numbers, blocked = attention._finite_mask(added, query, key)
    assert numbers.shape == (2, 1, 4, 5)
    assert blocked.all()
