"""Products over the op records: what the conformance suite runs.

Each function checks one variant of one op and returns how many single comparisons it made.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from tensorplug.autograd import gradcheck, gradgradcheck
from tensorplug.core.device.device import META, Device
from tensorplug.core.device.dtypes import DType, can_cast, complex128, float64
from tensorplug.core.dispatch.choice import describe_kernel
from tensorplug.core.dispatch.keys import canonical_device, dispatch_key
from tensorplug.core.dispatch.op_registry import Op, get_op
from tensorplug.core.dispatch.out_dtypes import is_exact
from tensorplug.core.errors import DTypeNotAvailableError
from tensorplug.core.ops.creation.creation_like import ones_like, zeros_like
from tensorplug.core.tensor.tensor import Tensor

from . import making
from .comparison import as_exact, assert_close, default_tolerances
from .records import ErrorSample, OpRecord, Sample

LAYOUTS = ("contiguous", "transposed", "strided", "offset")


def layouts_of(record: OpRecord) -> tuple[str, ...]:
    """Return the layouts in which a record's tensors are tried."""
    return LAYOUTS[:1] if "noncontiguous" in record.skips else LAYOUTS


class Maker:
    """Makes the tensors of samples, on the device and of the dtype under test."""

    def __init__(self, device: str, dtype: DType, requires_grad: bool = False) -> None:
        self.device = device
        self.dtype = dtype
        self.requires_grad = requires_grad

    def __call__(self, *shape: Any, dtype: DType | None = None, **options: Any) -> Tensor:
        """Return a tensor; `options` are those of ``make_tensor``."""
        chosen = dtype or self.dtype
        inexact = chosen.is_floating_point or chosen.is_complex
        if not inexact and chosen.name != "bool":  # samples mean both bounds to be there
            low, high = options.get("low"), options.get("high")
            if low is not None:
                options["low"] = math.floor(low) if chosen.is_signed else max(math.floor(low), 0)
            if high is not None:
                options["high"] = math.floor(high) + 1
        elif not inexact:
            options.update(low=None, high=None)
        wanted = self.requires_grad and inexact
        options.setdefault("requires_grad", wanted)
        return making.make_tensor(*shape, dtype=chosen, device=self.device, **options)


def samples_of(record: OpRecord, device: str, dtype: DType) -> list[Sample]:
    """Return the record's samples for a dtype, always the same ones."""
    making.seed(f"{record.op} {dtype.name}")
    return list(record.samples(Maker(device, dtype), dtype))


def map_tensors(value: Any, function: Callable[[Tensor], Any]) -> Any:
    """Return `value` with `function` applied to each tensor in it."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[map_tensors(item, function) for item in value])
    if isinstance(value, (list, tuple)):
        return type(value)([map_tensors(item, function) for item in value])
    if isinstance(value, dict):
        return {key: map_tensors(item, function) for key, item in value.items()}
    return value


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in a value."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def with_layout(tensor: Tensor, layout: str) -> Tensor:
    """Return a tensor of the same elements laid out differently in memory."""
    if layout == "transposed" and tensor.ndim >= 2:
        other = tensor.detach().transpose(-1, -2).contiguous().transpose(-1, -2)
    elif layout == "strided" and tensor.ndim >= 1:
        wide = tensor.detach().unsqueeze(-1).expand(*tensor.shape, 2).contiguous()
        other = wide[..., 0]
    elif layout == "offset" and tensor.ndim >= 1:
        rows = tensor.detach().unsqueeze(0).expand(3, *tensor.shape).contiguous()
        other = rows[1]
    else:
        return tensor
    return other.requires_grad_(tensor.requires_grad)


def call(op: Op, sample: Sample, layout: str = "contiguous", **options: Any) -> Any:
    """Call an op with a sample's arguments in some layout."""
    args = map_tensors(sample.args, lambda t: with_layout(t, layout))
    kwargs = map_tensors(sample.kwargs, lambda t: with_layout(t, layout))
    return op.call(*args, **kwargs, **options)


def _native(value: Any) -> Any:
    return map_tensors(value, lambda tensor: as_exact(tensor).copy())


