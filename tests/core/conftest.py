"""The generators of calls share their cases, and how they compare with torch."""

import gc
import sys
from pathlib import Path

import pytest

sys.path.extend([str(Path(__file__).parent), str(Path(__file__).parents[1] / "ops")])


@pytest.fixture
def nothing_looks_on():
    """Collect what tests before left: while a tensor of a subclass lives, calls take the long way."""
    gc.collect()
