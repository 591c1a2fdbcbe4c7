"""Calls that differ by their constants alone, and by little, stay two in a captured program.

Constants that compare as equal need not be: zeros of both signs, ``1``, ``1.0`` and ``True``, slices by
another step. Merged calls would give one the other's result.
"""

import itertools

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.graph.nodes import shown

NUMBERS = (0.0, -0.0, 0, False, 1, 1.0, True, complex(0.0, 0.0), complex(0.0, -0.0), complex(1, 0))
PLACES = (None, 0, 1, -1, -2, 3)
SLICES = [slice(*parts) for parts in itertools.product(PLACES, PLACES, (None, 1, 2, 3))]
CALLS = {
    "mul": (lambda x, c: x * c, NUMBERS),
    "add": (lambda x, c: x + c, NUMBERS),
    "copysign": (lambda x, c: tp.copysign(x.abs() + 1, c), NUMBERS[:7]),
    "full_like": (lambda x, c: tp.full_like(x, c) * x, NUMBERS[:7]),
    "where": (lambda x, c: tp.where(x > 1, x, c), NUMBERS),
    "clamp": (lambda x, c: x.clamp(min=c), NUMBERS[:2] + NUMBERS[4:6]),
    "slices": (lambda x, c: x[c] * 2, SLICES[::5]),
    "slices of columns": (lambda x, c: x[:, c] * 2, SLICES[1::5]),
    "sums": (lambda x, c: x.sum(c), (0, 1, (0,), (0, 1), (1, 0), -1, ())),
    "dtypes": (lambda x, c: x.to(c) * 3, (tp.float32, tp.float64, tp.int32, tp.int64, tp.bool)),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_those_of_the_plain_program(name):
    call, constants = CALLS[name]

    def program(x):
        return [call(x, c) for c in constants] + [call(x, c).sum() for c in reversed(constants)]

    compiled, x = tp.compile(program), tp.tensor([[-1.0, 0.0, 2.0, 3.0]] * 4)
    for _ in range(3):
        for one, other in zip(compiled(x), program(x), strict=True):
            assert one.dtype is other.dtype
            np.testing.assert_array_equal(one.numpy(), other.numpy())
            if not one.dtype.is_complex:
                np.testing.assert_array_equal(np.signbit(one.numpy()), np.signbit(other.numpy()))


def test_slices_are_shown_as_python_writes_them():
    numbers = np.arange(9)
    for key in SLICES:
        text = shown(key)
        np.testing.assert_array_equal(eval(f"numbers[{text}]"), numbers[key], text)
