"""The generators of calls share their cases, and how they compare with torch."""

import sys
from pathlib import Path

sys.path.extend([str(Path(__file__).parent), str(Path(__file__).parents[1] / "ops")])
