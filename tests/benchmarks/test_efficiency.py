"""The suite of efficiency: what it makes of times, and that its program runs."""

import json

import pytest
from benchmarks import efficiency
from benchmarks.efficiency import Row

ROW = Row("gpt", "torch", 0.001, 0.004, 0.5, 0.25, 0.8, 0.9, 1.05, 300.0, 7.0)


def test_a_row_shows_milliseconds_and_shares():
    for text in (" 1.0 ", " 4.0 ", "50%, 25%", " 0.80 ", " 0.90 ", " 1.05 ", " 300 ", " 7"):
        assert text in str(ROW)
    assert len(str(ROW)) == len(efficiency.HEADER)


def test_the_quickest_of_turns_counts_and_the_first_does_not():
    times = iter([0.1, 0.2, 5.0, 6.0, 3.0, 7.0])

    def turn():
        return next(times)

    assert efficiency.quickest([turn, turn], 2) == [3.0, 6.0]


def test_losses_that_are_apart_are_an_error():
    efficiency.compare([1.0, 1.0001], 1e-3, "gpt")
    for losses in ([1.0, 1.1], [float("nan"), 1.0]):
        with pytest.raises(RuntimeError, match="gpt: losses disagree"):
            efficiency.compare(losses, 1e-3, "gpt")


@pytest.mark.slow
def test_the_program_runs(tmp_path, capsys):
    for name in ("torch", "sklearn"):
        pytest.importorskip(name, reason=f"{name} is not installed: nothing to compare with")
    few = ["--filter", "^mlp$", "--rounds", "1", "--calls", "1", "--out", str(tmp_path)]
    assert efficiency.main(few) == 0
    rows = json.loads((tmp_path / "efficiency.json").read_text("utf-8"))["rows"]
    assert [row["library"] for row in rows] == ["tensorplug", "torch"]
    assert all(0 < row["step_share"] < 2 and row["half"] > 0 for row in rows)
    assert "geometric means, torch" in capsys.readouterr().out
