"""Calls whose rule converts a tensor are replayed, the conversion as a step, unless they are recorded."""

from collections.abc import Callable
from typing import Any

import pytest

import tensorplug as tp
from tensorplug.core.dispatch.call_cache import CallCache, _caches, clear_call_caches

FLOATS = tp.tensor([[0.5, -1.5, 2.0], [1.0, 0.0, 3.0]])

CALLS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: tp.softmax(x, 1, dtype=tp.float64),
    "log_softmax": lambda x: tp.log_softmax(x, 0, dtype=tp.float64),
    "softmax by name": lambda x: x.softmax(dim=-1, dtype=tp.float64),
    "functional.softmax": lambda x: tp.nn.functional.softmax(x, dim=1, dtype=tp.float64),
    "sum": lambda x: x.sum(1, dtype=tp.float64),
    "mean": lambda x: x.mean(0, dtype=tp.float64),
    "prod": lambda x: x.prod(1, dtype=tp.float64),
    "cumsum": lambda x: x.cumsum(1, dtype=tp.float64),
    "nansum": lambda x: tp.nansum(x, 1, dtype=tp.float64),
}


def programs() -> int:
    """Return how many calls are replayed."""
    found: list[CallCache] = _caches
    return sum([replay.program is not None for c in found for replay in c.replays.values()])


@pytest.mark.usefixtures("nothing_looks_on")
@pytest.mark.parametrize("name", CALLS)
def test_a_conversion_is_replayed(name: str) -> None:
    clear_call_caches()
    call = CALLS[name]
    expected = call(FLOATS)
    assert expected.dtype is tp.float64
    for factor in range(1, 6):
        assert call(FLOATS * factor).tolist() == call((FLOATS * factor).double()).tolist()
    assert programs(), "no call was replayed"


@pytest.mark.parametrize("name", CALLS)
def test_a_recorded_conversion_is_a_node_of_its_own(name: str) -> None:
    clear_call_caches()
    call, gradients = CALLS[name], []
    for _ in range(6):
        with tp.no_grad():
            call(FLOATS)
        leaf = FLOATS.clone().requires_grad_()
        result = call(leaf)
        assert result.requires_grad
        result.pow(2).sum().backward()
        assert leaf.grad is not None
        assert leaf.grad.dtype is tp.float32
        gradients.append((leaf.grad.tolist(), result.grad_fn.name()))
    assert gradients == gradients[:1] * 6
