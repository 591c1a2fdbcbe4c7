"""Floats of eight bits beside torch's: each code, conversions, what moves them, files."""

import io

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="the values to compare with")

NAMES = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
SOURCES = ["float64", "float32", "float16", "bfloat16", "int64", "uint8", "bool"]


def numbers():
    """Numbers of all sizes, those next to each code of eight bits, and what is between two of them."""
    rng = np.random.default_rng(8)
    codes = np.arange(256, dtype=np.uint8)
    near = [torch.from_numpy(codes).view(getattr(torch, name)).float().numpy() for name in NAMES]
    between = [(np.sort(part)[1:] + np.sort(part)[:-1]) / 2 for part in near]
    with np.errstate(all="ignore"):
        around = [
            np.nextafter(part, np.float32(sign))
            for part in (*near, *between)
            for sign in (-1e38, 1e38)
        ]
    bits = rng.integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32)
    return np.concatenate([*near, *between, *around, bits]).astype(np.float32)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("source", SOURCES)
def test_conversions(name, source):
    values = numbers()
    if source in ("int64", "uint8"):  # numbers that an int holds, where both libraries agree
        values = np.arange(-600 if source == "int64" else 0, 256).astype(np.float32)
    results = []
    for library in (torch, tp):
        x = library.from_numpy(values.copy()).to(getattr(library, source))
        narrow = x.to(getattr(library, name))
        assert narrow.dtype is getattr(library, name)
        assert narrow.element_size() == 1
        results.append(narrow.to(library.float64).tolist())
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("name", NAMES)
def test_every_code_and_its_limits(name):
    codes = np.arange(256, dtype=np.uint8)
    results = []
    for library in (torch, tp):
        dtype = getattr(library, name)
        x = library.from_numpy(codes.copy()).view(dtype)
        limits = library.finfo(dtype)
        results.append(
            (
                x.float().tolist(), x.tolist(), x.bfloat16().tolist(), x.view(library.uint8).tolist(),
                (limits.max, limits.min, limits.eps, limits.tiny, limits.smallest_normal, limits.bits),
                str(limits), repr(x[:9]).replace("torch", "tensorplug"), x.type().partition(".")[2],
                dtype.is_floating_point, dtype.is_signed, dtype.itemsize, dtype.is_complex,
            )
        )  # fmt: skip
    np.testing.assert_equal(*results)


