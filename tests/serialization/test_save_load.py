"""Files: to torch and back, shared memory, damage, and files that mean harm."""

import contextlib
import io
import os
import pickle
import zipfile
from collections import OrderedDict

import pytest
from hypothesis import given, settings, strategies as st

import tensorplug as tp
from tensorplug.serialization import FileFormatError, add_safe_globals, clear_safe_globals

torch = pytest.importorskip("torch", reason="torch is the other side of these tests")

DTYPES = [
    "float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "bool",
    "complex64", "complex128", "uint16", "uint32", "uint64",
]  # fmt: skip


def saved(obj, library=tp):
    file = io.BytesIO()
    library.save(obj, file)
    file.seek(0)
    return file


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3)])
def test_every_dtype_goes_both_ways(name, shape):
    theirs = (torch.ones(shape) * 3).to(getattr(torch, name))
    ours = tp.load(saved(theirs, torch))
    assert ours.dtype is getattr(tp, name)
    assert ours.tolist() == theirs.tolist()
    back = torch.load(saved(ours), weights_only=True)
    assert back.dtype is theirs.dtype
    assert back.shape == theirs.shape
    assert back.tolist() == theirs.tolist()
    assert tp.load(saved(ours)).tolist() == theirs.tolist()


PLAIN = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False),
        st.text(max_size=5), st.binary(max_size=5), st.complex_numbers(allow_nan=False),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.tuples(inner, inner),
        st.sets(st.integers(0, 5)),
        st.builds(OrderedDict, st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    ),
    max_leaves=10,
)  # fmt: skip


@given(PLAIN)
@settings(max_examples=150, deadline=None)
def test_plain_values_go_both_ways(obj):
    assert tp.load(saved(obj)) == obj
    assert torch.load(saved(obj), weights_only=True) == obj
    assert tp.load(saved(obj, torch)) == obj


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (2, 0, 1)])
def test_shared_memory_stays_in_any_order_of_dimensions(order):
    base = tp.arange(24.0).reshape(2, 3, 4).permute(order) * 1
    ours = tp.load(saved([base, base[1]]))
    assert ours[0].stride() == base.stride()
    ours[1].fill_(-1)
    assert (ours[0][1] == -1).all()
    assert (ours[0][0] == base[0]).all()


def test_shared_memory_and_strides_stay():
    base = tp.arange(12.0).reshape(3, 4)
    obj = {"base": base, "view": base.t()[1:], "again": base}
    ours = tp.load(saved(obj))
    assert ours["again"] is ours["base"]
    assert ours["view"].stride() == (1, 4)
    assert ours["view"].tolist() == base.t()[1:].tolist()
    ours["base"][2, 1] = -1
    assert ours["view"][0, 2] == -1
    theirs = torch.load(saved(obj), weights_only=True)
    theirs["base"][2, 1] = -1
    assert theirs["view"][0, 2] == -1
    assert theirs["view"].stride() == (1, 4)


def test_parameters_devices_dtypes_sizes_and_meta_tensors():
    obj = {
        "parameter": tp.nn.Parameter(tp.ones(2)),
        "grad": tp.ones(2, requires_grad=True),
        "device": tp.device("cpu"),
        "dtypes": [tp.float32, tp.float32],
        "size": tp.zeros(2, 3).shape,
        "meta": tp.zeros(2, 3, device="meta"),
    }
    ours = tp.load(saved(obj))
    assert type(ours["parameter"]) is tp.nn.Parameter
    assert ours["parameter"].requires_grad
    assert ours["grad"].requires_grad
    assert ours["grad"].is_leaf
    assert (ours["device"], ours["dtypes"]) == (tp.device("cpu"), [tp.float32, tp.float32])
    assert ours["size"] == tp.Size([2, 3])
    assert ours["meta"].is_meta
    theirs = torch.load(saved(obj), weights_only=True)
    assert isinstance(theirs["parameter"], torch.nn.Parameter)
    assert theirs["size"] == torch.Size([2, 3])
    assert theirs["meta"].is_meta


