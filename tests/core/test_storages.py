"""Storages: which tensors share, what is where in memory, beside torch's."""

import copy
import io
import pickle

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="the values to compare with")

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")

VIEWS = {
    "itself": lambda m, x: x,
    "row": lambda m, x: x[1],
    "transposed": lambda m, x: x.t()[1:],
    "block": lambda m, x: x[1:, 2:],
    "part of a flat view": lambda m, x: x.view(-1)[5:],
    "other dtype": lambda m, x: x.view(m.int32)[1],
    "bytes": lambda m, x: x.view(m.uint8)[2],
    "detached": lambda m, x: x.detach(),
    "expanded": lambda m, x: x[2].expand(2, 3, 4),
    "data": lambda m, x: x.data,
    "copy": lambda m, x: x.clone()[1:],
    "empty": lambda m, x: x[:0],
    "parameter": lambda m, x: m.nn.Parameter(x),
    "diagonal": lambda m, x: x.diagonal(),
    "chunk": lambda m, x: x.chunk(2, 1)[1],
    "strides": lambda m, x: x.as_strided((2, 2), (1, 5), 1),
    "channels last": lambda m, x: m.zeros(1, 2, 3, 2).to(memory_format=m.channels_last),
}


def told(m, view):
    x = m.arange(12, dtype=m.float32).reshape(3, 4)
    y = view(m, x)
    storage = y.untyped_storage()
    start = storage.data_ptr()
    return (
        start == x.untyped_storage().data_ptr(),
        y.numel() == 0 or start + y.storage_offset() * y.element_size() == y.data_ptr(),
        storage.nbytes(), storage.size(), len(storage), storage.tolist(), str(storage.device),
        y._typed_storage()._data_ptr() == start, y._typed_storage().tolist(), y._typed_storage().size(),
        y.data_ptr() == 0, storage.is_cuda, storage.element_size(),
    )  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
def test_of_a_view(view):
    assert told(tp, VIEWS[view]) == told(torch, VIEWS[view])


