"""The breadth table: what it says of cells, and one operator in full."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from benchmarks import breadth, breadth_page
from benchmarks.breadth_page import Cell

CELLS = [
    Cell("add", "top level", "small", "forward", 1.0, 2.0, "agree"),
    Cell("sub", "top level", "small", "forward", 4.0, 2.0, "agree"),
    Cell("linalg.lu", "linalg", "small", "forward", 9.0, 3.0, "DIFFER"),
    Cell("fft.fft", "fft", "small", "forward", error="TypeError: no"),
]


def test_means_and_shares():
    lines = breadth_page.summary([cell for cell in CELLS if not cell.error])
    assert "| top level | 1.00, 50%/0% of 2 |" in lines
    assert "| linalg | 3.00, 100%/100% of 1 |" in lines
    assert "| all | 1.44, 67%/33% of 3 |" in lines


def test_what_is_worst_and_what_was_not_timed_is_named():
    text = breadth_page.page(CELLS, "Today.")
    assert "- linalg, small, forward: lu 3.0" in text
    assert "Numbers that differ from torch's: linalg.lu." in text
    assert "refuses the sample: fft.fft." in text
    assert "add 0.5" not in text


def test_larger_forms_that_were_left_out_are_named_with_the_reason():
    left_out = [
        Cell("igamma", "top level", "1e7", "forward", error="TimeoutError: a call takes too long"),
        Cell("cdist", "top level", "1e7", "forward", error="MemoryError: "),
        Cell("outer", "top level", "1e7", "forward", error="RuntimeError: not enough memory for 9"),
        Cell("mode", "top level", "1e7", "backward", error="TimeoutError: a call takes too long"),
        Cell("add", "top level", "1e7", "forward", 1.0, 2.0, "agree"),
    ]
    text = breadth_page.page([*CELLS, *left_out], "Today.")
    assert (
        "Left out at 1e7, forward: igamma (TimeoutError: a call takes too long); "
        "cdist, outer (memory)."
    ) in text
    assert "Left out at 1e7, backward: mode (TimeoutError: a call takes too long)." in text
    assert "refuses the sample: fft.fft." in text


def test_the_table_goes_between_the_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"a\n{breadth_page.BEGIN}\nold\n{breadth_page.END}\nb\n", "utf-8")
    for text in ("new", "newer"):
        breadth_page.write_between(page, text)
    assert page.read_text("utf-8") == f"a\n{breadth_page.BEGIN}\nnewer\n{breadth_page.END}\nb\n"
    page.write_text("no markers", "utf-8")
    with pytest.raises(ValueError, match="has no markers"):
        breadth_page.write_between(page, "new")


def test_verdicts():
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    import tensorplug as tp

    def verdict(ours, theirs, again):
        return breadth.verdict("add", [tp.tensor(ours)], theirs, again, (tp, torch))

    one, two = torch.tensor([1.0, math.nan]), torch.tensor([2.0, math.nan])
    assert verdict([1.0, math.nan], one, one) == "agree"
    assert verdict([1.1, math.nan], one, one) == "DIFFER"
    assert verdict([1.0], one, one) == "DIFFER"
    assert verdict([7.0, 8.0], one, two) == "random"


def test_parts_of_a_table_are_put_together(tmp_path):
    rows = [{**asdict(cell), "ratio": None} for cell in CELLS]
    rows[3].update(ours=None, theirs=None)
    part = tmp_path / "part.json"
    part.write_text(json.dumps({"cells": rows}), "utf-8")
    found = breadth_page.cells_of(part)
    assert found[:3] == CELLS[:3]
    assert found[3].error == CELLS[3].error
    assert math.isnan(found[3].ours)


def test_a_quick_run_takes_fewer_turns():
    pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    assert breadth.parse(["--quick"]).rounds < breadth.parse([]).rounds
    assert breadth.parse(["--quick", "--rounds", "9"]).rounds == 9


@pytest.mark.slow
def test_an_operator_at_three_sizes(tmp_path, capsys):
    pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    assert (
        breadth.main(
            ["--filter", "^(cosh|linalg.lu_solve)$", "--rounds", "1", "--out", str(tmp_path)]
        )
        == 0
    )
    found = json.loads((tmp_path / "breadth.json").read_text("utf-8"))
    cells = {(c["name"], c["size"], c["way"]): c for c in found["cells"]}
    assert {
        ("cosh", size, way) for size in breadth.USUAL.split(",") for way in ("forward", "backward")
    } <= set(cells)
    assert all(cell["verdict"] == "agree" and np.isfinite(cell["ratio"]) for cell in cells.values())
    assert "Geometric mean" in capsys.readouterr().out


@pytest.mark.slow
def test_an_operator_in_some_dtypes(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    options = ["--filter", "^(neg|bitwise_or)$", "--rounds", "1", "--sizes", "small,1e4"]
    dtypes = ["--dtypes", "bfloat16,bool,int64"]
    assert breadth.main([*options, *dtypes, "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "breadth.json").read_text("utf-8"))
    assert {(c["name"], c["size"], c["way"]): c["verdict"] for c in found["cells"]} == {
        (name, f"{size} {dtype}", "forward"): "agree"
        for name, dtypes in (("neg", ("bfloat16", "int64")), ("bitwise_or", ("bool", "int64")))
        for size in ("small", "1e4")
        for dtype in dtypes
    }


def test_the_table_of_dtypes_is_not_that_of_the_page(capsys):
    pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    with pytest.raises(SystemExit):
        breadth.parse(["--dtypes", "int64", "--write", "page.md"])
    assert "--dtypes" in capsys.readouterr().err
