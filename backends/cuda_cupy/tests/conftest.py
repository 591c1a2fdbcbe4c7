import ctypes
import os
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


@pytest.fixture(autouse=True, scope="session")
def registered():
    """Register the plugin where there is a device and the package is not installed."""
    import tensorplug as tp
    from tensorplug_cuda_cupy import plugin

    known = any(found.device == "cuda" for found in tp.plugins.installed())
    if plugin.runtime.unavailable_reason() is None and not known:
        tp.plugins.register(plugin)


@pytest.fixture(autouse=True)
def sizes_of_arguments(monkeypatch):
    """Compare each argument of a kernel with what the kernel takes, which CUDA is not told."""
    if "HOSTED_FOLDER" not in os.environ:
        return
    import numpy as np

    from tensorplug_cuda_cupy import sources

    driver, launch = ctypes.CDLL("libcuda.so.1"), sources.launch
    driver.hosted_size_of.restype = ctypes.c_size_t

    def size_of(argument):
        is_number = isinstance(argument, (np.generic, np.ndarray))
        return argument.nbytes if is_number else ctypes.sizeof(ctypes.c_void_p)

    def checked(source, name, dtype, blocks, arguments, **macros):
        kernel = sources.function(source, name, dtype, tuple(sorted(macros.items()))).kernel
        place = ctypes.c_void_p(kernel.ptr)
        taken = [driver.hosted_size_of(place, i) for i in range(len(arguments) + 1)]
        assert [*map(size_of, arguments), 0] == taken, f"{source}.cu: {name}"
        launch(source, name, dtype, blocks, arguments, **macros)

    monkeypatch.setattr(sources, "launch", checked)
