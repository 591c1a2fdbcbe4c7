"""How tensors print.

Digits, columns and line breaks follow torch, character by character, so that what people know how
to read (and doctests written for torch) stays as it is.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contexts import Block, Steps
from ..device.device import CPU
from ..device.dtypes import bool_, default_complex, get_default_dtype, int64
from .host import host_array, readable

if TYPE_CHECKING:
    from .tensor import Tensor

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class _Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": _Options(),
    "short": _Options(precision=2, edgeitems=2),
    "full": _Options(threshold=math.inf),
}
_options = _Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Say how tensors print; what is None stays as it is.

    Parameters
    ----------
    precision : int, optional
        Digits after the point (4 at first).
    threshold : int, optional
        The number of elements from which on the middle is left out (1000).
    edgeitems : int, optional
        How many items are shown at each end of a dimension then (3).
    linewidth : int, optional
        Characters per line (80).
    profile : {"default", "short", "full"}, optional
        A set of values that the others refine.
    sci_mode : bool, optional
        Scientific notation always or never; by None again, as the values ask for it.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.set_printoptions(precision=2)
    >>> tp.tensor([1.23456])
    tensor([1.23])
    >>> tp.set_printoptions(profile="default")
    """
    global _options
    _options = _changed(precision, threshold, edgeitems, linewidth, profile, sci_mode)


