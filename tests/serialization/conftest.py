"""The tests of files share what mutates them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
