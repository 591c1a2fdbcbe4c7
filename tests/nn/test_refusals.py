"""What torch refuses is refused, with an error of the same type, and what it takes is taken."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import nn

torch = pytest.importorskip("torch", reason="torch is the reference of these comparisons")
functional = {tp: nn.functional, torch: torch.nn.functional}

SPELLINGS = (True, 1, 1.0, -1, 0, 1j, "1", None, (1,), math.nan)


def bags(module, offsets, last):
    weight, input = module.ones(4, 3), module.tensor([0, 1, 2])
    offsets = module.tensor(offsets)
    return functional[module].embedding_bag(input, weight, offsets, include_last_offset=last)


def probabilities(module, input, target):
    return functional[module].binary_cross_entropy(module.tensor(input), module.tensor(target))


def narrowed(module, number, place, wrapped):
    arguments = [0, 1, 2]
    arguments[place] = module.tensor(number) if wrapped else number
    return module.arange(5).narrow(*arguments)


def classes(module, ignored, smoothing):
    scores, target = module.zeros(2, 3), module.full((2, 3), 1 / 3)
    loss = module.nn.CrossEntropyLoss(ignore_index=ignored, label_smoothing=smoothing)
    return loss(scores, target)


def huber(module, delta):
    return module.nn.HuberLoss(delta=delta)(module.ones(2), module.zeros(2))


def recurrent(module, kind, option, value):
    network = getattr(module.nn, kind)(3, 4, **{option: value})
    return module.zeros(()) + sum(1 for _ in network.parameters())


CASES = [
    *[partial(bags, offsets=list(o), last=last)
      for o in [(0, 0), (0, 3), (0, 4), (0, -1), (1, 2), (0, 1, 3), (0, 4, 3), (0, 1, 5)]
      for last in (False, True) if not last or o[1] >= 0],  # torch reads past its arrays
    *[partial(probabilities, input=[0.5, a], target=[0.5, b])
      for a, b in itertools.product((0.0, 0.3, 1.5, -0.5, math.nan), repeat=2)],
    *[partial(narrowed, number=n, place=p, wrapped=w)
      for n in SPELLINGS for p in range(3) for w in (False, True)
      if not w or (isinstance(n, (bool, int, float, tuple)) and p == 1)],
    *[partial(classes, ignored=i, smoothing=s) for i in (-100, -1, 0, 1, 5) for s in (0.0, 0.1)],
    *[partial(huber, delta=d) for d in SPELLINGS if d == d],
    *[partial(recurrent, kind=k, option=o, value=v)
      for k in ("RNN", "LSTM", "GRU") for o in ("bias", "batch_first") for v in SPELLINGS],
]  # fmt: skip


@pytest.mark.parametrize("last", [False, True])
def test_offsets_that_decrease(last):
    """torch reads what lies beside its arrays."""
    with pytest.raises(RuntimeError, match="must not decrease"):
        bags(tp, (0, 2, 1), last)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.func.__name__}-{c.keywords}")
def test_refusals(case):
    try:
        wanted = case(torch)
    except Exception as error:
        # torch notices some offsets only when an index runs out of its arrays.
        kinds = (TypeError, ValueError, (IndexError, RuntimeError))
        with pytest.raises(next(kind for kind in kinds if isinstance(error, kind))):
            case(tp)
        return
    np.testing.assert_allclose(case(tp).tolist(), wanted.tolist(), rtol=1e-6)
