"""What must hold of the parts of a sparse tensor, and functions that look at it alone."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import int32, int64, scalar_type
from tensorplug.core.tensor.layout import strided
from tensorplug.core.tensor.shapes import Shape
from tensorplug.core.tensor.tensor import Tensor

from .compressed import CompressedTensor
from .layouts import title
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


def check_given(shown: Any, starts: Any, plain: Any, values: Any) -> None:
    """Refuse tensors that are no parts of a compressed one, before they are converted."""
    names = shown.names
    given: Any = zip((names[1], names[0], "values"), (plain, starts, values), strict=True)
    for name, part in given:
        if isinstance(part, Tensor) and part.layout is not strided:
            raise RuntimeError(
                f"expected {name} to be a strided tensor but got {title(part.layout)} tensor"
            )
    if not isinstance(starts, Tensor) or not isinstance(plain, Tensor):
        return
    given = zip(reversed(names), (plain, starts), strict=True)
    for name, part in given:
        if part.dim() and part.shape[-1] > 1 and part.stride(-1) != 1:
            raise RuntimeError(f"expected {name} to be a contiguous tensor per batch")
    check_device(shown, starts, plain, values)
    _check_dtypes(shown, starts, plain)
    if starts.dtype not in (int32, int64):
        raise RuntimeError(
            f"{names[0]} and {names[1]} dtype must be Int or Long, but got {scalar_type(starts.dtype)}"
        )


def check_device(shown: Any, starts: Any, plain: Any, values: Any) -> None:
    """Refuse parts of several devices."""
    name, other = shown.names
    parts: Any = ((values, "values"), (plain, other))
    for first, beside in parts:
        if isinstance(first, Tensor) and first.device != starts.device:
            raise RuntimeError(
                f"device of {name} (={starts.device}) must match device of {beside} (={first.device})"
            )


def _check_dtypes(shown: Any, starts: Any, plain: Any) -> None:
    if starts.dtype is not plain.dtype:
        found = f"{scalar_type(starts.dtype)} and {scalar_type(plain.dtype)}"
        raise RuntimeError(  # "bot", as torch writes it
            f"{shown.names[0]} and {shown.names[1]} must have the same dtype, bot got {found}, respectively"
        )


def dims_of(
    shown: Any, starts: Any, plain: Any, values: Any, shape: Shape | None
) -> tuple[int, int]:
    """Return how many dimensions of a compressed tensor are of the batch, and how many are dense.

    Raises
    ------
    RuntimeError
        If its parts have other numbers of dimensions.
    """
    name, other = shown.names
    if not starts.dim():
        raise RuntimeError(f"{name} must have dimensionality >= 1 but got {starts.dim()}")
    if starts.dim() != plain.dim():
        raise RuntimeError(
            f"{name} and {other} dimensionalities must be equal but got {starts.dim()} and {plain.dim()}, "
            "respectively"
        )
    batch, block = starts.dim() - 1, 2 if shown.blocked else 0
    dense = values.dim() - batch - block - 1
    if dense < 0:
        raise RuntimeError(
            "values must have dimensionality > sum of batch and block dimensionalities "
            f"(={batch} + {block}) but got {values.dim()}"
        )
    if shape is not None and len(shape) != batch + 2 + dense:
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense dimensionalities "
            f"(={batch} + 2 + {dense}) but got {len(shape)}"
        )
    return batch, dense


def check_parts(shown: Any, starts: Any, plain: Any, values: Any, shape: Shape) -> None:
    """Refuse parts of a compressed tensor whose sizes do not fit each other and the shape."""
    batch, (name, other) = starts.dim() - 1, shown.names
    sizes = [list(part.shape[:batch]) for part in (starts, plain, values)]
    own = list(shape[:batch])
    if any([each != own for each in sizes]):
        raise RuntimeError(
            f"all batch dimensions of {name} (={sizes[0]}), {other} (={sizes[1]}), and values (={sizes[2]}) "
            f"must be equal to tensor batch dimensions (={own})"
        )
    counts = list(shape[batch : batch + 2])
    if shown.blocked:
        for number, size in enumerate(values.shape[batch + 1 : batch + 3]):
            if counts[number] % max(size, 1):
                raise RuntimeError(
                    f"tensor shape[{batch + number}] (={counts[number]}) must be divisible with "
                    f"blocksize[{number}] (={size}) as defined by values shape"
                )
            counts[number] //= max(size, 1)
    count = counts[0 if shown.by_rows else 1]
    if starts.shape[-1] != count + 1:
        kind = ("row" if shown.by_rows else "column") + (" block" if shown.blocked else "")
        raise RuntimeError(
            f"{name}.shape[-1] must be equal to the number of {kind}s + 1 (={count + 1}), but got "
            f"{starts.shape[-1]}"
        )
    nnz = values.shape[batch]
    if plain.shape[-1] != nnz:
        raise RuntimeError(
            f"{other}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{batch}], but got "
            f"{plain.shape[-1]}"
        )
    dense = tuple(values.shape[len(values.shape) - (len(shape) - batch - 2) :])
    if len(shape) > batch + 2 and tuple(shape[batch + 2 :]) != dense:
        raise RuntimeError(
            f"values has incorrect size: its dense dimensions are {list(dense)}, those of the tensor "
            f"{list(shape[batch + 2 :])}"
        )
    _check_dtypes(shown, starts, plain)


def check_indices(tensor: CompressedTensor) -> None:
    """Refuse rows or columns that do not lie one after another, and what lies outside of the shape."""
    starts, plain = tensor._starts, tensor._plain
    shown, nnz = tensor._layout, tensor._nnz()
    name, other = shown.names
    counts = [
        size // block
        for size, block in zip(
            tensor._shape[tensor._batch : tensor._batch + 2], tensor._blocksize, strict=True
        )
    ]
    number = 1 if shown.by_rows else 0
    limit, kind = counts[number], ("nrows", "ncols")[number]
    if plain.numel() and (int(plain.min()) < 0 or int(plain.max()) >= limit):
        found = f"from {int(plain.min())} to {int(plain.max())}, {kind}={limit}"
        raise _broken(f"0 <= {other} < {kind}", found)
    if bool((starts[..., 0] != 0).any()):
        raise _broken(f"{name}[..., 0] == 0", f"got {starts[..., 0].tolist()}")
    if bool((starts[..., -1] != nnz).any()):
        raise _broken(f"{name}[..., -1] == nnz", f"got {starts[..., -1].tolist()}, nnz={nnz}")
    lengths = starts[..., 1:] - starts[..., :-1]
    if bool((lengths < 0).any()):
        raise _broken(_bounded(name, kind), f"{name} must not decrease, got {starts.tolist()}")


def _bounded(name: str, kind: str) -> str:
    return f"0 <= {name}[..., 1:] - {name}[..., :-1] <= {kind}"


def check_order(tensor: CompressedTensor) -> None:
    """Refuse rows or columns that lie one after another, but hold something twice or out of order."""
    starts, plain, shown = tensor._starts, tensor._plain, tensor._layout
    name, other = shown.names
    number = 1 if shown.by_rows else 0
    limit = tensor._shape[tensor._batch + number] // tensor._blocksize[number]
    lengths = starts[..., 1:] - starts[..., :-1]
    if bool((lengths > limit).any()):
        kind = ("nrows", "ncols")[number]
        raise _broken(_bounded(name, kind), f"got {starts.tolist()}, {kind}={limit}")
    places = rows_of(starts, plain).to(int64) * limit + plain
    if bool((places[..., 1:] <= places[..., :-1]).any()):
        rule = (
            f"{other}[..., {name}[..., i - 1]:{name}[..., i]] for all i = 1, ..., "
            f"{'nrows' if shown.by_rows else 'ncols'} are sorted and distinct along the last dimension values"
        )
        raise _broken(rule, f"got {plain.tolist()} in those that begin at {starts.tolist()}")


def _broken(rule: str, found: str) -> RuntimeError:
    return RuntimeError(f"`{rule}` is not satisfied: {found}")


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
    from .compressed_creation import sparse_compressed_tensor  # it needs this module

    sparse_compressed_tensor(
        compressed_indices, plain_indices, values, size, layout=layout, check_invariants=True
    )
