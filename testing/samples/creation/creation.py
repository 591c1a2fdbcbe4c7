"""Records of creation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import (
    ALL_DTYPES,
    BOOL,
    COMPLEX,
    FLOATS,
    INTEGRAL,
    DType,
    float32,
    int8,
    int64,
    uint8,
)
from tensorplug.core.dispatch.op_registry import get_op

from ...records import ErrorSample, OpRecord, Sample

_NUMBERS = (*INTEGRAL, *FLOATS)
_NOT_TORCH = {"torch": "not an op of torch's"}
_MEMORY = {"out": "its elements may hold anything", "torch": "its elements may hold anything"}
_SHAPES = ((), (3,), (2, 0), (2, 3))


def _sized(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in _SHAPES:
        yield Sample(shape, dtype=dtype, device=make.device)
    yield Sample(2, 3, dtype=dtype, device=make.device)
    yield Sample(size=(2,), dtype=dtype, device=make.device)


def _shape_of(sizes: tuple[Any, ...], size: Any) -> tuple[int, ...]:
    if size is not None:
        return tuple(size)
    return tuple(sizes[0]) if sizes and isinstance(sizes[0], tuple) else sizes


def _filled(value: int) -> Callable[..., Any]:
    return lambda *sizes, size=None, **_: np.full(_shape_of(sizes, size), value)


def _filled_like(value: int) -> Callable[..., Any]:
    return lambda input, **_: np.full(input.shape, value)


def _size_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(-1), RuntimeError, "negative")
    yield ErrorSample(Sample(2.5), TypeError, "ints")
    yield ErrorSample(Sample(), TypeError, "size")
    yield ErrorSample(Sample(2, dtype="float"), TypeError, "dtype")


def _like(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in _SHAPES:
        yield Sample(make(*shape))
    yield Sample(make(2), dtype=float32)


def _like_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample([1, 2]), TypeError, "Tensor")


def _new(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in _SHAPES:
        yield Sample(make(2), shape)
    yield Sample(make(2), 2, 3)
    yield Sample(make(2), size=(2,), dtype=float32)


def _new_filled(value: int) -> Callable[..., Any]:
    return lambda input, *sizes, size=None, **_: np.full(_shape_of(sizes, size), value)


def _values(dtype: DType) -> list[Any]:
    if dtype.category == BOOL:
        return [True, False, 3]
    values: list[Any] = [0, 1, 7, True]
    if dtype.category >= 2:
        values += [1.5, -2.25, float("inf"), float("nan")]
    if dtype.category == COMPLEX:
        values.append(1 + 2j)
    return values


def _as(dtype: DType, value: Any) -> Any:
    return bool(value) if dtype.category == BOOL else value


def _linspace_new(make: Any, dtype: DType) -> Iterator[Sample]:
    for start, end, steps in ((0.0, 1.0, 2), (-3.0, 2.0, 7), (5.0, 1.0, 30), (0.0, 1.0, 0)):
        yield Sample(start, end, steps, dtype, Device(make.device))


def _eye_new(make: Any, dtype: DType) -> Iterator[Sample]:
    for rows, columns in ((3, 3), (2, 5), (5, 2), (0, 2), (2, 0), (1, 1)):
        yield Sample(rows, columns, dtype, Device(make.device))


def _full(make: Any, dtype: DType) -> Iterator[Sample]:
    for value in _values(dtype):
        yield Sample((2, 3), value, dtype=dtype, device=make.device)
    yield Sample((), 1, dtype=dtype, device=make.device)
    yield Sample((0, 2), 1, dtype=dtype, device=make.device)


def _full_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(2, 1), TypeError, "tuple of ints")
    yield ErrorSample(Sample((-2,), 1), RuntimeError, "negative")
    yield ErrorSample(Sample((2,), "a"), TypeError, "number")
    yield ErrorSample(Sample((2,), 300, dtype=uint8), RuntimeError, "overflow")
    yield ErrorSample(Sample((2,), -129, dtype=int8), RuntimeError, "overflow")
    yield ErrorSample(Sample((2,), float("nan"), dtype=int64), RuntimeError, "overflow")
    yield ErrorSample(Sample((2,), 1e300, dtype=float32), RuntimeError, "overflow")
    yield ErrorSample(Sample((2,), 1j, dtype=float32), RuntimeError, "overflow")


def _fill_new(make: Any, dtype: DType) -> Iterator[Sample]:
    for value in _values(dtype):
        yield Sample((2, 3), value, dtype, Device(make.device))
    yield Sample((), 1, dtype, Device(make.device))
    yield Sample((0, 2), 1, dtype, Device(make.device))


def _arange_new(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(0, 1, 5, dtype, Device(make.device))
    yield Sample(10, -2, 4, dtype, Device(make.device))
    yield Sample(0.0, 0.5, 4, dtype, Device(make.device))
    yield Sample(0, 1, 0, dtype, Device(make.device))


def _arange_new_reference(start: Any, step: Any, count: int, dtype: DType, device: Any) -> Any:
    numbers = np.asarray(start + step * np.arange(count), np.float64)
    return np.trunc(numbers) if dtype.category == 1 else numbers


def _arange(make: Any, dtype: DType) -> Iterator[Sample]:
    options: dict[str, Any] = {"dtype": dtype, "device": make.device}
    yield Sample(5, **options)
    yield Sample(0, **options)
    yield Sample(2, 9, 3, **options)
    yield Sample(9, 2, -3, **options)
    yield Sample(start=1, end=4, **options)
    if dtype.is_floating_point:
        yield Sample(0, 1, 0.25, **options)
        yield Sample(-1.0, 1.0, 0.5, **options)


def _arange_reference(*bounds: Any, start: Any = 0, end: Any = None, **_: Any) -> Any:
    return np.arange(*bounds) if bounds else np.arange(start, end)


def _arange_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(1, 5, 0), RuntimeError, "nonzero")
    yield ErrorSample(Sample(5, 1), RuntimeError, "inconsistent")
    yield ErrorSample(Sample(float("nan")), RuntimeError, "unsupported range")
    yield ErrorSample(Sample(1j), RuntimeError, "real")
    yield ErrorSample(Sample(3, dtype=ALL_DTYPES[0]), NotImplementedError, "bool")


def _range(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(0, 4, dtype=dtype, device=make.device)
    yield Sample(1, 8, 3, dtype=dtype, device=make.device)


def _linspace(make: Any, dtype: DType) -> Iterator[Sample]:
    for arguments in ((0, 8, 5), (8, 0, 5), (3, 3, 4), (2, 5, 1), (2, 5, 0), (0, 7, 8)):
        yield Sample(*arguments, dtype=dtype, device=make.device)


def _linspace_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(0, 1, -1), RuntimeError, "non-negative")
    yield ErrorSample(Sample(0, 1, 2.5), TypeError, "steps")
    yield ErrorSample(Sample(0, 1j, 3, dtype=float32), RuntimeError, "complex")


def _logspace(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(0, 4, 5, base=2, dtype=dtype, device=make.device)
    yield Sample(0, 2, 3, dtype=dtype, device=make.device)
    yield Sample(0, 2, 0, dtype=dtype, device=make.device)


def _eye(make: Any, dtype: DType) -> Iterator[Sample]:
    for arguments in ((3,), (2, 4), (4, 2), (0,), (2, 0)):
        yield Sample(*arguments, dtype=dtype, device=make.device)


def _eye_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(-1), RuntimeError, "n must be greater")
    yield ErrorSample(Sample(2, -1), RuntimeError, "m must be greater")
    yield ErrorSample(Sample(2.0), TypeError, "int")


def _strided(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample((2, 3), (1, 2), dtype=dtype, device=make.device)
    yield Sample((2, 3), (3, 1), dtype=dtype, device=make.device)
    yield Sample((0, 3), (3, 1), dtype=dtype, device=make.device)


def _strided_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample((2, 3), (1,)), RuntimeError, "dimensionality")
    yield ErrorSample(Sample((2,), (-1,)), RuntimeError, "negative")


def _check_strides(result: Any, sample: Sample) -> None:
    size, stride = sample.args[-2:]
    assert tuple(result.shape) == size
    if result.numel() and "views" in result._key.runtime.capabilities:
        assert result.stride() == stride


def _new_strided(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2), (2, 3), (1, 2))
    yield Sample(make(2), (0, 3), (3, 1))


def _check_size(result: Any, sample: Sample) -> None:
    arguments = dict(sample.kwargs)
    size = arguments.get("size")
    first = sample.args[:1]
    if first and hasattr(first[0], "dtype"):
        expected = _shape_of(sample.args[1:], size)
        if len(sample.args) == 1 and size is None:
            expected = tuple(first[0].shape)
    else:
        expected = _shape_of(sample.args, size)
    assert tuple(result.shape) == expected
    assert result._base is None


def _scalar(make: Any, dtype: DType) -> Iterator[Sample]:
    for value in _values(dtype):
        yield Sample(value, dtype=dtype, device=make.device)


def _data(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(1), [[0, 1], [1, 0]])
    yield Sample(make(1), 1)
    yield Sample(make(1), make(2, 3))
    yield Sample(make(1), [])
    yield Sample(make(1), [[], []])


_CORE = "tensorplug"  # the records below are core's own ops, all of them without derivative


def _record(op: str, samples: Any, reference: Any = None, **options: Any) -> OpRecord:
    assert get_op(op).owner == _CORE
    return OpRecord(op, samples, reference, gradient=False, **options)


RECORDS = [
    _record(
        "fill_new",
        _fill_new,
        lambda shape, value, dtype, device: np.full(shape, _as(dtype, value)),
        skips=_NOT_TORCH,
    ),
    _record(
        "arange_new", _arange_new, _arange_new_reference, dtypes=_NUMBERS[4:], skips=_NOT_TORCH
    ),
    _record("zeros", _sized, _filled(0), errors=_size_errors),
    _record("ones", _sized, _filled(1), errors=_size_errors),
    _record("empty", _sized, check=_check_size, errors=_size_errors, skips=_MEMORY),
    _record(
        "full",
        _full,
        lambda size, value, dtype, **_: np.full(size, _as(dtype, value)),
        errors=_full_errors,
    ),
    _record("empty_strided", _strided, check=_check_strides, errors=_strided_errors, skips=_MEMORY),
    _record(
        "scalar_tensor",
        _scalar,
        lambda s, dtype, **_: np.asarray(_as(dtype, s)),
        never_empty="the result has no dimensions",
    ),
    _record("zeros_like", _like, _filled_like(0), errors=_like_errors),
    _record("ones_like", _like, _filled_like(1), errors=_like_errors),
    _record("empty_like", _like, check=_check_size, errors=_like_errors, skips=_MEMORY),
    _record(
        "full_like",
        lambda make, dtype: iter(
            [Sample(make(2, 3), 1), Sample(make(), True), Sample(make(0, 2), 1)]
        ),
        lambda input, value, **_: np.full(input.shape, value),
        errors=lambda make: iter([ErrorSample(Sample([1], 2), TypeError, "Tensor")]),
    ),
    _record("new_zeros", _new, _new_filled(0), torch="Tensor.new_zeros"),
    _record("new_ones", _new, _new_filled(1), torch="Tensor.new_ones"),
    _record("new_empty", _new, check=_check_size, skips=_MEMORY),
    _record(
        "new_full",
        lambda make, dtype: iter(
            [Sample(make(1), (2, 3), 1), Sample(make(1), (), 0), Sample(make(1), (0, 2), 1)]
        ),
        lambda input, size, value: np.full(size, value),
        torch="Tensor.new_full",
    ),
    _record("new_empty_strided", _new_strided, check=_check_strides, skips=_MEMORY),
    _record(
        "new_tensor",
        _data,
        lambda input, data: np.asarray(data),
        torch="Tensor.new_tensor",
        skips={"torch": "torch warns of copying a tensor", "meta": "data has a device"},
    ),
    _record("arange", _arange, _arange_reference, dtypes=_NUMBERS, errors=_arange_errors),
    _record(
        "range",
        _range,
        lambda *bounds, **_: np.arange(*((1, 9, 3) if len(bounds) == 3 else (5,))),
        dtypes=_NUMBERS,
        errors=lambda make: iter([ErrorSample(Sample(3, 1), RuntimeError, "inconsistent")]),
        skips={"torch": "torch warns that it is deprecated"},
        never_empty="the first number is always there",
    ),
    _record(
        "linspace",
        _linspace,
        lambda start, end, steps, **_: np.linspace(start, end, steps),
        dtypes=(*_NUMBERS, *ALL_DTYPES[-2:]),
        errors=_linspace_errors,
    ),
    _record(
        "logspace",
        _logspace,
        lambda start, end, steps, base=10, **_: np.logspace(start, end, steps, base=base),
        dtypes=(*_NUMBERS, *ALL_DTYPES[-2:]),
    ),
    _record(
        "linspace_new",
        _linspace_new,
        lambda start, end, steps, dtype, device: np.linspace(start, end, steps),
        dtypes=FLOATS,
        torch="",
    ),
    _record(
        "eye_new",
        _eye_new,
        lambda rows, columns, dtype, device: np.eye(rows, columns),
        torch="",
    ),
    _record("eye", _eye, lambda n, m=None, **_: np.eye(n, m), errors=_eye_errors),
]
