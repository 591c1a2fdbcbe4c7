"""``tensor[key]`` and ``tensor[key] = value`` against torch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tensorplug as tp

torch = pytest.importorskip("torch", reason="compares with torch")

A = slice(None)

# Each key is a function of the library.
KEYS = {
    "int": lambda L: 1,
    "negative": lambda L: -1,
    "too large": lambda L: 5,
    "too small": lambda L: -3,
    "ints": lambda L: (0, 2, 3),
    "too many": lambda L: (0, 0, 0, 0),
    "all": lambda L: A,
    "slice": lambda L: slice(1, None),
    "wide slice": lambda L: slice(-5, 9, 2),
    "crossed slice": lambda L: slice(1, 0),
    "backwards": lambda L: slice(None, None, -1),
    "step 0": lambda L: slice(None, None, 0),
    "float": lambda L: 1.0,
    "float slice": lambda L: slice(1.5, 2),
    "tensor slice": lambda L: slice(L.tensor(1), 2),
    "dictionary": lambda L: {},
    "none": lambda L: None,
    "nones": lambda L: (None, None, 1),
    "ellipsis": lambda L: Ellipsis,
    "ellipsis, int": lambda L: (Ellipsis, 0),
    "two ellipses": lambda L: (Ellipsis, Ellipsis),
    "empty tuple": lambda L: (),
    "true": lambda L: True,
    "false": lambda L: False,
    "true, int": lambda L: (True, 0),
    "int, true": lambda L: (0, True),
    "two trues": lambda L: (True, True),
    "true, list": lambda L: (True, [0, 1]),
    "list, true": lambda L: ([0, 1], True),
    "0-d mask": lambda L: L.tensor(True),
    "list": lambda L: [0, 1],
    "empty list": lambda L: [],
    "range": lambda L: range(2),
    "mask list": lambda L: [True, False],
    "nested list": lambda L: ([[0, 1], [1, 0]], [1, 2]),
    "tuple in tuple": lambda L: ((1, 0),),
    "list of lists": lambda L: [[0, 1], [1, 0]],
    "list with slice": lambda L: [0, slice(0, 2)],
    "list of tensors": lambda L: [L.tensor(1), L.tensor(0)],
    "index": lambda L: L.tensor([0, -1, 1]),
    "index out of range": lambda L: L.tensor([5]),
    "0-d index": lambda L: L.tensor(1),
    "int32": lambda L: L.tensor([0, 1], dtype=L.int32),
    "int16": lambda L: L.tensor([0, 1], dtype=L.int16),
    "float index": lambda L: L.tensor([1.0]),
    "empty index": lambda L: L.zeros(0, dtype=L.int64),
    "grid": lambda L: (L.tensor([[0], [1]]), L.tensor([[0, 1, 2]])),
    "no broadcast": lambda L: (L.tensor([0, 1]), L.tensor([0, 1, 2])),
    "apart": lambda L: ([0, 1], A, [1, 2]),
    "int before array": lambda L: (0, A, [1, 2]),
    "array before int": lambda L: ([0, 1], 0),
    "arrays around int": lambda L: ([0, 1], 0, [0, 1]),
    "tensor int": lambda L: (L.tensor(0), [0, 1]),
    "behind": lambda L: (A, [0, 1], [1, 2]),
    "none beside": lambda L: (None, [0, 1], None),
    "none between": lambda L: (A, [0, 1], None, [1, 2]),
    "last": lambda L: (Ellipsis, L.tensor([0, 3, 3])),
    "mixed": lambda L: (slice(0, 1), [0, 1], slice(1, 3)),
    "mask": lambda L: L.tensor([True, False]),
    "mask of two": lambda L: L.ones(2, 3) > 0,
    "full mask": lambda L: L.arange(24.0).reshape(2, 3, 4) > 7,
    "mask behind": lambda L: (A, L.tensor([True, False, True])),
    "mask and int": lambda L: (L.ones(2, 3) > 0, 1),
    "int and mask": lambda L: (1, L.ones(3, 4) > 0),
    "empty mask": lambda L: (0, L.zeros(3, 4) > 0),
    "mask too long": lambda L: L.tensor([True, False, True]),
    "two masks": lambda L: (L.tensor([True, True]), L.tensor([True, False, True])),
    "numpy int": lambda L: np.int64(1),
    "numpy array": lambda L: np.array([0, 1]),
    "numpy mask": lambda L: np.array([True, False]),
    "numpy 0-d": lambda L: np.array(1),
}

VALUES = {
    "number": lambda L: 7.0,
    "int": lambda L: 3,
    "0-d": lambda L: L.tensor(3.0),
    "0-d float64": lambda L: L.tensor(3.0, dtype=L.float64),
    "long shape": lambda L: L.ones(1, 1, 1, 4),
    "row": lambda L: L.arange(4.0),
    "wrong": lambda L: L.ones(5),
    "numpy number": lambda L: np.float64(2),
    "list": lambda L: [1.0, 2.0],
    "complex": lambda L: 1j,
    "bool": lambda L: True,
}


def source(L, layout):
    if layout == "permuted":
        return L.arange(24.0).reshape(4, 3, 2).permute(2, 1, 0)
    return L.arange(24.0).reshape(2, 3, 4)


def attempt(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function()
        except Exception as error:
            return error


def compare(ours, theirs):
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        assert type(ours) is type(theirs), (ours, theirs)
        return
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("layout", ["contiguous", "permuted"])
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_get(key, layout):
    ours, theirs = (attempt(lambda L=L: source(L, layout)[key(L)]) for L in (tp, torch))
    compare(ours, theirs)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_set(key, value):
    if value is VALUES["0-d float64"] and key is KEYS["no broadcast"]:
        pytest.skip("both the key and the dtype are wrong")

    def write(L):
        x = source(L, "contiguous")
        x[key(L)] = value(L)
        return x

    compare(*(attempt(lambda L=L: write(L)) for L in (tp, torch)))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (5, "index 5 is out of bounds for dimension 0 with size 2"),
        ((0, 3), "index 3 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 0, 0), "too many indices for tensor of dimension 3"),
        (slice(None, None, -1), "step must be greater than zero"),
        ("a", "indices"),
        ([5], "index 5 is out of bounds for dimension 0 with size 2"),
    ],
)
def test_messages(key, message):
    with pytest.raises((IndexError, ValueError, TypeError), match=message.replace("(", r"\(")):
        source(tp, "contiguous")[key]


def test_number_of_a_0d_tensor():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        tp.tensor(1.0)[0]
    assert tp.tensor(1.0)[...].item() == 1.0
    assert tp.tensor(1.0)[None].shape == (1,)
    assert tp.tensor(1.0)[tp.tensor(True)].shape == (1,)


def test_basic_keys_show_memory_and_others_copy():
    x = tp.zeros(2, 3)
    for key in (0, A, (A, 1), None, Ellipsis, (0, 1), slice(0, 1)):
        assert x[key]._base is x
    for key in ([0], (A, [1]), tp.tensor([True, False]), True):
        assert x[key]._base is None


def test_a_list_of_sequences_warns():
    with pytest.warns(UserWarning, match="multidimensional index"):
        tp.zeros(2, 3)[[[0, 1], [1, 2]]]


def test_int_tensor_takes_a_number_by_truncation():
    x = tp.zeros(3, dtype=tp.int64)
    x[0] = 1.7
    x[1:] = tp.tensor(2.9)
    assert x.tolist() == [1, 2, 2]


def test_set_beside_itself():
    x = tp.arange(5)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3]


# --- any key --------------------------------------------------------------------------------------


@st.composite
def shapes_and_keys(draw):
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    common = draw(st.sampled_from([(), (2,), (1, 3), (2, 1)]))
    key = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        kinds = ["slice", "none then slice"]
        if size:
            kinds += ["int", "array", "mask"]
        kind = draw(st.sampled_from(kinds))
        if kind == "int":
            key.append(draw(st.integers(-size, size - 1)))
        elif kind == "array":
            count = int(np.prod(common))
            values = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
            key.append(np.array(values, dtype=np.int64).reshape(common))
        elif kind == "mask" and common == (2,) and size >= 2:
            key.append(np.arange(size) < 2)
        else:
            if kind != "slice":
                key.append(None)
            bound = st.none() | st.integers(-6, 6)
            key.append(slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 3))))
    if draw(st.booleans()):
        key.append(Ellipsis)
    return tuple(shape), tuple(key)


def as_key(L, key):
    return tuple([L.tensor(k.tolist()) if isinstance(k, np.ndarray) else k for k in key])


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(shapes_and_keys())
def test_any_key(case):
    shape, key = case
    total = int(np.prod(shape))
    results = []
    for L in (tp, torch):
        x = L.arange(float(total)).reshape(shape)
        part = x[as_key(L, key)]
        x[as_key(L, key)] = -1.0
        results.append((part, x))
    for ours, theirs in zip(*results, strict=True):
        compare(ours, theirs)


LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.mT.contiguous().mT,
    "batch last": lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0),
    "expanded": lambda x: x[:1].expand(x.shape),
    "every other": lambda x: tp.stack([x, x * 0], -1)[..., 0],
}


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64, tp.bfloat16, tp.int64])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_reductions_into_positions_do_not_depend_on_the_layout(layout, reduce, include_self, dtype):
    x = (tp.arange(50).reshape(2, 5, 5) % 7 + 1).to(dtype)
    src = LAYOUTS[layout]((tp.arange(100).reshape(2, 5, 10) % 5 + 1).to(dtype))
    dense = src.clone(memory_format=tp.contiguous_format)
    position = tp.arange(10) % 4
    for dim in (1, 2):
        shown, given = (src, dense) if dim == 2 else (src.mT, dense.mT.contiguous())
        index = position.reshape((10, 1) if dim == 1 else (10,)).expand(given.shape)
        found = x.scatter_reduce(dim, index, shown, reduce, include_self=include_self)
        expected = x.scatter_reduce(dim, index, given, reduce, include_self=include_self)
        assert found.tolist() == expected.tolist()
        if reduce != "sum":
            found = x.index_reduce(dim, position, shown, reduce, include_self=include_self)
            assert found.tolist() == expected.tolist()
