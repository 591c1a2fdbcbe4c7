"""SciPy and scikit-learn compute on our tensors what they compute on NumPy's arrays."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).with_name("science_cases.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "minimum", "count"), [("scipy", "1.15", 26), ("sklearn", "1.6", 35)]
)
def test_results_are_those_on_numpy_arrays(library, minimum, count):
    pytest.importorskip(library, minversion=minimum, reason="its array API support is tested")
    done = subprocess.run(
        [sys.executable, CASES, library], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    differences = json.loads(done.stdout)
    wrong = [f"{name}: {what}" for name, what in differences.items() if what]
    assert not wrong, "\n".join(wrong)
    assert len(differences) == count
