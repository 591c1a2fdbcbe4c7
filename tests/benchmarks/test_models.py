"""The model suite, on workers that only pretend to work, and once on real ones."""

import json
import math

import pytest
from benchmarks import models
from benchmarks.worker import Work


class Pretender:
    """Takes a known time to find known losses."""

    losses = (3.0, 2.0, 1.0)

    def __init__(self, library, work):
        self.library = library
        self.calls = 0
        self.log = []

    def save(self, path):
        path.write_bytes(b"")

    def load(self, path):
        assert path.exists()

    def mode(self, training):
        self.calls = 0

    def run(self, calls):
        self.calls += calls
        taken = {"tensorplug": 0.1, "torch": 0.4}[self.library]
        return taken * calls, self.losses[min(self.calls, len(self.losses)) - 1]

    def peak(self):
        return {"tensorplug": 100.0, "torch": 300.0}[self.library]

    def close(self):
        pass


class Drifter(Pretender):
    def run(self, calls):
        seconds, loss = super().run(calls)
        return seconds, loss * (1.01 if self.library == "torch" and self.calls == 2 else 1)


class Failing(Pretender):
    def run(self, calls):
        raise RuntimeError("torch: MemoryError: too much\nof it")


def test_ratio_and_peak():
    cases = list(models.measure(Work("mlp"), 3, 0.2, Pretender))
    assert [result.name for result, _ in cases] == ["mlp, inference", "mlp, training step"]
    for result, peak in cases:
        assert result.ratio == pytest.approx(0.25)
        assert result.agrees
        assert result.difference == 0
        assert peak == (100.0, 300.0)


def test_variants_of_torch_run_too():
    started = []

    def start(library, work):
        started.append((library, work.channels_last, work.malloc_tuned))
        return Pretender(library, work)

    cases = models.measure(Work("mlp"), 3, 0.2, start, ["channels_last", "malloc tuned"])
    for result, _ in cases:
        assert result.ratio_to("malloc tuned") == result.ratio_to("channels_last") == result.ratio
        assert list(result.variants) == ["channels_last", "malloc tuned"]
        assert models.row(result, (1.0, 2.0)).endswith("1 (2)          0.25          0.25")
    assert started == [
        ("tensorplug", False, False),
        ("torch", False, False),
        ("torch", True, False),
        ("torch", False, True),
    ]


def test_losses_that_drift_apart_disagree():
    for result, _ in models.measure(Work("mlp"), 3, 0.2, Drifter):
        assert result.difference == pytest.approx(0.01, rel=0.02)
        assert not result.agrees
    for result, _ in models.measure(Work("resnet50"), 3, 0.2, Drifter):
        assert result.agrees  # rounding alone may do that there


def test_failure_is_reported_for_both():
    cases = list(models.measure(Work("mlp"), 3, 0.2, Failing))
    assert [result.error for result, _ in cases] == ["torch: MemoryError: too much"] * 2
    assert all(math.isnan(result.ours) for result, _ in cases)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--filter", "("], "'(' is no regular expression"),
        (["--filter", "squeezenet"], "no network matches 'squeezenet'"),
        (["--threads", "0"], "--threads must be at least 1, got 0"),
    ],
)
def test_bad_input_ends_with_a_message(arguments, message, capsys):
    pytest.importorskip("torch", reason="its absence is said first")
    with pytest.raises(SystemExit) as stopped:
        models.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_real_workers(tmp_path, capsys):
    pytest.importorskip("torch", reason="torch is what the times are compared with")
    arguments = ["--quick", "--rounds", "1", "--batch", "32", "--filter", "ncf|mlp"]
    assert models.main([*arguments, "--out", str(tmp_path)]) == 0
    content = json.loads((tmp_path / "models.json").read_text(encoding="utf-8"))
    names = [case["name"] for case in content["cases"]]
    assert names == ["ncf, inference", "ncf, training step", "mlp, inference", "mlp, training step"]
    for case in content["cases"]:
        assert case["ratio"] > 0
        ours, theirs = content["peak_megabytes"][case["name"]]
        assert ours > 10
        assert theirs > 10
        assert case["variants"]["malloc tuned"]["ratio"] > 0
        assert "channels_last" not in case["variants"]  # there are no images
    assert content["means"]["all training steps, to torch malloc tuned"] > 0
    assert "geometric mean of the ratios of 4 cases" in capsys.readouterr().out
