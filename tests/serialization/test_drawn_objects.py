"""Drawn objects of tensors that share memory, saved and read: here, from torch, by torch; cut files.

``make fuzz`` runs ``TENSORPLUG_FUZZ`` of them.
"""

import io
import os
import pickle
import warnings
from random import Random

import drawn_objects
import pytest

import tensorplug as tp
from tensorplug.serialization import FileFormatError

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "150"))


def flat(tensor):
    """Return the numbers of a tensor, of narrow dtypes as float32."""
    if str(tensor.layout).endswith("sparse_coo"):
        tensor = tensor.to_dense()
    name = str(tensor.dtype).rpartition(".")[2]
    wide = tensor.detach()
    return (wide.float() if name.startswith(("float", "bfloat")) else wide).tolist()


def described(obj, library, seen=None):
    """Return an object as plain data; a tensor that stands in several places by its number."""
    seen = {} if seen is None else seen
    if isinstance(obj, library.Tensor):
        if id(obj) in seen:
            return "again", seen[id(obj)][0]
        seen[id(obj)] = len(seen), obj
        sparse = str(obj.layout).endswith("sparse_coo")
        return (
            isinstance(obj, library.nn.Parameter),
            str(obj.dtype).rpartition(".")[2],
            tuple(obj.shape),
            None if sparse or not obj.numel() else obj.stride(),
            obj.requires_grad,
            flat(obj),
        )
    if isinstance(obj, dict):
        return type(obj).__name__, {k: described(v, library, seen) for k, v in obj.items()}
    if isinstance(obj, library.Size):
        return "Size", list(obj)
    if isinstance(obj, (list, tuple)):
        return type(obj).__name__, [described(item, library, seen) for item in obj]
    if isinstance(obj, (library.dtype, library.device)):
        return str(obj).rpartition(".")[2]
    return type(obj).__name__, repr(obj)


def tensors(obj):
    """Return the strided tensors of an object, in order."""
    if hasattr(obj, "detach"):
        return [] if str(obj.layout).endswith("sparse_coo") else [obj]
    if isinstance(obj, dict):
        return [t for item in obj.values() for t in tensors(item)]
    if isinstance(obj, (list, tuple)):
        return [t for item in obj for t in tensors(item)]
    return []


def sharing(obj):
    """Return which tensors of an object show a write to each of them."""
    found = []
    every = [t.detach() for t in tensors(obj)]
    for number, tensor in enumerate(every):
        if not tensor.numel() or 0 in tensor.stride():
            continue
        before = [flat(t) for t in every]
        changed = 1 - tensor.float().reshape(-1)[:1]
        tensor[(slice(0, 1),) * tensor.ndim] = changed.to(tensor.dtype).reshape((1,) * tensor.ndim)
        found.append((number, [a != flat(b) for a, b in zip(before, every, strict=True)]))
    return found


def saved(library, obj, **options):
    file = io.BytesIO()
    library.save(obj, file, **options)
    return file.getvalue()


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("way", ["plain", "loose", "mmap", "mapped", "old format"])
def test_round_trips(way, tmp_path):
    for seed in range(COUNT):
        obj = drawn_objects.Maker(tp, drawn_objects.Plan(seed)).made
        expected = described(obj, tp)
        old = {"_use_new_zipfile_serialization": False} if way == "old format" else {}
        data = saved(tp, obj, **old)
        assert described(obj, tp) == expected, seed
        if way == "mmap":
            path = tmp_path / f"{seed}.pt"
            path.write_bytes(data)
            found = tp.load(path, mmap=True)
        else:
            options = {"loose": {"weights_only": False}, "mapped": {"map_location": "cpu"}}.get(
                way, {}
            )
            found = tp.load(io.BytesIO(data), **options)
        assert described(found, tp) == expected, seed
        assert sharing(found) == sharing(obj), seed


@pytest.mark.parametrize("way", ["from torch", "to torch"])
def test_files_are_torchs(way):
    torch = pytest.importorskip("torch", reason="the other side")
    for seed in range(COUNT):
        plan = drawn_objects.Plan(seed)
        ours, theirs = drawn_objects.Maker(tp, plan).made, drawn_objects.Maker(torch, plan).made
        if way == "from torch":
            found, library = tp.load(io.BytesIO(saved(torch, theirs))), tp
        else:
            found, library = torch.load(io.BytesIO(saved(tp, ours)), weights_only=True), torch
        assert described(found, library) == described(theirs, torch) == described(ours, tp), seed
        assert sharing(found) == sharing(theirs) == sharing(ours), seed


def test_cut_files_are_refused():
    for seed in range(COUNT):
        data = saved(tp, drawn_objects.Maker(tp, drawn_objects.Plan(seed)).made)
        cut = Random(seed).randrange(len(data))
        with pytest.raises((FileFormatError, pickle.UnpicklingError, EOFError)):
            tp.load(io.BytesIO(data[:cut]))