def check_forward(record: OpRecord, device: str, dtype: DType) -> int:
    """Compare with the reference, in all layouts; inputs have to stay as they were."""
    op = get_op(record.op)
    count = 0
    for sample in samples_of(record, device, dtype):
        before = _native((sample.args, sample.kwargs))
        results = None
        for layout in layouts_of(record):
            result = call(op, sample, layout)
            count += 1
            if results is None:
                results = result
                written = f"{record.op} {sample} wrote to its inputs"
                assert_same(before, _native((sample.args, sample.kwargs)), written)
                _check_reference(record, sample, result, dtype)
            elif record.check is None or record.reference is not None:
                _equal_results(record, sample, result, results, layout)
        after = _native((sample.args, sample.kwargs))
        assert_same(before, after, f"{record.op} {sample} wrote to its inputs")
    return count


def assert_same(before: Any, after: Any, message: str) -> None:
    """Raise AssertionError unless two structures of NumPy arrays are equal to the bit."""
    if isinstance(before, (list, tuple)):
        for one, other in zip(before, after, strict=True):
            assert_same(one, other, message)
    elif isinstance(before, dict):
        assert_same(list(before.values()), list(after.values()), message)
    elif isinstance(before, np.ndarray):
        assert np.array_equal(before, after, equal_nan=before.dtype.kind in "fc"), message


def _check_reference(record: OpRecord, sample: Sample, result: Any, dtype: DType) -> None:
    if record.check is not None:
        record.check(result, sample)
    if record.reference is None:
        return
    with np.errstate(all="ignore"):
        expected = record.reference(*_native(sample.args), **_native(sample.kwargs))
    results = result if isinstance(result, (list, tuple)) else (result,)
    references = expected if isinstance(expected, (list, tuple)) else (expected,)
    assert len(results) == len(references), f"{record.op} {sample}: {len(results)} results"
    for got, wanted in zip(results, references, strict=True):
        if not isinstance(got, Tensor):
            assert got == wanted, f"{record.op} {sample}: {got!r}, expected {wanted!r}"
            continue
        array = np.asarray(wanted)
        assert tuple(got.shape) == array.shape, (
            f"{record.op} {sample}: shape {list(got.shape)}, expected {list(array.shape)}"
        )
        rtol, atol = _tolerance(record, dtype, got.dtype)
        with np.errstate(all="ignore"):
            actual = as_exact(got)
            limited = _limited(array, got.dtype)
        assert_close(
            actual,
            limited,
            rtol=rtol,
            atol=atol,
            equal_nan=True,
            check_dtype=False,
            msg=(lambda text: f"{record.op} {dtype.name} {sample}: {text}"),
        )


def _limited(array: Any, dtype: DType) -> Any:
    """Return a reference value as the result's dtype can hold it: too large is infinite."""
    if dtype.name in ("float16", "float32", "complex64"):
        return array.astype(dtype.name).astype(np.complex128 if dtype.is_complex else np.float64)
    return array


def _tolerance(record: OpRecord, *dtypes: DType) -> tuple[float, float]:
    rtol, atol = default_tolerances(*dtypes)
    for dtype in dtypes:
        rtol = max(rtol, record.rtol.get(dtype.name, 0.0))
        atol = max(atol, record.atol.get(dtype.name, 0.0))
    return rtol, atol


def _equal_results(record: OpRecord, sample: Sample, result: Any, first: Any, variant: str) -> None:
    for got, wanted in zip(tensors_in((result,)), tensors_in((first,)), strict=True):
        rtol, atol = _tolerance(record, got.dtype)
        assert_close(
            got,
            wanted,
            rtol=rtol,
            atol=atol,
            equal_nan=True,
            msg=lambda text: f"{record.op} {sample} {variant}: {text}",
        )


