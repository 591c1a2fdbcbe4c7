"""Calls that torch warns of: they warn here too, and those beside them do not."""

from __future__ import annotations

import importlib
import re
import warnings

import numpy as np
import pytest

import tensorplug as tp


def read_only():
    array = np.zeros(2)
    array.flags.writeable = False
    return array


def dropout(L, count):
    return getattr(L.nn.functional, f"dropout{count}d")


def checkpoint(L):
    return importlib.import_module(f"{L.__name__}.utils.checkpoint").checkpoint


def bytes_mask(L):
    return L.tensor([1, 0, 1], dtype=L.uint8)


BYTES = r"indexing with dtype \w+\.uint8 is now deprecated, please use a dtype"

#: By name: a call, whether it warns, and what the warning says.
CALLS = {
    "meshgrid": (lambda L: L.meshgrid(L.ones(2), L.ones(3)), "torch.meshgrid: in an upcoming release"),
    "meshgrid of ij": (lambda L: L.meshgrid(L.ones(2), L.ones(3), indexing="ij"), None),
    "cartesian_prod": (lambda L: L.cartesian_prod(L.ones(2), L.ones(3)), None),
    "range": (lambda L: L.range(0, 3), "torch.range is deprecated"),
    "arange": (lambda L: L.arange(0, 3), None),
    "where": (
        lambda L: L.where(bytes_mask(L), L.ones(3), L.zeros(3)), "where received a uint8 condition tensor"
    ),
    "where of bools": (lambda L: L.where(bytes_mask(L).bool(), L.ones(3), L.zeros(3)), None),
    "index": (lambda L: L.ones(3)[bytes_mask(L)], BYTES),
    "index of bools": (lambda L: L.ones(3)[bytes_mask(L).bool()], None),
    "index among others": (lambda L: L.ones(2, 3)[:, bytes_mask(L)], BYTES),
    **{
        f"random_ {dtype} {bounds}": (
            lambda L, dtype=dtype, bounds=bounds: L.ones(2, dtype=getattr(L, dtype)).random_(*bounds),
            text,
        )
        for dtype, digits in (("float16", 11), ("bfloat16", 8), ("float32", 24), ("float64", 53))
        for bounds, text in (
            ((2**digits + 1,), None),
            ((2**digits + 2,), "to - 1 is out of bounds"),
            ((-(2**digits), 0), None),
            ((-(2**digits) - 1, 0), "from is out of bounds"),
            ((), None),
        )
    },
    "randint": (lambda L: L.randint(2**25, (2,), dtype=L.float32), "to - 1 is out of bounds"),
    "out= of another shape": (
        lambda L: L.add(L.ones(3), 1, out=L.ones(2)), "An output with one or more elements was resized"
    ),
    **{
        f"out= of {name}": (call, None)
        for name, call in {
            "zeros": lambda L: L.zeros(3, out=L.ones(2)),
            "ones": lambda L: L.ones(3, out=L.ones(2)),
            "empty": lambda L: L.empty(3, out=L.ones(2)),
            "full": lambda L: L.full((3,), 1.0, out=L.ones(2)),
            "eye": lambda L: L.eye(3, out=L.ones(2)),
            "linspace": lambda L: L.linspace(0, 1, 3, out=L.ones(2)),
            "logspace": lambda L: L.logspace(0, 1, 3, out=L.ones(2)),
            "rand": lambda L: L.rand(3, out=L.ones(2)),
            "randn": lambda L: L.randn(3, out=L.ones(2)),
            "randint": lambda L: L.randint(0, 3, (3,), out=L.ones(2)),
            "randperm": lambda L: L.randperm(3, out=L.ones(2, dtype=L.int64)),
            "normal": lambda L: L.normal(0.0, 1.0, (3,), out=L.ones(2)),
            "bernoulli": lambda L: L.bernoulli(L.ones(3), out=L.ones(2)),
            "multinomial": lambda L: L.multinomial(L.ones(3), 1, out=L.ones(2, dtype=L.int64)),
            "narrow_copy": lambda L: L.narrow_copy(L.ones(3), 0, 0, 1, out=L.ones(2)),
        }.items()
    },
    "embedding_bag of weight, input": (
        lambda L: L.nn.functional.embedding_bag(L.ones(3, 2), L.tensor([0, 1]), L.tensor([0])),
        "Argument order of nn.functional.embedding_bag was changed",
    ),
    "stft": (lambda L: L.stft(L.ones(16), 8, return_complex=True), "A window was not provided"),
    "stft with a window": (
        lambda L: L.stft(L.ones(16), 8, window=L.ones(8), return_complex=True), None
    ),
    "istft": (
        lambda L: L.istft(L.ones(5, 3, dtype=L.complex64), 8), "A window was not provided"
    ),
    "istft with a window": (
        lambda L: L.istft(L.ones(5, 3, dtype=L.complex64), 8, window=L.ones(8)), None
    ),
    "istft that is too short": (
        lambda L: L.istft(L.ones(5, 3, dtype=L.complex64), 8, window=L.ones(8), length=5 * 8),
        "The length of signal is shorter than the length parameter.*Result is being padded with zeros",
    ),
    "istft that fits": (
        lambda L: L.istft(L.ones(5, 3, dtype=L.complex64), 8, window=L.ones(8), length=7), None
    ),
    "stft of numbers in pairs": (
        lambda L: L.stft(L.ones(16), 8, window=L.ones(8), return_complex=False),
        "stft with return_complex=False is deprecated",
    ),
    "stateless.functional_call": (
        lambda L: L.nn.utils.stateless.functional_call(L.nn.ReLU(), {}, L.ones(2)),
        "`torch.nn.utils.stateless.functional_call` is deprecated",
    ),
    "func.functional_call": (lambda L: L.func.functional_call(L.nn.ReLU(), {}, L.ones(2)), None),
    "out= of arange": (
        lambda L: L.arange(3, out=L.ones(2)), "An output with|The number of elements in the out tensor"
    ),
    "out= without elements": (lambda L: L.add(L.ones(3), 1, out=L.empty(0)), None),
    "from_numpy": (lambda L: L.from_numpy(read_only()), "The given NumPy array is not writable, and"),
    "asarray": (lambda L: L.asarray(read_only()), "The given NumPy array is not writable, and"),
    "tensor": (lambda L: L.tensor(read_only()), None),
    "frombuffer": (lambda L: L.frombuffer(b"abcd", dtype=L.uint8), "The given buffer is not writable, and"),
    "index by a list": (
        lambda L: L.ones(3, 3)[[slice(0, 1), [1]]], "Using a non-tuple sequence for multidimensional indexing"
    ),
    **{
        f"dropout{count}d of {ndim}": (
            lambda L, count=count, ndim=ndim: dropout(L, count)(L.ones([2] * ndim)),
            None if ndim in (count + 1, count + 2) and (count, ndim) != (2, 3)
            else rf"dropout{count}d: Received a {ndim}-?D input to dropout{count}d",
        )
        for count in (2, 3) for ndim in range(4 - count, 7)
    },
    "checkpoint": (
        lambda L: checkpoint(L)(lambda x: x * 2, L.ones(2, requires_grad=True)),
        "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly",
    ),
    "random_ of integers": (lambda L: L.ones(2, dtype=L.int64).random_(2**40), None),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("lib", ["ours", "torch"])
def test_what_warns(name, lib):
    call, text = CALLS[name]
    L = tp if lib == "ours" else pytest.importorskip("torch", reason="torch is the reference")
    if L is not tp:
        L.set_warn_always(True)
    try:
        if text is None:
            with warnings.catch_warnings(action="error"):
                call(L)
        else:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                call(L)
            said = [str(warning.message) for warning in caught]
            # Filters of warnings compare from the beginning.
            assert any(re.match(text, one) for one in said), said
    finally:
        if L is not tp:
            L.set_warn_always(False)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, m: x.__setitem__(m, 5.0),
        lambda x, m: x.index_put_((m,), tp.tensor(5.0)),
        lambda x, m: x.__setitem__(m, tp.ones(2)),
        lambda x, m: x[m],
    ],
)
def test_masks_of_bytes_warn_once(call):
    with pytest.warns(UserWarning, match="uint8 is now deprecated") as seen:
        call(tp.zeros(3), bytes_mask(tp))
    assert len(seen) == 1
