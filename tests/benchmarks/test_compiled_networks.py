"""Training steps of the benchmarks' networks run as one graph, however many there are."""

import pytest
from benchmarks.compiled_steps import stepper


@pytest.mark.parametrize("name", ["mlp", "ncf", "vit", "gpt"])
def test_one_graph_serves_all_steps(name):
    step = stepper(name, False, True, None)
    for _ in range(12):
        step()
    found = step.loss_of.explain()
    assert (len(found.graphs), found.breaks) == (1, [])
    assert found.calls == 11
