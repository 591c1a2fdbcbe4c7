"""A training step asks for nothing that would wait for the GPU: not the library above, not the kernels."""

import os
import subprocess
import sys
from pathlib import Path

import host
import pytest
from conftest import SOURCES

PROGRAM = Path(__file__).with_name("queued_steps.py")


@pytest.mark.xdist_group("cuda sources on the host")
@pytest.mark.parametrize(
    ("optimizer", "options", "dtype"),
    [
        ("SGD", {"momentum": 0.9}, "none"),
        ("AdamW", {}, "none"),
        ("AdamW", {"fused": True}, "float16"),
        ("SGD", {"momentum": 0.9, "fused": True}, "bfloat16"),
        ("Adafactor", {}, "none"),
    ],
)
def test_training_waits_for_nothing(optimizer, options, dtype):
    host.compiler()
    command = [sys.executable, str(PROGRAM), optimizer, repr(options), dtype]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}  # it may not be installed
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-5000:]
    losses = [float(loss) for loss in done.stdout.split()]
    assert losses[:3] == pytest.approx(losses[3:], rel=1e-5 if dtype == "none" else 2e-2)
