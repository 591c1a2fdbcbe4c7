"""The named tuples that ops with several outputs return, named as in ``torch.return_types``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..device.dtypes import shown

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = [
    "aminmax", "cummax", "cummin", "frexp", "histogram", "histogramdd", "kthvalue", "max", "median",
    "min", "mode", "nanmedian", "sort", "topk",
]  # fmt: skip


C = TypeVar("C", bound=type[Any])


def return_type(kind: C) -> C:
    """Have a named tuple show itself as torch's return types do, and take one sequence, as they do.

    Several values make one as well, as they do any named tuple. A dictionary after the sequence, which torch
    puts into pickled results, is for fields without a place in the sequence; there are none.
    """
    names: tuple[str, ...] = kind._fields
    count = len(names)

    def new(cls: type[Any], *values: Any, **named: Any) -> Any:
        if named or len(values) != count or type(values[1]) is dict:
            values = _values(cls, values, named)
        return tuple.__new__(cls, values)

    def text(self: tuple[Any, ...]) -> str:
        parts = [f"{name}={value!r}" for name, value in zip(names, self, strict=True)]
        return shown(f"return_types.{type(self).__name__}(\n") + ",\n".join(parts) + ")"

    made: Any = kind
    made.__new__ = new
    made.__repr__ = text
    made.n_fields = made.n_sequence_fields = count
    made.n_unnamed_fields = 0
    return kind


def _values(kind: Any, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Return the values of a return type from arguments other than one for each."""
    names = kind._fields
    left = names[len(values) :]
    if named and named.keys() == set(left):
        return (*values, *[named[name] for name in left])
    if named.keys() - {"sequence", "dict"} or len(values) > 2 or not (values or named):
        raise TypeError(
            shown(
                f"return_types.{kind.__name__}() takes {list(names)}, each or in one sequence, got "
            )
            + f"{len(values)} values and {list(named)} by name"
        )
    sequence = values[0] if values else named["sequence"]
    if not isinstance(sequence, Iterable):
        raise TypeError(
            shown(f"return_types.{kind.__name__}(): constructor requires a sequence, ")
            + f"got {type(sequence).__name__}"
        )
    found = tuple(sequence)
    if len(found) != len(names):
        raise TypeError(
            shown(f"return_types.{kind.__name__}() takes a {len(names)}-sequence ")
            + f"({len(found)}-sequence given)"
        )
    return found


@return_type
class ValuesAndIndices(NamedTuple):
    """Chosen elements, and where along the dimension they stood."""

    values: Tensor
    indices: Tensor


class max(ValuesAndIndices):
    """What ``max(input, dim)`` returns."""

    __slots__ = ()


class min(ValuesAndIndices):
    """What ``min(input, dim)`` returns."""

    __slots__ = ()


class median(ValuesAndIndices):
    """What ``median(input, dim)`` returns."""

    __slots__ = ()


class nanmedian(ValuesAndIndices):
    """What ``nanmedian(input, dim)`` returns."""

    __slots__ = ()


class mode(ValuesAndIndices):
    """What ``mode`` returns."""

    __slots__ = ()


class kthvalue(ValuesAndIndices):
    """What ``kthvalue`` returns."""

    __slots__ = ()


class sort(ValuesAndIndices):
    """What ``sort`` returns."""

    __slots__ = ()


class topk(ValuesAndIndices):
    """What ``topk`` returns."""

    __slots__ = ()


class cummax(ValuesAndIndices):
    """What ``cummax`` returns."""

    __slots__ = ()


class cummin(ValuesAndIndices):
    """What ``cummin`` returns."""

    __slots__ = ()


@return_type
class aminmax(NamedTuple):
    """What ``aminmax`` returns."""

    min: Tensor
    max: Tensor


@return_type
class frexp(NamedTuple):
    """What ``frexp`` returns."""

    mantissa: Tensor
    exponent: Tensor


@return_type
class histogram(NamedTuple):
    """What ``histogram`` returns."""

    hist: Tensor
    bin_edges: Tensor


@return_type
class histogramdd(NamedTuple):
    """What ``histogramdd`` returns."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]
