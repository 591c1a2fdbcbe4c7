"""Datasets and random_split."""

import pytest

import tensorplug as tp
from tensorplug.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)


class Stream(IterableDataset):
    def __init__(self, *values):
        self.values = values

    def __iter__(self):
        return iter(self.values)

    def __len__(self):
        return len(self.values)


class Batched(Dataset):
    """Counts how often it is asked."""

    def __init__(self, size):
        self.size = size
        self.calls = []

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        raise AssertionError("asked one by one")

    def __getitems__(self, indices):
        self.calls.append(list(indices))
        return [10 * index for index in indices]


def test_the_base_needs_getitem():
    with pytest.raises(NotImplementedError, match="Dataset does not define __getitem__"):
        Dataset()[0]
    with pytest.raises(TypeError, match="abstract"):
        IterableDataset()


def test_tensor_dataset():
    data = TensorDataset(tp.arange(4), tp.arange(8).reshape(4, 2))
    assert len(data) == 4
    number, row = data[2]
    assert (number.item(), row.tolist()) == (2, [4, 5])
    numbers, rows = data[1:3]
    assert (numbers.tolist(), rows.tolist()) == ([1, 2], [[2, 3], [4, 5]])
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(tp.zeros(2), tp.zeros(3))


def test_stack_dataset():
    by_position = StackDataset("abc", [1, 2, 3])
    assert (len(by_position), by_position[1]) == (3, ("b", 2))
    assert by_position.__getitems__([0, 2]) == [("a", 1), ("c", 3)]
    batched = Batched(3)
    by_name = StackDataset(letter="abc", number=batched)
    assert by_name.__getitems__([2, 0]) == [
        {"letter": "c", "number": 20},
        {"letter": "a", "number": 0},
    ]
    assert batched.calls == [[2, 0]]


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {}, "At least one"),
        (("ab",), {"x": "ab"}, "both are given"),
        (("ab", "abc"), {}, r"Size mismatch between datasets: their lengths are \[2, 3\]"),
        ((), {"x": "a", "y": "ab"}, "Size mismatch"),
    ],
)
def test_refused_stacks(args, kwargs, text):
    with pytest.raises(ValueError, match=text):
        StackDataset(*args, **kwargs)


def test_concat_dataset():
    both = ConcatDataset(["abc", "", "de"])
    assert (len(both), both.cumulative_sizes) == (5, [3, 3, 5])
    assert [both[i] for i in range(5)] == list("abcde")
    assert [both[i] for i in range(-5, 0)] == list("abcde")
    with pytest.raises(ValueError, match="absolute value of index should not exceed"):
        both[-6]
    with pytest.raises(IndexError, match="index 5 is out of range"):
        both[5]
    with pytest.raises(AssertionError, match="should not be an empty iterable"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        ConcatDataset([Stream(1)])


def test_datasets_are_added():
    data = TensorDataset(tp.arange(2)) + TensorDataset(tp.arange(3))
    assert isinstance(data, ConcatDataset)
    assert [item[0].item() for item in (data[i] for i in range(5))] == [0, 1, 0, 1, 2]
    chain = Stream(1, 2) + Stream(3)
    assert isinstance(chain, ChainDataset)
    assert (list(chain), len(chain)) == ([1, 2, 3], 3)
    with pytest.raises(AssertionError, match="only supports IterableDataset"):
        list(ChainDataset([[1, 2]]))
    with pytest.raises(AssertionError, match="only supports IterableDataset"):
        len(ChainDataset([[1, 2]]))


def test_subset():
    part = Subset("abcdef", [4, 0, 2])
    assert (len(part), list(part)) == (3, ["e", "a", "c"])
    data = Batched(9)
    assert Subset(data, [5, 7]).__getitems__([1, 0]) == [70, 50]
    assert data.calls == [[7, 5]]
    tensor = tp.arange(6)
    assert Subset(tensor, [5, 3, 1])[[0, 2]].tolist() == [5, 1]


def test_a_batch_of_the_wrong_size_is_refused():
    class Wrong(Dataset):
        def __getitems__(self, indices):
            return [0]

    with pytest.raises(ValueError, match="Expected 2, got 1"):
        Subset(Wrong(), [0, 1]).__getitems__([0, 1])


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [([3, 7], [3, 7]), ([0.5, 0.3, 0.2], [5, 3, 2]), ([0.35, 0.35, 0.3], [4, 3, 3]), ([10], [10])],
)
def test_random_split(lengths, sizes):
    parts = random_split(range(10), lengths)
    assert [len(part) for part in parts] == sizes
    assert sorted(index for part in parts for index in part) == list(range(10))


def test_random_split_follows_its_generator():
    def indices():
        generator = tp.Generator()
        generator.manual_seed(7)
        return [part.indices for part in random_split(range(20), [10, 10], generator)]

    assert indices() == indices()
    assert indices()[0] != list(range(10))


def test_refused_splits():
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        random_split(range(10), [3, 3])
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        random_split(range(10), [1.5, -0.5])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        random_split(range(1), [0.5, 0.5])
