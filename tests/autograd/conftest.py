"""The tests of autograd share the instructions of random programs."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "programs"))
