"""Collation, samplers and loaders of drawn structures, datasets and options, beside torch.

``make fuzz`` runs ``TENSORPLUG_FUZZ`` of each.
"""

import collections
import os
import warnings
from random import Random

import drawn_data
import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="what is compared")

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "600"))


def plain(value, library):
    """Return nested values as plain data that can be compared, with the kinds of containers."""
    if isinstance(value, library.Tensor):
        dtype = str(value.dtype).rpartition(".")[2]
        return "tensor", dtype, tuple(value.shape), value.tolist()
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.shape, value.tolist()
    if isinstance(value, (dict, collections.UserDict)):
        return type(value).__name__, {key: plain(value[key], library) for key in value}
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value).__name__, [plain(item, library) for item in value]
    return type(value).__name__, value


def outcome(function, library):
    """Return what a function gives as plain data, or the names of the error's classes."""
    try:
        return "returned", plain(function(library), library)
    except Exception as error:
        return "raised", [kind.__name__ for kind in type(error).__mro__], str(error)[:200]


def assert_alike(what, function, errors=True):
    """Compare what a function of the library comes to in both, and if asked the types of errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = outcome(function, torch), outcome(function, tp)
    if theirs[0] == "raised":
        assert ours[0] == "raised", (what, theirs, ours)
        # torch divides by the number of samples that there are not.
        kind = theirs[1][0].replace("ZeroDivisionError", "RuntimeError")
        assert not errors or kind in ours[1], (what, theirs, ours)
    else:
        assert ours == theirs, what


@pytest.mark.parametrize("name", ["default_collate", "default_convert"])
def test_collation_of_drawn_structures(name):
    for seed in range(COUNT):
        draw = Random(seed)
        form, odd = drawn_data.structure(draw), draw.choice((0, 0, 0.1))
        batch = [drawn_data.sample(draw, form, odd) for _ in range(draw.randint(0, 3))]
        if name == "default_convert":
            batch = batch or [drawn_data.sample(draw, form, 0)]
        assert_alike(
            (seed, batch),
            lambda lib, batch=batch: getattr(lib.utils.data, name)(
                [drawn_data.made(lib, value) for value in batch]
            ),
            errors=not odd,  # where several things do not fit, each may be seen first
        )


def run(library, kind, size, given):
    """Return what two passes of a loader give; in order, where it shuffles."""
    loader = drawn_data.loader(library, kind, size, given)
    try:
        length = len(loader)
    except TypeError:
        length = "none"
    passes = [list(loader), list(loader)]
    if given.get("shuffle"):
        return length, [len(batches) for batches in passes], loader.batch_size, loader.drop_last
    return length, passes, loader.batch_size, loader.drop_last


def test_loaders_of_drawn_datasets():
    for seed in range(COUNT):
        draw = Random(seed)
        kind, size = draw.choice(drawn_data.DATASETS), draw.choice((0, 1, 4, 7))
        given = drawn_data.options(draw, size)
        what = (seed, kind, size, given)
        assert_alike(what, lambda lib, what=what: run(lib, *what[1:]))


#: The order is left to chance.
DRAWN = ("RandomSampler", "WeightedRandomSampler", "SubsetRandomSampler", "random_split")


def sampled(library, name, args, kwargs):
    """Return what a sampler gives, as far as it is not left to chance."""
    data = library.utils.data
    where = data if hasattr(data, name) else data.distributed
    made = getattr(where, name)(*args, **kwargs)
    if name == "random_split":
        return [len(part) for part in made], sorted(n for part in made for n in part)
    drawn = list(made)
    if name not in DRAWN:
        return len(made), drawn
    fixed = name != "WeightedRandomSampler" and not (args[1:] and args[1])
    whole = fixed and (len(args) < 3 or args[2] is None)
    return len(made), len(drawn), set(map(type, drawn)) == {int}, sorted(drawn) if whole else None


def test_samplers_with_drawn_arguments():
    for seed in range(COUNT):
        call = drawn_data.sampler_call(Random(seed))
        assert_alike((seed, call), lambda lib, call=call: sampled(lib, *call))
