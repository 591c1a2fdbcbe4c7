"""The benchmark of compiled networks compares numbers, and leaves out what cannot run."""

import json
import time

import numpy as np
from benchmarks import compiled

import tensorplug as tp


def broken():
    raise RuntimeError("not today")


def test_numbers_are_compared(capsys):
    calls = {
        "torch": broken,
        "tensorplug": lambda: np.ones(2),
        "tp.compile": lambda: np.full(2, 1.5),
    }
    times, difference = compiled.in_turns(calls, 3, time.process_time)
    assert list(times) == ["tensorplug", "tp.compile"]
    assert difference == 0.5
    assert "torch cannot run it: not today" in capsys.readouterr().err


def test_wrong_numbers_end_it(monkeypatch, tmp_path, capsys):
    calls = {"tensorplug": lambda: np.ones(2), "tp.compile": lambda: np.zeros(2)}
    monkeypatch.setattr(compiled, "contenders", lambda case: calls)
    monkeypatch.setattr(compiled.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(tp, "set_num_threads", lambda number: None)
    options = ["--filter", "^gpt$", "--rounds", "1", "--out", str(tmp_path)]
    assert compiled.main(options) == 1
    assert "numbers disagree: gpt" in capsys.readouterr().err
    found = json.loads((tmp_path / "compiled.json").read_text("utf-8"))
    assert found["cases"]["gpt"]["difference"] == 1.0
