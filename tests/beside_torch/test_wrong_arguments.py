"""Calls with an argument too many, one too few, an unknown one, or one of a wrong kind, beside torch.

Of every op that torch has. What torch refuses is refused, by an error of the same type, but for the
reasons in ``known``, each of which docs/deviations.md tells users.
"""

# ruff: noqa: SIM905  words are easier to read

from __future__ import annotations

import os
import random
import re
import warnings

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing import cases

torch = pytest.importorskip("torch", reason="torch is what is compared with")
from tests.core.test_flags import RECURRENT  # noqa: E402
from tests.ops.test_against_torch import RECORDS, counterpart, to_torch  # noqa: E402

CALLS = 1000 if os.environ.get("TENSORPLUG_FUZZ") else 6
PARTS = 4
#: Ops whose results are memory or numbers that nobody wrote, or that would take long for a wrong number.
LEFT_OUT = (*RECURRENT, "multi_head_attention_forward")


class Alien:
    """What nobody has heard of."""


WRONG = {
    "str": lambda: "nonsense",
    "None": lambda: None,
    "float": lambda: 1.5,
    "int": lambda: 1,
    "negative": lambda: -7,
    "bool": lambda: True,
    "complex": lambda: 1 + 1j,
    "tensor": lambda: tp.tensor([1.0, 2.0]),
    "list": lambda: [1],
    "floats": lambda: [1.5],
    "dtype": lambda: tp.float32,
    "class": lambda: Alien,
    "bytes": lambda: b"a",
    "dict": dict,
    "numpy int": lambda: np.int64(1),
    "numpy float": lambda: np.float64(1.5),
}
NAMES = (
    "dim keepdim dtype axis keepdims n nonsense rounding_mode driver alpha value p ord correction unbiased "
    "reduction eps training input other device memory_format layout size generator weight mode descending "
    "stable upper decimals k step side right base end start dims shifts min max tol rtol atol x steps"
).split()


def wrong_calls(args, kwargs):
    """Yield what is wrong, and the arguments."""
    if args:
        yield "one missing", args[:-1], kwargs
    for kind, make in WRONG.items():
        yield f"one more: {kind}", (*args, make()), kwargs
        for place in range(len(args)):
            yield f"{place}: {kind}", (*args[:place], make(), *args[place + 1 :]), kwargs
        for name in kwargs:
            yield f"{name}: {kind}", args, {**kwargs, name: make()}
        for name in NAMES:
            if name not in kwargs:
                yield f"also {name}: {kind}", args, {**kwargs, name: make()}


def outcome(function, args, kwargs):
    """Return the error of a call, or None."""
    try:
        function(*args, **kwargs)
    except Exception as error:
        return error
    return None


def agree(theirs, ours):
    if theirs is None or ours is None:
        return theirs is ours
    names = [kind.__name__ for kind in type(ours).__mro__]
    kind = type(theirs).__name__
    return kind in names or (kind.startswith("_") and isinstance(ours, RuntimeError))


#: What torch's functions in Python say where they come upon a value that they did not look at.
INSIDE = re.compile(
    r"object of type|to unpack|has no len|_return_|Boolean value of Tensor|cond must be|"
    r"must be Tensor, not tuple|accelerator device|Expected one of cpu|value cannot be converted|"
    r"strided tensors only|tuple index out|must be Tensor, not list"
)
#: Flags that are read by their truth there, and arguments that torch's public functions have besides.
TRUTHS = re.compile(
    r"must be bool|must be int, not bool|must be float, not complex|"
    r"positional argument|'dtype' \(position|Coefficients"
)
#: Ops that take a number where torch wants a tensor, at either place.
EITHER = re.compile(r"must be Tensor, not|received an invalid combination|must be Number, not")


