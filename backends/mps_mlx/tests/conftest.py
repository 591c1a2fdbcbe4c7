import sys
from pathlib import Path

import pytest

# The package may be tested where it is not installed; its sources then serve.
try:
    import tensorplug_mps_mlx  # noqa: F401
except ImportError:
    sys.path.insert(0, str(Path(__file__).parents[1] / "src"))


@pytest.fixture
def mps():
    """Return the plugin; skip where MLX is missing."""
    import tensorplug as tp
    from tensorplug_mps_mlx import plugin

    reason = plugin.runtime.unavailable_reason()
    if reason is not None:
        pytest.skip(reason)
    if not any(found.device == "mps" for found in tp.plugins.installed()):
        tp.plugins.register(plugin)
        yield plugin
        tp.plugins.unregister("mps_mlx")
    else:
        yield plugin
