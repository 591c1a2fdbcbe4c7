"""The table of ONNX operators: what each computes, written in ops.

The function of an operator has the operator's inputs as positional parameters and its attributes as
keyword-only ones, under ONNX's names and with its defaults. So one function often serves all versions: an
attribute that became an input later (``axes`` of Squeeze) is passed under its name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["Operator", "find", "names", "operator", "supported_operators"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Keyword-only parameters that are no attributes: the module's mode, and the number of results asked for.
CONTEXT = frozenset({"training", "n_outputs", "device"})


@dataclass(frozen=True)
class Operator:
    """An ONNX operator from one version of its domain on.

    Attributes
    ----------
    name, domain, since
        Of ONNX; ``since`` is the first version of the domain's operators for which the function holds.
    function
        Computes the outputs from inputs and attributes.
    host
        Positions of the inputs that are given as Python numbers and lists: shapes, axes, sizes.
    constant
        Positions of the inputs that no gradient reaches, though they are floating-point: statistics.
    placed
        Whether the result is on the module's device though all inputs are Python's.
    prepare
        Makes tensors from attributes when the model is loaded; they become state of the module.
    trained
        The names of those that a gradient changes.
    """

    name: str
    domain: str
    since: int
    function: Callable[..., Any]
    host: frozenset[int]
    constant: frozenset[int]
    placed: bool
    context: frozenset[str]
    attributes: frozenset[str]
    prepare: Callable[[dict[str, Any]], dict[str, Any]] | None
    trained: frozenset[str]

    def __reduce__(self) -> Any:
        return _registered, (self.domain, self.name, self.since)


_TABLE: dict[tuple[str, str], list[Operator]] = {}


def operator(
    name: str,
    *,
    domain: str = "",
    since: int = 1,
    host: Sequence[str] = (),
    constant: Sequence[str] = (),
    placed: bool = False,
    prepare: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    trained: Sequence[str] = (),
    attributes: Sequence[str] = (),
) -> Callable[[_Function], _Function]:
    """Register a function as an operator of ONNX from version ``since`` of its domain on.

    ``attributes`` names those that only ``prepare`` sees.
    """

    def register(function: _Function) -> _Function:
        parameters = inspect.signature(function).parameters.values()
        positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        keywords = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
        versions = _TABLE.setdefault((domain, name), [])
        versions.append(
            Operator(
                name,
                domain,
                since,
                function,
                frozenset(map(positional.index, host)),
                frozenset(map(positional.index, constant)),
                placed,
                frozenset(keywords & CONTEXT),
                frozenset(((keywords | set(positional)) - CONTEXT) | set(attributes)),
                prepare,
                frozenset(trained),
            )
        )
        versions.sort(key=lambda found: found.since)
        return function

    return register


def find(domain: str, name: str, version: int) -> Operator | None:
    """Return what computes an operator in a version of its domain, None where nothing does."""
    from . import operators  # noqa: F401  (fills the table)

    fitting = [found for found in _TABLE.get((domain, name), ()) if found.since <= version]
    return fitting[-1] if fitting else None


def _registered(domain: str, name: str, since: int) -> Operator:
    """Return the operator of the table, for pickles and copies."""
    found = find(domain, name, since)
    if found is None:
        raise LookupError(f"no ONNX operator {domain}.{name}")
    return found


def names() -> set[tuple[str, str]]:
    """Return the domain and name of each operator of the table."""
    from . import operators  # noqa: F401  (fills the table)

    return set(_TABLE)


def supported_operators(domain: str = "") -> list[str]:
    """Return the ONNX operators of a domain that :func:`load` knows, sorted.

    Others are taken apart by the function that ONNX defines them with, where it defines one.

    >>> import tensorplug as tp
    >>> "Conv" in tp.onnx.supported_operators()
    True
    >>> "TreeEnsembleClassifier" in tp.onnx.supported_operators("ai.onnx.ml")
    True
    """
    return sorted(name for found, name in names() if found == domain)
