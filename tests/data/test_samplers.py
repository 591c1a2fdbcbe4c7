"""Samplers."""

import pytest

import tensorplug as tp
from tensorplug.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)


def seeded(seed=3):
    generator = tp.Generator()
    generator.manual_seed(seed)
    return generator


def test_sequential():
    sampler = SequentialSampler("abcd")
    assert (list(sampler), len(sampler)) == ([0, 1, 2, 3], 4)
    with pytest.raises(NotImplementedError, match="Sampler does not define __iter__"):
        iter(Sampler())


def test_random_is_a_permutation_that_the_seed_fixes():
    orders = []
    for _ in range(2):
        tp.manual_seed(5)
        sampler = RandomSampler(range(50))
        orders.append((list(sampler), list(sampler)))
    assert orders[0] == orders[1]
    first, second = orders[0]
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second != list(range(50))


def test_random_with_generator():
    assert list(RandomSampler(range(9), generator=seeded())) == list(
        RandomSampler(range(9), generator=seeded())
    )


@pytest.mark.parametrize("count", [1, 10, 32, 33, 100])
@pytest.mark.parametrize("replacement", [False, True])
def test_number_of_samples(count, replacement):
    sampler = RandomSampler(range(10), replacement, count)
    indices = list(sampler)
    assert len(indices) == len(sampler) == count
    assert set(indices) <= set(range(10))
    if not replacement:
        for start in range(0, count - 9, 10):
            assert sorted(indices[start : start + 10]) == list(range(10))


def test_random_follows_a_growing_dataset():
    data = [1, 2]
    sampler = RandomSampler(data)
    data.append(3)
    assert (len(sampler), sorted(sampler)) == (3, [0, 1, 2])


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        ((range(3), 1), TypeError, "replacement should be a boolean value"),
        ((range(3), False, 0), ValueError, "num_samples should be a positive integer"),
        ((range(3), False, 2.5), ValueError, "num_samples should be a positive integer"),
        (([],), ValueError, "num_samples=0"),
    ],
)
def test_refused_random(args, error, text):
    with pytest.raises(error, match=text):
        RandomSampler(*args)


def test_subset_random():
    sampler = SubsetRandomSampler([9, 4, 7], generator=seeded())
    assert len(sampler) == 3
    assert sorted(sampler) == [4, 7, 9]


def test_weighted():
    weights = [0.0, 1.0, 3.0]
    sampler = WeightedRandomSampler(weights, 4000, generator=seeded())
    drawn = list(sampler)
    assert len(drawn) == len(sampler) == 4000
    assert drawn.count(0) == 0
    # 3000 expected, standard deviation sqrt(4000 * 3/16) = 27
    assert abs(drawn.count(2) - 3000) < 5 * 27
    assert sorted(WeightedRandomSampler([1.0, 1.0, 1.0], 3, replacement=False)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (([1.0], 0), "num_samples should be a positive integer"),
        (([1.0], True), "num_samples should be a positive integer"),
        (([1.0], 1, 1), "replacement should be a boolean"),
        (([[1.0]], 1), "1d sequence"),
    ],
)
def test_refused_weights(args, text):
    with pytest.raises(ValueError, match=text):
        WeightedRandomSampler(*args)


@pytest.mark.parametrize("count", [0, 1, 5, 6])
@pytest.mark.parametrize("drop_last", [False, True])
def test_batches(count, drop_last):
    sampler = BatchSampler(SequentialSampler(range(count)), 3, drop_last)
    batches = list(sampler)
    assert len(batches) == len(sampler)
    expected = [list(range(i, min(i + 3, count))) for i in range(0, count, 3)]
    assert batches == [batch for batch in expected if len(batch) == 3 or not drop_last]


@pytest.mark.parametrize(
    ("size", "drop_last", "text"),
    [
        (0, False, "batch_size should be a positive integer value, but got batch_size=0"),
        (True, False, "batch_size should be"),
        (1.5, False, "batch_size should be"),
        (1, 0, "drop_last should be a boolean"),
    ],
)
def test_refused_batches(size, drop_last, text):
    with pytest.raises(ValueError, match=text):
        BatchSampler(range(3), size, drop_last)


def test_distributed_shares_are_torchs_without_shuffling():
    torch = pytest.importorskip("torch", reason="values are compared with torch's")
    theirs = torch.utils.data.DistributedSampler
    for count in range(12):
        for replicas in (1, 2, 3, 5):
            for drop_last in (False, True):
                for rank in range(replicas):
                    options = {"shuffle": False, "drop_last": drop_last}
                    ours = DistributedSampler(range(count), replicas, rank, **options)
                    expected = theirs(range(count), replicas, rank, **options)
                    assert len(ours) == len(expected)
                    if count:
                        assert list(ours) == list(expected)


def test_distributed_shares_cover_everything_and_change_with_the_epoch():
    samplers = [DistributedSampler(range(20), 4, rank, seed=1) for rank in range(4)]
    first = [list(sampler) for sampler in samplers]
    assert sorted(index for share in first for index in share) == list(range(20))
    assert first == [list(sampler) for sampler in samplers]
    for sampler in samplers:
        sampler.set_epoch(1)
    second = [list(sampler) for sampler in samplers]
    assert sorted(index for share in second for index in share) == list(range(20))
    assert first != second


def test_distributed_refuses():
    with pytest.raises(ValueError, match=r"rank should be in the interval \[0, 1\]"):
        DistributedSampler(range(3), 2, 2)


@pytest.mark.parametrize("make", [
    lambda: RandomSampler(range(9)), lambda: RandomSampler(range(9), replacement=True),
    lambda: SubsetRandomSampler(range(9)), lambda: WeightedRandomSampler([1.0] * 9, 9),
    lambda: WeightedRandomSampler([1.0] * 9, 9, replacement=False),
])  # fmt: skip
def test_a_pass_is_drawn_at_its_first_index(make):
    sampler = make()
    first, second = iter(sampler), iter(sampler)
    found = []
    for indices in (first, second):
        tp.manual_seed(0)
        found.append(next(indices))
    assert found[0] == found[1]
    assert list(first) == list(second)