PROGRAMS = {
    "cat": lambda m, x: m.cat([x, x]),
    "stack": lambda m, x: m.stack([x, x], 1),
    "slice": lambda m, x: x[1:3],
    "index": lambda m, x: x[m.tensor([2, 0])],
    "mask": lambda m, x: x[m.tensor([True, False, True, False, False, False])],
    "index_select": lambda m, x: x.index_select(0, m.tensor([1])),
    "write": lambda m, x: x.clone().__setitem__(0, 1.5),
    "transposed": lambda m, x: x.reshape(2, 3).t().contiguous(),
    "expanded": lambda m, x: x[None].expand(2, -1).contiguous(),
    "clone": lambda m, x: x.clone(),
    "copy": lambda m, x: x.clone().copy_(m.arange(6.0)),
    "fill": lambda m, x: x.clone().fill_(2),
    "zeros": lambda m, x: m.zeros(2, dtype=x.dtype),
    "full": lambda m, x: m.full((2,), 1.5, dtype=x.dtype),
    "tensor": lambda m, x: m.tensor([1.0, 2.0], dtype=x.dtype),
    "eye": lambda m, x: m.eye(2, dtype=x.dtype),
    "where": lambda m, x: m.where(m.arange(6) > 2, x, x),
    "equal": lambda m, x: x == x,
    "abs": lambda m, x: x.abs(),
    "isnan": lambda m, x: x.isnan(),
    "pad": lambda m, x: m.nn.functional.pad(x, (1, 1)),
    "repeat": lambda m, x: x.repeat(2),
    "roll": lambda m, x: x.roll(1),
    "split": lambda m, x: x.split(2)[1],
    "int": lambda m, x: x[:2].to(m.int32),
    "complex": lambda m, x: x[:2].to(m.complex64),
    "item": lambda m, x: x[0].item(),
    "storage": lambda m, x: x[:4].clone().untyped_storage().tolist(),
    "parameter": lambda m, x: m.nn.Parameter(x).data,
    "gradient": lambda m, x: _gradient(m, x.dtype),
    **{
        name: lambda m, x, name=name: getattr(x, name)()
        for name in (
            "sum",
            "neg",
            "sqrt",
            "max",
            "sort",
            "nonzero",
            "signbit",
            "mean",
            "uniform_",
            "exp",
        )
    },
    "add": lambda m, x: x + x,
    "multiply": lambda m, x: x * 2,
    "less": lambda m, x: x < x,
    "promote": lambda m, x: x + x.float(),
    "promote_types": lambda m, x: m.promote_types(x.dtype, m.float16),
    "default": lambda m, x: m.set_default_dtype(x.dtype),
    "rand": lambda m, x: m.rand(2, dtype=x.dtype),
    "arange": lambda m, x: m.arange(3, dtype=x.dtype),
    "linspace": lambda m, x: m.linspace(0, 1, 3, dtype=x.dtype),
    "flip": lambda m, x: x.flip(0),
    "gather": lambda m, x: x.gather(0, m.tensor([0])),
    "can_cast": lambda m, x: (m.can_cast(x.dtype, m.float32), m.can_cast(m.float32, x.dtype)),
}


def _gradient(m, dtype):
    x = m.tensor([1.0, 2.0], requires_grad=True)
    (x.to(dtype).float() * 3).sum().backward()
    return x.grad


def plain(result):
    return (
        result.float().tolist() if hasattr(result, "float") and hasattr(result, "dim") else result
    )


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_what_torch_computes_and_what_it_refuses(program, name):
    results = []
    for m in (torch, tp):
        x = m.tensor([1.0, -2.5, 0.3, 500.0, float("nan"), 0.0]).to(getattr(m, name))
        try:
            results.append(plain(PROGRAMS[program](m, x)))
        except (RuntimeError, TypeError) as error:  # NotImplementedError is one
            results.append((TypeError, RuntimeError)[isinstance(error, RuntimeError)])
    if isinstance(results[0], (list, float)):
        np.testing.assert_array_equal(*results)
    else:
        assert results[0] == results[1]


@pytest.mark.parametrize("name", NAMES)
def test_files(name):
    for writer, reader in ((torch, tp), (tp, torch), (tp, tp)):
        for zipped in (True, False) if writer is reader else (True,):  # torch has no such old files
            x = writer.arange(6.0).to(getattr(writer, name))
            file = io.BytesIO()
            writer.save({"x": x, "part": x[2:]}, file, _use_new_zipfile_serialization=zipped)
            file.seek(0)
            again = reader.load(file)
            assert again["x"].dtype is getattr(reader, name)
            assert again["x"].float().tolist() == x.float().tolist()
            assert again["part"].data_ptr() == again["x"].data_ptr() + 2


@pytest.mark.parametrize("name", NAMES)
def test_safetensors(name):
    package = pytest.importorskip("safetensors.torch")
    codes = np.arange(256, dtype=np.uint8)
    ours = tp.safetensors.save({"x": tp.from_numpy(codes.copy()).view(getattr(tp, name))})
    theirs = package.save({"x": torch.from_numpy(codes.copy()).view(getattr(torch, name))})
    assert ours == theirs
    again = tp.safetensors.load(theirs)["x"]
    assert again.dtype is getattr(tp, name)
    assert again.view(tp.uint8).tolist() == codes.tolist()
    if name != "float8_e8m0fnu":  # the package writes it and does not read it
        assert package.load(ours)["x"].view(torch.uint8).tolist() == codes.tolist()
