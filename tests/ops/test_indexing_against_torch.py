"""Every sort of key, read and written: values, shapes, or the refusal; against torch."""

import warnings

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch says what a key means")

SHAPE = (3, 4, 5)


def positions(m, *numbers):
    return m.tensor(list(numbers))


KEYS = {
    "int": lambda m: 1,
    "neg": lambda m: -1,
    "oob": lambda m: 5,
    "None": lambda m: None,
    "ell": lambda m: (..., 1),
    "slice": lambda m: slice(0, 2),
    "negstep": lambda m: slice(None, None, -1),
    "step2": lambda m: slice(None, None, 2),
    "bool True": lambda m: True,
    "bool False": lambda m: False,
    "(None,True)": lambda m: (None, True),
    "mask": lambda m: m.arange(3) > 0,
    "mask2": lambda m: (slice(None), m.arange(4) % 2 == 0),
    "mask 2d": lambda m: m.ones(3, 4, dtype=m.bool),
    "mask bad": lambda m: m.ones(4, dtype=m.bool),
    "list": lambda m: [0, 2],
    "nested list": lambda m: [[0, 1], [1, 2]],
    "tuple list": lambda m: ([0, 1], [1, 2]),
    "tensor": lambda m: positions(m, 0, 2),
    "two": lambda m: (positions(m, 0, 2), positions(m, 1, 3)),
    "sep": lambda m: (positions(m, 0, 2), slice(None), positions(m, 1, 3)),
    "sep2": lambda m: (slice(None), positions(m, 0, 2), positions(m, 1, 3)),
    "with None": lambda m: (positions(m, 0, 2), None, positions(m, 1, 3)),
    "bc": lambda m: (positions(m, 0, 2)[:, None], positions(m, 1, 3)),
    "bad bc": lambda m: (positions(m, 0, 1, 2), positions(m, 1, 3)),
    "0d": lambda m: m.tensor(1),
    "0d bool": lambda m: m.tensor(True),
    "int32": lambda m: m.tensor([0, 1], dtype=m.int32),
    "int16": lambda m: m.tensor([0, 1], dtype=m.int16),
    "float": lambda m: m.tensor([0.0, 1.0]),
    "range": lambda m: range(2),
    "np": lambda m: np.array([0, 1]),
    "npint": lambda m: np.int64(1),
    "np bool": lambda m: np.array([True, False, True]),
    "empty": lambda m: m.zeros(0, dtype=m.int64),
    "empty list": lambda m: [],
    "empty tuple": lambda m: (),
    "too many": lambda m: (0, 0, 0, 0),
    "two ell": lambda m: (..., ...),
    "slice tensor": lambda m: slice(m.tensor(0), m.tensor(2)),
    "neg idx": lambda m: positions(m, -1, -3),
    "oob t": lambda m: positions(m, 3),
    "2d idx": lambda m: m.tensor([[0, 1], [2, 0]]),
    "mask+int": lambda m: (m.tensor([True, False, True]), 1),
    "int+mask": lambda m: (0, m.tensor([True, False, True, False])),
    "set of lists": lambda m: [[0, 1], [True, False]],
    "list of slices": lambda m: [slice(0, 1), 1],
    "list None": lambda m: [None, 1],
    "list ell": lambda m: [..., 0],
    "float scalar": lambda m: 1.5,
    "mask 3d": lambda m: m.arange(60).reshape(3, 4, 5) % 2 == 0,
    "range2": lambda m: (slice(None), range(3)),
    "bool in tuple": lambda m: (True, 0),
    "0d in tuple": lambda m: (m.tensor(1), slice(None), m.tensor(2)),
    "empty slice": lambda m: slice(2, 1),
    "big slice": lambda m: slice(-100, 100),
}


def read(m, key):
    return m.arange(60.0).reshape(SHAPE)[key]


def write_number(m, key):
    x = m.zeros(SHAPE)
    x[key] = 7.0
    return x


def write_tensor(m, key):
    x = m.zeros(SHAPE)
    x[key] = m.tensor(7.0)
    return x


def gradient(m, key):
    x = m.ones(SHAPE, requires_grad=True)
    part = x[key]
    (part * m.arange(float(part.numel())).reshape(part.shape)).sum().backward()
    return x.grad


def outcome(m, what, name):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return what(m, KEYS[name](m))
    except (IndexError, TypeError, ValueError, RuntimeError) as error:
        return error


@pytest.mark.parametrize("what", [read, write_number, write_tensor, gradient])
@pytest.mark.parametrize("name", KEYS)
def test_keys(name, what):
    expected, found = outcome(torch, what, name), outcome(tp, what, name)
    if isinstance(expected, Exception):
        assert isinstance(found, Exception)
        assert isinstance(found, type(expected)) or isinstance(expected, type(found))
        return
    if isinstance(found, Exception):
        raise found
    assert tuple(found.shape) == tuple(expected.shape)
    assert found.tolist() == expected.tolist()
