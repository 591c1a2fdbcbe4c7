"""The names of ops: their own, and those that users call them by."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from .op import Op
from .registered_ops import DEFINED, OPS
from .state import dispatch_state

#: Functions that users know, where an op's own is not public, and the arguments that both take.
PUBLIC: dict[Op, tuple[Callable[..., Any], tuple[str, ...]]] = {}

F = TypeVar("F", bound=Callable[..., Any])


def defined_by(function: Callable[..., Any], *, name: str | None = None) -> Callable[[F], F]:
    """Mark a public function as another spelling of an op, which is then found by the function's name too.

    Parameters
    ----------
    function : callable
        What declared the op.
    name : str, optional
        The function's name, by default its own; ``"nn.functional.unfold"`` where another op has that.

    Examples
    --------
    >>> import tensorplug as tp
    >>> @defined_by(tp.softmax)
    ... def normalised_exponential(input):
    ...     return tp.softmax(input, 0)
    >>> get_op("normalised_exponential").name
    'softmax'
    """
    op: Op = function.op  # type: ignore[attr-defined]

    def declare(other: F) -> F:
        other.op = op  # type: ignore[attr-defined]
        DEFINED[name or other.__name__] = op
        if op.method is None and other.__name__ == op.name:
            names = other.__code__.co_varnames
            alike = tuple([a for a, b in zip(op.names, names, strict=False) if a == b])
            PUBLIC[op] = other, alike
        return other

    return declare


def _spellings(name: str) -> Iterator[str]:
    """Yield the names under which an op that users call `name` may be registered or defined."""
    yield name
    for package in ("tensorplug.", "torch.", "tp."):
        name = name.removeprefix(package)
    yield name
    name = name.removesuffix("_")  # of a method that writes into its tensor
    yield name
    path, _, last = name.rpartition(".")
    if path in ("linalg", "fft", "special", "nn.functional", "F", "Tensor", "ops", "ops.aten"):
        yield f"{path}_{last}"
        yield last


def find_op(name: str) -> Op | None:
    """Return the op that users call `name`, or None if none is registered now; loads nothing."""
    for spelling in _spellings(name):
        op = OPS.get(spelling) or DEFINED.get(spelling)
        if op is not None:
            return op
    return None


def get_op(name: str) -> Op:
    """Return the op called `name`, loading the extension plugins if it is not known yet.

    Parameters
    ----------
    name : str
        The op's own name, or one that users call: ``"linalg.svd"``, ``"nn.functional.relu"``, ``"concat"``.

    Raises
    ------
    KeyError
        If no plugin registers it; the message lists names that are near.
    """
    op = OPS.get(name) or find_op(name)
    reason = ""
    if op is None:
        reason = dispatch_state.find_missing(name)
        op = find_op(name)
    if op is None:
        import difflib

        near = difflib.get_close_matches(name, OPS, 4)
        raise KeyError(
            f"no op {name!r}" + (f"; did you mean {', '.join(near)}?" if near else "") + reason
        )
    return op


def _reduced(op: Op) -> tuple[Callable[[str], Op], tuple[str]]:
    """Return what an op is pickled as: its name."""
    return get_op, (op.name,)


copyreg.pickle(Op, _reduced)
