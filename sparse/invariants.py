"""What must hold of the parts of a sparse tensor, and functions that look at it alone."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import int64
from tensorplug.core.tensor.shapes import Shape

from .layouts import sparse_csr
from .ops.sparse import rows_of
from .structure import flat_places


def check_within(indices: Any, shape: Shape, name: str) -> None:
    """Refuse coordinates, (dims, nnz), that are not in the shape."""
    if not indices.numel():
        return
    low, high = indices.amin(1).tolist(), indices.amax(1).tolist()
    for dim, (least, most) in enumerate(zip(low, high, strict=True)):
        if least < 0:
            raise RuntimeError(f"{name}(): found negative index {least} for dim {dim}")
        if most >= shape[dim]:
            raise RuntimeError(
                f"{name}(): size is inconsistent with indices: for dim {dim}, size is {shape[dim]} but "
                f"found index {most}"
            )


def check_coalesced(indices: Any, shape: Shape, name: str) -> None:
    """Refuse coordinates within the shape that are out of order, or there twice."""
    flat = flat_places(indices, shape)
    if bool((flat[1:] <= flat[:-1]).any()):
        raise RuntimeError(
            f"{name}(): cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor: "
            "places have to be in order, each of them once; leave is_coalesced out"
        )


def check_rows(starts: Any, columns: Any, shape: Shape, name: str) -> None:
    """Refuse rows that do not lie one after another, and columns outside of the shape."""
    if int(starts[0]):
        raise _broken(name, "crow_indices[..., 0] == 0", f"got {int(starts[0])}")
    nnz = columns._shape[0]
    if int(starts[-1]) != nnz:
        raise _broken(name, "crow_indices[..., -1] == nnz", f"got {int(starts[-1])}, nnz={nnz}")
    if bool((starts[1:] < starts[:-1]).any()):
        rule = "0 <= crow_indices[..., 1:] - crow_indices[..., :-1] <= ncols"
        raise _broken(name, rule, f"crow_indices must not decrease, got {starts.tolist()}")
    if nnz and (int(columns.min()) < 0 or int(columns.max()) >= shape[1]):
        found = f"columns from {int(columns.min())} to {int(columns.max())}, ncols={shape[1]}"
        raise _broken(name, "0 <= col_indices < ncols", found)


def check_columns_ordered(starts: Any, columns: Any, shape: Shape, name: str) -> None:
    """Refuse rows, which lie one after another, whose columns are not in order or there twice."""
    places = rows_of(starts, columns).to(int64) * shape[1] + columns
    if bool((places[1:] <= places[:-1]).any()):
        rule = (
            "col_indices[..., crow_indices[..., i - 1]:crow_indices[..., i]] for all i = 1, ..., nrows are "
            "sorted and distinct along the last dimension values"
        )
        raise _broken(name, rule, f"got {columns.tolist()} in rows from {starts.tolist()}")


def _broken(name: str, rule: str, found: str) -> RuntimeError:
    return RuntimeError(f"{name}(): `{rule}` is not satisfied: {found}")


def validate_coo(
    indices: Any,
    values: Any,
    size: Any,
    is_coalesced: bool | None = None,
    check_pinning: Any = None,
) -> None:
    """Raise what ``sparse_coo_tensor`` of these arguments raises when it looks at all of them."""
    from .creation import sparse_coo_tensor  # it needs this module

    if indices.dtype is not int64:
        raise RuntimeError(
            f"expected indices of int64, scalar type Long, but found {indices.dtype}"
        )
    sparse_coo_tensor(indices, values, size, is_coalesced=is_coalesced, check_invariants=True)


def validate_compressed(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any,
    layout: Any,
    check_pinning: Any = None,
) -> None:
    """Raise what ``sparse_compressed_tensor`` of these arguments raises when it looks at all of them."""
    from .creation import sparse_compressed_tensor  # it needs this module

    sparse_compressed_tensor(
        compressed_indices, plain_indices, values, size, layout=layout, check_invariants=True
    )


def validate_csr(
    crow_indices: Any, col_indices: Any, values: Any, size: Any, check_pinning: Any = None
) -> None:
    """Raise what ``sparse_csr_tensor`` of these arguments raises when it looks at all of them."""
    validate_compressed(crow_indices, col_indices, values, size, sparse_csr)
