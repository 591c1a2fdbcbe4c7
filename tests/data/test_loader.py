"""Collation and the loader."""

import os
import warnings
from collections import OrderedDict, UserDict
from typing import Any, NamedTuple

import pytest

import tensorplug as tp
from tensorplug.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    TensorDataset,
    collate,
    default_collate,
    default_convert,
    get_worker_info,
)

numpy = pytest.importorskip("numpy", reason="arrays are turned into tensors")


class Pair(NamedTuple):
    x: Any
    y: Any


def plain(value):
    """Return nested values with tensors as (dtype, list)."""
    if isinstance(value, tp.Tensor):
        return str(value.dtype).rpartition(".")[2], value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        ([1, 2], ("int64", [1, 2])),
        ([1.5, 2.0], ("float64", [1.5, 2.0])),
        ([True, False], ("bool", [True, False])),
        (["a", "b"], ["a", "b"]),
        ([b"a", b"b"], [b"a", b"b"]),
        ([(1, 2.0), (3, 4.0)], [("int64", [1, 3]), ("float64", [2.0, 4.0])]),
        ([[1, "a"], [2, "b"]], [("int64", [1, 2]), ["a", "b"]]),
        ([{"x": 1}, {"x": 2}], {"x": ("int64", [1, 2])}),
        ([{"x": (1, [2])}, {"x": (3, [4])}], {"x": [("int64", [1, 3]), [("int64", [2, 4])]]}),
        ([numpy.float32(1.5), numpy.float32(2)], ("float32", [1.5, 2.0])),
        ([numpy.float64(1.5), numpy.float64(2)], ("float64", [1.5, 2.0])),
        ([numpy.arange(2), numpy.arange(2)], ("int64", [[0, 1], [0, 1]])),
    ],
)
def test_collate(batch, expected):
    assert plain(default_collate(batch)) == expected


def test_collate_tensors():
    batch = default_collate([tp.ones(2), tp.zeros(2)])
    assert batch.tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_collate_keeps_the_kind_of_container():
    pair = default_collate([Pair(1, "a"), Pair(2, "b")])
    assert isinstance(pair, Pair)
    assert (pair.x.tolist(), pair.y) == ([1, 2], ("a", "b"))
    ordered = default_collate([OrderedDict(b=1, a=2), OrderedDict(b=3, a=4)])
    assert isinstance(ordered, OrderedDict)
    assert list(ordered) == ["b", "a"]
    assert isinstance(default_collate([UserDict(x=1)]), UserDict)


@pytest.mark.parametrize(
    ("batch", "error", "text"),
    [
        (
            [object()],
            TypeError,
            "batch must contain tensors, numpy arrays, numbers, dicts or lists",
        ),
        ([None, None], TypeError, "found <class 'NoneType'>"),
        ([[1], [1, 2]], RuntimeError, "equal size"),
        ([numpy.array(["a"])], TypeError, "batch must contain"),
        ([], IndexError, "empty"),
    ],
)
def test_collate_refuses(batch, error, text):
    with pytest.raises(error, match=text):
        default_collate(batch)


def test_collate_with_functions_of_ones_own():
    batch = collate(
        [{"x": "a"}, {"x": "b"}], collate_fn_map={str: lambda batch, **_: "".join(batch)}
    )
    assert batch == {"x": "ab"}


def test_convert():
    converted = default_convert({"a": numpy.ones(2), "b": [(1, "x")], "c": Pair(numpy.int64(3), 2)})
    assert plain(converted["a"]) == ("float64", [1.0, 1.0])
    assert converted["b"] == [[1, "x"]]
    assert isinstance(converted["c"], Pair)
    assert converted["c"].x.item() == 3
    text = numpy.array(["a"])
    assert default_convert(text) is text
    assert default_convert(b"x") == b"x"


# --- the loader ---


class Squares(Dataset):
    def __init__(self, size=7):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return index**2


class Stream(IterableDataset):
    def __init__(self, size=7):
        self.size = size
        self.read = 0

    def __iter__(self):
        for i in range(self.size):
            self.read += 1
            yield i


def lists(loader):
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("source", [Squares, Stream])
def test_batches(source, drop_last):
    loader = DataLoader(source(), batch_size=3, drop_last=drop_last)
    values = [i**2 if source is Squares else i for i in range(7)]
    expected = [values[:3], values[3:6]] + ([] if drop_last else [values[6:]])
    assert lists(loader) == expected
    assert lists(loader) == expected  # again from the start


def test_lengths():
    assert len(DataLoader(Squares(), batch_size=3)) == 3
    assert len(DataLoader(Squares(), batch_size=3, drop_last=True)) == 2
    assert len(DataLoader(Squares(), batch_size=None)) == 7
    assert len(DataLoader(Squares(), batch_sampler=[[1], [2]])) == 2
    with pytest.raises(TypeError):
        len(DataLoader(Stream()))


def test_a_stream_is_read_no_further_than_needed():
    stream = Stream()
    batches = iter(DataLoader(stream, batch_size=2))
    next(batches)
    assert stream.read == 2


def test_single_samples():
    assert list(DataLoader(Squares(3), batch_size=None)) == [0, 1, 4]
    assert list(DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]
    tensors = list(DataLoader([numpy.ones(1)], batch_size=None))
    assert isinstance(tensors[0], tp.Tensor)


def test_shuffle():
    loader = DataLoader(Squares(50), batch_size=50, shuffle=True)
    first, second = next(iter(loader)).tolist(), next(iter(loader)).tolist()
    assert sorted(first) == sorted(second) == [i**2 for i in range(50)]
    assert first != second


