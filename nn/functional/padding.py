"""Padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorplug.autograd import derivative
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import Number, bool_, int64
from tensorplug.core.device.scalars import fitting
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import ones
from tensorplug.core.ops.indexing.indexing import place
from tensorplug.core.ops.joining import cat
from tensorplug.core.tensor.creation import tensor as make_tensor
from tensorplug.core.tensor.shapes import Shape, as_shape

from ._common import tensor

__all__ = ["constant_pad_nd", "pad"]


def _canonical_pad(
    input: Any, pad: Sequence[int], mode: str = "constant", value: Any = None
) -> Any:
    tensor(input, "pad")
    sizes = as_shape((tuple(pad),), "pad")
    if len(sizes) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, got {len(sizes)}")
    shape = input._shape
    if len(sizes) > 2 * len(shape):
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding "
            f"length {len(sizes)} and input of dimension {len(shape)}"
        )
    if type(value) is complex and not input.dtype.is_complex:
        raise TypeError("pad(): argument 'value' (position 4) must be float, not complex")
    around = _around(len(shape), sizes)
    if mode == "constant":
        _check_sizes(shape, around)
        return input, sizes, mode, value
    if mode not in _PLACES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    count = len(sizes) // 2
    if count not in (1, 2, 3) or len(shape) - count not in (1, 2):
        if mode != "circular":
            raise NotImplementedError(
                f"Padding size {len(sizes)} is not supported for {len(shape)}D input tensor."
            )
        raise NotImplementedError(
            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now, got "
            f"{count} padded dimensions of an input of {len(shape)}"
        )
    if mode != "circular" and 0 in shape[-count - 1 :]:
        raise RuntimeError(
            f"Expected {count + 1}D or {count + 2}D (batch mode) tensor with possibly 0 batch size and other "
            f"non-zero dimensions for input, but got: {list(shape)}"
        )
    for dim, (before, after) in enumerate(around):
        if before or after:
            _CHECKS[mode](shape[dim], before, after)
            padded = shape[dim] + before + after
            if padded < 0 or (not padded and mode != "circular"):
                raise RuntimeError(
                    f"pad(): the padded size of dimension {dim} is not positive: Negative padding value is "
                    "resulting in an empty dimension"
                )
            left = shape[dim] + min(before, 0) + min(after, 0)
            if mode == "circular" and max(before, after) > 0 and left <= 0:
                raise RuntimeError(
                    f"pad(): of dimension {dim}, of size {shape[dim]}, ({before}, {after}) leaves nothing "
                    "to repeat"
                )
    return input, sizes, mode, None


def _check_sizes(shape: Shape, around: list[tuple[int, int]]) -> None:
    for length, (before, after) in zip(shape, around, strict=True):
        if length + before + after < 0:
            raise RuntimeError(
                f"The input size {list(shape)} plus negative padding {around} resulted in a negative "
                "output size"
            )


def _canonical_constant(input: Any, pad: Sequence[int], value: Any = 0) -> Any:
    input, sizes, _, _ = _canonical_pad(input, pad)
    return input, sizes, fitting(value, input.dtype)


@composite(rule=_canonical_constant, keeps_format=True, method=False)
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: Number = 0) -> Tensor:
    """Return `input` with a number around it: :func:`pad` of the mode "constant".

    Parameters
    ----------
    input : Tensor
        Of any shape.
    pad : sequence of int
        (before, after) of the last dimension, then of the one before it, and so on; negative numbers
        take away.
    value : number
        What is added.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.constant_pad_nd(tp.ones(2), (1, 2), 7)
    tensor([7., 1., 1., 7., 7.])
    """
    if not value and math.copysign(1.0, value.real) > 0 and min(pad, default=-1) >= 0:
        return place(input, *_zeros_around(input._shape, pad))
    return _constant(input, _around(input.ndim, pad), value)


def _around(ndim: int, sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return (before, after) of every dimension, the first one first."""
    ends = [(sizes[i], sizes[i + 1]) for i in range(0, len(sizes), 2)]
    return [(0, 0)] * (ndim - len(ends)) + ends[::-1]


