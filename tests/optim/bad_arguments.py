# ruff: noqa: E501
"""Constructors of optimizers, schedules, loaders and samplers with arguments that are wrong, one or two at a time.

``cases(module)`` yields (label, function of torch's or of our module). Nothing is trained.
"""

import inspect
import itertools

import tensorplug as tp
import tensorplug.data

NAN = float("nan")
BAD = [
    -1,
    -0.5,
    0.0,
    1.0,
    1.5,
    NAN,
    "text",
    None,
    (0.9,),
    (-0.1, 0.9),
    (0.9, 1.0),
    (0.9, 0.99, 0.999),
    [0.5, 0.5],
    True,
]
DATA = list(range(10))


def leaf(m, *shape):
    return m.ones(*shape or (2,), requires_grad=True)


PARAMETERS = {
    "empty": lambda m: [],
    "none": lambda m: None,
    "a tensor": leaf,
    "ints": lambda m: [1],
    "no leaf": lambda m: [leaf(m) * 2],
    "twice": lambda m: [leaf(m)] * 2,
    "twice in groups": lambda m: [{"params": p} for p in [[leaf(m)]] * 2],
    "group without": lambda m: [{"lr": 1}],
    "set": lambda m: {leaf(m)},
    "set in group": lambda m: [{"params": {leaf(m)}}],
    "names for some": lambda m: [("a", leaf(m)), leaf(m)],
    "text": lambda m: "ab",
    "dict": lambda m: {"params": [leaf(m)]},
    "generator": lambda m: (p for p in [leaf(m)]),
    "unknown option": lambda m: [{"params": [leaf(m)], "foo": 1}],
}
SCHEDULES = {
    "StepLR": {"step_size": 1}, "MultiStepLR": {"milestones": [1]}, "ExponentialLR": {"gamma": 0.9},
    "CosineAnnealingLR": {"T_max": 3}, "LambdaLR": {"lr_lambda": lambda _: 1.0}, "LinearLR": {},
    "MultiplicativeLR": {"lr_lambda": lambda _: 1.0}, "ConstantLR": {}, "PolynomialLR": {},
    "CyclicLR": {"base_lr": 0.1, "max_lr": 0.2}, "OneCycleLR": {"max_lr": 0.1, "total_steps": 5},
    "CosineAnnealingWarmRestarts": {"T_0": 2}, "ReduceLROnPlateau": {},
}  # fmt: skip
LOADER = {
    "batch_size": [0, -1, 1.5, "a", None, True], "shuffle": ["a", None, 1], "sampler": [[0, 1], 5, "ab"],
    "batch_sampler": [[[0]], 5], "num_workers": [-1, 1.5, "a", None], "collate_fn": [5, None], "pin_memory": ["a"],
    "drop_last": ["a", True], "timeout": [-1, "a", 5], "worker_init_fn": [5], "generator": ["a", 5],
    "multiprocessing_context": ["nope", 5, "fork"], "prefetch_factor": [0, -1, 2, "a"], "persistent_workers": [True],
    "pin_memory_device": ["nope"],
}  # fmt: skip
SAMPLERS = {
    "RandomSampler": {"data_source": DATA}, "SequentialSampler": {"data_source": DATA},
    "SubsetRandomSampler": {"indices": [1, 2]}, "WeightedRandomSampler": {"weights": [0.1, 0.9], "num_samples": 2},
    "BatchSampler": {"sampler": [0, 1, 2], "batch_size": 2, "drop_last": False},
    "DistributedSampler": {"dataset": DATA, "num_replicas": 2, "rank": 0},
}  # fmt: skip


def iterable(m):
    class Ones(m.utils.data.IterableDataset):
        def __iter__(self):
            return iter([1])

    return Ones()


