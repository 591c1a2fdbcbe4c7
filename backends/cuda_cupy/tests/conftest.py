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
        convolution,
        gemm,
        networks,
        optimizers,
        positions,
        random,
        softmaxes,
    )

    host.compiler()
    for module in (convolution, gemm, networks, optimizers, positions, random, softmaxes):
        monkeypatch.setattr(module, "cp", np)
    for module in (optimizers, positions):
        monkeypatch.setattr(module, "address", lambda array: array.ctypes.data)
    monkeypatch.setattr(sources, "launch", host.launch)
    for module in (convolution, networks):
        monkeypatch.setattr(module, "matmul", np.matmul)
    monkeypatch.setattr(convolution, "convolve", lambda *_: False)
