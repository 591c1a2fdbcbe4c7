"""The tests of training share the parts that random programs are made of."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
