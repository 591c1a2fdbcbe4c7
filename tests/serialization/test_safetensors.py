"""Safetensors files: the format, exchange with the package, lazy reads, and what is refused."""

import gc
import json

import pytest

import tensorplug as tp
from tensorplug.safetensors import SafetensorError, load, load_file, safe_open, save, save_file
from tensorplug.serialization.safetensors_header import DTYPES

ONE = {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}


def encoded(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3)])
def test_every_dtype_comes_back(dtype, shape):
    tensor = (tp.ones(shape) * 3).to(dtype)
    back = load(save({"x": tensor}))["x"]
    assert (back.dtype, back.shape, back.tolist()) == (dtype, tensor.shape, tensor.tolist())


def test_the_layout_is_the_published_one():
    data = save({"b": tp.tensor([1], dtype=tp.uint8), "a": tp.tensor([2.0])}, {"by": "me"})
    size = int.from_bytes(data[:8], "little")
    assert size % 8 == 0
    assert json.loads(data[8 : 8 + size]) == {
        "__metadata__": {"by": "me"},
        "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        "b": {"dtype": "U8", "shape": [1], "data_offsets": [4, 5]},
    }
    assert data[8 + size :] == bytes([0, 0, 0, 0x40, 1])


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=lambda dtype: dtype.name)
def test_the_package_reads_ours_and_we_read_its(dtype, path):
    torch = pytest.importorskip("torch", reason="the package's files hold torch's tensors")
    package = pytest.importorskip("safetensors.torch", reason="it is the other side of this test")
    if dtype.name.startswith("uint") and dtype.name != "uint8":
        pytest.importorskip("safetensors", "0.6", reason="reads no unsigned dtypes")
    ours = {"x": (tp.arange(6).reshape(2, 3) - 1).to(dtype), "empty": tp.zeros(0, dtype=dtype)}
    save_file(ours, path, {"format": "pt"})
    theirs = package.load_file(path)
    assert str(theirs["x"].dtype) == f"torch.{dtype.name}"
    assert theirs["x"].tolist() == ours["x"].tolist()
    assert theirs["empty"].shape == (0,)
    package.save_file({"y": theirs["x"].clone(), "z": torch.ones(5)}, path, {"by": "them"})
    back = load_file(path)
    assert (back["y"].dtype, back["y"].tolist()) == (dtype, ours["x"].tolist())
    assert back["z"].tolist() == [1] * 5
    with safe_open(path) as file:
        assert file.metadata() == {"by": "them"}


def test_a_module_with_tied_weights(path):
    def tied():
        model = tp.nn.Sequential(tp.nn.Linear(3, 3), tp.nn.Linear(3, 3))
        model[1].weight = model[0].weight
        return model

    model, again = tied(), tied()
    with pytest.raises(RuntimeError, match=r"'0\.weight' and '1\.weight' share memory"):
        save_file(model.state_dict(), path)
    tp.safetensors.save_model(model, path)
    with safe_open(path) as file:
        assert file.keys() == ["0.bias", "0.weight", "1.bias"]
        assert file.metadata() == {"1.weight": "0.weight"}
    assert tp.safetensors.load_model(again, path) == ([], [])
    assert tp.equal(again[1].weight, model[1].weight)
    assert again[1].weight is again[0].weight
    save_file({"0.weight": tp.zeros(3, 3), "other": tp.ones(1)}, path)
    with pytest.raises(RuntimeError, match="other"):
        tp.safetensors.load_model(again, path)
    missing, unexpected = tp.safetensors.load_model(again, path, strict=False)
    assert (sorted(missing), unexpected) == (["0.bias", "1.bias"], ["other"])


def test_reads_are_lazy_and_do_not_write_to_the_file(path):
    save_file({"w": tp.arange(12.0).reshape(3, 4), "odd": tp.arange(3, dtype=tp.uint8)}, path)
    with safe_open(path, framework="pt", device="cpu") as file:
        assert file.keys() == ["odd", "w"]
        assert file.offset_keys() == ["w", "odd"]
        part = file.get_slice("w")
        assert (part.get_shape(), part.get_dtype()) == ([3, 4], "F32")
        assert part[1:, ::2].tolist() == [[4, 6], [8, 10]]
        first, second = file.get_tensor("w"), file.get_tensor("w")
        first[0, 0] = -1
        assert second[0, 0] == -1  # both show the mapped memory
        assert sorted(file.get_tensors()) == ["odd", "w"]
    with pytest.raises(SafetensorError, match="closed"):
        file.get_tensor("w")
    gc.collect()
    assert second[0, 0] == -1  # outlives the file
    assert load_file(path)["w"][0, 0] == 0