@composite(rule=_canonical_pad, keeps_format=True, method=False)
def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Return `input` with elements added, or taken away, at the ends of its last dimensions.

    Parameters
    ----------
    input : Tensor
        Any shape for the mode "constant"; else one or two dimensions more than are padded.
    pad : sequence of int
        (before, after) of the last dimension, then of the one before it, and so on; negative numbers
        take away.
    mode : {"constant", "reflect", "replicate", "circular"}
        What is added: `value`; the elements mirrored at the edge; the edge; the other end.
    value : float, optional
        Zero by default.

    Raises
    ------
    RuntimeError, NotImplementedError
        If the sizes or the mode do not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> pad(tp.tensor([[1.0, 2.0, 3.0]]), (2, 1), "reflect")
    tensor([[3., 2., 1., 2., 3., 2.]])
    """
    if mode == "constant":
        return constant_pad_nd(input, pad, 0 if value is None else value)
    result: Any = input
    for dim, (before, after) in enumerate(_around(input.ndim, pad)):
        if before or after:
            length = input.shape[dim]
            if length >= _LONG[mode] and length + min(before, 0) + min(after, 0) > 0:
                result = cat(_ends_around(result, mode, dim, before, after), dim)
                continue
            indices = _PLACES[mode](length, before, after)
            index = make_tensor(indices, dtype=int64, device=input.device)
            result = result.index_select(dim, index)
    return input.clone() if result is input else result


def _zeros_around(shape: Shape, sizes: Sequence[int]) -> tuple[Shape, tuple[slice, ...]]:
    """Return the shape with zeros around, and the place within."""
    whole = list(shape)
    where = [slice(0, length) for length in shape]
    for i in range(0, len(sizes), 2):
        dim = -1 - i // 2
        before, length = sizes[i], whole[dim]
        whole[dim] += before + sizes[i + 1]
        where[dim] = slice(before, before + length)
    return tuple(whole), tuple(where)


def _constant(input: Any, around: list[tuple[int, int]], value: Any) -> Any:
    if not any(before or after for before, after in around):
        return input.clone()
    size = [sum(ends, length) for length, ends in zip(input.shape, around, strict=True)]
    kept = tuple(
        [
            slice(max(-before, 0), length - max(-after, 0))
            for length, (before, after) in zip(input.shape, around, strict=True)
        ]
    )
    inner = input[kept] if any(min(ends) < 0 for ends in around) else input
    where = tuple(
        [
            slice(max(before, 0), max(before, 0) + length)
            for length, (before, _) in zip(inner.shape, around, strict=True)
        ]
    )
    result = place(inner, tuple(size), where)
    if not value and math.copysign(1.0, value.real) > 0:
        return result
    given = place(ones(inner.shape, dtype=bool_, device=input.device), tuple(size), where)
    return result.masked_fill(given.logical_not(), value)


#: Of a dimension that is as long what is kept is copied in one piece, not element by element.
_LONG = {"circular": 64, "replicate": 64, "reflect": 256}


def _ends_around(input: Any, mode: str, dim: int, before: int, after: int) -> list[Any]:
    """Return what is kept of a dimension, with what is added at its ends."""
    length = input.shape[dim]
    start, stop = max(-before, 0), length - max(-after, 0)
    parts = [input.narrow(dim, start, stop - start)]
    first, last = (0, length) if mode == "reflect" else (start, stop)
    for count, behind in ((before, False), (after, True)):
        if count <= 0:
            continue
        if mode == "circular":  # what is at the other end
            end = input.narrow(dim, first if behind else last - count, count)
        elif mode == "reflect":
            end = input.narrow(dim, last - 1 - count if behind else first + 1, count).flip(dim)
        else:
            edge = input.narrow(dim, length - 1 if behind else 0, 1)
            end = edge.expand(*input.shape[:dim], count, *input.shape[dim + 1 :])
        parts.insert(len(parts) if behind else 0, end)
    return parts


def _check_reflected(length: int, before: int, after: int) -> None:
    if before >= length or after >= length:
        raise RuntimeError(
            "Padding size should be less than the corresponding input dimension, but got: padding "
            f"({before}, {after}) at a dimension of size {length}"
        )


def _check_replicated(length: int, before: int, after: int) -> None:
    if length == 0:
        raise RuntimeError("Expected a dimension of non-zero size to replicate from")


def _check_wrapped(length: int, before: int, after: int) -> None:
    if before > length or after > length:
        raise RuntimeError(
            "Padding value causes wrapping around more than once: padding "
            f"({before}, {after}) at a dimension of size {length}"
        )


def _reflected(length: int, before: int, after: int) -> list[int]:
    return [abs(i) if i < length else 2 * (length - 1) - i for i in range(-before, length + after)]


def _replicated(length: int, before: int, after: int) -> list[int]:
    return [min(max(i, 0), length - 1) for i in range(-before, length + after)]


def _wrapped(length: int, before: int, after: int) -> list[int]:
    kept = range(max(-before, 0), length - max(-after, 0))  # what is left goes around
    size = len(kept)
    return [kept[i % size] for i in range(-max(before, 0), size + max(after, 0))]


_PLACES = {"reflect": _reflected, "replicate": _replicated, "circular": _wrapped}
_CHECKS = {"reflect": _check_reflected, "replicate": _check_replicated, "circular": _check_wrapped}

DERIVATIVES = [
    derivative(
        "constant_pad_nd", input=lambda g, pad: constant_pad_nd(g, tuple([-n for n in pad]))
    ),
]
