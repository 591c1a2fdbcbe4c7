"""Operators of a tensor and a NumPy scalar of every kind: what is no number is equal to none."""

import operator

import numpy as np
from listed_rows import Row

ROWS = {}

OPERATORS = (
    "eq",
    "ne",
    "lt",
    "add",
    "sub",
    "mul",
    "truediv",
    "pow",
    "mod",
    "matmul",
    "iadd",
    "imul",
)
NUMBERS = (
    np.float16(2), np.float32(2), np.float64(2), np.longdouble(2),
    np.int8(2), np.uint8(2), np.int16(2), np.int64(2), np.uint64(2),
)  # fmt: skip
OTHERS = (np.str_("a"), np.bytes_(b"a"), np.void(b"a"), np.datetime64("2020-01-01"))

for name in OPERATORS:
    for scalar in (*NUMBERS, *OTHERS):
        for shape in ((), (2,)):
            ROWS[f"operand: {name} of {shape} and {scalar!r}"] = Row(
                lambda t, f=name, s=scalar, n=shape: getattr(operator, f)(t.ones(n), s)
            )
for scalar in OTHERS:
    ROWS[f"operand: {scalar!r} is no element"] = Row(lambda t, s=scalar: s == t.ones(2), False)