def test_state_dicts_go_both_ways():
    ours, theirs = tp.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    ours.load_state_dict(tp.load(saved(theirs.state_dict(), torch)))
    assert ours.weight.tolist() == theirs.weight.tolist()
    ours.bias.data.fill_(5)
    theirs.load_state_dict(torch.load(saved(ours.state_dict()), weights_only=True))
    assert theirs.bias.tolist() == [5, 5]


def test_an_optimizers_state_goes_to_a_file_and_back():
    model = tp.nn.Linear(2, 1)
    optimizer = tp.optim.Adam(model.parameters())
    model(tp.ones(2)).sum().backward()
    optimizer.step()
    again = tp.optim.Adam(model.parameters())
    again.load_state_dict(tp.load(saved(optimizer.state_dict())))
    assert str(again.state_dict()) == str(optimizer.state_dict())


def test_a_bytes_order_of_another_machine_is_read():
    class Big(zipfile.ZipFile):
        def writestr(self, info, data, *args, **kwargs):
            if str(getattr(info, "filename", info)).endswith("byteorder"):
                data = b"big"
            return super().writestr(info, data, *args, **kwargs)

    source = zipfile.ZipFile(saved(tp.tensor([1, 256], dtype=tp.int16)))
    file = io.BytesIO()
    with Big(file, "w") as target:
        for info in source.infolist():
            target.writestr(info.filename, source.read(info))
    file.seek(0)
    assert tp.load(file).tolist() == [256, 1]


# --- where tensors go -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "where",
    [
        "meta",
        tp.device("meta"),
        {"cpu": "meta"},
        lambda storage, location: storage.to("meta"),
        lambda storage, location: tp.device("meta"),
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
def test_map_location(where):
    assert tp.load(saved(tp.ones(2)), map_location=where).is_meta


def test_map_location_may_leave_the_choice():
    assert tp.load(saved(tp.ones(2)), map_location=lambda storage, location: storage).is_cpu
    assert tp.load(saved(tp.ones(2)), map_location=lambda storage, location: None).is_cpu
    with pytest.raises(TypeError, match="map_location"):
        tp.load(saved(tp.ones(2)), map_location=lambda storage, location: 3)


def from_elsewhere():
    """A file whose tensor says that it comes from a device that is not there."""
    source = zipfile.ZipFile(saved(tp.ones(2)))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        for info in source.infolist():
            data = source.read(info)
            if info.filename.endswith("data.pkl"):
                data = data.replace(b"X\x03\x00\x00\x00cpu", b"X\x07\x00\x00\x00nowhere")
            target.writestr(info.filename, data)
    file.seek(0)
    return file


def test_a_device_that_is_not_there_names_the_remedy():
    with pytest.raises(RuntimeError, match="map_location"):
        tp.load(from_elsewhere())
    assert tp.load(from_elsewhere(), map_location="cpu").tolist() == [1, 1]


# --- paths ------------------------------------------------------------------------------------


def test_a_path_gets_the_whole_file_or_none(tmp_path):
    path = tmp_path / "model.pt"
    tp.save([1], path)
    assert tp.load(path) == [1]
    assert tp.load(str(path)) == [1]
    assert torch.load(path, weights_only=True) == [1]
    tp.save([2], str(path))

    class Unwilling:
        def __reduce__(self):
            raise ValueError("not me")

    with pytest.raises(ValueError, match="not me"):
        tp.save(Unwilling(), path)
    assert tp.load(path) == [2]
    assert [p.name for p in tmp_path.iterdir()] == ["model.pt"]
    assert path.stat().st_mode & 0o777 == 0o666 & ~current_umask()


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_directory_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="directory"):
        tp.save([1], tmp_path / "no" / "file.pt")
    with pytest.raises(FileNotFoundError):
        tp.load(tmp_path / "file.pt")


