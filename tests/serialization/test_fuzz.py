"""Files that are damaged or forged: a clear error or the right data; no code run, no memory lost.

``make fuzz`` runs 10,000 of them; a test run without ``TENSORPLUG_FUZZ`` has a share.
"""

import io
import os
import pickle
import sys
import tracemalloc
import types

import mutations
import pytest

import tensorplug as tp
from tensorplug.core.errors import DeviceNotAvailableError
from tensorplug.serialization import FileFormatError

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "2000"))
SLICES = 10
CLEAR = (FileFormatError, pickle.UnpicklingError, DeviceNotAvailableError)
EVENTS = {"import", "exec", "compile", "open", "ctypes.dlopen"}
FAMILIES = ("os.", "subprocess.", "socket.", "shutil.", "pty.")
HARMLESS = {"os.listdir", "os.scandir"}


class Watch:
    """Notes what a file makes happen that no file should."""

    def __init__(self):
        self.on = False
        self.seen = []
        self.path = None  # what may be opened
        sys.addaudithook(self.note)  # for good: hooks cannot be taken away

    def note(self, event, args):
        if not self.on or event in HARMLESS or (event == "open" and args[0] == self.path):
            return
        if event in EVENTS or event.startswith(FAMILIES):
            self.seen.append((event, args))

    def run(self, function, size):
        """Call a function; return its result or clear error, if nothing was done beside."""
        self.seen = []
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        self.on = True
        try:
            result = function()
        except CLEAR as error:
            result = error
        finally:
            self.on = False
        _, peak = tracemalloc.get_traced_memory()
        assert self.seen == []
        assert peak - before < 2_000_000 + 50 * size
        return result


WATCH = Watch()


@pytest.fixture(autouse=True, scope="module")
def canary():
    module = types.ModuleType(mutations.CANARY)
    sang = []

    def sing(*args):
        sang.append(args)

    sing.__module__, sing.__qualname__ = mutations.CANARY, "sing"
    module.sing = sing
    sys.modules[mutations.CANARY] = module
    # Imported when it is first used, and pickle has an operation for it.
    "".encode("raw_unicode_escape")
    tracemalloc.start(1)
    yield
    tracemalloc.stop()
    del sys.modules[mutations.CANARY]
    assert sang == []


def same(a, b):
    if isinstance(a, tp.Tensor):
        return (a.dtype, a.shape, a.stride(), a.tolist()) == (
            b.dtype,
            b.shape,
            b.stride(),
            b.tolist(),
        )
    if isinstance(a, dict):
        return list(a) == list(b) and all(
            same(x, y) for x, y in zip(a.values(), b.values(), strict=True)
        )
    return a == b


def touch(obj):
    """Read what a tensor that was accepted shows, unless it shows the same memory very often."""
    for value in obj.values() if isinstance(obj, dict) else [obj]:
        if isinstance(value, tp.Tensor) and value.numel() < 10_000 and not value.is_meta:
            value.tolist()


@pytest.mark.parametrize("part", range(SLICES))
def test_archives(part, tmp_path):
    data = mutations.saved(mutations.original())
    wanted = tp.load(io.BytesIO(data))
    path = tmp_path / "mutant.pt"
    WATCH.path = str(path)
    path.write_bytes(data)
    tp.load(path, mmap=True)  # imports what it needs
    tp.load(io.BytesIO(mutations.saved(tp.nn.Linear(1, 1))), weights_only=False)
    for seed in range(part, COUNT // 2, SLICES):
        mutant, kind = mutations.mutant(data, mutations.ARCHIVE, seed)
        result = WATCH.run(lambda: tp.load(io.BytesIO(mutant)), len(mutant))  # noqa: B023
        touch(result)
        if kind is mutations.plant_harm:
            assert isinstance(result, pickle.UnpicklingError), seed
        elif kind not in mutations.FRESH and not isinstance(result, CLEAR):
            assert same(result, wanted), seed
        loose = WATCH.run(lambda: tp.load(io.BytesIO(mutant), weights_only=False), len(mutant))  # noqa: B023
        if kind is mutations.plant_harm:
            assert isinstance(loose, pickle.UnpicklingError), seed
        touch(loose)
        path.write_bytes(mutant)
        touch(WATCH.run(lambda: tp.load(path, mmap=True), len(mutant)))


def held(data):
    """What the package ``safetensors`` reads; None without it, its error if it reads nothing."""
    try:
        import safetensors
    except ImportError:
        return None
    try:
        return {
            name: (part["dtype"], part["shape"], bytes(part["data"]))
            for name, part in safetensors.deserialize(data)
        }
    except safetensors.SafetensorError as error:
        return error


@pytest.mark.parametrize("part", range(SLICES))
def test_safetensors(part):
    data = tp.safetensors.save(mutations.tensors(), {"format": "pt"})
    tp.safetensors.load(data)  # imports what it needs
    for seed in range(part, COUNT - COUNT // 2, SLICES):
        mutant, _ = mutations.mutant(data, mutations.SAFETENSORS, seed)
        result = WATCH.run(lambda: tp.safetensors.load(mutant), len(mutant))  # noqa: B023
        wanted = held(mutant)
        if isinstance(result, CLEAR):
            if isinstance(wanted, dict):  # it is not strict, and has dtypes that we lack
                reasons = ("F8_", "instead of '{'", "stands twice")
                assert any(reason in str(result) for reason in reasons), (seed, result)
            continue
        touch(result)
        assert wanted is None or isinstance(wanted, dict), (seed, wanted)
        if wanted is not None:
            assert result.keys() == wanted.keys(), seed
            for name, tensor in result.items():
                _, shape, contents = wanted[name]
                assert list(tensor.shape) == shape, seed
                if tensor.dtype is not tp.bool:  # a byte that is neither 0 nor 1 becomes True
                    assert (
                        tp.safetensors.save({"x": tensor})[-len(contents) :] == contents
                        or not contents
                    )
