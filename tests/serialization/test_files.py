"""Files on disk: mapping, interrupted writes, formats of others, and pickles that ask for much."""

import io
import pickle
import struct
import subprocess
import sys
import zipfile

import mutations
import pytest

import tensorplug as tp
from tensorplug.serialization import FileFormatError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.pt"


# --- mapping ----------------------------------------------------------------------------------


def test_a_mapped_file_is_not_copied_and_not_written(path):
    tp.save({"w": tp.zeros(1 << 20), "ids": tp.arange(3), "none": tp.ones(0)}, path)
    import tracemalloc

    tracemalloc.start()
    mapped = tp.load(path, mmap=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20  # of 4 MiB
    mapped["w"][0] = 5
    assert mapped["w"][:2].tolist() == [5, 0]
    assert mapped["ids"].tolist() == [0, 1, 2]
    assert mapped["none"].shape == (0,)
    assert tp.load(path)["w"][0] == 0
    tp.save({"w": tp.ones(1)}, path)  # replaces the file; the mapping shows the old one
    assert mapped["w"][1] == 0


def test_mapped_tensors_share_memory_and_move(path):
    base = tp.arange(6.0)
    tp.save([base, base[2:].reshape(2, 2).t()], path)
    first, second = tp.load(path, mmap=True)
    first[2] = -1
    assert second.tolist() == [[-1, 4], [3, 5]]
    assert tp.load(path, mmap=True, map_location="meta")[0].is_meta


def test_torchs_files_can_be_mapped(path):
    torch = pytest.importorskip("torch", reason="writes the file")
    torch.save({"w": torch.arange(5), "c": torch.ones(2, dtype=torch.complex128)}, path)
    assert tp.load(path, mmap=True)["w"].tolist() == [0, 1, 2, 3, 4]
    tp.save({"w": tp.arange(5)}, path)
    assert torch.load(path, mmap=True, weights_only=True)["w"].tolist() == [0, 1, 2, 3, 4]


def test_mapping_needs_a_path():
    with pytest.raises(ValueError, match="path"):
        tp.load(io.BytesIO(), mmap=True)


def test_unaligned_memories_are_copied(path):
    parts = mutations.records(mutations.saved(tp.arange(3)))
    path.write_bytes(
        mutations.archive_of([("archive/x" + "y" * n, b"") for n in (0, 1, 2)] + parts)
    )
    assert tp.load(path, mmap=True).tolist() == [0, 1, 2]


# --- writing ----------------------------------------------------------------------------------

INTERRUPTED = """
import os, sys
import tensorplug as tp
from tensorplug.serialization import archive

write = archive.Writer.write
def fail(self, name, data):
    write(self, name, data)
    if name.startswith("data/"):
        os._exit(9)
archive.Writer.write = fail
tp.save([tp.ones(10)], sys.argv[1])
"""


def test_a_process_that_ends_while_writing_leaves_the_old_file(path):
    tp.save([1], path)
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, str(path)], check=False)
    assert done.returncode == 9
    assert tp.load(path) == [1]