# --- damage -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0.0, 0.2, 0.5, 0.9, 0.99])
def test_a_truncated_file(kept):
    data = saved(tp.arange(1000)).getvalue()
    with pytest.raises(FileFormatError, match=r"empty|cut short|damaged"):
        tp.load(io.BytesIO(data[: int(len(data) * kept)]))


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "empty"),
        (b"hello world, this is text", "no zip archive"),
        (pickle.dumps([1]), "bare pickle"),
        (b"\x08\x00\x00\x00\x00\x00\x00\x00{}      ", "safetensors"),
    ],
)
def test_a_foreign_file(data, match):
    with pytest.raises(FileFormatError, match=match):
        tp.load(io.BytesIO(data))


OLD = {"_use_new_zipfile_serialization": False}


@pytest.mark.parametrize("writer", [tp, torch], ids=["ours", "torch"])
@pytest.mark.parametrize("reader", [tp, torch], ids=["ours", "torch"])
def test_objects_of_the_old_format_one_after_another(writer, reader):
    file = io.BytesIO()
    base = writer.arange(6.0).to(writer.float64)
    first = {"a": base.reshape(2, 3).T, "b": base[1:3], "c": [writer.tensor([True]), 2.5, "x"]}
    file.write(b"before")
    writer.save(first, file, **OLD)
    writer.save(writer.nn.Parameter(writer.ones(2)), file, **OLD)
    file.seek(6)
    read = reader.load(file)
    assert read["a"].tolist() == first["a"].tolist()
    assert read["a"].stride() == (1, 3)
    assert read["c"][0].tolist() == [True]
    assert read["c"][1:] == [2.5, "x"]
    read["b"][0] = 9
    assert read["a"][1, 0] == 9
    assert isinstance(reader.load(file), reader.nn.Parameter)


def test_a_damaged_file_of_the_old_format(tmp_path):
    file = io.BytesIO()
    tp.save(tp.arange(9), file, **OLD)
    data = file.getvalue()
    for end in range(20, len(data), 7):
        with pytest.raises((FileFormatError, pickle.UnpicklingError)):
            tp.load(io.BytesIO(data[:end]))
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(RuntimeError, match="mapped"):
        tp.load(tmp_path / "x", mmap=True)


@pytest.mark.parametrize("reader", [tp, torch], ids=["ours", "torch"])
@pytest.mark.parametrize("old", [{}, OLD], ids=["new", "old"])
def test_attributes_of_tensors(reader, old):
    tensor, parameter = tp.zeros(2), tp.nn.Parameter(tp.ones(1))
    tensor.note, parameter.note = {"a": [1, 2]}, "kept"
    tensor.sum = 5  # not the method of what is loaded
    file = io.BytesIO()
    tp.save([tensor, parameter], file, **old)
    file.seek(0)
    one, other = reader.load(file)
    assert one.note == {"a": [1, 2]}
    assert other.note == "kept"
    if reader is tp:
        assert one.sum() == 0


def test_a_stream_that_cannot_seek():
    class Stream(io.RawIOBase):
        def __init__(self, data):
            self._data = io.BytesIO(data)

        def readable(self):
            return True

        def readinto(self, target):
            return self._data.readinto(target)

    assert tp.load(Stream(saved({"a": 1}).getvalue())) == {"a": 1}


def test_a_file_that_is_still_open_is_complete(tmp_path):
    with (tmp_path / "x").open("wb") as file:
        tp.save(tp.ones(3), file)
        assert tp.load(tmp_path / "x").tolist() == [1, 1, 1]


def test_another_zip_archive():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        target.writestr("a.txt", "a")
    file.seek(0)
    with pytest.raises(FileFormatError, match=r"data\.pkl"):
        tp.load(file)


@given(st.integers(0, 10**6), st.integers(1, 255))
@settings(max_examples=300, deadline=None)
def test_a_flipped_byte_raises_or_changes_nothing_that_matters(place, change):
    data = bytearray(saved({"a": tp.arange(20), "b": [1, "x", (2.5,)]}).getvalue())
    data[place % len(data)] ^= change
    with contextlib.suppress(FileFormatError, pickle.UnpicklingError):
        tp.load(io.BytesIO(bytes(data)))


