"""The "meta" device: tensors with shape, strides and dtype but no data.

Ops on it run the declared rules only. Views have real strides, so layout questions have real answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..dispatch import op_registry
from ..dispatch.keys import DispatchKey, dispatch_key
from ..dispatch.layers import note_layout
from ..dispatch.op_registry import Op, Spec
from ..tensor.base import TensorBase, new_tensor
from ..tensor.layout import preserved_strides, strides_in_order
from ..tensor.shapes import Shape, broadcast_shapes, contiguous_strides, view_strides
from .device import META
from .dtypes import ALL_DTYPES, STORED, DType, Number
from .runtime import DeviceRuntime


class MetaArray:
    """Shape, strides, offset and dtype of an array that is not there."""

    __slots__ = ("dtype", "offset", "shape", "strides")

    def __init__(
        self, shape: Shape, dtype: DType, strides: Shape | None = None, offset: int = 0
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.strides = contiguous_strides(shape) if strides is None else strides
        self.offset = offset

    def __repr__(self) -> str:
        return f"MetaArray({self.shape}, {self.dtype.name})"

    @property
    def nbytes(self) -> int:
        """Bytes that the data would take."""
        return math.prod(self.shape) * self.dtype.itemsize


class MetaRuntime(DeviceRuntime):
    """The runtime of the meta device."""

    type = "meta"
    array_type = MetaArray
    dtypes = (*ALL_DTYPES, *STORED)
    capabilities = frozenset({"float64", "float16", "bfloat16", "complex", "views", "in_place"})

    def dtype(self, array: MetaArray) -> DType:
        """Return the dtype of `array`."""
        return array.dtype

    def strides(self, array: MetaArray) -> Shape:
        """Return the strides of `array` in elements."""
        note_layout()
        return array.strides

    def storage_offset(self, array: MetaArray) -> int:
        """Return the offset of `array` in elements."""
        note_layout()
        return array.offset

    def empty(self, shape: Shape, dtype: DType, index: int) -> MetaArray:
        """Return an array without data."""
        return MetaArray(shape, dtype)

    def scalar(self, value: Number, dtype: DType, index: int) -> MetaArray:
        """Return a 0-d array without data."""
        return MetaArray((), dtype)

    def copy_into(self, target: MetaArray, source: MetaArray) -> None:
        """Do nothing: there is no data."""

    def from_host(self, array: Any, dtype: DType, index: int) -> MetaArray:
        """Forget the data."""
        return MetaArray(tuple(array.shape), dtype)

    def to_host(self, array: MetaArray) -> Any:
        """Raise: there is no data."""
        raise NotImplementedError(
            "Cannot copy out of meta tensor; no data! Tensor.item() cannot be called on meta tensors; a "
            "module gets memory by Module.to_empty(device=...), a tensor by empty_like(tensor, device=...)"
        )

    def copy_from(self, array: Any, source: DeviceRuntime, index: int) -> MetaArray:
        """Forget another device's data."""
        return MetaArray(tuple(array.shape), source.dtype(array))


RUNTIME = MetaRuntime()


def empty_meta(shape: Shape, dtype: DType, strides: Shape | None = None) -> Any:
    """Return a meta tensor of a shape and dtype, row by row unless strides are given."""
    return new_tensor(MetaArray(shape, dtype, strides), dispatch_key(META, dtype), shape)


def pointwise_kernel(op: Op, key: DispatchKey) -> Callable[..., Any]:
    """Return the meta device's raw callable for an op."""
    if op.name == "clone":  # by which a leaf's gradient becomes its own
        return lambda array: MetaArray(array.shape, array.dtype, array.strides)
    if not op.pointwise:
        raise NotImplementedError(f"op {op.name!r} has no raw form on the meta device")

    def run(*arrays: MetaArray, out: MetaArray | None = None) -> MetaArray:
        result = key.results[op.index]
        shape = broadcast_shapes(*[array.shape for array in arrays])
        return MetaArray(shape, (result or key).dtype, _combined(shape, arrays))

    return run


def results(op: Op, spec: Spec, raw: list[Any]) -> Any:
    """Return what a kernel would return for a spec."""
    if op.view:
        return view_of(op, raw[0], tuple(raw[1:]))
    arrays = []
    for shape, dtype in spec.outputs:
        if shape is None:
            raise RuntimeError(
                f"{op.name}: the output's shape depends on the data, which a meta tensor lacks"
            )
        strides = None
        if op.pointwise or op.elementwise:
            strides = _combined(shape, [value for value in raw if type(value) is MetaArray])
        elif op.keeps_order:
            strides = preserved_strides(shape, raw[0].strides)
        arrays.append(MetaArray(shape, dtype, strides))
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def lay_out(result: Any, values: Sequence[Any]) -> None:
    """Give the new result of a pointwise op the strides that its operands lead to."""
    shape = result._shape
    if result._view is not None or any([value is result for value in values]):
        return
    arrays = [value._array for value in values if isinstance(value, TensorBase)]
    if all([type(array) is MetaArray for array in arrays]):
        strides = _combined(shape, arrays) or contiguous_strides(shape)
        if strides != result._array.strides:
            result._array = MetaArray(shape, result._array.dtype, strides)


