"""The benchmark of chains goes through the pointwise ops, each in a graph of its own."""

import pytest
from benchmarks import chains

import tensorplug as tp


def test_cases_are_pointwise_ops_and_activations(monkeypatch):
    monkeypatch.setattr(chains, "ELEMENTS", 7)
    names = []
    for name, function, given in chains.cases(tp.float32):
        assert function(*given).shape == (7,)
        names.append(name)
    assert {"add", "exp", "gelu", "maximum", "relu"} <= set(names)
    assert not {"bitwise_not", "eq", "lerp"} & set(names)  # of other dtypes, or of three arguments


def test_ratios_are_of_compiled_to_eager_calls(monkeypatch):
    monkeypatch.setattr(chains, "ELEMENTS", 7)
    monkeypatch.setattr(tp, "set_num_threads", lambda number: None)
    ratios = chains.measured(tp.float64, 1)
    assert ratios.keys() == {name for name, *_ in chains.cases(tp.float64)}
    assert all(ratio > 0 for ratio in ratios.values())


def test_a_processor_of_one_level_is_told(monkeypatch, capsys):
    monkeypatch.setattr(tp.cpu, "simd_level", lambda: "plain", raising=False)
    assert chains.main([]) == 2
    assert "several levels" in capsys.readouterr().err


@pytest.mark.parametrize(("worst", "status"), [(1.9, 0), (8.0, 1)])
def test_a_chain_that_takes_twice_the_ops_is_an_error(monkeypatch, capsys, worst, status):
    monkeypatch.setattr(tp.cpu, "simd_level", lambda: "v3", raising=False)
    monkeypatch.setattr(chains, "at_level", lambda *_: {"add": 0.5, "relu": worst})
    assert chains.main([]) == status
    assert f"relu {worst:.2f}" in capsys.readouterr().out
