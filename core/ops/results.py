"""The named tuples that ops with several outputs return, named as in ``torch.return_types``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..device.dtypes import shown

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = [
    "aminmax", "cummax", "cummin", "frexp", "histogram", "histogramdd", "kthvalue", "max", "median",
    "min", "mode", "nanmedian", "sort", "topk",
]  # fmt: skip


def _fields(result: tuple[Any, ...], names: tuple[str, ...]) -> str:
    parts = [f"{name}={value!r}" for name, value in zip(names, result, strict=True)]
    return shown(f"return_types.{type(result).__name__}(\n") + ",\n".join(parts) + ")"


class ValuesAndIndices(NamedTuple):
    """Chosen elements, and where along the dimension they stood."""

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        return _fields(self, self._fields)


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


class aminmax(NamedTuple):
    """What ``aminmax`` returns."""

    min: Tensor
    max: Tensor

    def __repr__(self) -> str:
        return _fields(self, self._fields)


class frexp(NamedTuple):
    """What ``frexp`` returns."""

    mantissa: Tensor
    exponent: Tensor

    def __repr__(self) -> str:
        return _fields(self, self._fields)


class histogram(NamedTuple):
    """What ``histogram`` returns."""

    hist: Tensor
    bin_edges: Tensor

    def __repr__(self) -> str:
        return _fields(self, self._fields)


class histogramdd(NamedTuple):
    """What ``histogramdd`` returns."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]

    def __repr__(self) -> str:
        return _fields(self, self._fields)
