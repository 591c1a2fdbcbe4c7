"""The tutorials run, with fewer steps than on the site, and compute what they say."""

import runpy

import numpy as np
import pytest

import tensorplug as tp

from .walk import ROOT

FOLDER = ROOT / "docs" / "tutorials"
FEWER = {"EPOCHS = 4": "EPOCHS = 1", "STEPS = 160": "STEPS = 30", 'first", 160)': 'first", 10)'}


@pytest.fixture
def run(tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="the tutorials draw")

    def run(name):
        text = (FOLDER / f"{name}.py").read_text("utf-8")
        for long, short in FEWER.items():
            text = text.replace(long, short)
        (tmp_path / "page.py").write_text(text, "utf-8")
        monkeypatch.chdir(FOLDER)
        found = runpy.run_path(str(tmp_path / "page.py"))
        assert set(FOLDER.iterdir()) == known  # nothing is left behind
        return found

    known = set(FOLDER.iterdir())
    pyplot.switch_backend("agg")
    state = tp.get_rng_state()
    yield run
    pyplot.close("all")
    tp.set_rng_state(state)


def test_every_tutorial_is_run_below():
    names = {path.stem for path in FOLDER.glob("*.py")}
    assert names == {
        "plot_1_digits", "plot_2_char_gpt", "plot_3_autograd", "plot_4_backend", "plot_5_from_torch",
    }  # fmt: skip


@pytest.mark.slow
def test_digits(run):
    pytest.importorskip("sklearn", reason="its package carries the digits")
    assert run("plot_1_digits")["accuracies"][-1] > 0.8


@pytest.mark.slow
def test_char_gpt(run):
    found = run("plot_2_char_gpt")
    assert found["losses"][-1] < 3.4 < 4.0 < found["losses"][0]  # guessing gives ln 62 = 4.13
    assert np.allclose(found["weights"].sum(-1).numpy(), 1, atol=1e-5)


def test_autograd(run):
    found = run("plot_3_autograd")
    assert len(found["calls"]) == 2
    assert tp.allclose(found["newton"][-1], tp.ones(2, dtype=tp.float64), atol=1e-4)


def test_backend(run):
    found = run("plot_4_backend")
    assert found["calls"]["linear"] == 2 * 60 * 2  # layers, steps, trainings
    assert np.allclose(found["again"], found["on_cpu"], atol=1e-3)


def test_from_torch(run, capsys):
    run("plot_5_from_torch")
    assert "All keys matched" in capsys.readouterr().out