def test_the_seed_fixes_the_order():
    orders = []
    for _ in range(2):
        tp.manual_seed(11)
        orders.append(lists(DataLoader(Squares(), batch_size=2, shuffle=True)))
    assert orders[0] == orders[1]
    generators = [tp.Generator(), tp.Generator()]
    for generator in generators:
        generator.manual_seed(1)
    a, b = (lists(DataLoader(Squares(), shuffle=True, generator=g)) for g in generators)
    assert a == b


def test_samplers_and_collate_functions():
    assert lists(DataLoader(Squares(), batch_size=2, sampler=[5, 1, 0])) == [[25, 1], [0]]
    batches = BatchSampler([3, 2, 1], 2, False)
    assert lists(DataLoader(Squares(), batch_sampler=batches)) == [[9, 4], [1]]
    assert list(DataLoader(Squares(4), batch_size=2, collate_fn=sum)) == [1, 13]


def test_structured_samples():
    data = TensorDataset(tp.arange(4).reshape(4, 1).float(), tp.arange(4))
    inputs, targets = next(iter(DataLoader(data, batch_size=4)))
    assert tuple(inputs.shape) == (4, 1)
    assert targets.tolist() == [0, 1, 2, 3]


def test_batches_are_fetched_at_once_where_the_dataset_offers_it():
    class Batched(Dataset):
        def __len__(self):
            return 4

        def __getitems__(self, indices):
            return [len(indices)] * len(indices)

    assert lists(DataLoader(Batched(), batch_size=3)) == [[3, 3, 3], [1]]


def test_no_worker_here():
    assert get_worker_info() is None


@pytest.mark.parametrize(
    ("dataset", "options", "error", "text"),
    [
        (Squares(), {"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
        (Squares(), {"num_workers": 2, "prefetch_factor": 0}, ValueError, "prefetch_factor option"),
        (
            Squares(),
            {"num_workers": 2, "multiprocessing_context": "clone"},
            ValueError,
            "valid start method",
        ),
        (
            Squares(),
            {"num_workers": 2, "multiprocessing_context": 1},
            TypeError,
            "valid context object",
        ),
        (Squares(), {"timeout": -1}, ValueError, "timeout option should be non-negative"),
        (Squares(), {"prefetch_factor": 2}, ValueError, "prefetch_factor option"),
        (Squares(), {"persistent_workers": True}, ValueError, "persistent_workers option needs"),
        (Squares(), {"multiprocessing_context": "spawn"}, ValueError, "multiprocessing_context"),
        (Squares(), {"batch_size": 0}, ValueError, "batch_size should be a positive integer"),
        (
            Squares(),
            {"shuffle": True, "sampler": [1]},
            ValueError,
            "exclusive with shuffle",
        ),
        (
            Squares(),
            {"batch_sampler": [[1]], "batch_size": 2},
            ValueError,
            "mutually exclusive with batch_size",
        ),
        (Squares(), {"batch_sampler": [[1]], "drop_last": True}, ValueError, "mutually exclusive"),
        (Squares(), {"batch_size": None, "drop_last": True}, ValueError, "disables auto-batching"),
        (Squares(0), {"shuffle": True}, ValueError, "num_samples=0"),
        (Stream(), {"shuffle": True}, ValueError, "expected unspecified shuffle option"),
        (Stream(), {"sampler": [1]}, ValueError, "expected unspecified sampler option"),
        (Stream(), {"batch_sampler": [[1]]}, ValueError, "expected unspecified batch_sampler"),
    ],
)
def test_refused_options(dataset, options, error, text):
    with pytest.raises(error, match=text):
        DataLoader(dataset, **options)


def test_options_are_fixed_once_the_loader_is_there():
    loader = DataLoader(Squares())
    with pytest.raises(ValueError, match="batch_size attribute should not be set after"):
        loader.batch_size = 5
    loader.collate_fn = list
    assert next(iter(loader)) == [0]


@pytest.mark.parametrize("pinned", [False, True])
def test_a_pass_goes_on_after_an_error_of_the_dataset(pinned):
    class Broken(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            if index == 1:
                raise ValueError("broken")
            return index

    batches = iter(DataLoader(Broken(), pin_memory=pinned))
    assert len(batches) == 4
    seen = [next(batches).item()]
    with pytest.raises(ValueError, match="broken"):
        next(batches)
    seen += [batch.item() for batch in batches]
    assert seen == [0, 2, 3]


class Longer(tp.data.IterableDataset):
    """A stream of more samples than it says."""

    def __iter__(self):
        yield from range(6)

    def __len__(self):
        return 3


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stream_that_is_longer_than_it_says(workers):
    loader = tp.data.DataLoader(Longer(), batch_size=None, num_workers=workers)
    for expected, sample in zip(range(6), loader, strict=True):  # list() would ask for the length
        assert sample == expected
    assert len(loader) == 3
    iterator = iter(loader)
    assert [next(iterator) for _ in range(3)] == [0, 1, 2]
    with pytest.warns(UserWarning, match="was reported to be 3 .* but 4 samples") as seen:
        assert next(iterator) == 3
    with warnings.catch_warnings(action="ignore"):
        assert [next(iterator), next(iterator), next(iterator, None)] == [4, 5, None]
    assert ("replica at each worker" in str(seen[0].message)) is bool(workers)


def test_more_workers_than_processors():
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with pytest.warns(UserWarning, match=f"will create {available + 1} worker processes"):
        tp.data.DataLoader([1], num_workers=available + 1)
    with warnings.catch_warnings(action="error"):
        tp.data.DataLoader([1], num_workers=available)
