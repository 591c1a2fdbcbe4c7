"""Samples and references of ops: one record per op, from which the test products are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tensorplug.core.device.dtypes import ALL_DTYPES, DType


class Sample:
    """One call of an op: its arguments, the first of which is usually a tensor."""

    __slots__ = ("args", "kwargs", "label")

    def __init__(self, *args: Any, label: str = "", **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs
        self.label = label

    def __repr__(self) -> str:
        return f"Sample({self.label or ', '.join(map(_short, self.args))})"


class ErrorSample:
    """A call that must raise: the exception's type and a pattern its message matches."""

    __slots__ = ("error", "match", "sample")

    def __init__(self, sample: Sample, error: type[Exception], match: str) -> None:
        self.sample = sample
        self.error = error
        self.match = match


def _short(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"{value.dtype.name}{list(shape)}" if shape is not None else repr(value)


@dataclass(slots=True)
class OpRecord:
    """What the tests know of an op.

    Attributes
    ----------
    op : str
        The op's name in the registry.
    samples : callable
        ``samples(make, dtype)`` yields :class:`Sample`: several shapes (0-d, empty, broadcast) and options.
        ``make(*shape, dtype=…, low=…, high=…, exclude_zero=…)`` gives a random tensor on the device under
        test, of the dtype under test unless another is named.
    reference : callable, optional
        The op on NumPy arrays, called with the sample's arguments (tensors converted; float16, bfloat16 and
        float32 as float64). None where only properties can be tested, see `check`.
    dtypes : tuple of DType
        Those the op takes.
    gradient : bool
        Whether the op is differentiable (checked by finite differences in float64 and complex128).
    errors : callable, optional
        ``errors(make)`` yields :class:`ErrorSample`.
    check : callable, optional
        ``check(result, sample)`` asserts properties where a reference is impossible (eigenvectors, random
        numbers).
    rtol, atol : dict
        Tolerances by dtype name where the default is too tight, each with its reason in a comment.
    torch : str, optional
        The torch function under which to compare, dotted; by default the op's name; "" for none.
    skips : dict
        Variants that do not apply, by name, with the reason: "gradgrad", "noncontiguous", "meta", "out",
        "inplace", "torch".
    never_empty : str, optional
        Why no sample holds or gives an empty tensor; None where one does.
    """

    op: str
    samples: Callable[[Any, DType], Iterable[Sample]]
    reference: Callable[..., Any] | None = None
    dtypes: tuple[DType, ...] = ALL_DTYPES
    gradient: bool = True
    errors: Callable[[Any], Iterable[ErrorSample]] | None = None
    check: Callable[[Any, Sample], None] | None = None
    rtol: dict[str, float] = field(default_factory=dict)
    atol: dict[str, float] = field(default_factory=dict)
    torch: str | None = None
    skips: dict[str, str] = field(default_factory=dict)
    never_empty: str | None = None


def all_records() -> Iterator[OpRecord]:
    """Yield the record of every op that has one; those of installed extensions come last."""
    import importlib
    import pkgutil

    from tensorplug.core.plugins import discovery, entry_points, manager

    from . import samples

    for module in pkgutil.walk_packages(samples.__path__, f"{samples.__name__}."):
        yield from getattr(importlib.import_module(module.name), "RECORDS", ())
    discovery.load_device(entry_points.EXTENSION)
    yield from manager.op_records()
