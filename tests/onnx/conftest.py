"""The runner of ONNX's backend tests is a program beside the tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