def test_a_full_disk_leaves_the_old_file(path, monkeypatch):
    from tensorplug.serialization import archive

    def full(*args):
        raise OSError(28, "No space left on device")

    tp.save([1], path)
    monkeypatch.setattr(archive.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        tp.save([2], path)
    assert tp.load(path) == [1]
    assert list(path.parent.iterdir()) == [path]


# --- other formats ----------------------------------------------------------------------------


def tarred():
    import tarfile

    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("sys_info"))
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "PNG"),
        (b"\xff\xd8\xff\xe0" + bytes(100), "JPEG"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5"),
        (b"\x93NUMPY" + bytes(100), r"numpy\.load"),
        (b"\x1f\x8b" + bytes(100), "gzip"),
        (b"GGUF" + bytes(100), "GGUF"),
        (b"{'this': 'is text'}", "no zip archive"),
        (tarred(), "tar archive"),
        (tp.safetensors.save({"w": tp.ones(1)}), r"tp\.safetensors\.load_file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_of_another_format_is_named(data, match, path):
    with pytest.raises(FileFormatError, match=match):
        tp.load(io.BytesIO(data))
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=match):
        tp.load(path, mmap=True)


# --- pickles that ask for much ----------------------------------------------------------------


def loaded(text, **records):
    parts = {"archive/data.pkl": text, "archive/byteorder": b"little", "archive/data/0": bytes(48)}
    return tp.load(io.BytesIO(mutations.archive_of({**parts, **records}.items())))


REFERENCE = (
    b"(" + mutations.text("storage") + b"ctorch\nLongStorage\n" + mutations.text("0")
    + mutations.text("cpu") + b"K\x06tQ"
)  # fmt: skip
HUGE = (
    b"ctorch._utils\n_rebuild_tensor_v2\n(" + REFERENCE + b"K\x00(L1000000000000L\nt(K\x00t\x89}tR"
)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (b"\x96" + struct.pack("<Q", 1 << 40) + b"abc.", "bytearray ends early"),
        (b"\x8e" + struct.pack("<Q", 1 << 62) + b"abc.", "makes no sense"),
        (b"cbuiltins\nbytearray\n(L1000000000000L\ntR.", "latin1"),
        (b"cbuiltins\nbytearray\n(" + HUGE + b"tR.", "latin1"),
        *((b"cbuiltins\n" + name + b"\n(" + HUGE + b"tR.", "Tensor") for name in (b"set", b"frozenset")),
        (b"ccollections\nCounter\n(" + HUGE + b"tR.", "Tensor"),
        (b"ccollections\nOrderedDict\n(" + HUGE + b"tR.", "Tensor"),
        (b"ccollections\nOrderedDict\n((" + HUGE + b"ttR.", "no pairs"),
        (b"ctorch\nSize\n(" + HUGE + b"tR.", "Tensor"),
        (HUGE + HUGE + b"K\x01s.", "puts items into a Tensor"),
        (b"}" + b")" + b"\x85" * 100_000 + b"K\x01s.", "key of more than"),  # would end the process
        (b"})" + b"2\x86" * 60 + b"K\x01s.", "key of more than"),  # would take 2 ** 60 steps
        (b"(})" + b"2\x86" * 60 + b"K\x01u.", "puts items|makes no sense"),
        (b"\x8f()" + b"2\x86" * 60 + b"\x90.", "key of more than"),
        (b"()" + b"2\x86" * 60 + b"\x91.", "key of more than"),
        (b"()" + b"2\x86" * 60 + b"Nd.", "key of more than"),
        (b"ctorch\nfloat32\n)R.", "calls a DType"),
        (b"(K\x01K\x02tQ.", "unknown reference"),
        (b")" + b"2\x86" * 60 + b"Q.", "unknown reference"),
    ],
)  # fmt: skip
def test_a_pickle_that_asks_for_much_is_refused(text, match):
    with pytest.raises((FileFormatError, pickle.UnpicklingError), match=match):
        loaded(b"\x80\x02" + text)


def test_entries_over_the_same_bytes_are_refused():
    data = bytearray(mutations.archive_of([("archive/data.pkl", b"N."), *(
        (f"archive/data/{n}", bytes(1000)) for n in range(3)
    )]))  # fmt: skip
    # In the table of contents the sizes of the first memory become those of the whole file.
    place = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1) + 20
    data[place : place + 8] = struct.pack("<II", len(data), len(data))
    with pytest.raises(FileFormatError, match="overlap"):
        tp.load(io.BytesIO(bytes(data)))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_records_of_one_name_are_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", b"N.")
        archive.writestr("archive/data.pkl", b"I01\n.")
    file.seek(0)
    with pytest.raises(FileFormatError, match="same name"):
        tp.load(file)


def test_conjugates_that_torch_saved_as_views():
    torch = pytest.importorskip("torch", reason="writes the file")
    theirs = torch.tensor([1 + 2j])
    for view, values in ((theirs.conj(), [1 - 2j]), (theirs.conj().imag, [-2.0])):
        file = io.BytesIO()
        torch.save(view, file)
        file.seek(0)
        assert tp.load(file).tolist() == values


def test_map_location_by_the_device_types_method():
    file = io.BytesIO(mutations.saved(tp.ones(2)))
    assert tp.load(file, map_location=lambda storage, location: storage.cpu()).is_cpu
    file.seek(0)
    with pytest.raises(AttributeError, match="nosuch"):
        tp.load(file, map_location=lambda storage, location: storage.nosuch())
