"""Pointwise ops as expressions of CUDA C++: what a region's kernel computes of each element.

Each is what the op's own kernel computes. `{0}`, `{1}` and `{2}` stand for the elements of the arrays, `A`
for the type they are computed in.
"""

from __future__ import annotations

from collections.abc import Mapping

from .. import sources
from ..kernels import activation

#: Of real numbers of every kind but bool.
OF_NUMBERS: Mapping[str, str] = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "neg": "-{0}",
    "square": "{0} * {0}",
}

#: Of floating-point numbers, for which a maximum is NaN if one of them is.
OF_FLOATS: Mapping[str, str] = {
    "abs": "fabs({0})",
    "atan2": "atan2({0}, {1})",
    "clamp_max": "{0} != {0} ? {0} : {1} != {1} ? {1} : min({0}, {1})",
    "clamp_min": "{0} != {0} ? {0} : {1} != {1} ? {1} : max({0}, {1})",
    "div": "{0} / {1}",
    "floor_divide": "float_floor_divide({0}, {1})",
    "maximum": "{0} != {0} ? {0} : {1} != {1} ? {1} : max({0}, {1})",
    "minimum": "{0} != {0} ? {0} : {1} != {1} ? {1} : min({0}, {1})",
    "pow": "raised({0}, {1})",
    "remainder": "float_remainder({0}, {1})",
    "rsqrt": "(A)1 / sqrt({0})",
    "sigmoid": "(A)1 / (exp(-{0}) + (A)1)",
    "sign": "(A)({0} > 0) - (A)({0} < 0)",
    **{
        name: f"{name}({{0}})"
        for name in (
            "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "erfc",
            "exp", "exp2", "expm1", "floor", "log", "log10", "log1p", "log2", "rint", "sin", "sinh",
            "sqrt", "tan", "tanh", "trunc",
        )
    },
}  # fmt: skip

#: Of integers and bool.
OF_BITS: Mapping[str, str] = {
    "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}",
    "bitwise_xor": "{0} ^ {1}",
}

#: Comparisons, of numbers of every kind.
COMPARISONS: Mapping[str, str] = {
    "eq": "{0} == {1}",
    "ge": "{0} >= {1}",
    "gt": "{0} > {1}",
    "le": "{0} <= {1}",
    "lt": "{0} < {1}",
    "ne": "{0} != {1}",
}

#: Activations: of how many arrays, and with which options behind these: a word, or up to so many numbers.
ACTIVATIONS: Mapping[str, tuple[int, int | str]] = {
    **dict.fromkeys(activation.FUNCTIONS, (1, 3)),
    **dict.fromkeys(activation.GRADIENTS, (2, 3)),
    "gelu": (1, "approximate"),
    "gelu_backward": (2, "approximate"),
    "relu": (1, 0),
    "relu_backward": (2, 0),
    "silu": (1, 0),
    "silu_backward": (2, 0),
}

_APPROXIMATE = {"none": "false", "tanh": "true"}


def expression(op: str, dtypes: tuple[str, ...], result: str, options: tuple[object, ...]) -> str:
    """Return what an op computes of its elements; an empty text for what is not known here.

    Parameters
    ----------
    op : str
    dtypes : tuple of str
        Of the arrays.
    result : str
        The dtype of what comes out.
    options : tuple
        The op's arguments behind the arrays.
    """
    if not dtypes or any([dtype not in sources.TYPES for dtype in (*dtypes, result)]):
        return ""
    if op == "where":
        fits = len(dtypes) == 3 and dtypes[0] == "bool" and dtypes[1] == dtypes[2] == result
        return "{0} ? {1} : {2}" if fits and not options else ""
    if op == "cast":
        return _converted(dtypes[0], result) if len(dtypes) == 1 else ""
    if len(set(dtypes)) != 1:
        return ""
    if op in COMPARISONS:
        return COMPARISONS[op] if result == "bool" and len(dtypes) == 2 and not options else ""
    if result != dtypes[0]:
        return ""
    floats = "float" in result
    if op == "bitwise_not" and not floats and len(dtypes) == 1:
        return "!{0}" if result == "bool" else "~{0}"
    if op in ACTIVATIONS:
        return _activation(op, len(dtypes), options) if floats else ""
    found = ""
    if op in OF_FLOATS and floats:
        found = OF_FLOATS[op]
    elif op in OF_NUMBERS and result != "bool":
        found = OF_NUMBERS[op]
    elif op in OF_BITS and not floats:
        found = OF_BITS[op]
    taken = sum([f"{{{number}}}" in found for number in range(3)])
    return found if taken == len(dtypes) and not options else ""


def _activation(op: str, arrays: int, options: tuple[object, ...]) -> str:
    wanted, kind = ACTIVATIONS[op]
    if arrays != wanted:
        return ""
    given: list[str] = []
    if kind == "approximate":
        if len(options) != 1 or options[0] not in _APPROXIMATE:
            return ""
        given = [_APPROXIMATE[str(options[0])]]
    elif len(options) > int(kind):
        return ""
    else:
        for option in options:
            if not isinstance(option, (int, float)) or not abs(option) < float("inf"):
                return ""
            given.append(f"(A){float(option).hex()}")
    return f"{op}_of({', '.join([*[f'{{{number}}}' for number in range(arrays)], *given])})"


def _converted(source: str, result: str) -> str:
    # What does not fit into an integer is undefined, and may be something else here.
    if result == "bool":
        return "{0} != 0"
    if "float" in source and "float" not in result:
        return ""
    return "({0})"
