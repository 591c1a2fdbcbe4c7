"""Samples, datasets, samplers and options of loaders, drawn once and made in either library."""

from __future__ import annotations

import collections
from random import Random
from typing import Any, NamedTuple

import numpy as np

DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool", "complex64", "float16")
LEAVES = (
    "tensor", "tensor", "array", "number of NumPy's", "int",
    "float", "bool", "str", "bytes", "None", "complex",
)  # fmt: skip
CONTAINERS = ("list", "tuple", "dict", "OrderedDict", "UserDict", "named", "deque", "own list")


class Pair(NamedTuple):
    """A tuple with names."""

    first: Any
    second: Any


class OwnList(list[Any]):
    """A list of a class of its own."""


# --- samples ----------------------------------------------------------------------------------


def structure(draw: Random, depth: int = 0) -> Any:
    """Return what samples look like: a leaf, or a container with its parts."""
    if depth > 2 or draw.random() < 0.45:
        kind = draw.choice(LEAVES)
        return kind, draw.choice(DTYPES), draw.choice(((), (2,), (2, 1), (0,), (1, 2)))
    kind = draw.choice(CONTAINERS)
    count = 2 if kind == "named" else draw.choice((0, 1, 2, 2, 3))
    return kind, [structure(draw, depth + 1) for _ in range(count)]


def sample(draw: Random, form: Any, odd: float) -> Any:
    """Return a sample as plain data; sometimes one that differs from the others in form."""
    if draw.random() < odd:
        form = structure(draw, 2)
    if len(form) == 2:
        kind, parts = form
        parts = parts[:-1] if parts and kind != "named" and draw.random() < odd else parts
        return kind, [sample(draw, part, odd) for part in parts]
    kind, dtype, shape = form
    count = int(np.prod(shape))
    return kind, dtype, shape, [draw.randint(0, 5) for _ in range(max(1, count))][: count or 1]


def made(lib: Any, value: Any) -> Any:
    """Return a sample as objects of a library."""
    if len(value) == 2:
        return _container(value[0], [made(lib, part) for part in value[1]])
    kind, dtype, shape, numbers = value
    numbers = numbers if int(np.prod(shape)) else []
    if kind == "tensor":
        return lib.tensor(numbers, dtype=getattr(lib, dtype)).reshape(shape)
    if kind == "array":
        return np.array(numbers, dtype=dtype).reshape(shape)
    if kind == "number of NumPy's":
        return np.dtype(dtype).type(value[3][0])
    first = value[3][0]
    plain = {"int": int, "float": float, "bool": bool, "str": str, "complex": complex}
    if kind in plain:
        return plain[kind](first)
    return str(first).encode() if kind == "bytes" else None


def _container(kind: str, parts: list[Any]) -> Any:
    named = {f"key {number}": part for number, part in enumerate(parts)}
    match kind:
        case "tuple":
            return tuple(parts)
        case "dict":
            return named
        case "OrderedDict":
            return collections.OrderedDict(named)
        case "UserDict":
            return collections.UserDict(named)
        case "named":
            return Pair(*parts)
        case "deque":
            return collections.deque(parts)
        case "own list":
            return OwnList(parts)
    return parts


# --- datasets ---------------------------------------------------------------------------------

DATASETS = (
    "list", "tensors", "map", "batches", "subset",
    "concat", "stack", "stream", "stream with length", "chain", "dict",
)  # fmt: skip


