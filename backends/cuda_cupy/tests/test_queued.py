"""A training step asks for nothing that would wait for the GPU: not the library above, not the kernels."""

import json
import os
import subprocess
import sys
from pathlib import Path

import host
import pytest
from conftest import SOURCES

PROGRAM = Path(__file__).with_name("queued_steps.py")
CASES = [
    ("layers", "SGD", {"momentum": 0.9}, "none"),
    ("layers", "AdamW", {"fused": True}, "float16"),
    ("layers", "SGD", {"momentum": 0.9, "fused": True}, "bfloat16"),
    ("layers", "Adafactor", {}, "none"),
    ("images", "AdamW", {}, "none"),
    ("sequences", "RMSprop", {}, "none"),
    ("tokens", "AdamW", {"fused": True}, "none"),
]
#: Without `fused`, the scaler asks the host whether to take the step.
WAITING = ("layers", "AdamW", {}, "float16")


@pytest.fixture(scope="module")
def results():
    host.compiler()
    command = [sys.executable, str(PROGRAM), json.dumps([*CASES, WAITING])]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}  # it may not be installed
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-5000:]
    return json.loads(done.stdout)


@pytest.mark.xdist_group("cuda sources on the host")  # one worker compiles them
@pytest.mark.parametrize("number", range(len(CASES)), ids=["-".join(map(str, c)) for c in CASES])
def test_training_waits_for_nothing(results, number):
    found = results[number]
    assert isinstance(found, list), found
    tolerance = 1e-5 if CASES[number][3] == "none" else 2e-2
    assert found[0] == pytest.approx(found[1], rel=tolerance)


def test_what_waits_is_noticed(results):
    assert "called a synchronizing CUDA operation" in results[-1]
