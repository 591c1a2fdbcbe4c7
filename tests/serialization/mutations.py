"""Damaged and malicious files, made from a seed."""

import io
import json
import pickle
import pickletools
import random
import struct
import zipfile
from collections import OrderedDict

import tensorplug as tp

CANARY = "tensorplug_test_canary"


def original():
    """An object as a checkpoint has it."""
    shared = tp.arange(12.0).reshape(3, 4)
    return {
        "state": OrderedDict(weight=shared, transposed=shared.t()[1:], mask=shared > 5),
        "step": 3,
        "names": ["a", b"bytes", (1, 2.5, None), {4, 5}],
        "half": tp.ones(3, dtype=tp.bfloat16),
        "ids": tp.arange(20),
    }


def tensors():
    """The tensors of a small safetensors file."""
    return {
        "weight": tp.arange(12.0).reshape(3, 4),
        "mask": tp.arange(5) > 2,
        "half": tp.ones(3, dtype=tp.bfloat16),
        "ids": tp.arange(6).reshape(2, 3),
        "empty": tp.zeros(0, 2),
    }


def saved(obj):
    file = io.BytesIO()
    tp.save(obj, file)
    return file.getvalue()


# --- bytes ------------------------------------------------------------------------------------


def flip(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8, 64))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def truncate(data, rng):
    return data[: rng.randrange(len(data))]


def insert(data, rng):
    place, start = rng.randrange(len(data)), rng.randrange(len(data))
    block = rng.choice((rng.randbytes(rng.randrange(1, 65)), data[start : start + 100], bytes(16)))
    return data[:place] + block + data[place:]


def remove(data, rng):
    place = rng.randrange(len(data))
    return data[:place] + data[place + rng.randrange(1, 100) :]


def overwrite(data, rng):
    """Put an extreme number somewhere: sizes and offsets are what a forger would change."""
    number = rng.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 1 << 63, 1 << 40))
    block = number.to_bytes(8, "little")[: rng.choice((2, 4, 8))]
    place = rng.randrange(len(data))
    return data[:place] + block + data[place + len(block) :]


BYTES = (flip, flip, truncate, insert, remove, overwrite)


# --- archives ---------------------------------------------------------------------------------


def records(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist()]


