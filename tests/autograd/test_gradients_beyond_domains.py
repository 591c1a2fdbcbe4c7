"""Gradients of functions of one number at the bounds of their domains, and beyond, are torch's there.

Where a value is nan, or clamped, a formula may give a number that looks like a slope.
"""

import inspect

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import all_ops

torch = pytest.importorskip("torch", reason="torch is the reference")

POINTS = [-3.0, -1.5, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, 3.0]
#: Whose slopes are not torch's, and why.
OTHERWISE = {
    "acosh": "below -1 torch has the slope of another function, where ours is nan, as the value",
    "digamma": "at its poles torch has a large number, where ours may be infinite",
}
#: Options that bound a domain.
OPTIONS = {
    "logit": [{"eps": 0.0}, {"eps": 0.1}, {"eps": 0.5}],
    "clamp": [{"min": -0.5, "max": 1.0}, {"max": 0.5}],
    "nan_to_num": [{"nan": 1.0, "posinf": 2.0}],
}


def find(library, name):
    head, _, rest = name.partition("_")
    places = (
        (library, name), (library.nn.functional, name), (getattr(library, head, None), rest),
    )  # fmt: skip
    return next((f for owner, key in places if callable(f := getattr(owner, key, None))), None)


def of_one_number(op):
    parameters = list(inspect.signature(op.function).parameters.values())
    needed = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return len(needed) == 1 and not op.random


CASES = [
    (op.name, options)
    for op in all_ops()
    if of_one_number(op) and find(torch, op.name) and find(tp, op.name)
    for options in [{}, *OPTIONS.get(op.name, [])]
]


def slopes(library, name, options, points):
    """Return values and slopes at some points, or None where the call is refused."""
    x = library.tensor(points, dtype=library.float64, requires_grad=True)
    try:
        y = find(library, name)(x, **options)
        if not y.requires_grad or y.dtype.is_complex or y.shape != x.shape:
            return None
        y.backward(library.ones_like(y))
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
        return None  # of several results, too
    return y.detach().numpy(), (x.grad + 0.0).numpy()  # torch's may have no memory


@pytest.mark.filterwarnings("ignore")
def test_slopes_are_torchs():
    wrong, count = [], 0
    for name, options in CASES:
        ours, theirs = (slopes(library, name, options, POINTS) for library in (tp, torch))
        alone = [slopes(tp, name, options, [point]) for point in POINTS]
        if ours is None or theirs is None or None in alone:
            continue
        if not np.array_equal(np.concatenate([y for y, _ in alone]), ours[0], equal_nan=True):
            continue  # no function of one number
        count += 1
        (_, slope), (_, expected) = ours, theirs
        if name not in OTHERWISE and not np.allclose(slope, expected, 1e-7, 1e-9, equal_nan=True):
            wrong.append(f"{name} {options}: {slope}, torch {expected}")
    assert not wrong, "\n".join(wrong)
    assert count > 80