def _changed(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> _Options:
    """Return the options as :func:`set_printoptions` leaves them."""
    changed = _options
    if profile is not None:
        try:
            changed = _PROFILES[profile]
        except KeyError:
            raise ValueError(
                f"set_printoptions(): profile is one of {', '.join(_PROFILES)}, got {profile!r}"
            ) from None
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    return replace(changed, **changes, sci_mode=sci_mode)


def get_printoptions() -> dict[str, Any]:
    """Return the options that :func:`set_printoptions` sets."""
    return asdict(_options)


def printoptions(**options: Any) -> Block:
    """Use print options within a ``with`` block."""

    def steps() -> tuple[Steps, Steps]:
        table = globals()
        inside = partial(table.update, _options=_changed(**options))
        return (inside,), (partial(table.update, _options=_options),)

    return Block(steps)


# --- one number -------------------------------------------------------------------------------


class _Format:
    """The common format of the numbers of one tensor: notation and width."""

    def __init__(self, values: Array) -> None:
        self.floating = values.dtype.kind not in "biu"
        self.whole = True
        self.scientific = False
        self.width = 1
        if self.floating:
            self._survey(values.astype(np.float64).ravel())
        else:
            self.width = max([1, *[len(str(value)) for value in values.ravel().tolist()]])

    def _survey(self, values: Array) -> None:
        """Choose the notation from the finite values other than zero, and the width they need."""
        counted = values[np.isfinite(values) & (values != 0)]
        if not counted.size:
            return
        sizes = np.abs(counted)
        least, largest = float(sizes.min()), float(sizes.max())
        self.whole = bool((counted == np.ceil(counted)).all())
        wide_range = largest / least > 1000.0 or largest > 1.0e8
        self.scientific = wide_range or least < 1.0e-4
        if _options.sci_mode is not None:
            self.scientific = _options.sci_mode
        numbers = counted.tolist()
        precision = _options.precision
        if self.scientific:
            widths = [len(f"{number:.{precision}e}") for number in numbers]
        elif self.whole:
            widths = [len(f"{number:.0f}") + 1 for number in numbers]
        else:
            widths = [len(f"{number:.{precision}f}") for number in numbers]
        self.width = max(1, *widths)

    def __call__(self, value: Any) -> str:
        if not self.floating:
            text = str(value)
        elif self.scientific:
            text = f"{value:{self.width}.{_options.precision}e}"
        elif self.whole:
            text = f"{value:.0f}" + ("." if math.isfinite(value) else "")
        else:
            text = f"{value:.{_options.precision}f}"
        return text.rjust(self.width)


class _ComplexFormat:
    """The format of complex numbers: one for each part."""

    def __init__(self, values: Array) -> None:
        self.real = _Format(values.real)
        self.imaginary = _Format(values.imag)
        self.width = self.real.width + self.imaginary.width + 1

    def __call__(self, value: complex) -> str:
        imaginary = f"{self.imaginary(value.imag)}j".lstrip()
        sign = "" if imaginary[0] in "+-" else "+"
        return self.real(value.real) + sign + imaginary


# --- many numbers -----------------------------------------------------------------------------


def _edges(array: Array) -> Array:
    """Return the elements of a large array that are shown: both ends of each dimension."""
    edge = _options.edgeitems
    for axis, size in enumerate(array.shape):
        if size > 2 * edge:
            shown = [*range(edge), *range(size - edge, size)]
            array = np.take(array, np.array(shown, np.intp), axis)
    return array


def _join(array: Array, indent: int, short: bool, form: Any) -> str:
    """Return nested brackets of the numbers, continuation lines indented."""
    edge = _options.edgeitems
    if array.ndim == 0:
        return str(form(array.item()))
    if array.ndim == 1:
        return _row(array, indent, short, form)
    parts: list[str]
    if short and len(array) > 2 * edge:
        first = [_join(part, indent + 1, short, form) for part in array[:edge]]
        last = [_join(part, indent + 1, short, form) for part in array[len(array) - edge :]]
        parts = [*first, "...", *last]
    else:
        parts = [_join(part, indent + 1, short, form) for part in array]
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _row(array: Array, indent: int, short: bool, form: Any) -> str:
    edge = _options.edgeitems
    width = form.width + 2
    if short and not edge:
        parts = ["..."]
    elif short and len(array) > 2 * edge:
        first = [form(value) for value in array[:edge].tolist()]
        last = [form(value) for value in array[-edge:].tolist()]
        parts = [*first, " ...", *last]
    else:
        parts = [form(value) for value in array.tolist()]
    per_line = max(1, int((_options.linewidth - indent) // width))
    lines = [", ".join(parts[i : i + per_line]) for i in range(0, len(parts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _numbers(array: Array, indent: int) -> str:
    array = readable(array)
    if array.dtype.itemsize == 2 and array.dtype.kind not in "iu":  # half precision of either sort
        array = array.astype(np.float32)
    short = array.size > _options.threshold
    shown = _edges(array) if short else array
    form = _ComplexFormat(shown) if array.dtype.kind == "c" else _Format(shown)
    return _join(array, indent, short, form)


# --- the whole --------------------------------------------------------------------------------


def tensor_repr(tensor: Tensor, *, contents: str | None = None) -> str:
    """Return what ``repr(tensor)`` does.

    Parameters
    ----------
    tensor : Tensor
        Any tensor.
    contents : str, optional
        Text to stand for the numbers.
    """
    cls = type(tensor)
    name = "tensor" if cls.__name__ in ("Tensor", "Parameter") else cls.__name__
    prefix = f"{name}("
    notes, text = _describe(tensor, len(prefix), contents)
    shown = with_notes(prefix + text, notes, len(prefix))
    # A parameter of a class of its own says that it is one, as in torch.
    return f"Parameter({shown})" if getattr(tensor, "_is_param", False) else shown


def with_notes(text: str, notes: list[str], indent: int, new_line: bool = False) -> str:
    """Return a tensor's numbers with notes after them, the first on a new line if `new_line`."""
    lines = [text]
    used = len(text) - text.rfind("\n") + 1
    for note in notes:
        if new_line or used + len(note) + 2 > _options.linewidth:
            lines.append(",\n" + " " * indent + note)
            used = indent + len(note)
            new_line = False
        else:
            lines.append(f", {note}")
            used += len(note) + 2
    return "".join(lines) + ")"


def numbers_of(tensor: Tensor, indent: int) -> str:
    """Return the elements as they are printed, without anything around them."""
    return _numbers(host_array(tensor), indent) if tensor.numel() else "[]"


def gradient_note(tensor: Tensor) -> list[str]:
    """Return what is printed of a tensor's place in the graph and of its tangent, if anything."""
    try:
        node = tensor.grad_fn
    except RuntimeError:  # a view made without recording, whose base was written to since
        return ["grad_fn=<Invalid>"]
    notes = ["requires_grad=True"] if node is None and tensor.requires_grad else []
    if node is not None:
        notes.append(f"grad_fn=<{node.name()}>")
    tangent = next(reversed((tensor._tangents or {}).values()), None)  # of the innermost level
    return notes if tangent is None else [*notes, f"tangent={tangent}"]


def tensor_html(tensor: Tensor) -> str:
    """Return what notebooks show: the text, and below it the facts that it leaves out."""
    from html import escape  # takes its time, and is rarely needed

    facts = f"shape {list(tensor.shape)}, {str(tensor.dtype).rpartition('.')[2]}, {tensor.device}"
    return (
        f"<pre>{escape(repr(tensor))}</pre>"
        f'<div style="color: gray; font-size: smaller">{facts}</div>'
    )


def _describe(tensor: Tensor, indent: int, contents: str | None) -> tuple[list[str], str]:
    """Return the notes after the numbers, and the numbers."""
    notes = []
    dtype = tensor.dtype
    default = get_default_dtype()
    if tensor.device is not CPU:
        notes.append(f"device='{tensor.device}'")
    if tensor.is_meta:
        notes.append(f"size={tuple(tensor.shape)}")
        if dtype is not default:
            notes.append(f"dtype={dtype}")
        text = contents or "..."
    elif tensor.numel() == 0:
        if tensor.dim() != 1:
            notes.append(f"size={tuple(tensor.shape)}")
        if dtype is not default:
            notes.append(f"dtype={dtype}")
        text = contents or "[]"
    else:
        if not _options.edgeitems:
            notes.append(f"size={tuple(tensor.shape)}")
        if dtype not in (default, default_complex(), int64, bool_):
            notes.append(f"dtype={dtype}")
        text = contents or _numbers(host_array(tensor), indent)
    return notes + gradient_note(tensor), text
