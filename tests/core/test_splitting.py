"""Tensors taken apart into many: what that means for Python's collector."""

import gc

import pytest

import tensorplug as tp


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize(
    "take_apart",
    [
        lambda x: x.split(1),
        lambda x: x.unbind(),
        lambda x: x.tensor_split(20000),
        lambda x: x.split([1] * 20000),
        lambda x: list(x),
    ],
)
def test_the_collector_stays_as_it_was(take_apart, enabled):
    collections = []
    gc.collect()
    gc.callbacks.append(lambda phase, info: collections.append(phase))
    try:
        if not enabled:
            gc.disable()
        parts = take_apart(tp.arange(20000.0))
        during = len(collections)
        assert len(parts) == 20000
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
        gc.callbacks.pop()
    assert during < 80  # begin and end of what the rest of the call brought about; else some 300
