"""Event files are real: what is written is read again from the records, checksums included."""

import struct
import subprocess
import sys
from unittest.mock import Mock

import numpy as np
import pytest

import tensorplug as tp

MISSING = "tensorboardX writes the files"


def records(folder):
    """The events of all files of a folder."""
    from tensorboardX.crc32c import crc32c
    from tensorboardX.proto.event_pb2 import Event

    def masked(data):
        crc = crc32c(data)
        return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF

    for path in sorted(folder.rglob("events.out.tfevents.*")):
        data = path.read_bytes()
        while data:
            (size,) = struct.unpack("<Q", data[:8])
            body = data[12 : 12 + size]
            assert struct.unpack("<I", data[8:12])[0] == masked(data[:8])
            assert struct.unpack("<I", data[12 + size : 16 + size])[0] == masked(body)
            event = Event()
            event.ParseFromString(body)
            yield event
            data = data[16 + size :]


def test_what_is_written(tmp_path):
    pytest.importorskip("tensorboardX", reason=MISSING)
    from tensorplug.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path, flush_secs=1) as writer:
        writer.add_scalar("loss", tp.tensor(1.5, requires_grad=True) * 2, 7)
        writer.add_scalar("rate", 0.25, global_step=8)
        writer.add_histogram("weights", tp.arange(100.0), 7)
        writer.add_image("picture", tp.zeros(3, 4, 5), 7)
        writer.add_scalars("both", {"a": tp.tensor(1), "b": 2.0}, 7)
        writer.add_text("note", "hello")
        writer.flush()
    events = list(records(tmp_path))
    values = {v.tag: (event.step, v) for event in events for v in event.summary.value}
    assert values["loss"][0] == 7
    assert values["loss"][1].simple_value == 3.0
    assert values["rate"][1].simple_value == 0.25
    assert values["weights"][1].histo.num == 100
    assert values["weights"][1].histo.sum == pytest.approx(np.arange(100).sum())
    assert (values["picture"][1].image.height, values["picture"][1].image.width) == (4, 5)
    assert {"both/a", "both/b"} & set(values) or len(list(tmp_path.rglob("events*"))) == 3
    assert any(tag.startswith("note") for tag in values)


def test_methods_are_completed(tmp_path):
    pytest.importorskip("tensorboardX", reason=MISSING)
    from tensorplug.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        assert {"add_scalar", "add_figure", "close"} <= set(dir(writer))
        assert writer.add_scalar.__name__ == "add_scalar"
        assert Mock(spec=SummaryWriter).add_histogram("weights", [1.0]) is not None
        with pytest.raises(AttributeError):
            writer.add_nonsense  # noqa: B018
        with pytest.raises(NotImplementedError, match=r"tp\.utils\.summary"):
            writer.add_graph(tp.nn.Linear(1, 1))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("from tensorplug.utils.tensorboard import SummaryWriter", "pip install tensorboardX"),
        ("import tensorplug as tp; tp.utils.tensorboard", "pip install tensorboardX"),
    ],
)
def test_without_the_package(program, said):
    hidden = f"import sys; sys.modules['tensorboardX'] = None\n{program}"
    done = subprocess.run(
        [sys.executable, "-c", hidden], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ModuleNotFoundError: ")
    assert said in done.stderr
