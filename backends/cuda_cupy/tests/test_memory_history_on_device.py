"""Snapshots of the allocator, and the history behind them."""

import pickle

import pytest
from on_device import needs_device

import tensorplug as tp

pytestmark = needs_device


@pytest.fixture(autouse=True)
def ended():
    yield
    tp.cuda.memory._record_memory_history(None)


class Lent:
    """Memory that someone else shows."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__


def block_of(tensor):
    segments = tp.cuda.memory_snapshot()
    return next((s for s in segments if s["address"] == tensor.untyped_storage().data_ptr()), None)


def test_the_sums_are_the_allocators_figures():
    x = [tp.ones(size, device="cuda") for size in (3, 1000, 1 << 20)]
    del x[1]
    x.append(tp.as_tensor(Lent(x[0]), device="cuda"))  # another's memory, where a block begins
    # Earlier tests may have left memory on other devices.
    here = tp.cuda.current_device()
    segments = [s for s in tp.cuda.memory_snapshot() if s["device"] == here]
    assert sum(s["total_size"] for s in segments) == tp.cuda.memory_reserved()
    assert sum(s["allocated_size"] for s in segments) == tp.cuda.memory_allocated()
    assert block_of(x[1])["blocks"][0]["state"] == "active_allocated"
    assert block_of(x[1])["segment_type"] == "large"
    assert block_of(x[1][5:]) == block_of(x[1])
    assert segments[-1]["blocks"][0]["state"] == "inactive"
    stats = tp.cuda.memory_stats()
    assert stats["allocated_bytes.all.current"] == tp.cuda.memory_allocated()
    assert stats["reserved_bytes.all.peak"] == tp.cuda.max_memory_reserved()
    assert stats["num_ooms"] == 0


def test_a_history_tells_where_blocks_came_from(tmp_path):
    before = tp.ones(100, device="cuda")
    tp.cuda.memory._record_memory_history(max_entries=4)

    def the_maker():
        return tp.ones(1000, device="cuda")

    side = tp.cuda.Stream()
    with tp.cuda.stream(side):
        x = the_maker()
    assert block_of(before)["frames"] == []
    block = block_of(x)
    assert "the_maker" in [frame["name"] for frame in block["frames"]]
    assert (block["requested_size"], block["stream"]) == (4000, side.cuda_stream)
    address = block["address"]
    del x
    tp.cuda.memory._dump_snapshot(tmp_path / "snapshot.pickle")
    found = pickle.loads((tmp_path / "snapshot.pickle").read_bytes())
    events = [e for e in found["device_traces"][0] if e["addr"] == address]
    assert [e["action"] for e in events] == ["alloc", "free_requested", "free_completed"]
    for _ in range(3):
        the_maker()
    assert len(tp.cuda.memory._snapshot()["device_traces"][0]) == 4
    tp.cuda.memory._record_memory_history(None)
    the_maker()
    assert tp.cuda.memory._snapshot()["device_traces"] == [[]] * tp.cuda.device_count()


def test_less_can_be_kept():
    tp.cuda.memory._record_memory_history("state", context=None)
    x = tp.ones(1000, device="cuda")
    assert block_of(x)["requested_size"] == 4000
    assert block_of(x)["frames"] == []
    assert not tp.cuda.memory._snapshot()["device_traces"][0]
    for options in ({"enabled": "some"}, {"context": "some"}, {"stacks": "cpp"}):
        with pytest.raises(RuntimeError, match="should be one of"):
            tp.cuda.memory._record_memory_history(**options)