PROGRAMS = {
    "set, offset": lambda m, x: m.tensor([]).set_(x.untyped_storage(), 2, (2, 3), (3, 1)).tolist(),
    "set": lambda m, x: m.tensor([]).set_(x.untyped_storage()).shape,
    "set typed": lambda m, x: m.tensor([]).set_(x._typed_storage(), 1, (2,)).tolist(),
    "set tensor": lambda m, x: m.tensor([]).set_(x, 1, (2,), (4,)).tolist(),
    "set other dtype": lambda m, x: m.tensor([], dtype=m.int64).set_(x._typed_storage()),
    "set bytes as int": lambda m, x: (
        m.tensor([], dtype=m.int64).set_(x.untyped_storage(), 1, (2,)).tolist()
    ),
    "of size": lambda m, x: m.UntypedStorage(5).nbytes(),
    "of values": lambda m, x: m.UntypedStorage([1, 2, 3]).tolist(),
    "types": lambda m, x: [
        x.to(getattr(m, name)).storage_type() is getattr(m, kind)
        for name, kind in (("float32", "FloatStorage"), ("bool", "BoolStorage"))
    ],
    "type of a class": lambda m, x: x.int().type(m.Tensor).tolist(),
    "typed": lambda m, x: (m.FloatStorage([1, 2]).tolist(), m.LongStorage(3).nbytes()),
    "kind": lambda m, x: [
        isinstance(x._typed_storage(), kind) for kind in (m.FloatStorage, m.LongStorage)
    ],
    "fill": lambda m, x: (x.untyped_storage().fill_(0), x.sum().item())[1],
    "items": lambda m, x: [
        (s.__setitem__(0, 9), s[0], s[1:].tolist(), list(s)) for s in [m.UntypedStorage([1, 2, 3])]
    ],
    "typed items": lambda m, x: (x._typed_storage()._setitem(1, 7.0), x.tolist())[1]
    if m is torch
    else (x._typed_storage().__setitem__(1, 7.0), x.tolist())[1],
    "clone": lambda m, x: m.UntypedStorage([1, 2, 3]).clone().tolist(),
    "resize": lambda m, x: m.UntypedStorage([1, 2, 3]).resize_(2).tolist(),
    "copy": lambda m, x: m.UntypedStorage([1, 2]).copy_(m.UntypedStorage([3, 4])).tolist(),
    "copy of another size": lambda m, x: m.UntypedStorage(2).copy_(m.UntypedStorage(3)),
    "negative": lambda m, x: m.UntypedStorage(-1),
    "is_storage": lambda m, x: [m.is_storage(s) for s in (x.untyped_storage(), x._typed_storage(), x)],
    "meta": lambda m, x: [
        f(m.zeros(3, 4, device="meta").untyped_storage()) for f in (len, lambda s: s.data_ptr())
    ],
    "empty": lambda m, x: (m.zeros(0).untyped_storage().data_ptr(), m.zeros(0).data_ptr()),
    "shared": lambda m, x: [
        x.untyped_storage().is_shared(), x.share_memory_().untyped_storage().is_shared()
    ],
    "deep copy": lambda m, x: copy.deepcopy(x.untyped_storage()).tolist(),
    "converted": lambda m, x: x._typed_storage().untyped().tolist(),
    "buffer": lambda m, x: m.frombuffer(bytearray(8), dtype=m.int32).untyped_storage().nbytes(),
    **{
        name: lambda m, x, name=name: (
            m.ones(2, dtype=getattr(m, name))._typed_storage().tolist(),
            m.ones(2, dtype=getattr(m, name))._typed_storage().nbytes(),
        )
        for name in ("bool", "uint8", "int16", "float16", "bfloat16", "float64", "complex64")
    },
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_torch(program):
    results = []
    for m in (torch, tp):
        x = m.arange(12, dtype=m.float32).reshape(3, 4)
        try:
            results.append(PROGRAMS[program](m, x))
        except Exception as error:
            results.append(type(error))
    assert results[0] == results[1]


def test_tied_weights_are_found_as_transformers_finds_them():
    model = tp.nn.Sequential(tp.nn.Linear(3, 3), tp.nn.Linear(3, 3), tp.nn.Linear(3, 3))
    model[2].weight = model[0].weight
    places = {}
    for name, tensor in model.state_dict().items():
        storage = tensor.untyped_storage()
        places.setdefault((tensor.device, storage.data_ptr(), storage.nbytes()), []).append(name)
    assert [names for names in places.values() if len(names) > 1] == [["0.weight", "2.weight"]]


def test_storages_go_to_files_and_back():
    for writer, reader in ((tp, torch), (torch, tp), (tp, tp)):
        x = writer.arange(3.0)
        file = io.BytesIO()
        writer.save([x, x._typed_storage(), x[1:]], file)
        file.seek(0)
        values, storage, part = reader.load(file)
        assert values.data_ptr() == storage._data_ptr() == part.data_ptr() - 4
        assert reader.is_storage(storage)
        assert storage.dtype is reader.float32
        assert list(storage._untyped_storage) == list(x.untyped_storage())
    file = io.BytesIO()
    tp.save(tp.arange(3, dtype=tp.uint8).untyped_storage(), file)
    file.seek(0)
    assert list(torch.load(file)._untyped_storage) == [0, 1, 2]


def test_a_file_as_a_storage(tmp_path):
    for m in (torch, tp):
        path = tmp_path / f"{m.__name__}.bin"
        path.write_bytes(bytes(range(16)))
        private = m.UntypedStorage.from_file(str(path), False, 16)
        private[0] = 5
        assert m.tensor([], dtype=m.int16).set_(private).tolist()[:2] == [0x105, 0x302]
        shared = m.UntypedStorage.from_file(str(path), True, 20)
        shared[1] = 77
        assert path.read_bytes()[:3] == bytes([0, 77, 2])
        assert path.stat().st_size == 20


def test_writes_through_a_storage_are_seen_by_backward():
    x = tp.ones(3, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    tp.tensor([]).set_(y.detach().untyped_storage()).zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_a_pickle_keeps_what_a_storage_shares():
    x = tp.arange(3.0)
    again, storage = pickle.loads(pickle.dumps((x, x.untyped_storage())))
    assert storage.data_ptr() == again.data_ptr()
    assert storage.tolist() == x.untyped_storage().tolist()


def test_arrays_of_numpy_share():
    array = np.arange(10.0)
    whole, part = tp.from_numpy(array), tp.from_numpy(array[2:6])
    assert whole.untyped_storage() == part.untyped_storage()
    assert part.untyped_storage().data_ptr() == array.ctypes.data


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "complex128"])
def test_addresses_and_strides_are_those_of_numpy(dtype: str) -> None:
    base = np.zeros((4, 3, 5), dtype)
    shown = [
        base,
        base[1:, ::2],
        base.T,
        base[2, 1],
        base[2, 1, 3:4],
        base[3:, 1, 4].reshape(()),
        np.broadcast_to(base[:1], (6, 3, 5)),
        np.asfortranarray(base),
        base.view(np.recarray),
    ]
    for array in shown:
        x = tp.from_numpy(array)
        step = array.itemsize
        assert x.data_ptr() == array.ctypes.data
        assert x.stride() == tuple(s // step for s in array.strides)
        owner = array if array.base is None else array.base
        assert x.storage_offset() * step == array.ctypes.data - owner.ctypes.data
    assert tp.from_numpy(base[:0]).data_ptr() == 0


@pytest.mark.parametrize(
    "dtype", [tp.int16, tp.bfloat16, tp.float64, tp.complex64, tp.bool], ids=str
)
def test_a_tensor_of_a_storage(dtype):
    """Bytes are read as the dtype that is asked for, elements of a dtype as no other."""
    x = tp.tensor([1, 0, 3, 5], dtype=dtype)
    for storage in (x.storage(), x.untyped_storage()):
        result = tp.tensor(storage, dtype=dtype)
        assert result.dtype == dtype
        assert result.tolist() == x.tolist()
        assert result.data_ptr() != x.data_ptr()
        assert tp.asarray(storage, dtype=dtype).data_ptr() == x.data_ptr()
    assert tp.tensor(x.storage()).dtype == dtype
    with pytest.raises(RuntimeError, match="Expected a Storage of type"):
        tp.tensor(x.storage(), dtype=tp.int32)


def test_sizes_repeated_are_sizes():
    for size in (tp.Size([1, 2]) * 2, 2 * tp.Size([1, 2])):
        assert type(size) is tp.Size
        assert size == (1, 2, 1, 2)


@pytest.mark.parametrize("kind", ["FloatStorage", "LongStorage", "ByteStorage", "BoolStorage"])
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_typed_storages_of_buffers_and_files(kind, tmp_path):
    storage = getattr(tp, kind)
    values = tp.arange(4).to(storage.dtype).numpy()
    assert storage.from_buffer(values.tobytes(), "little").tolist() == values.tolist()
    swapped = values.byteswap().tobytes()
    assert storage.from_buffer(swapped, byte_order="big", count=2).tolist() == values[:2].tolist()
    file = tmp_path / "values"
    values.tofile(file)
    mapped = storage.from_file(str(file), True, 4)
    assert mapped.tolist() == values.tolist()
    mapped[0] = values[3].item()
    assert np.fromfile(file, values.dtype)[0] == values[3]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("untyped", [False, True])
def test_old_constructors_take_storages(untyped):
    x = tp.arange(3.0)
    storage = x.untyped_storage() if untyped else x.storage()
    for made in (tp.Tensor(storage), tp.FloatTensor(storage), x.new(storage)):
        assert made.data_ptr() == x.data_ptr()
        assert made.tolist() == [0.0, 1.0, 2.0]
    if not untyped:
        with pytest.raises(
            RuntimeError, match=r"Expected a Storage of type Long or .* got type Float"
        ):
            tp.LongTensor(1).new(storage)


def test_tensors_that_are_set_to_each_other():
    x, none = tp.ones(3), tp.empty(0)
    assert x.is_set_to(x[:])
    assert none.is_set_to(none)
    assert not none.is_set_to(tp.empty(0))
    assert not x.is_set_to(x[1:])
    assert not tp.empty(3, 0).is_set_to(tp.empty(3, 0))


@pytest.mark.parametrize("kind", ["FloatStorage", "LongStorage", "UntypedStorage"])
@pytest.mark.parametrize("number", [np.int8, np.int16, np.int64, np.uint8])
def test_numpys_integers_are_sizes(kind, number):
    assert getattr(tp, kind)(number(3)).size() == 3


def test_what_is_no_leaf_is_not_sent():
    from multiprocessing.reduction import ForkingPickler

    from tensorplug import multiprocessing  # noqa: F401

    with pytest.raises(
        RuntimeError, match="refusing to serialize a non-leaf tensor which requires_grad"
    ):
        ForkingPickler.dumps(tp.ones(2, requires_grad=True) * 2)


@pytest.mark.parametrize(
    "dtype",
    [tp.uint8, tp.bool, tp.int16, tp.bfloat16, tp.float32, tp.int64, tp.complex64, tp.complex128],
)
def test_bytes_are_swapped(dtype):
    storage = tp.UntypedStorage(list(range(32)))
    storage.byteswap(dtype)
    width = dtype.itemsize // (2 if dtype.is_complex else 1)
    expected = np.arange(32, dtype=np.uint8).reshape(-1, width)[:, ::-1]
    assert storage.tolist() == expected.reshape(-1).tolist()
    if width > 1:
        with pytest.raises(RuntimeError, match="not a multiple of"):
            tp.UntypedStorage(3).byteswap(dtype)


@pytest.mark.parametrize("name", ["complex_float", "complex_double", "float", "short", "bool"])
def test_elements_are_converted(name):
    kind = "".join([word.capitalize() for word in name.split("_")])
    converted = getattr(tp.IntStorage([0, 1, 2]), name)()
    assert converted.type().endswith(f".{kind}Storage")
    assert converted.tolist() == ([False, True, True] if name == "bool" else [0, 1, 2])


def test_what_a_storage_says_of_its_memory():
    storage = tp.zeros(100).storage()
    assert storage.__sizeof__() - tp.zeros(0).storage().__sizeof__() == 400
    assert storage.resizable()
    assert storage.untyped().resizable()


@pytest.mark.parametrize(
    "make",
    [
        lambda: tp.from_numpy(np.arange(4.0)),
        lambda: tp.from_numpy(np.arange(4.0))[1:],
        lambda: tp.as_tensor(np.arange(4.0)),
        lambda: tp.frombuffer(bytearray(32), dtype=tp.float64),
        lambda: tp.arange(4.0).share_memory_(),
    ],
    ids=["from_numpy", "view", "as_tensor", "frombuffer", "shared"],
)
def test_memory_of_somebody_else_does_not_grow(make):
    x = make()
    before, version = x.tolist(), x._version
    for larger in (5, (2, 4)):
        with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
            x.resize_(larger)
    storage = x.untyped_storage()
    assert not storage.resizable()
    for size in (8, 100):
        with pytest.raises(RuntimeError, match="not resizable"):
            storage.resize_(size)
    assert (x.tolist(), x._version) == (before, version)
    assert x.resize_(2).tolist() == before[:2]
    assert x.clone().resize_(9).shape == (9,)


@pytest.mark.filterwarnings("default:TypedStorage is deprecated")
def test_asking_for_a_typed_storage_warns():
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        tp.ones(2).storage()
