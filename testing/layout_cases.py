"""Layouts: what ops make of permuted and channels-last inputs is memory that can be shown by strides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType, float32
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.core.ops.copying import clone
from tensorplug.core.ops.strided import as_strided
from tensorplug.core.tensor.host import from_numpy
from tensorplug.core.tensor.tensor import Tensor

from .cases import _equal_results, assert_same, map_tensors, samples_of, tensors_in
from .comparison import as_exact
from .device_cases import missing
from .records import OpRecord

Order = Callable[[int], Sequence[int]]

# The order in which the dimensions of a tensor of so many lie in memory, the outermost first. Three that are
# permuted like this lie neither in C nor in Fortran order.
LAYOUTS: dict[str, Order] = {
    "permuted": lambda ndim: (ndim - 1, *range(ndim - 1)),
    "channels_last": lambda ndim: (0, *range(2, ndim), 1),
}


def in_order(tensor: Tensor, order: Sequence[int]) -> Tensor:
    """Return a new tensor of the same elements, whose dimensions lie in memory in an order."""
    back = sorted(range(tensor.ndim), key=order.__getitem__)
    return clone(tensor).permute(tuple(order)).contiguous().permute(tuple(back))


def dtypes_of(record: OpRecord, device: str) -> tuple[DType, ...]:
    """Return the dtype in which layouts are tried: float32, for which most kernels are, or the widest."""
    there = [dtype for dtype in record.dtypes if not missing(device, dtype)]
    there.sort(key=lambda dtype: (dtype is float32, dtype.is_floating_point, dtype.itemsize))
    return tuple(there[-1:])


def check_layouts(
    record: OpRecord, device: str, dtype: DType, layouts: Mapping[str, Order] = LAYOUTS
) -> int:
    """Compare results for each layout of the inputs, and show the memory of each by strides."""
    if "noncontiguous" in record.skips:
        return 0
    op = get_op(record.op)
    count = 0
    for sample in samples_of(record, device, dtype):
        if max([t.ndim for t in tensors_in((sample.args, sample.kwargs))], default=0) < 2:
            continue
        expected = op.call(*sample.args, **sample.kwargs)
        for layout, order in layouts.items():

            def laid(tensor: Tensor, order: Order = order) -> Tensor:
                return in_order(tensor, order(tensor.ndim)) if tensor.ndim >= 2 else clone(tensor)

            args, kwargs = map_tensors((sample.args, sample.kwargs), laid)
            result = op.call(*args, **kwargs)
            where = f"{record.op} {sample}, {layout}"
            if record.check is None or record.reference is not None:
                _equal_results(record, sample, result, expected, layout)
            for shown in tensors_in((result,)):
                check_memory_shown(shown, where)
                count += 1
    return count


def places_of(tensor: Tensor) -> Any:
    """Return for each element its place in the storage, as the strides tell it."""
    places: Any = np.full((), tensor.storage_offset())
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        places = places[..., None] + np.arange(size) * stride
    return places


def check_memory_shown(tensor: Tensor, where: str) -> None:
    """Show a tensor's storage by strides: it has the tensor's elements, and what is written there arrives."""
    if not tensor.numel():
        return
    places = places_of(tensor)
    reach = int(places.max()) + 1
    memory = as_strided(tensor, (reach,), (1,), 0)
    told = f"{where}: a result of strides {tensor.stride()} and offset {tensor.storage_offset()}"
    assert_same(
        as_exact(tensor), as_exact(memory)[places], f"{told}: shown by strides, it is another"
    )
    numbers = (np.arange(reach) % 2).astype(bool)
    memory.copy_(from_numpy(numbers).to(memory.device))
    written = as_exact(tensor).astype(bool)
    assert_same(written, numbers[places], f"{told}: what is written by strides does not arrive")