def check_meta(record: OpRecord, device: str, dtype: DType) -> int:
    """Compare shapes and dtypes on the meta device with those of real results."""
    op = get_op(record.op)
    count = 0
    for sample in samples_of(record, device, dtype):
        result = call(op, sample)
        args = map_tensors(sample.args, lambda t: t.to(META))
        kwargs = map_tensors(sample.kwargs, lambda t: t.to(META))
        if "device" in kwargs:
            kwargs["device"] = "meta"
        meta = op.call(*args, **kwargs)
        for got, wanted in zip(tensors_in((meta,)), tensors_in((result,)), strict=True):
            assert got.shape == wanted.shape, f"{record.op} {sample}: {got.shape} on meta"
            assert got.dtype is wanted.dtype, f"{record.op} {sample}: {got.dtype} on meta"
            count += 1
    return count


def check_memory(record: OpRecord, device: str, dtype: DType) -> int:
    """Write to results: neither an input nor another result may change with them.

    And let go of them: what a kernel keeps of them is lost to everybody else.
    """
    op = get_op(record.op)
    count = 0
    for sample in samples_of(record, device, dtype):
        before = _native((sample.args, sample.kwargs))
        results = list(tensors_in((call(op, sample),)))
        others = list(tensors_in((call(op, sample),)))
        kept = _native(others)
        for result in results:
            for value in (zeros_like(result), ones_like(result)):
                result._key.runtime.copy_into(result._array, value._array)
                after = _native((sample.args, sample.kwargs))
                assert_same(before, after, f"{record.op} {sample}: a result is an input's memory")
                # Of two calls, since a kernel might give the same memory twice.
                assert_same(kept, _native(others), f"{record.op} {sample}: results share memory")
            count += 1
        arrays = _watched(results, sample)
        result = value = None  # type: ignore[assignment]  # the last of each loop
        results.clear()
        kept = [array for watch in arrays if (array := watch()) is not None]
        assert not kept, (
            f"{record.op} {sample}: "
            f"{describe_kernel(op, dispatch_key(canonical_device(Device(device)), dtype))} "
            f"holds on to {len(kept)} of its results after the caller let go, so that their memory is "
            "never free again; keep no reference to what a kernel returns"
        )
    return count


def _watched(results: list[Tensor], sample: Sample) -> list[weakref.ref[Any]]:
    """Return weak references to the arrays of results, save those that the sample holds as well."""
    held = {id(tensor) for tensor in tensors_in((sample.args, sample.kwargs))}
    watched: list[weakref.ref[Any]] = []
    for result in results:
        if id(result) not in held:
            try:
                watched.append(weakref.ref(result._array))
            except TypeError:  # an array class without a place for them
                continue
    return watched


def check_out(record: OpRecord, device: str, dtype: DType) -> int:
    """Compare ``out=`` with the plain call; a wrong device or dtype of out has to raise."""
    op = get_op(record.op)
    count = 0
    for sample in samples_of(record, device, dtype):
        result = call(op, sample)
        if not isinstance(result, Tensor) or any(t is result for t in tensors_in(sample.args)):
            continue
        out = result.detach().clone() * 0 if result.dtype.category else ~result.clone()
        before = out.data_ptr()
        returned = call(op, sample, out=out)
        assert returned is out
        assert out.data_ptr() == before, f"{record.op} {sample}: out= got new memory"
        _equal_results(record, sample, out, result, "out=")
        count += 1
    return count


def check_inplace(record: OpRecord, device: str, dtype: DType) -> int:
    """Compare the in-place variant with the plain call."""
    op = get_op(record.op)
    if op.inplace is None:
        return 0
    count = 0
    for sample in samples_of(record, device, dtype):
        first = sample.args[0] if sample.args else None
        if not isinstance(first, Tensor):
            continue
        result = call(op, sample)
        if result.shape != first.shape or not can_cast(result.dtype, first.dtype):
            continue
        if result.dtype is not first.dtype and is_exact(op):
            continue
        for layout in layouts_of(record):
            target = with_layout(first.clone(), layout)
            version = target._version
            returned = getattr(target, op.inplace)(*sample.args[1:], **sample.kwargs)
            assert returned is target
            assert target._version > version, f"{op.inplace}: the version did not change"
            _equal_results(record, sample, target, result.to(first.dtype), f"in place, {layout}")
            count += 1
    return count