def archive_of(parts, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in parts:
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return file.getvalue()


def change_records(data, rng):
    """Swap, drop, rename, cut, grow or compress the entries of an archive, with right checksums."""
    parts = records(data)
    a, b = rng.randrange(len(parts)), rng.randrange(len(parts))
    (name, contents), (other, others) = parts[a], parts[b]
    match rng.randrange(7):
        case 0:
            parts[a], parts[b] = (name, others), (other, contents)
        case 1:
            del parts[a]
        case 2 if a != b:
            parts[a] = (other + rng.choice(("", "/", "x")), contents)
            del parts[b]
        case 3:
            parts[a] = (name, contents[: rng.randrange(len(contents) + 1)])
        case 4:
            parts[a] = (name, contents + rng.randbytes(rng.randrange(100)))
        case 5:
            parts[a] = (name, bytes(200_000))
            return archive_of(parts, zipfile.ZIP_DEFLATED)
        case _:
            parts[a] = (name, rng.choice(BYTES)(contents or b" ", rng))
    return archive_of(parts)


# --- pickles ----------------------------------------------------------------------------------

GLOBALS = [
    *(("torch._utils", name) for name in ("_rebuild_tensor_v2", "_rebuild_tensor_v3")),
    ("torch._utils", "_rebuild_meta_tensor_no_storage"),
    ("torch._utils", "_rebuild_parameter"),
    ("torch", "Size"),
    ("torch", "device"),
    ("torch", "float32"),
    ("torch", "FloatStorage"),
    ("torch.storage", "UntypedStorage"),
    ("torch.serialization", "_get_layout"),
    ("collections", "OrderedDict"),
    ("collections", "Counter"),
    ("_codecs", "encode"),
    *(("builtins", n) for n in ("set", "frozenset", "bytes", "bytearray", "complex", "slice")),
    *(("numpy._core.multiarray", n) for n in ("_reconstruct", "scalar")),
    *(("numpy", n) for n in ("ndarray", "dtype")),
    ("numpy._core.numeric", "_frombuffer"),
    *(("collections", n) for n in ("defaultdict", "deque")),
    ("functools", "partial"),
    ("pathlib", "PosixPath"),
    ("argparse", "Namespace"),
    ("types", "SimpleNamespace"),
    ("torch.nn.modules.linear", "Linear"),
    ("torch.nn.functional", "relu"),
    ("mutations", "Harm"),
    ("os", "system"),
    ("posix", "system"),
    ("builtins", "eval"),
    ("builtins", "getattr"),
    ("subprocess", "Popen"),
    (CANARY, "sing"),
    ("tensorplug.core.tensor.host", "np"),
    ("numpy", "load"),
]
INTS = (0, 1, 2, 3, -1, 4, 12, 255, 1 << 31, 1 << 40, 1 << 62, -(1 << 63), 1 << 200)
TEXTS = ("cpu", "storage", "0", "1", "2", "weight", "", "ü", "meta", "__class__", "__dict__", "ls")


def some_int(rng):
    return rng.choice(INTS)


def number(value):
    return b"L%dL\n" % value


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def random_operation(rng):
    match rng.randrange(16):
        case 0 | 1:
            return number(some_int(rng))
        case 2 | 3:
            return text(rng.choice(TEXTS))
        case 4 | 5 | 6:
            module, name = rng.choice(GLOBALS)
            if rng.random() < 0.3:
                return b"(i" + f"{module}\n{name}\n".encode()
            return b"c" + f"{module}\n{name}\n".encode()
        case 7:
            return (
                b"("
                + text("storage")
                + b"ctorch\nFloatStorage\n"
                + text("0")
                + text("cpu")
                + (number(rng.choice((0, 12, 10**9))) + b"tQ")
            )
        case 8:
            size = rng.choice((0, 3, 1 << 20, 1 << 31, (1 << 32) - 1))
            return rng.choice((b"T", b"X", b"B")) + struct.pack("<I", size) + b"abc"
        case 9:
            size = rng.choice((3, 1 << 33, 1 << 62, (1 << 64) - 1))
            return (
                rng.choice((b"\x96", b"\x8d", b"\x8e", b"\x95")) + struct.pack("<Q", size) + b"abc"
            )
        case 10:
            return b"r" + struct.pack("<I", rng.choice((0, 1, 1 << 31)))
        case 11:
            return rng.choice((b"h", b"q")) + bytes([rng.randrange(6)])
        case 12:
            return b"\x85" * rng.choice((1, 1, 3, 2000)) + rng.choice((b"", b"K\x01s", b"\x91"))
        case 13:
            return b"2\x86" * rng.choice((1, 2, 40)) + rng.choice((b"", b"K\x01s"))
        case _:
            return rng.choice(SIMPLE)


SIMPLE = [
    bytes([code])
    for code in b"(.)}]NtdloaesubR\x81\x92\x85\x86\x87\x88\x89\x8f\x90\x91\x9301\x94\x93Q2"
]


def random_pickle(rng):
    return b"".join([random_operation(rng) for _ in range(rng.randrange(1, 40))]) + b"."


def changed_pickle(data, rng):
    """A pickle of which some operations are dropped, repeated, swapped or replaced."""
    ends = [place for _, _, place in pickletools.genops(data)]
    ops = [data[a:b] for a, b in zip(ends, [*ends[1:], len(data)], strict=True)]
    for _ in range(rng.choice((1, 1, 2, 5))):
        a, b = rng.randrange(len(ops)), rng.randrange(len(ops))
        match rng.randrange(5):
            case 0 if len(ops) > 1:
                del ops[a]
            case 1:
                ops.insert(b, ops[a])
            case 2:
                ops[a], ops[b] = ops[b], ops[a]
            case 3:
                ops[a] = random_operation(rng)
            case _:
                ops.insert(a, random_operation(rng))
    return b"".join(ops)


def change_pickle(data, rng):
    parts = dict(records(data))
    name = next(name for name in parts if name.endswith("data.pkl"))
    fresh = rng.random() < 0.5
    parts[name] = random_pickle(rng) if fresh else changed_pickle(parts[name], rng)
    return archive_of(parts.items())


class Harm:
    """What the textbook does: a pickle that calls a function of its choice."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def plant_harm(data, rng):
    """Hide a call in an object that looks like a checkpoint."""
    import os
    import sys

    harm = rng.choice(
        [
            Harm(os.system, "true"),
            Harm(eval, "1"),
            Harm(sys.modules[CANARY].sing, 1),
            Harm(getattr, "a", "upper"),
            Harm(__import__, "antigravity"),
        ]
    )
    obj = original()
    rng.choice((obj, obj["state"]))["harm"] = harm
    parts = dict(records(data))
    name = next(name for name in parts if name.endswith("data.pkl"))
    if rng.random() < 0.5:
        return saved(obj)
    parts[name] = pickle.dumps(["x", harm], rng.randrange(5))
    return archive_of(parts.items())


# --- headers ----------------------------------------------------------------------------------

VALUES = [
    None, True, -1, 0, 1, 2.0, 1 << 40, 1 << 63, 1 << 70, "F32", "F8_E4M3", "C64", "", [], [0], [0, 1],
    [1 << 62, 4], [[[]]], {}, "F64", [3, 4], [4, 3], [12], [0, 48], float("nan"), [-1, -1],
]  # fmt: skip


def change_header(data, rng):
    """Edit the header of a safetensors file; its length fits again unless that is what changes."""
    size = int.from_bytes(data[:8], "little")
    header, rest = json.loads(data[8 : 8 + size]), data[8 + size :]
    for _ in range(rng.choice((1, 1, 2, 4))):
        name = rng.choice(list(header) or ["none"])
        match rng.randrange(8):
            case 0:
                header.pop(name, None)
            case 1:
                header[name] = rng.choice(VALUES)
            case 2 | 3 | 4 if isinstance(header.get(name), dict):
                header[name][rng.choice(("dtype", "shape", "data_offsets", "x"))] = rng.choice(
                    VALUES
                )
            case 5:
                header["__metadata__"] = rng.choice(({"a": "b"}, {"a": 1}, [], "x", None))
            case 6 if isinstance(header.get(name), dict):
                other = rng.choice(list(header.values()))
                header[name] = dict(other) if isinstance(other, dict) else other
            case _:
                rest = rng.choice((rest + b"x", rest[:-1], b"", rest))
    text = json.dumps(header)
    if rng.random() < 0.2:
        text = rng.choice(
            ("[" * 100_000, text[:-1], text + "x", " " + text, text * 2, "{}", "[]", "1")
        )
    if rng.random() < 0.1:
        text = text[:-1] + "," + text[1:]  # each name stands twice
    head = text.encode()
    size = len(head) if rng.random() < 0.9 else some_int(rng) % (1 << 64)
    return size.to_bytes(8, "little") + head + rest


ARCHIVE = (*BYTES, change_records, change_records, *(change_pickle,) * 6, plant_harm)
SAFETENSORS = (*BYTES, *(change_header,) * 6)
FRESH = (change_pickle, change_records, plant_harm)  # these may mean another object


def mutant(data, kinds, seed):
    """Return a mutation of some bytes and which kind it is; the same for the same seed."""
    rng = random.Random(seed)
    kind = rng.choice(kinds)
    return kind(data, rng), kind
