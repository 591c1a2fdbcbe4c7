"""Rules of composites from the shapes that their declarations name.

They are for ops whose arguments are canonical as they come. A kernel reads memory by the shapes that it
expects, so a direct call has to be held to them::

    @composite(shapes="input(N, C, *S), kernel[S]+, stride[S]+, padding[S]")

Round brackets list a tensor's sizes: a letter or name stands for one size, the same wherever it stands, an
asterisk for any number of them, a number for itself. Square brackets tell that a tuple of integers, none
negative, has as many items as the name has sizes; with a plus sign all are positive. ``inputs.1(N, H)`` is
an item of a list. All tensors are of the first one's kind of dtype, unless another is named, as in
``indices:int64(*S)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import index
from typing import Any

from ..errors import type_name
from ..tensor.base import TensorBase
from .op import Op

_PART = re.compile(r"(\w+)(?:\.(\d+))?(?::(\w+))?(?:\(([^)]*)\)|\[(\w+)\](\+?))")
_PLAIN = {
    "bool": bool,
    "str": str,
    "float": (int, float),
    "Real": (int, float),
    "Number": (int, float, complex),
}


Check = Callable[[Any, dict[str, Any]], Any]


class ShapeRule:
    """The rule of a composite whose arguments are canonical, if their shapes, lengths and kinds fit.

    Parameters
    ----------
    shapes : str
        What is declared, see above.
    check : callable, optional
        Called with the arguments, to see what the shapes alone don't tell.
    """

    __slots__ = ("check", "checks", "op", "shapes")

    op: Op

    def __init__(self, shapes: str, check: Callable[..., None] | None = None) -> None:
        self.shapes = shapes
        self.check = check
        self.checks: list[tuple[int, Check]] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return the arguments in order, sizes as tuples of int."""
        values = list(self.op.bind(args, kwargs))
        if self.checks is None:  # parsed on the first call: importing would feel it
            self.checks = _parsed(self.op, self.shapes)
        sizes: dict[str, Any] = {}
        for place, check in self.checks:
            values[place] = check(values[place], sizes)
        if self.check is not None:
            self.check(*values)
        return tuple(values)


def _parsed(op: Op, shapes: str) -> list[tuple[int, Check]]:
    """Return the checks of arguments, those of declared shapes first and in that order."""
    kinds = op.declaration.__annotations__
    checks: dict[str, Check] = {}
    for name, item, dtype, tensor, length, plus in _PART.findall(shapes):
        label = f"{op.name}(): argument '{name}'"
        if length:
            checks[name] = _lengths(label, length, bool(plus))
        elif not item:
            checks[name] = _tensor(label, dtype, tensor, "None" in str(kinds[name]))
        else:
            items = checks.setdefault(name, _Items(label))
            assert isinstance(items, _Items)
            items.append(_tensor(f"{label}, item {item}", dtype, tensor, optional=False))
    for name in op.names:
        plain = _plain(f"{op.name}(): argument '{name}'", str(kinds.get(name)))
        if name not in checks and plain is not None:
            checks[name] = plain
    return [(op.names.index(name), check) for name, check in checks.items()]


def _tensor(label: str, dtype: str, sizes: str, optional: bool) -> Check:
    """Return what sees to the sizes and the dtype of a tensor."""
    words = [word.strip() for word in sizes.split(",") if word.strip()]
    star = next((place for place, word in enumerate(words) if word[0] == "*"), -1)
    words = [word.removeprefix("*") for word in words]
    behind = len(words) - 1 - star

    def check(value: Any, known: dict[str, Any]) -> Any:
        if value is None and optional:
            return value
        if not isinstance(value, TensorBase):
            raise TypeError(f"{label} must be Tensor, not {type_name(value)}")
        shape: Any = value._shape
        fits = len(shape) == len(words) if star < 0 else len(shape) >= len(words) - 1
        if fits:
            given = shape
            if star >= 0:
                end = len(shape) - behind
                given = (*shape[:star], shape[star:end], *shape[end:])
            for word, size in zip(words, given, strict=True):
                wanted = int(word) if word.isdigit() else known.setdefault(word, size)
                fits = fits and (wanted == size or not word)
        if not fits:
            bound = {word: known[word] for word in words if word in known}
            raise RuntimeError(
                f"{label} must have shape ({sizes}), got {list(shape)}; known: {bound}"
            )
        kind = value._key.dtype
        if dtype:
            fits = kind.name == dtype
        else:
            fits = kind.category == known.setdefault("dtype", kind).category
        if not fits:
            wanted = dtype or known["dtype"]
            raise RuntimeError(f"{label} must be of dtype {wanted}, got {kind}")
        return value

    return check


class _Items(list[Check]):
    """What sees to the items of a list."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self.label = label

    def __call__(self, value: Any, known: dict[str, Any]) -> Any:
        if not isinstance(value, (list, tuple)) or len(value) != len(self):
            raise TypeError(f"{self.label} must be {len(self)} tensors")
        for item, check in zip(value, self, strict=True):
            check(item, known)
        return value


def _lengths(label: str, name: str, positive: bool) -> Check:
    """Return what sees to a tuple of as many sizes as a tensor has under a name."""
    least = 1 if positive else 0

    def check(value: Any, known: dict[str, Any]) -> Any:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"{label} must be tuple of ints, not {type_name(value)}")
        count = len(known.setdefault(name, value))
        if len(value) != count:
            raise RuntimeError(f"{label} must have {count} items, got {list(value)}")
        sizes = tuple([index(item) for item in value])
        if min(sizes, default=least) < least:
            raise RuntimeError(f"{label} must be {least} or more, got {list(value)}")
        return sizes

    return check


def _plain(label: str, kind: str) -> Check | None:
    """Return what sees to a plain value; ints are seen to by the dispatcher."""
    types: Any = _PLAIN.get(kind)
    if types is None:
        return None

    def check(value: Any, _: dict[str, Any]) -> Any:
        if not isinstance(value, types):
            raise TypeError(f"{label} must be {kind}, not {type_name(value)}")
        return value

    return check
