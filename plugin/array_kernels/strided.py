"""Kernels that show memory by strides, or as other numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core.device.dtypes import DType
from tensorplug.core.tensor.shapes import Shape

from ..tables import KernelTable
from .namespace import ArrayNamespace
from .rearranging import copied_like


def written(view: Callable[..., Any], copied: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return the kernel of a copy that holds `src` at a view of it; `copied` copies row by row."""

    def kernel(input: Any, src: Any, *where: Any) -> Any:
        result = copied_like(input, input, copied)
        view(result, *where)[...] = src
        return result

    return kernel


def _places(xp: Any, shape: Shape, strides: Shape, offset: int) -> Any:
    """Return where in the storage each element of a strided array is."""
    places = xp.full(shape, offset, xp.int64)
    for dim, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        steps = xp.arange(size) * stride
        places += steps.reshape([size if d == dim else 1 for d in range(len(shape))])
    return places


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp
    native = namespace.native
    strided = xp.lib.stride_tricks.as_strided

    @table.kernel()
    def as_strided(
        input: Any, size: Shape, stride: Shape, storage_offset: int, layout: Any = None
    ) -> Any:
        owner = input
        base = input.base
        while base is not None:
            if isinstance(base, type(input)):
                owner = base
            base = getattr(base, "base", None)  # NumPy's as_strided puts an object in between
        # What owns memory may lie in it in any order of dimensions, and with gaps if it came from elsewhere.
        steps = zip(owner.shape, owner.strides, strict=True)
        reach = (
            sum([(n - 1) * step for n, step in steps]) // owner.itemsize + 1 if owner.size else 0
        )
        memory = strided(owner, (reach,), (owner.itemsize,)).view(input.dtype)
        last = storage_offset + sum([(n - 1) * s for n, s in zip(size, stride, strict=True)])
        if 0 not in size and (last >= memory.size or storage_offset < 0):
            raise RuntimeError(
                f"as_strided(): setStorage: sizes {list(size)}, strides {list(stride)}, storage offset "
                f"{storage_offset}, and itemsize {input.itemsize} requiring a storage size of "
                f"{(last + 1) * input.itemsize} are out of bounds for storage of size {memory.nbytes}"
            )
        start = memory[min(storage_offset, memory.size) :]
        return strided(start, size, tuple([step * input.itemsize for step in stride]))

    @table.kernel()
    def as_strided_backward(
        g: Any, input_shape: Shape, size: Shape, stride: Shape, storage_offset: int, layout: Any
    ) -> Any:
        own = _places(xp, input_shape, *layout)
        shown = _places(xp, size, stride, storage_offset)
        last = max([int(places.max()) for places in (own, shown) if places.size], default=0)

        def totals(parts: Any) -> Any:
            # In double precision: not all libraries add in place in each dtype.
            weights = xp.asarray(parts, xp.float64).reshape(-1)
            return xp.bincount(shown.reshape(-1), weights, minlength=1 + last)

        storage = totals(g.real) + 1j * totals(g.imag) if g.dtype.kind == "c" else totals(g)
        count = xp.bincount(own.reshape(-1), minlength=1 + last)
        # Elements of the input that share memory share its gradient.
        return xp.asarray(storage[own] / count[own], g.dtype)

    @table.kernel()
    def unfold(input: Any, dimension: int, size: int, step: int) -> Any:
        if not input.ndim:
            return input.reshape(1)[:size]
        shape, strides = list(input.shape), list(input.strides)
        shape[dimension] = (shape[dimension] - size) // step + 1
        strides.append(strides[dimension])
        strides[dimension] *= step
        return strided(input, (*shape, size), tuple(strides))

    @table.kernel()
    def diagonal(input: Any, offset: int, dim1: int, dim2: int) -> Any:
        result = input.diagonal(offset, dim1, dim2)
        # NumPy marks diagonals as read-only, for reasons of its history.
        if not getattr(result.flags, "writeable", True) and input.flags.writeable:
            result.flags.writeable = True
        return result

    def select(input: Any, dim: int, index: int) -> Any:
        return input[(*(slice(None),) * dim, index, ...)]

    def sliced(input: Any, dim: int, start: int, end: int, step: int) -> Any:
        return input[(*(slice(None),) * dim, slice(start, end, step))]

    def rows(array: Any) -> Any:
        return xp.array(array, order="C", copy=True)

    for op, view in (
        ("select_scatter", select),
        ("slice_scatter", sliced),
        ("diagonal_scatter", diagonal),
        ("as_strided_scatter", as_strided),
    ):
        table.add(op, written(view, rows))

    @table.kernel()
    def diag_embed(input: Any, offset: int, dim1: int, dim2: int) -> Any:
        side = input.shape[-1] + abs(offset)
        rest = iter(input.shape)
        shape = [side if d in (dim1, dim2) else next(rest) for d in range(input.ndim + 1)]
        result = xp.zeros(shape, input.dtype)
        diagonal(result, offset, dim1, dim2)[...] = input
        return result

    @table.kernel()
    def view_as_real(input: Any) -> Any:
        return input[..., None].view(input.real.dtype)

    @table.kernel()
    def view_as_complex(input: Any) -> Any:
        double = input.dtype.itemsize == 8
        return input.view("complex128" if double else "complex64")[..., 0]

    @table.kernel()
    def view_dtype(input: Any, dtype: DType) -> Any:
        return input.view(native(dtype))
