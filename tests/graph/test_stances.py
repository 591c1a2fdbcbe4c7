"""Stances of the compiler: which calls of compiled functions run as graphs."""

import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.graph import set_stance


@pytest.fixture(autouse=True)
def the_default_afterwards():
    yield
    set_stance("default")


def made(of):
    return tp.compile((lambda x: x * 2) if of == "function" else nn.Linear(3, 3))


def counts(compiled):
    found = compiled.explain()
    return found.captures, found.calls, found.eager


@pytest.mark.parametrize("of", ["function", "module"])
def test_a_stance_holds_for_a_block_for_a_function_or_until_another(of):
    compiled = made(of)
    x = tp.arange(3.0)
    compiled(x)
    with set_stance("force_eager"), set_stance("default"), set_stance("force_eager"):
        compiled(x)
    assert counts(compiled) == (1, 0, 1)

    @set_stance("force_eager")
    def eagerly():
        return compiled(x)

    compiled(x)
    tp.testing.assert_close(eagerly(), eagerly())
    assert counts(compiled) == (1, 1, 3)
    set_stance("force_eager")
    compiled(x)
    set_stance("default")
    compiled(x)
    assert counts(compiled) == (1, 2, 4)


def test_calls_that_no_graph_holds_for():
    compiled = made("function")
    with set_stance("eager_on_recompile"):
        assert compiled(tp.ones(1)).item() == 2
    with set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match="fail_on_recompile"):
        compiled(tp.ones(1))
    assert counts(compiled) == (0, 0, 1)
    compiled(tp.ones(2))
    for stance in ("eager_on_recompile", "fail_on_recompile", "eager_then_compile"):
        with set_stance(stance):
            compiled(tp.ones(2))
    assert counts(compiled) == (1, 3, 1)


def test_a_stance_that_is_none():
    with pytest.raises(RuntimeError, match="got 'eager'"):
        set_stance("eager")
