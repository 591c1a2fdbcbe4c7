"""Kernels that read and write at positions."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import bfloat16, float16
from tensorplug.core.tensor.shapes import Shape

from ..tables import KernelTable
from .namespace import ArrayNamespace

_REST = (...,)


def full_key(indices: list[Any]) -> tuple[Any, ...]:
    """Return index arrays and None (a whole dimension) as the library's key."""
    return tuple([slice(None) if item is None else item for item in indices])


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp
    _add_gather_kernels(namespace, table)

    @table.kernel()
    def basic_index(input: Any, key: tuple[Any, ...]) -> Any:
        return input[key + _REST]  # the Ellipsis makes a view of a single element, too

    @table.kernel()
    def place(input: Any, shape: Shape, key: tuple[Any, ...]) -> Any:
        result = xp.zeros(shape, input.dtype)
        result[key] = input
        return result

    @table.kernel()
    def index(input: Any, indices: list[Any]) -> Any:
        try:
            if len(indices) == 1:
                return xp.take(input, indices[0], 0)
            return input[full_key(indices)]
        except IndexError as error:
            raise out_of_bounds(error) from None

    def index_put(
        input: Any, indices: list[Any], values: Any, accumulate: bool, out: Any = None
    ) -> Any:
        if out is None:
            out = xp.array(input, order="C", copy=True)
        elif out is not input:
            out[...] = input
        key = full_key(indices)
        try:
            if accumulate and indices:
                xp.add.at(out, key, values)
            elif accumulate:
                out += values
            else:
                out[key] = values
        except IndexError as error:
            raise out_of_bounds(error) from None
        return out

    table.add("index_put", index_put, out=True)


def out_of_bounds(error: IndexError) -> IndexError:
    """Return the library's complaint in torch's words."""
    return IndexError(str(error).replace("axis", "dimension"))


def _add_gather_kernels(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add the kernels that gather from and scatter to positions along a dimension."""
    xp = namespace.xp

    def checked(input: Any, dim: int, index: Any) -> tuple[Any, Any]:
        """Return input and index with at least one dimension, positions known to exist."""
        if not input.ndim:
            input = input.reshape(1)
        if not index.ndim:
            index = index.reshape(1)
        if namespace.checks_bounds and index.size:
            size = input.shape[dim]
            low, high = int(index.min()), int(index.max())
            if low < 0 or high >= size:
                raise RuntimeError(
                    f"index {low if low < 0 else high} is out of bounds for dimension {dim} with size "
                    f"{size}"
                )
        return input, index

    def key(index: Any, dim: int) -> tuple[Any, ...]:
        """Return the library's key of the elements that `index` names along `dim`."""
        ndim = index.ndim
        return tuple(
            [
                index
                if d == dim
                else xp.arange(size).reshape([size if n == d else 1 for n in range(ndim)])
                for d, size in enumerate(index.shape)
            ]
        )

    def target_of(input: Any, out: Any) -> Any:
        if out is None:
            return xp.array(input, order="C", copy=True)
        if out is not input:
            out[...] = input
        return out

    def accumulate(at: Any, target: Any, indices: tuple[Any, ...], values: Any) -> None:
        """Apply ``ufunc.at``; along one flat dimension it is many times as fast."""
        if target.flags.c_contiguous and target.ndim > 1:
            flat = indices[-1]
            step = 1
            for d in range(target.ndim - 2, -1, -1):
                step *= target.shape[d + 1]
                flat = flat + indices[d] * step
            shape = flat.shape
            values = xp.broadcast_to(values, shape).reshape(-1)
            at(target.reshape(-1), flat.reshape(-1), values)
        else:
            at(target, indices, values)

    @table.kernel()
    def gather(input: Any, dim: int, index: Any) -> Any:
        shape = index.shape
        if not index.size:
            return xp.empty(shape, input.dtype)
        input, index = checked(input, dim, index)
        return xp.ascontiguousarray(input[key(index, dim)]).reshape(shape)

    def scatter(
        input: Any, dim: int, index: Any, src: Any, reduce: str | None, out: Any = None
    ) -> Any:
        if reduce is not None:
            return scatter_reduce(input, dim, index, src, reduce, True, out)
        result = target_of(input, out)
        if index.size:
            target, index = checked(result, dim, index)
            target[key(index, dim)] = src
        return result

    def scatter_add(input: Any, dim: int, index: Any, src: Any, out: Any = None) -> Any:
        result = target_of(input, out)
        if index.size:
            target, index = checked(result, dim, index)
            accumulate(xp.add.at, target, key(index, dim), src)
        return result

    ways = {"sum": "add", "prod": "multiply", "mean": "add", "amax": "maximum", "amin": "minimum"}

    def neutral(dtype: Any, reduce: str) -> Any:
        """Return the number that changes nothing in a reduction."""
        if reduce in ("sum", "mean"):
            return 0
        if reduce == "prod":
            return 1
        highest = reduce == "amin"
        if dtype.kind == "b":
            return highest
        if dtype.kind in "iu":
            limits = xp.iinfo(dtype)
            return limits.max if highest else limits.min
        return xp.inf if highest else -xp.inf

    def scatter_reduce(
        input: Any,
        dim: int,
        index: Any,
        src: Any,
        reduce: str,
        include_self: bool,
        out: Any = None,
    ) -> Any:
        result = target_of(input, out)
        if not index.size:
            return result
        target, index = checked(result, dim, index)
        indices = key(index, dim)
        if not include_self:
            target[indices] = neutral(target.dtype, reduce)
        accumulate(getattr(xp, ways[reduce]).at, target, indices, src)
        if reduce == "mean":
            count = xp.zeros(target.shape, "int64")
            if include_self:
                count += 1
            accumulate(xp.add.at, count, indices, 1)
            xp.maximum(count, 1, out=count)
            if target.dtype.kind in "iu":
                target[...] = target // count.astype(target.dtype)
            else:
                target[...] = target / count.astype(target.real.dtype)
        return result

    halves = (float16, bfloat16)
    for op, function in (("scatter_add", scatter_add), ("scatter_reduce", scatter_reduce)):
        table.add(op, function, out=True)
        table.add(op, namespace.through_float32(function), dtypes=halves)
    table.add("scatter", scatter, out=True)
