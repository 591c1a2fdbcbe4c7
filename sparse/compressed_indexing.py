"""Parts of sparse tensors stored row by row or column by column, and their dimensions in another order."""

from __future__ import annotations

from typing import Any

from tensorplug.core.tensor.shapes import Shape

from .compressed import CompressedTensor


def kind_of(tensor: CompressedTensor, dim: int) -> str:
    """Return what torch calls a dimension: one of the batch, a sparse or a dense one."""
    batch = tensor._batch
    return "Batch" if dim < batch else "Sparse" if dim < batch + 2 else "Dense"


def permuted(tensor: CompressedTensor, order: list[int]) -> CompressedTensor:
    """Return a tensor with its dimensions in another order; rows that become columns stay where they are."""
    if tensor.dense_dim():
        raise RuntimeError(
            "transpose(): hybrid sparse compressed tensors with dense dimensions are not supported"
        )
    for dim, taken in enumerate(order):
        kinds = kind_of(tensor, dim), kind_of(tensor, taken)
        if kinds[0] != kinds[1]:
            raise RuntimeError(
                "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got "
                f"{dim}({kinds[0]}) and {taken}({kinds[1]})"
            )
    batch, shown = tensor._batch, tensor._layout
    turns = order[batch] != batch
    leading = [*order[:batch], batch]
    starts, plain, values = tensor._parts()
    if batch:
        starts, plain = starts.permute(*leading), plain.permute(*leading)
    block = [batch + 1, batch + 2] if shown.blocked else []
    wanted = [*leading, *(block[::-1] if turns else block)]
    if wanted != list(range(len(wanted))):
        values = values.permute(*wanted)
    shape = tuple([tensor._shape[dim] for dim in order])
    return CompressedTensor.of(shown.turned if turns else shown, starts, plain, values, shape)


def selected(tensor: CompressedTensor, dim: int, number: int) -> Any:
    """Return one slice along a dimension of the batch or a dense one; None along a sparse one.

    Raises
    ------
    RuntimeError
        If the dimension is one of several matrices.
    """
    batch, kind = tensor._batch, kind_of(tensor, dim)
    shape = (*tensor._shape[:dim], *tensor._shape[dim + 1 :])
    starts, plain, values = tensor._parts()
    if kind == "Batch":
        starts, plain = starts.select(dim, number), plain.select(dim, number)
        return CompressedTensor.of(tensor._layout, starts, plain, values.select(dim, number), shape)
    if kind == "Dense":
        place = dim + (1 if tensor._layout.blocked else -1)
        return CompressedTensor.of(
            tensor._layout, starts, plain, values.select(place, number), shape
        )
    if batch:
        raise RuntimeError(
            "select(): selecting sparse dimensions is not supported for batched sparse compressed tensors."
        )
    return None


def expanded(tensor: CompressedTensor, leading: Shape) -> CompressedTensor:
    """Return a batch of one and the same matrix."""
    parts = [part.expand((*leading, *part._shape)) for part in tensor._parts()]
    starts, plain, values = parts
    return CompressedTensor.of(tensor._layout, starts, plain, values, (*leading, *tensor._shape))
