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
    """Register the plugins where there is a device and the package is not installed."""
    import tensorplug as tp
    from tensorplug_cuda_cupy import amp, networks, optimizers, plugin

    known = any(found.device == "cuda" for found in tp.plugins.installed())
    if plugin.runtime.unavailable_reason() is None and not known:
        for one in (plugin, networks, optimizers, amp):
            tp.plugins.register(one)
