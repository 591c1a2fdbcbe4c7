"""The runner of ONNX's backend tests is a program beside the tests; others share programs with these."""

import sys
from pathlib import Path

sys.path.extend([str(Path(__file__).parent), str(Path(__file__).parents[1] / "programs")])
