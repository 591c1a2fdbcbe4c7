"""What torch's own tests hold loaders, collation, datasets and samplers to."""

from typing import Any, NamedTuple

import numpy as np
from listed_rows import Row

ROWS = {}


def told(name, call):
    ROWS[f"data: {name}"] = Row(call)


def D(t):
    return t.utils.data


class NT(NamedTuple):
    a: Any
    b: Any


class DS:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i >= self.n:
            raise IndexError(i)
        return i


class GI(DS):
    def __getitems__(self, i):
        return [10 * k for k in i]


class GB(DS):
    def __getitems__(self, i):
        return [1]


class WL(DS):
    def __len__(self):
        return 2


told("bad bs", lambda t: D(t).DataLoader(DS(3), batch_size=0))
told("bs neg", lambda t: D(t).DataLoader(DS(3), batch_size=-1))
told("bs float", lambda t: len(D(t).DataLoader(DS(3), batch_size=1.5)))
told("workers neg", lambda t: D(t).DataLoader(DS(3), num_workers=-1))
told("timeout neg", lambda t: D(t).DataLoader(DS(3), timeout=-1))
told("prefetch0", lambda t: D(t).DataLoader(DS(3), prefetch_factor=2))
told("prefetch neg", lambda t: D(t).DataLoader(DS(3), num_workers=1, prefetch_factor=-2))
told("persistent0", lambda t: D(t).DataLoader(DS(3), persistent_workers=True))
told("sampler+shuffle", lambda t: D(t).DataLoader(DS(3), sampler=[0], shuffle=True))
told("bsampler+bs", lambda t: D(t).DataLoader(DS(3), batch_sampler=[[0]], batch_size=2))
told("bs None drop", lambda t: D(t).DataLoader(DS(3), batch_size=None, drop_last=True))
told("bs None shuffle", lambda t: sorted(D(t).DataLoader(DS(3), batch_size=None, shuffle=True)))
told("shuffle str", lambda t: D(t).DataLoader(DS(3), shuffle="a"))
told("mp ctx bad", lambda t: D(t).DataLoader(DS(3), num_workers=1, multiprocessing_context="bad"))
told("mp ctx 0", lambda t: D(t).DataLoader(DS(3), multiprocessing_context="spawn"))
told("mp ctx type", lambda t: D(t).DataLoader(DS(3), num_workers=1, multiprocessing_context=3))
told("set bs", lambda t: setattr(D(t).DataLoader(DS(3)), "batch_size", 2))
told("set sampler", lambda t: setattr(D(t).DataLoader(DS(3)), "sampler", [1]))
told("set dataset", lambda t: setattr(D(t).DataLoader(DS(3)), "dataset", DS(2)))
told("set other", lambda t: setattr(D(t).DataLoader(DS(3)), "foo", DS(2)))


def it(t, **k):
    class Numbers(D(t).IterableDataset):
        def __iter__(self):
            return iter(range(5))

    return D(t).DataLoader(Numbers(), **k)


told("iter shuffle", lambda t: it(t, shuffle=True))
told("iter sampler", lambda t: it(t, sampler=[0]))
told("iter bsampler", lambda t: it(t, batch_sampler=[[0]]))
told("iter", lambda t: [b.tolist() for b in it(t, batch_size=2)])
told("iter drop", lambda t: [b.tolist() for b in it(t, batch_size=2, drop_last=True)])
told("iter None", lambda t: list(it(t, batch_size=None)))
told("iter len", lambda t: len(it(t)))
told("iter shuffle False", lambda t: [b.tolist() for b in it(t, batch_size=2, shuffle=False)])
for n in (0, 1, 3, 7):
    for bs in (1, 2, 3):
        for dl in (False, True):
            told(
                f"len {n} {bs} {dl}",
                lambda t, n=n, bs=bs, dl=dl: (
                    len(D(t).DataLoader(DS(n), bs, drop_last=dl)),
                    [b.tolist() for b in D(t).DataLoader(DS(n), bs, drop_last=dl)],
                ),
            )