# --- harm -------------------------------------------------------------------------------------


def with_pickle(text: bytes):
    """A file with this pickle, and one memory of 8 bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        target.writestr("archive/data.pkl", text)
        target.writestr("archive/byteorder", "little")
        target.writestr("archive/data/0", bytes(8))
    file.seek(0)
    return file


class Harm:
    def __reduce__(self):
        return os.system, ("echo harm",)


class Friendly:
    def __init__(self, value=0):
        self.value = value


def test_code_is_refused_by_name(capfd):
    for library in (tp, torch):
        with pytest.raises(pickle.UnpicklingError, match=r"posix\.system|nt\.system"):
            tp.load(saved([Harm()], library))
    assert "harm" not in capfd.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        b"cbuiltins\neval\n(X\x03\x00\x00\x001+1tR.",
        b"cos\nsystem\n(X\x02\x00\x00\x00lstR.",
        b"(X\x02\x00\x00\x00lsios\nsystem\n.",
        b"ctensorplug.core.host_memory\n_rebuild\n.",
        b"cbuiltins\ngetattr\n.",
        b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.",
        b"\x82\x01.",
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
def test_pickles_that_reach_for_more(text):
    with pytest.raises(pickle.UnpicklingError):
        tp.load(with_pickle(text))


def test_what_is_known_cannot_be_changed_by_a_file():
    # BUILD with the state (None, {"make": "x"}) upon torch.Size.
    text = b"ctorch\nSize\n(N}X\x04\x00\x00\x00makeX\x01\x00\x00\x00xst" + b"b."
    with pytest.raises(pickle.UnpicklingError, match="state"):
        tp.load(with_pickle(text))
    assert tp.load(saved(tp.Size([1]))) == (1,)


@pytest.mark.parametrize(
    ("offset", "size", "stride"),
    [(0, 3, 1), (2, 1, 1), (-1, 1, 1), (0, 2, 100), (0, 2, -1), (10**12, 1, 1), (0, 10**9, 0)],
)
def test_a_tensor_may_not_reach_beyond_its_memory(offset, size, stride):
    reference = (
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000"
        b"X\x03\x00\x00\x00cpuK\x02tQ"
    )
    numbers = [f"L{n}L\n".encode() for n in (offset, size, stride)]
    call = (
        b"ctorch._utils\n_rebuild_tensor_v2\n(" + reference + numbers[0] + b"(" + numbers[1] + b"t("
        + numbers[2] + b"t\x89ccollections\nOrderedDict\n)RtR."
    )  # fmt: skip
    if (offset, size, stride) == (0, 10**9, 0):
        assert tp.load(with_pickle(call)).shape == (10**9,)  # within: each element is the first
        return
    with pytest.raises(FileFormatError, match="makes no sense"):
        tp.load(with_pickle(call))


def test_classes_that_the_user_trusts():
    file = saved({"friend": Friendly(3)})
    with pytest.raises(pickle.UnpicklingError, match="Friendly"):
        tp.load(file)
    file.seek(0)
    assert tp.load(file, weights_only=False)["friend"].value == 3
    add_safe_globals([Friendly])
    try:
        file.seek(0)
        assert tp.load(file)["friend"].value == 3
    finally:
        clear_safe_globals()
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Friendly"):
        tp.load(file)


def test_classes_that_the_user_trusts_for_a_while():
    add_safe_globals([OrderedDict])
    with tp.serialization.safe_globals([Friendly]):
        assert tp.load(saved(Friendly(3))).value == 3
    assert tp.serialization.get_safe_globals() == [OrderedDict]
    clear_safe_globals()


def test_a_whole_module_needs_trust():
    model = tp.nn.Linear(2, 1)
    with pytest.raises(pickle.UnpicklingError, match="Linear"):
        tp.load(saved(model))
    with tp.serialization.safe_globals([tp.nn.Linear]):
        again = tp.load(saved(model))
    assert again.weight.tolist() == model.weight.tolist()