def test_another_device(path):
    save_file({"w": tp.ones(2)}, path)
    assert load_file(path, device="meta")["w"].is_meta
    with safe_open(path, device=tp.device("meta")) as file:
        assert file.get_tensor("w").is_meta
        assert file.get_slice("w")[:1].shape == (1,)


def test_an_unknown_name_says_which_there_are(path):
    save_file({"w": tp.ones(2)}, path)
    with safe_open(path) as file, pytest.raises(SafetensorError, match="'v'; there are w"):
        file.get_tensor("v")


def test_a_failed_write_leaves_the_old_file(path):
    save_file({"w": tp.ones(2)}, path)
    with pytest.raises(ValueError, match="non contiguous"):
        save_file({"w": tp.ones(2, 3).t()}, path)
    assert load_file(path)["w"].tolist() == [1, 1]
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("tensors", "metadata", "error", "match"),
    [
        ({"w": 3}, None, ValueError, "'w' is a int"),
        ({1: tp.ones(1)}, None, TypeError, "names must be str"),
        ({"__metadata__": tp.ones(1)}, None, ValueError, "__metadata__"),
        ({"w": tp.ones(1, dtype=tp.complex128)}, None, TypeError, "complex128"),
        ({"w": tp.ones(1, device="meta")}, None, ValueError, "no data"),
        ({"w": tp.ones(1)}, {"a": 1}, TypeError, "metadata"),
    ],
)
def test_what_cannot_be_written(tensors, metadata, error, match):
    with pytest.raises(error, match=match):
        save(tensors, metadata)


def test_views_that_do_not_overlap_can_be_written():
    base = tp.arange(6)
    assert load(save({"a": base[:3], "b": base[3:]}))["b"].tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "too short"),
        (b"\x01\x02", "too short"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "cut short, or begins with .*PNG"),
        ((1 << 60).to_bytes(8, "little") + b"{}", "cut short"),
        (encoded(b"[]"), "instead of '{'"),
        (encoded(b"{"), "Expecting"),
        (encoded(b"{\xff}"), "utf-8"),
        (encoded(b'{"a":' + b"[" * 100_000), "recursion"),
        (encoded(b'{"a":NaN}'), "NaN"),
        (encoded(b'{"__metadata__":{},"__metadata__":{}}'), "twice"),
        (encoded({"__metadata__": {"a": 1}}), "metadata"),
        (encoded({"w": 1}), "lacks"),
        (encoded({"w": {**ONE, "dtype": "F4_E2M1"}}, b"x"), "F4_E2M1"),
        (encoded({"w": {**ONE, "dtype": []}}, b"x"), "dtype"),
        (encoded({"w": {**ONE, "shape": [-1]}}, b"x"), "lists of sizes"),
        (encoded({"w": {**ONE, "shape": [True]}}, b"x"), "lists of sizes"),
        (encoded({"w": {**ONE, "shape": [1.0]}}, b"x"), "lists of sizes"),
        (encoded({"w": {**ONE, "shape": [1] * 65}}, b"x"), "65 dimensions"),
        (encoded({"w": {**ONE, "shape": [1 << 62, 8]}}, b"x"), "has 1 bytes"),
        (encoded({"w": {**ONE, "data_offsets": [0]}}, b"x"), "lists of sizes"),
        (encoded({"w": {**ONE, "data_offsets": [1, 0]}}, b"x"), "has -1 bytes"),
        (encoded({"w": {**ONE, "data_offsets": [1, 2]}}, b"xx"), "leaves a hole"),
        (encoded({"v": ONE, "w": ONE}, b"x"), "overlaps"),
        (encoded({"w": ONE}, b"xx"), "end at byte"),
        (encoded({"w": ONE}, b""), "end at byte"),
    ],
)
def test_what_is_refused(data, match, path):
    with pytest.raises(SafetensorError, match=match):
        load(data)
    path.write_bytes(data)
    with pytest.raises(SafetensorError, match=match):
        safe_open(path)


def test_a_mask_of_other_bytes_is_a_mask():
    data = encoded({"w": {"dtype": "BOOL", "shape": [3], "data_offsets": [0, 3]}}, b"\x00\x02\xff")
    mask = load(data)["w"]
    assert mask.tolist() == [False, True, True]
    assert tp.arange(3)[mask].tolist() == [1, 2]