told("collate none", lambda t: D(t).default_collate([None]))
told("collate mixed", lambda t: D(t).default_collate([1, "a"]))
told("collate str", lambda t: D(t).default_collate(["a", "b"]))
told("collate bytes", lambda t: D(t).default_collate([b"a"]))
told("collate ragged", lambda t: D(t).default_collate([[1, 2], [1]]))
told("collate empty", lambda t: D(t).default_collate([]))
told("collate tensors", lambda t: D(t).default_collate([t.ones(2), t.ones(3)]))
told("collate np", lambda t: D(t).default_collate([np.ones(2), np.ones(2)]))
told("collate np obj", lambda t: D(t).default_collate([np.array(["a"])]))
told("collate np scalar", lambda t: D(t).default_collate([np.float32(1), np.float32(2)]))
told("collate bool", lambda t: D(t).default_collate([True, False]))
told("collate float", lambda t: D(t).default_collate([1.5, 2]))
told("collate dict", lambda t: D(t).default_collate([{"a": 1}, {"a": 2}]))
told("collate dict miss", lambda t: D(t).default_collate([{"a": 1}, {"b": 2}]))
told("collate nt", lambda t: tuple(D(t).default_collate([NT(1, 2), NT(3, 4)])))
told("collate tuple", lambda t: D(t).default_collate([(1, t.ones(1)), (2, t.ones(1))]))
told("collate set", lambda t: D(t).default_collate([{1}, {2}]))
told("collate obj", lambda t: D(t).default_collate([object()]))
told(
    "convert",
    lambda t: D(t).default_convert({"a": np.ones(2), "b": "s", "c": [np.float32(1)], "d": (1,)}),
)
told("collate complex", lambda t: D(t).default_collate([1j, 2j]))
told("split", lambda t: [len(x) for x in D(t).random_split(DS(10), [3, 7])])
told("split bad", lambda t: D(t).random_split(DS(10), [3, 6]))
told("split frac", lambda t: [len(x) for x in D(t).random_split(DS(10), [0.33, 0.33, 0.34])])
told("split frac bad", lambda t: D(t).random_split(DS(10), [0.5, 0.6]))
told("split frac neg", lambda t: D(t).random_split(DS(10), [-0.5, 1.5]))
told("split empty", lambda t: [len(x) for x in D(t).random_split(DS(2), [0.1, 0.9])])
told("subset", lambda t: [D(t).Subset(DS(5), [1, 3])[i] for i in (0, 1)])
told("subset list", lambda t: D(t).Subset(DS(5), [1, 3])[[0, 1]])
told("subset getitems", lambda t: D(t).Subset(DS(5), [1, 3]).__getitems__([1]))
told("concat", lambda t: [D(t).ConcatDataset([DS(2), DS(3)])[i] for i in (0, 2, -1)])
told("concat neg oob", lambda t: D(t).ConcatDataset([DS(2)])[-3])
told("concat oob", lambda t: D(t).ConcatDataset([DS(2)])[2])
told("concat none", lambda t: D(t).ConcatDataset([]))
told("concat sizes", lambda t: D(t).ConcatDataset([DS(2), DS(3)]).cumulative_sizes)
told("concat iter", lambda t: D(t).ConcatDataset([it(t).dataset]))
told("add", lambda t: len(D(t).TensorDataset(t.ones(2)) + D(t).TensorDataset(t.ones(3))))
told("tensords mismatch", lambda t: D(t).TensorDataset(t.ones(2), t.ones(3)))
told("tensords", lambda t: D(t).TensorDataset(t.arange(3), t.arange(3))[1])
told("tensords slice", lambda t: D(t).TensorDataset(t.arange(3), t.arange(3))[1:])
told("stackds", lambda t: D(t).StackDataset(DS(3), DS(3))[1])
told("stackds kw", lambda t: D(t).StackDataset(a=DS(3), b=DS(3))[1])
told("stackds mixed", lambda t: D(t).StackDataset(DS(3), b=DS(3)))
told("stackds none", lambda t: D(t).StackDataset())
told("stackds mism", lambda t: D(t).StackDataset(DS(3), DS(2)))
told("chain", lambda t: list(D(t).ChainDataset([it(t).dataset, it(t).dataset])))
told("chain len", lambda t: len(D(t).ChainDataset([it(t).dataset])))
told("chain bad", lambda t: list(D(t).ChainDataset([DS(2)])))
told("seq", lambda t: list(D(t).SequentialSampler(DS(3))))
told("rand0", lambda t: list(D(t).RandomSampler([])))
told("rand n", lambda t: len(list(D(t).RandomSampler(DS(3), num_samples=7))))
told("rand repl", lambda t: len(D(t).RandomSampler(DS(3), True, 5)))
told("rand bad", lambda t: D(t).RandomSampler(DS(3), replacement=1))
told("rand neg", lambda t: D(t).RandomSampler(DS(3), num_samples=-1))
told("rand 0", lambda t: D(t).RandomSampler(DS(3), num_samples=0))
told("rand float", lambda t: D(t).RandomSampler(DS(3), num_samples=1.5))
told("subsetrand", lambda t: sorted(D(t).SubsetRandomSampler([3, 1])))
told("weighted", lambda t: len(list(D(t).WeightedRandomSampler([0.1, 0.9], 4))))
told("weighted few", lambda t: list(D(t).WeightedRandomSampler([0.1, 0.9], 3, replacement=False)))
told("weighted bad", lambda t: D(t).WeightedRandomSampler([0.1], 0))
told("weighted bool", lambda t: D(t).WeightedRandomSampler([0.1], True))
told("weighted 2d", lambda t: D(t).WeightedRandomSampler([[0.1, 0.2]], 1))
told("weighted repl", lambda t: D(t).WeightedRandomSampler([0.1], 1, replacement=1))
told("weighted neg", lambda t: list(D(t).WeightedRandomSampler([-1.0, 1.0], 1)))
told("batch", lambda t: list(D(t).BatchSampler(range(5), 2, False)))
told("batch drop", lambda t: list(D(t).BatchSampler(range(5), 2, True)))
told("batch bad", lambda t: D(t).BatchSampler(range(5), 0, False))
told("batch bool", lambda t: D(t).BatchSampler(range(5), True, False))
told("batch drop bad", lambda t: D(t).BatchSampler(range(5), 2, 1))
told("batch len", lambda t: len(D(t).BatchSampler(range(5), 2, False)))
told(
    "dist",
    lambda t: [
        list(D(t).distributed.DistributedSampler(DS(5), 2, r, shuffle=False)) for r in (0, 1)
    ],
)
told(
    "dist drop",
    lambda t: [
        list(D(t).distributed.DistributedSampler(DS(5), 2, r, shuffle=False, drop_last=True))
        for r in (0, 1)
    ],
)
told("dist bad", lambda t: D(t).distributed.DistributedSampler(DS(5), 2, 2))
told(
    "dist few",
    lambda t: [
        list(D(t).distributed.DistributedSampler(DS(1), 3, r, shuffle=False)) for r in (0, 1, 2)
    ],
)
told("worker_info", lambda t: D(t).get_worker_info())
told("unsized sampler", lambda t: list(D(t).DataLoader(DS(3), sampler=iter([2, 0]))))
told(
    "dl sampler",
    lambda t: [b.tolist() for b in D(t).DataLoader(DS(5), sampler=[4, 1, 2], batch_size=2)],
)
told(
    "dl bsampler",
    lambda t: [b.tolist() for b in D(t).DataLoader(DS(5), batch_sampler=[[4], [1, 2]])],
)
told("dl collate", lambda t: list(D(t).DataLoader(DS(3), 2, collate_fn=sum)))
told("dl None", lambda t: list(D(t).DataLoader(DS(3), None)))
told("dl None np", lambda t: list(D(t).DataLoader([np.ones(1)], None)))
told("dl dict", lambda t: list(D(t).DataLoader({0: 1, 1: 2}, 2)))
told("dl list", lambda t: list(D(t).DataLoader([[1, 2], [3, 4]], 2)))
told("dl gen", lambda t: D(t).DataLoader(i for i in range(3)))
told("dl in_order", lambda t: [int(b) for b in D(t).DataLoader(DS(3), in_order=False)])
told("dl no getitem", lambda t: list(D(t).DataLoader(object())))
told("dl key error", lambda t: list(D(t).DataLoader({1: 1})))
told("getitems", lambda t: [b.tolist() for b in D(t).DataLoader(GI(4), 2)])
told("getitems bad", lambda t: list(D(t).DataLoader(GB(4), 2)))
told("abstract", lambda t: D(t).Dataset()[0])
told("abstract len", lambda t: len(D(t).Dataset()))
told("iter abstract", lambda t: iter(D(t).IterableDataset()))
told("sampler abstract", lambda t: iter(D(t).Sampler()))
told("sampler len", lambda t: len(D(t).Sampler()))
told("dl len wrong", lambda t: [int(x) for x in D(t).DataLoader(WL(3))])
