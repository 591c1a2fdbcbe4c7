"""The suites on a device, here the CPU: what is asked of each is the same everywhere."""

import json
import types

import pytest
from benchmarks import accelerator, devices, models

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=1 installs it")


def test_the_figures_of_a_device(tmp_path, capsys):
    assert accelerator.main(["--quick", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "accelerator.json").read_text("utf-8"))
    for library in ("tensorplug", "torch"):
        figures = found[library]
        assert figures["copy_bandwidth"] > 0
        assert figures["product_peaks"]["float32"] > 0
        assert figures["mlp"]["step_seconds"] > 0
        assert all(figures["verdicts"].values())
    assert "tensorplug:" in capsys.readouterr().out


def test_verdicts():
    figures = {
        "reserved_after_each_step": [5, 7, 7, 8],
        "queueing": {"queued_seconds": 1.0, "done_seconds": 10.0},
        "mlp": {"step_seconds": 2.0, "graph_seconds": 3.0},
    }
    assert list(accelerator.verdicts(figures).values()) == [False, True, False]


def test_a_clock_waits_for_each_library():
    waited = []

    def library(name):
        return types.SimpleNamespace(
            chip=types.SimpleNamespace(synchronize=lambda: waited.append(name))
        )

    look = devices.clock("chip:1", [library("one"), library("other")])
    assert look() <= look()
    assert waited == ["one", "other"] * 2


@pytest.mark.parametrize("library", [tp, torch])
def test_precisions_are_those_of_the_block(library):
    x = library.ones(2, 2)
    with devices.precision(library, "cpu", "bfloat16"):
        assert (x @ x).dtype is library.bfloat16
    with devices.precision(library, "cpu", "bfloat16", autocast=False):
        assert (x @ x).dtype is library.float32
    with devices.precision(library, "cuda", "tf32", autocast=False):
        assert library.backends.cuda.matmul.allow_tf32
        assert library.backends.cudnn.allow_tf32
    assert not library.backends.cuda.matmul.allow_tf32


def test_what_runs_on_a_device():
    options = models.parse(["--device", "cuda", "--filter", "resnet50|mlp"])
    found = [(w.model, w.precision, w.channels_last) for w in models.works(options)]
    precisions = ("float32", "tf32", "bfloat16")
    assert found == [
        *[("resnet50", p, last) for p in precisions for last in (False, True)],
        *[("mlp", p, False) for p in precisions],
    ]
    here = models.parse(["--filter", "mlp"])
    assert [(w.precision, w.device) for w in models.works(here)] == [("float32", "cpu")]


def test_a_network_in_half_precision():
    from benchmarks.worker import Session, Work

    threads = tp.get_num_threads()
    for library in (tp, torch):
        session = Session(library, Work("mlp", precision="bfloat16"))  # sets the number of threads
        session.mode(True)
        first, second = session.run(1)[1], session.run(3)[1]
        assert second < first
        assert session.peak(None) > 0
    tp.set_num_threads(threads)
