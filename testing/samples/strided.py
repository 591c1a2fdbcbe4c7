"""Records of views by strides, and of copies with a view written to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import COMPLEXES, FLOATS, DType, float32, float64, int32, uint8

from ..records import OpRecord, Sample
from .shape import calls, wrong


def _as_strided(result: Any, sample: Sample) -> None:
    """Check the elements of a view of a tensor that is the start of its storage."""
    a, size, stride, *offset = sample.args
    assert result.shape == tuple(size)
    if a.storage_offset() == 0 and a.is_contiguous():
        flat = a.detach().reshape(-1)
        for place in np.ndindex(*size):
            where = sum(n * s for n, s in zip(place, stride, strict=True)) + sum(offset)
            assert result[place].item() == flat[where].item()


def _unfold(a: Any, dim: int, size: int, step: int) -> Any:
    if not a.ndim:
        return a.reshape(1)[:size]
    windows = np.lib.stride_tricks.sliding_window_view(a, size, dim) if size else None
    if windows is None:
        shape = list(a.shape)
        shape[dim] = a.shape[dim] // step + 1
        return np.empty((*shape, 0), a.dtype)
    return windows[(*[slice(None)] * (dim % a.ndim), slice(None, None, step))]


def _as_strided_backward(
    g: Any,
    input_shape: tuple[int, ...],
    size: tuple[int, ...],
    stride: tuple[int, ...],
    storage_offset: int,
    layout: tuple[tuple[int, ...], int],
) -> Any:
    def places(shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> dict[Any, int]:
        return {
            at: offset + sum(n * s for n, s in zip(at, strides, strict=True))
            for at in np.ndindex(*shape)
        }

    own = places(input_shape, *layout)
    result = np.zeros(input_shape, g.dtype)
    for at, place in own.items():
        shown = [
            g[other]
            for other, there in places(size, stride, storage_offset).items()
            if there == place
        ]
        result[at] = sum(shown) / list(own.values()).count(place)
    return result


def _diag_embed(a: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    side = a.shape[-1] + abs(offset)
    result = np.zeros((*a.shape[:-1], side, side), a.dtype)
    for n in range(a.shape[-1]):
        result[..., n + max(-offset, 0), n + max(offset, 0)] = a[..., n]
    return np.moveaxis(result, (-2, -1), (dim1, dim2))


def _select_scatter(a: Any, src: Any, dim: int, index: int) -> Any:
    result = a.copy()
    np.moveaxis(result, dim, 0)[index] = src
    return result


def _slice_scatter(
    a: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    result = a.copy()
    np.moveaxis(result, dim, 0)[start:end:step] = np.moveaxis(src, dim, 0)
    return result


def _diagonal_scatter(a: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    result = a.copy()
    for n in range(src.shape[-1]):
        np.moveaxis(result, (dim1, dim2), (0, 1))[n + max(-offset, 0), n + max(offset, 0)] = src[
            ..., n
        ]
    return result


def _strided_scatter(a: Any, src: Any, size: Any, stride: Any, offset: int = 0) -> Any:
    flat = a.copy().reshape(-1)
    for place in np.ndindex(*size):
        flat[sum(n * s for n, s in zip(place, stride, strict=True)) + offset] = src[place]
    return flat.reshape(a.shape)


def _bytes(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4), dtype)
    yield Sample(make(), uint8 if dtype.itemsize == 1 else dtype)
    yield Sample(make(0, 4), dtype)
    if dtype is float32:
        yield Sample(make(2, 3), int32)


def _pairs(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2))
    yield Sample(make(3, 2))
    yield Sample(make(0, 2))


_LAYOUT = {"noncontiguous": "the result shows how the input lies in memory"}


RECORDS = [
    OpRecord(
        "as_strided",
        calls(
            ((3, 4), (2, 3), (1, 2)), ((3, 4), (2,), (5,), 1), ((4,), (), (), 2), ((4,), (0,), (1,))
        ),
        check=_as_strided,
        errors=wrong(
            (RuntimeError, "out of bounds for storage", (3,), (2,), (3,)),
            (RuntimeError, "mismatch in length", (3,), (2,), (1, 1)),
            (RuntimeError, "Negative strides", (3,), (2,), (-1,)),
        ),
        skips=_LAYOUT,
    ),
    OpRecord(
        "as_strided_backward",
        calls(
            ((2, 3), (3, 4), (2, 3), (1, 2), 0, ((4, 1), 0)),
            ((2, 3), (3, 4), (2, 3), (1, 1), 1, ((1, 3), 0)),
            ((4,), (2, 2), (4,), (2,), 0, ((0, 1), 3)),
            ((), (4,), (), (), 2, ((1,), 0)),
            ((0,), (4,), (0,), (1,), 0, ((1,), 0)),
            ((2,), (0,), (2,), (1,), 0, ((1,), 0)),
        ),
        _as_strided_backward,
        dtypes=FLOATS,
    ),
    OpRecord(
        "unfold",
        calls(
            ((7,), 0, 3, 2),
            ((3, 5), -1, 2, 1),
            ((4, 2), 0, 4, 1),
            ((), 0, 1, 1),
            ((3, 4), 1, 1, 3),
            ((0, 4), 1, 2, 2),
        ),
        _unfold,
        errors=wrong(
            (RuntimeError, "maximum size", (3,), 0, 4, 1),
            (RuntimeError, "must be > 0", (3,), 0, 2, 0),
        ),
        torch="Tensor.unfold",
    ),
    OpRecord(
        "diagonal",
        calls(((3, 4),), ((3, 4), 1), ((3, 4), -2), ((2, 3, 4), 0, 1, -1), ((3, 4), 9), ((0, 3),)),
        np.diagonal,
        errors=wrong(
            (RuntimeError, "cannot be identical", (2, 2), 0, 1, 1),
            (IndexError, "out of range", (3,)),
        ),
    ),
    OpRecord("diag_embed", calls(((3,),), ((2, 3), -1), ((2, 3), 1, 0, 2), ((0,),)), _diag_embed),
    OpRecord(
        "diag",
        calls(((3,),), ((3,), 1), ((3, 4),), ((3, 4), -1), ((0,),), ((0,), 2), ((0, 3),)),
        np.diag,
        errors=wrong((RuntimeError, "1D or 2D", (1, 2, 3))),
    ),
    OpRecord("diagflat", calls(((2, 2),), ((3,), -1), ((),), ((0, 2),)), np.diagflat),
    OpRecord(
        "view_as_real",
        calls(((3, 2),), ((),), ((0,),)),
        lambda a: np.stack([a.real, a.imag], -1),
        dtypes=COMPLEXES,
    ),
    OpRecord(
        "view_as_complex",
        _pairs,
        lambda a: a[..., 0] + 1j * a[..., 1],
        dtypes=(float32, float64),
        errors=wrong(
            (RuntimeError, "last dimension of size 2", (3,)),
            (RuntimeError, "one or more dimensions", ()),
        ),
        skips=_LAYOUT,
    ),
    OpRecord(
        "view_dtype",
        _bytes,
        check=lambda result, sample: None,
        gradient=False,
        torch="",
        skips=_LAYOUT,
    ),
    OpRecord(
        "select_scatter",
        calls(([(3, 4), (4,)], 0, 1), ([(3, 4), (3,)], -1, -1), ([(0, 4), (0,)], 1, 2)),
        _select_scatter,
    ),
    OpRecord(
        "slice_scatter",
        calls(([(3, 4), (2, 4)], 0, 1), ([(3, 4), (3, 2)], 1, None, None, 2), ([(3,), (0,)], 0, 3)),
        _slice_scatter,
    ),
    OpRecord(
        "diagonal_scatter",
        calls(
            ([(3, 3), (3,)],),
            ([(3, 4), (3,)], 1),
            ([(2, 3, 4), (2, 3)], 0, 1, 2),
            ([(0, 3), (0,)],),
        ),
        _diagonal_scatter,
    ),
    OpRecord(
        "as_strided_scatter",
        calls(
            ([(6,), (2, 2)], (2, 2), (3, 1)),
            ([(6,), (2,)], (2,), (2,), 1),
            ([(6,), (0,)], (0,), (1,)),
        ),
        _strided_scatter,
    ),
]
