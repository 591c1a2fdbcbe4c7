"""Memory that another stream uses is held until it has come past, over stand-ins for streams and marks."""

import gc
import types

import pytest

from tensorplug_cuda_cupy import uses


class Array:
    base = None

    def __init__(self):
        self.data = object()


@pytest.fixture
def marks(monkeypatch):
    made = []

    class Event:
        def __init__(self, disable_timing):
            self.done = False
            self.streams = []
            made.append(self)

        def record(self, stream):
            self.streams.append(stream)

    monkeypatch.setattr(uses, "cp", types.SimpleNamespace(cuda=types.SimpleNamespace(Event=Event)))
    return made


def test_memory_is_held_until_each_stream_has_come_past(marks):
    known = uses.Uses()
    array = Array()
    one, other = types.SimpleNamespace(ptr=1), types.SimpleNamespace(ptr=2)
    for stream in (one, other, one):
        known.record(array, stream)
    view = Array()
    view.base = array
    known.record(view, other)
    assert marks == []
    pointer = array.data
    del array
    gc.collect()
    assert marks == []  # the view keeps it
    del view
    gc.collect()
    assert [mark.streams for mark in marks] == [[one], [other]]
    known.release()
    assert known._held[0][0] is pointer
    marks[1].done = True
    known.release()
    assert len(known._held) == 1
    marks[0].done = True
    known.release()
    assert known._held == []
    assert known._streams == {}
