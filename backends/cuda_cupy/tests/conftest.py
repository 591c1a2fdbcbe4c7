import sys
from pathlib import Path

import pytest

# The package may be tested where it is not installed; its sources then serve.
SOURCES = Path(__file__).parents[1] / "src"
try:
    import tensorplug_cuda_cupy  # noqa: F401
except ImportError:
    sys.path.insert(0, str(SOURCES))
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def on_host(monkeypatch):
    """Let the kernels take NumPy's arrays and run the CUDA sources on the host."""
    import host
    import numpy as np

    from tensorplug_cuda_cupy import sources
    from tensorplug_cuda_cupy.kernels import (
        activations,
        adafactor,
        amp,
        attention,
        batchnorm,
        convolution,
        cudnn_attention,
        embedding,
        gemm,
        layouts,
        losses,
        more_optimizers,
        networks,
        optimizers,
        positions,
        random,
        recurrent,
        rownorm,
        softmaxes,
        unit_vectors,
    )

    host.compiler()
    for module in (
        activations, adafactor, amp, attention, batchnorm, convolution, embedding, gemm, layouts, losses,
        networks, optimizers, positions, random, recurrent, rownorm, softmaxes, unit_vectors,
    ):  # fmt: skip
        monkeypatch.setattr(module, "cp", np)
    for module in (more_optimizers, optimizers, positions):
        monkeypatch.setattr(module, "address", lambda array: array.ctypes.data)
    monkeypatch.setattr(sources, "launch", host.launch)
    for module in (attention, convolution, networks):
        monkeypatch.setattr(module, "matmul", np.matmul)
    monkeypatch.setattr(networks, "product_with_bias", lambda *_: None)
    for name in ("forward", "backward"):
        monkeypatch.setattr(cudnn_attention, name, lambda *_: False)
    monkeypatch.setattr(convolution, "convolve", lambda *_: False)
