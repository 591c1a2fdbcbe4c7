"""How programs are compared, compiled and as they are."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tensorplug as tp

# Instructions of random programs are shared with those of autograd.
sys.path.append(str(Path(__file__).parents[1] / "programs"))


def facts(value: Any) -> Any:
    """Return what can be seen of tensors in any nesting."""
    if isinstance(value, tp.Tensor):
        made = value.detach().clone()
        return (
            value.dtype, tuple(value.shape), value.stride(), value.requires_grad, value.is_leaf,
            value.grad_fn is None, value.is_inference(), made.numpy().tobytes(),
        )  # fmt: skip
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *map(facts, value)]
    return repr(value)


def run(program: Callable[[Any], Any], wrap: Callable[[Any], Any]) -> list[Any]:
    """Return all that a program shows, given what compiles its functions."""
    tp.manual_seed(0)
    seen: list[Any] = []
    try:
        seen.extend(facts(shown) for shown in program(wrap))
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        seen.append(f"{type(error).__name__}: {error}"[:300])
    return seen


@pytest.fixture
def alike() -> Callable[[Any], None]:
    """Return what asserts that a program shows the same when its functions are compiled."""

    def check(program: Callable[[Any], Any]) -> None:
        with tp.random.fork_rng():
            wanted = run(program, lambda function: function)
            found = run(program, tp.compile)
            after = tp.rand(2).tolist()
            run(program, lambda function: function)
            assert found == wanted
            assert after == tp.rand(2).tolist()
            assert not isinstance(wanted[-1], str) or not wanted[-1].startswith("RuntimeError")

    return check