def _combined(shape: Shape, arrays: Sequence[MetaArray]) -> Shape | None:
    """Return the strides of a pointwise op's result, None for row by row.

    As NumPy has it (``order="K"``): the operands' order of memory, if they agree on one.
    """
    rows = contiguous_strides(shape)
    if 0 in shape or all([a.strides == rows for a in arrays if a.shape == shape]):
        return None
    steps = [_spread(array, shape) for array in arrays]
    order: list[int] = []
    for dim in range(len(shape) - 1, -1, -1):
        index = len(order)
        for before in range(index - 1, -1, -1):
            verdict = [s[order[before]] > s[dim] for s in steps if s[order[before]] and s[dim]]
            if not verdict:
                continue
            if not all(verdict):
                break
            index = before
        order.insert(index, dim)
    return strides_in_order(shape, tuple(order))


def _spread(array: MetaArray, shape: Shape) -> Shape:
    """Return the strides of an array broadcast to a shape: 0 along what has one place only."""
    steps = [step if n > 1 else 0 for n, step in zip(array.shape, array.strides, strict=True)]
    return (0,) * (len(shape) - len(steps)) + tuple(steps)


def view_of(op: Op, array: MetaArray, values: tuple[Any, ...]) -> MetaArray:
    """Return what a view op makes of an array.

    A view op of an extension has no rule for strides here; its output counts as contiguous.
    """
    rule = _VIEWS.get(op.name)
    if rule is not None:
        return rule(array, *values)
    tensor = new_tensor(array, dispatch_key(META, array.dtype), array.shape)
    shape, dtype = op.function(tensor, *values).outputs[0]
    return MetaArray(shape or (), dtype)


def view_ops() -> tuple[str, ...]:
    """Return the names of the view ops that core declares."""
    return tuple([name for name in _VIEWS if op_registry.has_op(name)])


# --- views ------------------------------------------------------------------------------------


def _view(array: MetaArray, shape: Shape) -> MetaArray:
    strides = view_strides(array.shape, array.strides, shape)
    return MetaArray(shape, array.dtype, strides, array.offset)


def _permute(array: MetaArray, dims: Shape) -> MetaArray:
    return MetaArray(
        tuple([array.shape[d] for d in dims]),
        array.dtype,
        tuple([array.strides[d] for d in dims]),
        array.offset,
    )


def _expand(array: MetaArray, shape: Shape) -> MetaArray:
    lead = len(shape) - len(array.shape)
    strides = [0] * lead
    for size, stride, target in zip(array.shape, array.strides, shape[lead:], strict=True):
        strides.append(stride if size == target else 0)
    return MetaArray(shape, array.dtype, tuple(strides), array.offset)


def _as_strided(
    array: MetaArray, shape: Shape, strides: Shape, offset: int, layout: Any = None
) -> MetaArray:
    return MetaArray(shape, array.dtype, strides, offset)


def _basic_index(array: MetaArray, key: tuple[Any, ...]) -> MetaArray:
    shape: list[int] = []
    strides: list[int] = []
    offset = array.offset
    dim = 0
    for item in key:
        if item is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = array.shape[dim], array.strides[dim]
        dim += 1
        if isinstance(item, slice):
            start, stop, step = item.indices(size)
            shape.append(len(range(start, stop, step)))
            strides.append(stride * step)
            offset += start * stride
        else:
            offset += item * stride
    shape.extend(array.shape[dim:])
    strides.extend(array.strides[dim:])
    return MetaArray(tuple(shape), array.dtype, tuple(strides), offset)


def _unfold(array: MetaArray, dim: int, size: int, step: int) -> MetaArray:
    if not array.shape:
        return MetaArray((size,), array.dtype, (1,), array.offset)
    shape, strides = list(array.shape), list(array.strides)
    shape[dim] = (shape[dim] - size) // step + 1
    strides[dim] *= step
    strides.append(array.strides[dim])
    return MetaArray((*shape, size), array.dtype, tuple(strides), array.offset)


def _diagonal(array: MetaArray, offset: int, dim1: int, dim2: int) -> MetaArray:
    rows, columns = array.shape[dim1], array.shape[dim2]
    length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    rest = [d for d in range(len(array.shape)) if d not in (dim1, dim2)]
    down, across = array.strides[dim1], array.strides[dim2]
    start = array.offset + (offset * across if offset >= 0 else -offset * down) * (length > 0)
    return MetaArray(
        (*[array.shape[d] for d in rest], length),
        array.dtype,
        (*[array.strides[d] for d in rest], down + across),
        start,
    )


def _view_as_real(array: MetaArray) -> MetaArray:
    strides = tuple([2 * stride for stride in array.strides])
    return MetaArray((*array.shape, 2), array.dtype.to_real(), (*strides, 1), 2 * array.offset)


def _view_as_complex(array: MetaArray) -> MetaArray:
    strides = tuple([stride // 2 for stride in array.strides[:-1]])
    return MetaArray(array.shape[:-1], array.dtype.to_complex(), strides, array.offset // 2)


def _view_dtype(array: MetaArray, dtype: DType) -> MetaArray:
    old, new = array.dtype.itemsize, dtype.itemsize
    if old == new:
        return MetaArray(array.shape, dtype, array.strides, array.offset)
    shape = (*array.shape[:-1], array.shape[-1] * old // new)
    strides = tuple([stride * old // new for stride in array.strides[:-1]])
    return MetaArray(shape, dtype, (*strides, 1), array.offset * old // new)


_VIEWS: dict[str, Callable[..., MetaArray]] = {
    "view": _view,
    "permute": _permute,
    "expand": _expand,
    "as_strided": _as_strided,
    "unfold": _unfold,
    "diagonal": _diagonal,
    "basic_index": _basic_index,
    "view_as_real": _view_as_real,
    "view_as_complex": _view_as_complex,
    "view_dtype": _view_dtype,
}
