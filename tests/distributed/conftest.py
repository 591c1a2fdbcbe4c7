"""The helpers in this folder, for its tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
