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
    turns = compiled.in_turns(calls, 3, time.process_time)
    assert list(turns.times) == list(turns.start) == ["tensorplug", "tp.compile"]
    assert turns.difference == 0.5
    assert "torch cannot run it: not today" in capsys.readouterr().err


def test_starts_pay_after_so_many_calls():
    ticks = iter([0.0, 0.3, 0.3, 4.3, *np.cumsum([4.3, 0.1, 0.0, 0.06]).tolist()])
    calls = {"tensorplug": lambda: np.ones(2), "tp.compile": lambda: np.ones(2)}
    turns = compiled.in_turns(calls, 1, lambda: next(ticks))
    np.testing.assert_allclose([*turns.times.values()], [100, 60])
    np.testing.assert_allclose([*turns.start.values()], [0, 4 - 0.18], atol=1e-9)
    np.testing.assert_allclose(turns.pays("tp.compile", "tensorplug"), 3.82 / 0.04)
    assert turns.pays("tensorplug", "tp.compile") == np.inf
    assert " 95 " in compiled.row("network", turns, 0.5)


def test_wrong_numbers_end_it(monkeypatch, tmp_path, capsys):
    calls = {"tensorplug": lambda: np.ones(2), "tp.compile": lambda: np.zeros(2)}
    monkeypatch.setattr(compiled, "contenders", lambda case: (calls, 1e9))
    monkeypatch.setattr(compiled.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(tp, "set_num_threads", lambda number: None)
    options = ["--filter", "^gpt$", "--rounds", "1", "--out", str(tmp_path)]
    assert compiled.main(options) == 1
    assert "numbers disagree: gpt" in capsys.readouterr().err
    found = json.loads((tmp_path / "compiled.json").read_text("utf-8"))
    assert found["cases"]["gpt"]["difference"] == 1.0
