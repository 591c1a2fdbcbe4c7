"""Calls of the public API that are wrong in some way, made from calls that are right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import tensorplug as tp
from tensorplug.testing import cases
from tensorplug.testing.records import all_records


class Nothing:
    """A value that no function takes."""

    def __repr__(self) -> str:
        return "Nothing()"


FAR = 97
HUGE = 2**60
OVER = 10**30


def _of_tensor(value: Any) -> Iterator[tuple[str, Any]]:
    yield "text", "text"
    yield "nothing", Nothing()
    yield "none", None
    yield "number", 1.5
    yield "list", [1.0, 2.0]
    yield "scalar", tp.ones((), dtype=value.dtype)
    yield "deep", tp.ones(1, 1, 1, 1, 1, 1, 1, dtype=value.dtype)
    yield "other shape", tp.ones(7, 13, dtype=value.dtype)
    yield "empty", tp.ones(0, dtype=value.dtype)
    yield "bool", value.bool()
    yield "complex", value.to(tp.complex64)
    yield "int", value.to(tp.int64)
    yield "float", value.to(tp.float64)
    if not value.dtype.is_floating_point:
        yield "far", tp.full_like(value.long(), FAR)
        yield "negative", tp.full_like(value.long(), -FAR)


def _of_number(value: Any) -> Iterator[tuple[str, Any]]:
    yield "text", "text"
    yield "nothing", Nothing()
    yield "none", None
    yield "list", [Nothing()]
    yield "tensor", tp.ones(2, 2)
    yield "far", FAR
    yield "minus", -FAR
    if type(value) is int:
        yield "half", 1.5
        yield "huge", HUGE
        yield "minus huge", -HUGE
        yield "over", OVER


def _of_list(value: Any) -> Iterator[tuple[str, Any]]:
    yield "text", "text"
    yield "nothing", Nothing()
    yield "none", None
    yield "number", 1.5
    yield "empty", type(value)()
    first, *rest = value
    for kind, other in _others(first):
        yield f"first {kind}", [other, *rest]


def _others(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield values to put in the place of one."""
    if isinstance(value, tp.Tensor):
        yield from _of_tensor(value)
    elif isinstance(value, (bool, int, float, complex)):
        yield from _of_number(value)
    elif isinstance(value, (list, tuple)) and value:
        yield from _of_list(value)
    elif isinstance(value, str):
        yield from (("other text", "nonsense"), ("number", 7), ("nothing", Nothing()))
    elif isinstance(value, tp.dtype):
        yield from (("text", "nonsense"), ("number", 7), ("nothing", Nothing()))


def wrong(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield what is wrong, and the arguments, of calls that are made from a right one."""
    yield "too many", (*args, *[Nothing()] * 12), kwargs
    yield "unknown keyword", args, {**kwargs, "nonsense": 1}
    yield "no arguments", (), {}
    if len(args) > 1:
        yield "one missing", args[:-1], kwargs
    for i, value in enumerate(args):
        for kind, other in _others(value):
            yield f"{i} {kind}", (*args[:i], other, *args[i + 1 :]), kwargs
    for name, value in kwargs.items():
        for kind, other in _others(value):
            yield f"{name} {kind}", args, {**kwargs, name: other}


#: What no message may show: private names, an array library's words, sizes that cannot be.
LEAKS = re.compile(
    r"""
    \b_[a-z]\w*[.(]|\b_[A-Z]\w*|<locals>|\bcall_\w+|<lambda>|\bcanonical\(|failed:
    |for\ axis\ \d|[Nn]um[Pp]y|ndarray|ufunc|dtype\('|cannot\ reshape\ array|operands?\ could
    |object\ has\ no\ attribute|not\ subscriptable|negative\ dimensions\ are|allocate\ -|Unable\ to\ allocate
    |has\ no\ len|bad\ operand|list\ index|tuple\ index|can't\ multiply|maximum\ recursion|tensorplug_cpu
    """,
    re.VERBOSE,
)
#: What functions raise; a bad call of a constructor in Python raises what Python says, as torch's do.
KINDS = (TypeError, ValueError, IndexError, RuntimeError, AssertionError)


def kind_of(error: BaseException) -> type[BaseException] | None:
    """Return which one of the types that users catch an error is of."""
    return next((kind for kind in KINDS if isinstance(error, kind)), None)


def ops() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Yield the public path, and the arguments, of a right call of each op that has one, by records."""
    for record in all_records():
        head, _, rest = record.op.partition("_")
        paths = (record.op, f"{head}.{rest}", f"nn.functional.{record.op}")
        path = next((path for path in paths if callable(find(tp, path))), None)
        if path is None or path in INSIDE:
            continue
        dtype = tp.float32 if tp.float32 in record.dtypes else record.dtypes[0]
        samples = cases.samples_of(record, "cpu", dtype)[:6]
        if samples:
            sample = max(samples, key=lambda sample: len(sample.args) + len(sample.kwargs))
            yield path, sample.args, sample.kwargs


def find(owner: Any, path: str) -> Any:
    """Return what a dotted name stands for, None for nothing."""
    for part in path.split("."):
        owner = getattr(owner, part, None)
    return owner


# Ops that others are made of: what calls them has looked at the arguments.
INSIDE = frozenset(
    (
        "add_scaled", "arange_new", "as_strided_copy", "basic_index", "cast", "clone_strided",
        "convolution", "copy", "eye_new", "fft_c2c", "fft_c2r", "fft_r2c", "fill_new", "full_new",
        "index", "index_put", "linspace_new", "new_tensor", "place", "repeat", "trunc_divide",
    )
)  # fmt: skip
