"""A tensor tells its device's runtime which streams use it."""

import tensorplug as tp
from tensorplug.core.device.runtime import DeviceRuntime


def test_the_runtime_is_told(monkeypatch):
    told = []
    monkeypatch.setattr(DeviceRuntime, "record_stream", lambda self, *given: told.append(given))
    x = tp.ones(2)
    assert x.record_stream("a stream") is None
    assert told == [(x._array, "a stream")]


def test_a_device_without_streams_notes_nothing():
    assert tp.ones(2).record_stream(None) is None