def check_errors(record: OpRecord, device: str) -> int:
    """Each error sample has to raise its error, with its message, and leave its inputs alone."""
    import re

    if record.errors is None:
        return 0
    op = get_op(record.op)
    count = 0
    making.seed(f"{record.op} errors")
    dtype = record.dtypes[-1] if float64 not in record.dtypes else float64
    for wrong in _until_a_missing_dtype(record.errors(Maker(device, dtype))):
        before = _native((wrong.sample.args, wrong.sample.kwargs))
        message = None
        try:
            op.call(*wrong.sample.args, **wrong.sample.kwargs)
        except wrong.error as error:
            message = str(error)
        assert message is not None, (
            f"{record.op} {wrong.sample} did not raise {wrong.error.__name__}"
        )
        assert re.search(wrong.match, message), (
            f"{record.op} {wrong.sample}: message {message!r} does not match {wrong.match!r}"
        )
        after = _native((wrong.sample.args, wrong.sample.kwargs))
        assert_same(before, after, f"{record.op} {wrong.sample} changed its inputs, then raised")
        count += 1
    return count


def _until_a_missing_dtype(samples: Iterable[ErrorSample]) -> Iterator[ErrorSample]:
    """Yield samples up to the first whose arguments the device cannot hold."""
    try:
        yield from samples
    except DTypeNotAvailableError:
        return


def _differentiable(sample: Sample) -> list[Tensor]:
    return [
        t
        for t in tensors_in((sample.args, sample.kwargs))
        if t.dtype.is_floating_point or t.dtype.is_complex
    ]


def gradient_cases(
    record: OpRecord,
    device: str,
    dtype: DType,
    layouts: tuple[str, ...] = LAYOUTS,
    largest: int = 64,
) -> Iterator[tuple[Sample, str, Callable[..., Any], tuple[Tensor, ...]]]:
    """Yield (sample, layout, function, points): what finite differences check.

    Samples whose points have more elements than `largest` take long; the smallest is checked anyway.
    """
    op = get_op(record.op)
    given = [(sample, _differentiable(sample)) for sample in samples_of(record, device, dtype)]
    sizes = [sum(point.numel() for point in points) for _, points in given]
    largest = max(largest, min([size for size in sizes if size], default=0))
    for (sample, points), size in zip(given, sizes, strict=True):
        if not points or size > largest:
            continue
        for layout in layouts if "noncontiguous" not in record.skips else layouts[:1]:
            if layout != "contiguous" and all(point.ndim < 2 for point in points):
                continue
            leaves = tuple(
                [
                    with_layout(point.detach().clone(), layout).detach().requires_grad_()
                    for point in points
                ]
            )
            replaced = {id(point): number for number, point in enumerate(points)}

            def function(
                *values: Tensor, sample: Sample = sample, replaced: dict[int, int] = replaced
            ) -> Any:
                def swap(tensor: Tensor) -> Tensor:
                    number = replaced.get(id(tensor))
                    return tensor if number is None else values[number]

                result = op.call(
                    *map_tensors(sample.args, swap), **map_tensors(sample.kwargs, swap)
                )
                return tuple(tensors_in((result,)))

            yield sample, layout, function, leaves


def check_gradient(record: OpRecord, device: str, dtype: DType) -> int:
    """Check first derivatives by finite differences."""
    count = 0
    for sample, layout, function, points in gradient_cases(record, device, dtype):
        if not any(out.requires_grad for out in function(*points)):
            continue
        try:
            gradcheck(function, points)
        except Exception as error:
            raise AssertionError(f"{record.op} {sample} {layout}: {error}") from error
        count += 1
    return count


def check_second_gradient(record: OpRecord, device: str, dtype: DType) -> int:
    """Check second derivatives by finite differences."""
    count = 0
    for sample, layout, function, points in gradient_cases(
        record, device, dtype, ("contiguous",), 24
    ):
        if not any(out.requires_grad for out in function(*points)):
            continue
        try:
            gradgradcheck(function, points)
        except Exception as error:
            raise AssertionError(f"{record.op} {sample} {layout}: {error}") from error
        count += 1
    return count


GRADIENT_DTYPES = (float64, complex128)
