"""The benchmarks aren't installed: they are imported from the repository."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
