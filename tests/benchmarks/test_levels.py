"""The benchmark of SIMD levels measures each level apart, and names what is slower at the higher one."""

import json
import subprocess
from dataclasses import asdict

import pytest
from benchmarks import levels
from benchmarks.breadth_page import Cell

import tensorplug as tp


@pytest.fixture
def at(monkeypatch, tmp_path):
    """Return a function that runs it at a level, with runs of the breadth table replaced by some seconds."""

    def run(best, seconds, *arguments):
        asked = []

        def measure(command, env, **_):
            asked.append((env["TENSORPLUG_CPU_SIMD"], command))
            folder = tmp_path / env["TENSORPLUG_CPU_SIMD"]
            folder.mkdir()
            rows = [
                asdict(
                    Cell(name, "top level", "1e4", "forward", *taken, error="" if taken else "no")
                )
                for name, taken in seconds[env["TENSORPLUG_CPU_SIMD"]].items()
            ]
            (folder / "breadth.json").write_text(json.dumps({"cells": rows}))

        monkeypatch.setattr(tp.cpu, "simd_level", lambda: best, raising=False)
        monkeypatch.setattr(subprocess, "run", measure)
        return levels.main(["--out", str(tmp_path), *arguments]), asked

    return run


def test_what_is_slower_at_the_higher_level_is_named(at, capsys):
    slow = {
        "v2": {"add": [1.0], "neg": [1.0], "exp": []},
        "v3": {"add": [1.5], "neg": [0.5], "exp": [9.0]},
    }
    status, asked = at("v3", slow, "--sizes", "1e4")
    assert status == 1
    assert [level for level, _ in asked] == ["v2", "v3"]
    assert all(command[-2:] == ["--sizes", "1e4"] for _, command in asked)
    out = capsys.readouterr().out
    assert "1.50  add 1e4 forward" in out
    assert "neg" not in out
    assert "exp" not in out  # failed at one of the levels


def test_each_level_is_held_to_the_one_below(at, capsys):
    status, _ = at("v4", {"v2": {"add": [1.0]}, "v3": {"add": [0.5]}, "v4": {"add": [0.6]}})
    assert status == 0
    assert "v3: 0.50 of the level below" in capsys.readouterr().out


def test_nothing_measured_at_both_is_an_error(at):
    assert at("v3", {"v2": {"add": [1.0]}, "v3": {"neg": [1.0]}})[0] == 2


def test_a_processor_of_one_level_is_told(at, capsys):
    assert at("v2", {}) == (2, [])
    assert "several levels" in capsys.readouterr().err