OTHERS = {
    "TensorDataset of two sizes": lambda m, d: d.TensorDataset(m.ones(3), m.ones(2)),
    "TensorDataset of none": lambda m, d: d.TensorDataset()[0],
    "random_split of less": lambda m, d: d.random_split(DATA, [1, 2]),
    "random_split of more than 1": lambda m, d: d.random_split(DATA, [0.5, 0.6]),
    "random_split below 0": lambda m, d: d.random_split(DATA, [-1, 11]),
    "ConcatDataset of none": lambda m, d: d.ConcatDataset([]),
    "ConcatDataset of an iterable": lambda m, d: d.ConcatDataset([iterable(m)]),
    "ConcatDataset, far": lambda m, d: d.ConcatDataset([DATA])[99],
    "ConcatDataset, far below": lambda m, d: d.ConcatDataset([DATA])[-99],
    "Subset, far": lambda m, d: d.Subset(DATA, [0])[5],
    "StackDataset of two sizes": lambda m, d: d.StackDataset(DATA, [1]),
    "StackDataset of none": lambda m, d: d.StackDataset(),
    "StackDataset of both": lambda m, d: d.StackDataset(DATA, a=DATA),
    "ChainDataset of a list": lambda m, d: list(d.ChainDataset([DATA])),
    "collate None": lambda m, d: d.default_collate([None]),
    "collate unequal lists": lambda m, d: d.default_collate([[1], [1, 2]]),
    "collate unequal shapes": lambda m, d: d.default_collate([m.ones(3), m.ones(2)]),
    "collate nothing": lambda m, d: d.default_collate([]),
    "collate an object": lambda m, d: d.default_collate([object()]),
    "len of an iterable": lambda m, d: len(d.DataLoader(iterable(m))),
    "batch_size set later": lambda m, d: setattr(d.DataLoader(DATA), "batch_size", 3),
}


def optimizers():
    for name in tp.optim.__all__:
        kind = getattr(tp.optim, name)
        if not isinstance(kind, type) or name == "Optimizer":
            continue
        for label, make in PARAMETERS.items():
            yield f"{name}({label})", lambda m, n=name, f=make: getattr(m.optim, n)(f(m))
        for parameter, value in itertools.product(
            list(inspect.signature(kind).parameters)[1:], BAD
        ):
            given = {parameter: value}
            yield (
                f"{name}({parameter}={value!r})",
                lambda m, n=name, g=given: getattr(m.optim, n)([leaf(m, 2, 2)], **g),
            )


def schedules():
    def make(m, name, options):
        optimizer = m.optim.SGD([leaf(m)], lr=0.1, momentum=0.9)
        return getattr(m.optim.lr_scheduler, name)(optimizer, **options)

    for name, base in SCHEDULES.items():
        kind = getattr(tp.optim.lr_scheduler, name)
        for parameter, value in itertools.product(
            list(inspect.signature(kind).parameters)[1:], [*BAD, [], 0]
        ):
            options = base | {parameter: value}
            yield f"{name}({parameter}={value!r})", lambda m, n=name, o=options: make(m, n, o)


def loaders():
    one = [(name, value) for name, values in LOADER.items() for value in values]
    pairs = [pair for pair in itertools.combinations(one, 2) if pair[0][0] != pair[1][0]]
    for given in [*((each,) for each in one), *pairs]:
        text = ", ".join(f"{name}={value!r}" for name, value in given)
        yield f"DataLoader({text})", lambda m, g=given: m.utils.data.DataLoader(DATA, **dict(g))
    for name, value in one:
        yield (
            f"DataLoader(iterable, {name}={value!r})",
            lambda m, g=(name, value): m.utils.data.DataLoader(iterable(m), **dict([g])),
        )
    for name, base in SAMPLERS.items():
        kind = getattr(tp.data, name)
        for parameter in inspect.signature(kind).parameters:
            for value in [-1, 0, 1, 1.5, "text", None, True, [], [[0.5]], NAN, 5]:
                options = base | {parameter: value}
                yield (
                    f"{name}({parameter}={value!r})",
                    lambda m, n=name, o=options: list(sampler(m, n)(**o)),
                )
    for label, function in OTHERS.items():
        yield label, lambda m, f=function: f(m, m.utils.data)


def sampler(m, name):
    data = m.utils.data
    return getattr(data, name, None) or data.distributed.DistributedSampler


def cases():
    yield from optimizers()
    yield from schedules()
    yield from loaders()
