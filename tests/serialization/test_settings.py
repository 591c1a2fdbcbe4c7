"""Settings of reading and writing: the order of bytes, mapping, checksums, memories left out."""

import io
import mmap
import pickle
import struct
import sys
import threading
import zipfile

import pytest

import tensorplug as tp
from tensorplug import serialization
from tensorplug.serialization import FileFormatError, LoadEndianness

TENSORS = {
    "float16": tp.tensor([1.5, -2.0]).half(),
    "bfloat16": tp.tensor([1.5, -2.0]).bfloat16(),
    "float32": tp.tensor([1.5, -2.0]),
    "float64": tp.tensor([1.5, -2.0]).double(),
    "int16": tp.tensor([1, -300]).short(),
    "int64": tp.tensor([1, -300]),
    "complex64": tp.tensor([1 - 2j, 3.5j]),
    "complex128": tp.tensor([1 - 2j, 3.5j]).to(tp.complex128),
    "uint8": tp.tensor([1, 200]).to(tp.uint8),
}


def saved(value):
    file = io.BytesIO()
    tp.save(value, file)
    return file.getvalue()


def rewritten(data, **records):
    """The archive with some records changed, or left out where they are None."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(result, "w") as target:
        for name in source.namelist():
            content = records.get(name.partition("/")[2].replace("/", "_"), source.read(name))
            if content is not None:
                target.writestr(name, content)
    return io.BytesIO(result.getvalue())


@pytest.fixture(autouse=True)
def settings_as_before():
    yield
    serialization.set_default_load_endianness(None)
    serialization.set_crc32_options(True)


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("order", [None, *LoadEndianness], ids=str)
def test_the_order_of_files_that_name_none(name, order):
    tensor = TENSORS[name]
    memory = zipfile.ZipFile(io.BytesIO(saved(tensor))).read("archive/data/0")
    width = tensor.dtype.itemsize // (2 if tensor.is_complex() else 1)
    turned = b"".join(memory[i : i + width][::-1] for i in range(0, len(memory), width))
    serialization.set_default_load_endianness(order)
    assert serialization.get_default_load_endianness() is order
    is_big = order is LoadEndianness.BIG or (
        order is LoadEndianness.NATIVE and sys.byteorder == "big"
    )
    content = turned if is_big == (sys.byteorder == "little") else memory
    file = rewritten(saved(tensor), byteorder=None, data_0=content)
    assert tp.load(file).tolist() == tensor.tolist()
    assert (
        tp.load(io.BytesIO(saved(tensor))).tolist() == tensor.tolist()
    )  # this one names its order


def test_no_other_order_is_taken():
    with pytest.raises(TypeError, match="expected a LoadEndianness or None, got str"):
        serialization.set_default_load_endianness("big")


def test_shared_mappings_write_to_the_file(tmp_path):
    path = tmp_path / "model.pt"
    tp.save({"w": tp.zeros(3)}, path)
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        assert serialization.get_default_mmap_options() == mmap.MAP_SHARED
        tp.load(path, mmap=True)["w"][0] = 5
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    tp.load(path, mmap=True)["w"][1] = 7
    serialization.set_crc32_options(False)
    assert tp.load(path)["w"].tolist() == [5, 0, 0]
    with pytest.raises(
        ValueError, match=r"expected mmap\.MAP_PRIVATE or mmap\.MAP_SHARED, but got 77"
    ):
        serialization.set_default_mmap_options(77)


def test_checksums_are_compared_unless_they_are_not_asked_for():
    data = saved(tp.tensor([1.0, 2.0]))
    broken = data.replace(struct.pack("<f", 2.0), struct.pack("<f", 3.0))
    with pytest.raises(FileFormatError, match="checksum"):
        tp.load(io.BytesIO(broken))
    serialization.set_crc32_options(False)
    assert not serialization.get_crc32_options()
    assert tp.load(io.BytesIO(broken)).tolist() == [1, 3]


def test_files_that_torch_wrote_without_checksums():
    torch = pytest.importorskip("torch", reason="writes the files")
    file, skipped = io.BytesIO(), io.BytesIO()
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(torch.arange(3), file)
    finally:
        torch.serialization.set_crc32_options(True)
    file.seek(0)
    assert tp.load(file).tolist() == [0, 1, 2]
    with torch.serialization.skip_data():
        torch.save(torch.arange(3), skipped)
    skipped.seek(0)
    assert tp.load(skipped).tolist() == [0, 0, 0]


def test_memories_left_out_are_filled_in_later(tmp_path):
    path = tmp_path / "model.pt"
    numbers = tp.arange(3.0) + 1
    with serialization.skip_data():
        tp.save({"w": numbers, "name": "x"}, path)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(tp.load(io.BytesIO(saved(numbers)))))
        thread.start()
        thread.join()
    assert seen[0].tolist() == [1, 2, 3]  # the block is its thread's
    assert tp.load(path)["w"].tolist() == [0, 0, 0]
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        tp.load(path, mmap=True)["w"].copy_(numbers)
    assert tp.load(path)["w"].tolist() == [1, 2, 3]
    with serialization.skip_data():
        loaded = tp.load(path)
    assert loaded["name"] == "x"
    assert loaded["w"].shape == (3,)
    with serialization.skip_data(), pytest.raises(RuntimeError, match="Cannot use skip_data"):
        tp.save(numbers, io.BytesIO(), _use_new_zipfile_serialization=False)


class Reads:
    """A file that notes how it is read."""

    def __init__(self, data, has_readinto):
        self._file = io.BytesIO(data)
        self.sizes = []
        for name in ("seek", "tell", "read", *(["readinto"] if has_readinto else [])):
            setattr(self, name, self._noting(getattr(self._file, name), name))

    def _noting(self, method, name):
        def call(*args):
            self.sizes.append((name, len(args[0]) if name == "readinto" else args[:1]))
            return method(*args)

        return call


@pytest.mark.parametrize("has_readinto", [True, False])
def test_memories_are_read_into_where_files_offer_it(has_readinto):
    numbers = tp.arange(1000.0)
    file = Reads(saved(numbers), has_readinto)
    assert (tp.load(file) == numbers).all()
    assert (("readinto", 4000) in file.sizes) == has_readinto


def test_a_load_takes_the_memory_once(tmp_path):
    import tracemalloc

    tp.save(tp.zeros(1 << 20), tmp_path / "model.pt")
    tracemalloc.start()
    kept = tp.load(tmp_path / "model.pt")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept.numel() == 1 << 20
    assert peak < 5 << 20  # of 4 MiB


def test_storages_that_are_parts_of_one_another():
    class Reference:
        def __init__(self, *parts):
            self.parts = parts

    class Pickler(pickle._Pickler):
        def persistent_id(self, obj):
            return obj.parts if isinstance(obj, Reference) else None

        def save_global(self, obj, name=None):
            module, _, short = name.rpartition(".")
            self.write(pickle.GLOBAL + f"{module}\n{short}\n".encode())

    class Name:
        def __init__(self, name):
            self.name = name

        def __reduce__(self):
            return self.name

    def part(name, start, count):
        return Reference("storage", Name("torch.FloatStorage"), "7", "cpu", 4, (name, start, count))

    def pickled(value):
        file = io.BytesIO()
        Pickler(file, 2).dump(value)
        return file.getvalue()

    machine = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4}}
    parts = [0x1950A86A20F9469CFC6C, 1001, machine]
    parts.append((part("a", 0, 2), part("b", 1, 3), part("a", 0, 2)))
    numbers = struct.pack("<q4f", 4, 1, 2, 3, 4)
    head = b"".join(map(pickled, parts))
    first, second, again = tp.load(io.BytesIO(head + pickled(["7"]) + numbers))
    assert [first.tolist(), second.tolist()] == [[1, 2], [2, 3, 4]]
    assert again is first
    second[0] = 9
    assert first.tolist() == [1, 9]
    assert second.data_ptr() == first.data_ptr() + 4
    for start, count in ((-1, 2), (3, 2), (0, 5), (0, -1)):
        head = b"".join(map(pickled, (*parts[:3], part("a", start, count))))
        with pytest.raises(FileFormatError, match="unknown reference"):
            tp.load(io.BytesIO(head + pickled(["7"]) + numbers))


@pytest.mark.parametrize("strides", [(3, 1), (1, 2), (6, 2), (0, 1)])
def test_tensors_without_memory_keep_their_strides(strides):
    made = tp.empty_strided((2, 3), strides, device="meta")
    loaded = tp.load(io.BytesIO(saved(made)))
    assert loaded.stride() == strides
    assert loaded.is_meta
