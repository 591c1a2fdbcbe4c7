"""The harness, on a clock that only moves when a function under test moves it."""

import json
import math
import re

import numpy as np
import pytest
from benchmarks import harness, imports, overhead
from benchmarks.harness import Case, Result


class Clock:
    """Time that stands still but for `advance`."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def advance(self, seconds):
        self.now += seconds


class Library:
    """Work that takes a known time and returns known numbers."""

    def __init__(self, clock, seconds, numbers=(1.0, 2.0)):
        self.clock = clock
        self.seconds = seconds
        self.numbers = np.array(numbers, dtype=np.float32)
        self.calls = 0

    def work(self):
        self.calls += 1
        self.clock.advance(self.seconds)
        return self.numbers


CASE = Case("work", lambda library: library.work, tolerance=1e-3)


def measure(ours, theirs, **options):
    return harness.measure(CASE, ours, theirs, rounds=5, clock=ours.clock, **options)


def test_medians_and_their_ratio():
    clock = Clock()
    result = measure(Library(clock, 2e-6), Library(clock, 8e-6))
    assert result.ours == pytest.approx(2e-6)
    assert result.theirs == pytest.approx(8e-6)
    assert result.ratio == pytest.approx(0.25)
    assert result.agrees
    assert result.difference == 0


def test_one_slow_turn_does_not_move_the_median():
    clock = Clock()
    ours, theirs = Library(clock, 1e-3), Library(clock, 1e-3)

    def stumbling():
        ours.seconds = 1.0 if ours.calls == 8 else 1e-3
        return Library.work(ours)

    ours.work = stumbling
    result = measure(ours, theirs, seconds=1e-3)
    assert result.ours == pytest.approx(1e-3)


def test_libraries_take_turns():
    clock = Clock()
    order = []

    def make(name):
        def function():
            order.append(name)
            clock.advance(1.0)
            return 0.0

        return function

    harness.measure(Case("turns", make), "a", "b", rounds=3, seconds=0.5, clock=clock)
    compared, calibrated, timed = order[:6], order[6:8], order[8:]
    assert compared == ["a", "b"] * 3
    assert calibrated == ["a", "b"]
    assert timed == ["a", "b", "b", "a", "a", "b"]


@pytest.mark.parametrize("cost", [1e-7, 3e-6, 1e-3, 0.5])
def test_calibration_lasts_long_enough_and_not_much_longer(cost):
    clock = Clock()
    calls = harness.calls_lasting(0.01, lambda: clock.advance(cost), clock)
    assert calls * cost >= 0.01 * (1 - 1e-9)
    assert calls == 1 or calls * cost < 0.1


def test_calibration_ends_on_a_clock_that_stands_still():
    assert harness.calls_lasting(0.01, lambda: None, Clock()) == harness.MOST_CALLS


def test_garbage_collection_is_as_before():
    import gc

    assert gc.isenabled()
    clock = Clock()
    seen = []
    case = Case(
        "collector", lambda library: lambda: (seen.append(gc.isenabled()), clock.advance(1))
    )
    harness.measure(case, None, None, clock=clock)
    assert seen[-1] is False
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("ours", "theirs", "difference"),
    [
        (np.float32(1), np.float32(1), 0.0),
        (np.ones(3), np.full(3, 0.5), 0.5),
        ([np.ones(3), np.array([0, 2.0])], [np.ones(3), np.array([0, -2.0])], 2.0),
        (np.array([9.0, 100.0]), np.array([10.0, 100.0]), 0.01),
        (np.array([True, False]), np.array([True, True]), 1.0),
        (np.ones(3), np.ones(4), math.inf),
        (np.ones(3), [np.ones(3), np.ones(3)], math.inf),
        (np.ones(3, np.float32), np.ones(3, np.float64), math.inf),
        (np.ones(0), np.ones(0), 0.0),
    ],
)
def test_difference(ours, theirs, difference):
    assert harness.largest_difference(lambda: ours, lambda: theirs) == difference


def test_not_a_number_disagrees():
    nan = np.array([math.nan])
    difference = harness.largest_difference(lambda: nan, lambda: nan)
    assert not Result("nan", 1, 1, difference, tolerance=1.0).agrees


def test_state_that_drifts_apart_is_seen():
    def counter(step):
        total = np.zeros(())

        def function():
            nonlocal total
            total = total + step
            return total

        return function

    assert (
        harness.largest_difference(counter(0.125), counter(0.25)) == 0.125 * harness.COMPARED_CALL
    )


def test_disagreement_shows_in_the_table():
    clock = Clock()
    agree = measure(Library(clock, 2e-6), Library(clock, 1e-6, (1.0, 2.0005)))
    disagree = measure(Library(clock, 2e-6), Library(clock, 1e-6, (1.0, 2.5)))
    assert agree.agrees
    assert not disagree.agrees
    assert "agree" in harness.row(agree)
    assert "DISAGREE (2e-01 of 1e-03)" in harness.row(disagree)


def test_row():
    line = harness.row(Result("name", 2.5e-6, 5e-9, difference=0, tolerance=1e-5))
    assert " ".join(line.split()) == "name 2.50 µs 5 ns 500.00 agree (0e+00 of 1e-05)"
    columns = harness.HEADER
    assert columns.index("ratio") + len("ratio") == line.index("500.00") + len("500.00")


def test_a_case_that_fails_is_reported_with_its_error():
    def make(library):
        raise NotImplementedError(f"no {library} here\nand more")

    result = harness.measure(Case("broken", make), "kernel", "kernel")
    assert not result.agrees
    assert harness.row(result).endswith("NotImplementedError: no kernel here")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.0, "2.00 s"), (0.012, "12.00 ms"), (3.21e-6, "3.21 µs"), (4.2e-8, "42 ns")],
)
def test_duration(seconds, text):
    assert harness.duration(seconds) == text


def test_mean_ratio_is_geometric_and_leaves_failures_out():
    failed = Result("failed", math.nan, math.nan, math.nan, 0.0, "Error")
    results = [Result("a", 1, 4, 0, 0), Result("b", 4, 1, 0, 0), failed]
    assert harness.mean_ratio(results) == pytest.approx(1.0)
    assert math.isnan(harness.mean_ratio([failed]))


def test_json(tmp_path):
    failed = Result("failed", math.nan, math.nan, math.nan, 0.0, "Error: why")
    path = tmp_path / "new" / "results.json"
    harness.write_json(path, [Result("a", 1.0, 4.0, 0.0, 1e-5), failed], {"threads": 1})
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["threads"] == 1
    assert content["mean_ratio"] == pytest.approx(0.25)
    first, second = content["cases"]
    assert (first["name"], first["ratio"], first["agrees"]) == ("a", 0.25, True)
    assert (second["ratio"], second["agrees"], second["error"]) == (None, False, "Error: why")


def test_picture(tmp_path):
    pytest.importorskip("matplotlib")
    failed = Result("failed", math.nan, math.nan, math.nan, 0.0, "Error")
    path = tmp_path / "new" / "ratios.png"
    harness.draw(path, [Result("a", 1, 4, 0, 0), Result("b", 3, 1, 0, 0), failed], "title")
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_missing_torch_is_said(monkeypatch, capsys):
    find = overhead.importlib.util.find_spec
    monkeypatch.setattr(
        overhead.importlib.util, "find_spec", lambda name: None if name == "torch" else find(name)
    )
    with pytest.raises(SystemExit) as stopped:
        overhead.main([])
    assert stopped.value.code == 2
    assert "torch is not installed" in capsys.readouterr().err


def test_bad_pattern_is_said(capsys):
    with pytest.raises(SystemExit) as stopped:
        overhead.main(["--filter", "add("])
    assert stopped.value.code == 2
    assert "'add(' is no regular expression" in capsys.readouterr().err


def test_an_import_that_fails_is_reported(monkeypatch):
    monkeypatch.setitem(imports.STATEMENTS, "bad", "raise ImportError('no {}')")
    result, note = imports.measure_import("bad", rounds=1)
    assert result.error == "ImportError: no tensorplug"
    assert not result.agrees
    assert note == ""


def test_import_compares_the_numbers(monkeypatch):
    monkeypatch.setitem(imports.STATEMENTS, "odd", "number = len('{}')")
    result, note = imports.measure_import("odd", rounds=1)
    assert result.difference == len("tensorplug") - len("torch")
    assert result.ours > 0
    assert re.fullmatch(
        r"odd: NumPy alone takes .*; tensorplug adds -?\d+ ms, torch -?\d+ ms", note
    )
