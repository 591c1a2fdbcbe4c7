"""An example's files find each other beside them, as when one of them is run as a script."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "examples" / "digits"))