def dataset(lib: Any, kind: str, size: int) -> Any:
    """Return a dataset of the numbers from 0 on, in one form or another."""
    data = lib.utils.data

    class Squares(data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return size

        def __getitem__(self, index: int) -> Any:
            if index >= size:
                raise IndexError(index)
            return {"number": index, "square": lib.tensor([index * index])}

    class InBatches(Squares):
        def __getitems__(self, indices: list[int]) -> Any:
            return [(index, -index) for index in indices]

    class Stream(data.IterableDataset):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Any:
            return iter(range(size))

    class Counted(Stream):
        def __len__(self) -> int:
            return size

    numbers = list(range(size))
    match kind:
        case "tensors":
            return data.TensorDataset(lib.arange(size), lib.arange(2 * size).reshape(size, 2))
        case "map":
            return Squares()
        case "batches":
            return InBatches()
        case "subset":
            return data.Subset(Squares(), numbers[::-2])
        case "concat":
            return data.ConcatDataset([numbers[:2], numbers[2:] or [7], [10, 11]])
        case "stack":
            return data.StackDataset(numbers, [str(number) for number in numbers])
        case "stream":
            return Stream()
        case "stream with length":
            return Counted()
        case "chain":
            return data.ChainDataset([Stream(), Stream()])
        case "dict":
            return dict(enumerate(numbers))
    return numbers


# --- loaders ----------------------------------------------------------------------------------


def options(draw: Random, size: int) -> dict[str, Any]:
    """Return options of a loader, which may not go together; samplers are told by their arguments."""
    found: dict[str, Any] = {}
    if draw.random() < 0.7:
        found["batch_size"] = draw.choice((1, 2, 3, 5, None, 0, -1))
    if draw.random() < 0.3:
        found["drop_last"] = draw.random() < 0.7
    if draw.random() < 0.3:
        order = [draw.randrange(max(1, size)) for _ in range(draw.randint(0, 6))]
        found["sampler"] = draw.choice((("list", order), ("sequential",), ("batches", order)))
    if draw.random() < 0.15:
        found["batch_sampler"] = ("batches", [draw.randrange(max(1, size)) for _ in range(5)])
    if draw.random() < 0.15:
        found["shuffle"] = draw.random() < 0.5
    if draw.random() < 0.3:
        found["collate_fn"] = draw.choice(("list", "length"))
    if draw.random() < 0.1:
        found.update(draw.choice(WRONG))
    return found


#: What is refused without workers, or of any loader.
WRONG: tuple[dict[str, Any], ...] = (
    {"timeout": -1}, {"timeout": 1}, {"prefetch_factor": 2}, {"persistent_workers": True},
    {"num_workers": -1}, {"multiprocessing_context": "spawn"}, {"worker_init_fn": None},
)  # fmt: skip


def loader(lib: Any, kind: str, size: int, given: dict[str, Any]) -> Any:
    """Return a loader with drawn options."""
    data = lib.utils.data
    source = dataset(lib, kind, size)
    kept = dict(given)
    for name in ("sampler", "batch_sampler"):
        if name in kept:
            kept[name] = _sampler(data, source, *kept[name])
    if "collate_fn" in kept:
        kept["collate_fn"] = {"list": list, "length": len}[kept["collate_fn"]]
    return data.DataLoader(source, **kept)


def _sampler(data: Any, source: Any, what: str, order: Any = None) -> Any:
    if what == "list":
        return order
    return (
        data.SequentialSampler(source)
        if what == "sequential"
        else data.BatchSampler(order, 2, False)
    )


# --- samplers ---------------------------------------------------------------------------------


SHARES = ([0.5, 0.5], [0.3, 0.3, 0.4], [0.7, 0.2], [1.5, -0.5], [0.1] * 10)


def sampler_call(draw: Random) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Return a sampler's name and arguments, valid or nearly."""
    size = draw.choice((0, 1, 2, 5, 12))
    count = draw.choice((None, 1, 3, 7, 20, 0, -1, 2.5))
    flag = draw.choice((True, False, False, 1))
    name = draw.choice(("SequentialSampler", "RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler",
        "BatchSampler", "DistributedSampler", "random_split"))  # fmt: skip
    match name:
        case "RandomSampler":
            return name, (range(size), flag, count), {}
        case "WeightedRandomSampler":
            weights = [draw.choice((0, 1, 2.5)) for _ in range(size)]
            return name, (draw.choice((weights, [weights])), count, flag), {}
        case "BatchSampler":
            return name, (range(size), draw.choice((1, 2, 3, 0, -1, 2.0, True)), flag), {}
        case "DistributedSampler":
            replicas = draw.choice((1, 2, 3, 7))
            rank = draw.choice((0, 1, 2, -1, 7))
            return name, (range(size), replicas, rank), {"shuffle": False, "drop_last": bool(flag)}
        case "random_split":
            return name, (range(size), draw.choice(([size - 1, 1], [size], *SHARES))), {}
        case "SubsetRandomSampler":
            return name, (list(range(0, 3 * size, 3)),), {}
    return name, (range(size),), {}