#: What takes more than torch's function does: the method's form, an op's own argument; or something else.
DIFFERENT = {
    # What is looked at first, where several things are wrong.
    ("max_unpool3d", "one more"),
    ("repeat_interleave", "1"),
    # What an op takes, and torch's function does not.
    *(
        (name, f"also {flag}")
        for name in ("mean", "prod", "sum")
        for flag in ("keepdim", "keepdims")
    ),
    *((name, "dx") for name in ("trapezoid", "cumulative_trapezoid")),
    *(
        (name, f"also {dim}")
        for name in ("std", "std_mean", "var", "var_mean")
        for dim in ("dim", "axis")
    ),
    *(("linalg_tensorsolve", where) for where in ("dims", "also dims", "one more")),
    ("flip", "1"),
    ("histogramdd", "1"),
    ("squeeze", "one more"),
    ("movedim", "1"),
    ("movedim", "2"),
    ("tile", "1"),
    ("unique_consecutive", "also axis"),
    ("arange", "also step"),
    ("as_strided", "also layout"),
    ("broadcast_to", "1"),
    ("cat", "also axis"),
    ("hamming_window", "also alpha"),
    ("kaiser_window", "beta"),
    ("kaiser_window", "device"),
    ("linalg_vander", "1"),
    ("new_full", "1"),
    ("normal", "also dtype"),
    ("normal", "also device"),
    ("norm", "also axis"),
    ("norm", "also keepdims"),
    ("norm", "also p"),
    ("pinverse", "one more"),
    ("split", "1"),
    ("split", "also axis"),
    ("unique", "also axis"),
    # What torch's function takes, and reads as something else, or not at all.
    ("linalg_vector_norm", "also ord"),
    ("linalg_vector_norm", "one more"),
    ("fft_rfftfreq", "also layout"),
    ("fft_fftfreq", "also layout"),
    ("softmin", "1"),
    ("softmin", "one more"),
    ("windows_general_cosine", "a"),
    ("max_unpool1d", "2"),
    ("rint", "also decimals"),
    *(
        (f"adaptive_{kind}_pool{n}d", "1") for kind in ("avg", "max") for n in (1, 2, 3)
    ),  # how many there are
    ("einsum", "0"),  # what is no equation is the first operand
    ("scaled_dot_product_attention", "attn_mask"),  # is_causal is looked at first
    ("unravel_index", "1"),  # True is no size
    ("addcdiv", "one more"),
    ("addcmul", "one more"),
    ("as_strided", "one more"),
    ("dsplit", "one more"),
    ("hsplit", "one more"),
    ("vsplit", "one more"),
    ("bernoulli", "one more"),
    ("max_unpool1d", "one more"),
    ("linalg_svd", "also driver"),
    ("linalg_svdvals", "also driver"),
}
#: Of which errors have to be of the same type.
KINDS_TOLD = ("str", "None", "float", "int", "bool", "complex", "class", "dtype", "")
NUMBERS = ("int", "float", "bool", "negative", "complex", "numpy int", "numpy float")


def known(op, label, theirs, ours):
    """Return whether docs/deviations.md has the reason for a difference."""
    where, _, kind = label.rpartition(": ")
    if (op, where) in DIFFERENT:
        return True
    if theirs is not None and ours is not None:
        # What is of no kind that fits is told so before anything else is looked at; what fits in kind is
        # refused for its values, of which several may be wrong.
        return (
            isinstance(ours, TypeError)
            or kind not in KINDS_TOLD
            or bool(EITHER.search(str(theirs)) and kind in NUMBERS)
        )
    if theirs is None:
        return isinstance(ours, TypeError) and bool(TRUTHS.search(str(ours)))
    return (
        bool(INSIDE.search(str(theirs)))
        or (isinstance(theirs, TypeError) and kind == "None")
        or (
            where in ("0", "1", "also other")
            and kind in NUMBERS
            and bool(EITHER.search(str(theirs)))
        )
    )


def differences(records):
    """Return the calls that differ for no known reason, and how many there were."""
    found, count = [], 0
    for record in records:
        if record.op in LEFT_OUT:
            continue
        # What is drawn for an op depends on no other.
        op, function, rng = get_op(record.op), counterpart(record), random.Random(record.op)
        dtype = next((d for d in (tp.float32, tp.int64, tp.complex64) if d in record.dtypes), None)
        given = cases.samples_of(record, "cpu", dtype)[:2] if dtype is not None else ()
        for sample in given:
            calls = list(wrong_calls(tuple(sample.args), dict(sample.kwargs)))
            for label, args, kwargs in rng.sample(calls, min(CALLS, len(calls))):
                theirs = outcome(function, to_torch(args), to_torch(kwargs))
                ours = outcome(op.call, args, kwargs)
                count += 1
                if not agree(theirs, ours) and not known(record.op, label, theirs, ours):
                    found.append(f"{record.op}, {label}: torch {theirs!r:.100}, ours {ours!r:.100}")
    return found, count


@pytest.mark.parametrize("part", range(PARTS))
def test_wrong_arguments(part):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, count = differences(RECORDS[part::PARTS])
    assert not found, "\n".join(found)
    assert count > 1000


def test_a_planted_fault_is_found(monkeypatch):
    monkeypatch.setattr(get_op("linalg_eigh"), "strings", ())
    monkeypatch.setattr(f"{__name__}.CALLS", 1000)
    found, _ = differences([record for record in RECORDS if record.op == "linalg_eigh"])
    assert found
