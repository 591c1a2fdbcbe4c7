"""Shapes: reshaping, joining, splitting, padding, and tensors made from sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.core.tensor.creation import tensor
from tensorplug.nn import functional as F

from ..registry import operator
from ..values import dtype_of

__all__: list[str] = []


@operator("Shape")
def shape(data: Tensor, *, start: int = 0, end: int | None = None) -> Tensor:
    return tensor(list(data.shape[start:end]), dtype=dtype_of(7), device="cpu")


@operator("Size")
def size(data: Tensor) -> Tensor:
    return tensor(data.numel(), dtype=dtype_of(7), device="cpu")


@operator("Reshape", host=("shape",))
def reshape(data: Tensor, shape: Sequence[int], *, allowzero: int = 0) -> Tensor:
    sizes = [data.shape[i] if n == 0 and not allowzero else n for i, n in enumerate(shape)]
    return data.reshape(sizes)


@operator("Flatten")
def flatten(input: Tensor, *, axis: int = 1) -> Tensor:
    rows = math.prod(input.shape[: axis + input.dim() if axis < 0 else axis])
    return input.reshape(rows, input.numel() // rows if rows else math.prod(input.shape[axis:]))


@operator("Squeeze", host=("axes",))
def squeeze(data: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    return ops.squeeze(data) if axes is None else ops.squeeze(data, tuple(axes))


@operator("Unsqueeze", host=("axes",))
def unsqueeze(data: Tensor, axes: Any) -> Tensor:
    axes = axes if isinstance(axes, list) else [axes]
    rank = data.dim() + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        data = ops.unsqueeze(data, axis)
    return data


@operator("Transpose")
def transpose(data: Tensor, *, perm: Sequence[int] | None = None) -> Tensor:
    return ops.permute(data, tuple(perm or reversed(range(data.dim()))))


@operator("Expand", host=("shape",))
def expand(input: Tensor, shape: Sequence[int]) -> Tensor:
    return ops.broadcast_to(input, ops.broadcast_shapes(tuple(input.shape), tuple(shape)))


@operator("Concat")
def concat(*inputs: Tensor, axis: int = 1) -> Tensor:
    rank = max(item.dim() for item in inputs)
    return ops.cat([item for item in inputs if item.dim() == rank], axis)


@operator("Split", host=("split",))
def split(
    input: Tensor,
    split: Sequence[int] | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    if split:
        return tuple(ops.split(input, list(split), axis))
    length = input.shape[axis]
    each = math.ceil(length / (num_outputs or n_outputs))
    sizes = [max(min(each, length - i * each), 0) for i in range(num_outputs or n_outputs)]
    return tuple(ops.split(input, sizes, axis))


@operator("Slice", host=("starts", "ends", "axes", "steps"))
def slice_(
    data: Tensor,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
) -> Tensor:
    axes = list(axes) if axes is not None else list(range(len(starts)))
    flipped: list[int] = []
    keys = [slice(None)] * data.dim()
    for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(starts), strict=True):
        axis %= data.dim()
        length = data.shape[axis]
        if step < 0:  # from behind: the same elements of the reversed tensor
            first, last, step = range(length)[start:end:step], None, -step
            flipped.append(axis)
            begin = length - 1 - first[0] if len(first) else 0
            last = length - first[-1] if len(first) else 0
            keys[axis] = slice(begin, last, step)
        else:
            keys[axis] = slice(start, end, step)
    return (ops.flip(data, flipped) if flipped else data)[tuple(keys)]


@operator("Tile", host=("repeats",))
def tile(input: Tensor, repeats: Sequence[int]) -> Tensor:
    return ops.tile(input, tuple(repeats))


@operator("Pad", host=("pads", "axes"))
def pad(
    data: Tensor,
    pads: Sequence[int],
    constant_value: Any = None,
    axes: Sequence[int] | None = None,
    *,
    mode: str = "constant",
    value: float = 0.0,
    paddings: Sequence[int] | None = None,
) -> Tensor:
    axes = [axis % data.dim() for axis in axes] if axes is not None else list(range(data.dim()))
    amounts = {axis: (pads[i], pads[i + len(axes)]) for i, axis in enumerate(axes)}
    for axis, (before, after) in amounts.items():  # negative ones cut off
        if before < 0 or after < 0:
            kept = data.shape[axis] + min(before, 0) + min(after, 0)
            data = ops.narrow(data, axis, max(-before, 0), kept)
    amounts = {a: (max(b, 0), max(e, 0)) for a, (b, e) in amounts.items() if b > 0 or e > 0}
    if mode == "constant":
        fill = value if constant_value is None else constant_value.item()
        flat = [n for axis in reversed(range(data.dim())) for n in amounts.get(axis, (0, 0))]
        return F.pad(data, flat, value=fill)
    for axis, (before, after) in amounts.items():
        places = _padded_places(data.shape[axis], before, after, mode, data.device)
        data = ops.index_select(data, axis, places)
    return data


def _padded_places(length: int, before: int, after: int, mode: str, device: Any) -> Tensor:
    """Return where along a dimension each element of the padded one comes from."""
    places = ops.arange(-before, length + after, device=device)
    if mode == "edge":
        return ops.clamp(places, 0, length - 1)
    if mode == "wrap":
        return ops.remainder(places, length)
    period = max(2 * (length - 1), 1)
    places = ops.remainder(places, period)
    return ops.where(places < length, places, period - places)


@operator("ConstantOfShape", host=("input",), placed=True)
def constant_of_shape(input: Sequence[int], *, value: Tensor | None = None, device: Any) -> Tensor:
    if value is None:
        return ops.zeros(tuple(input), dtype=dtype_of(1), device=device)
    return ops.full(tuple(input), value.item(), dtype=value.dtype, device=device)


@operator("Range", placed=True)
def range_(start: Tensor, limit: Tensor, delta: Tensor, *, stash_type: int = 1) -> Tensor:
    first, last, step = start.item(), limit.item(), delta.item()
    count = max(math.ceil((last - first) / step), 0)
    if start.dtype.is_floating_point:
        places = ops.arange(count, device=start.device, dtype=start.dtype)
        return (places * step + first).to(start.dtype)
    return ops.arange(first, first + count * step, step, dtype=start.dtype, device=start.device)


@operator("EyeLike")
def eye_like(input: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
    rows, columns = input.shape
    kind = input.dtype if dtype is None else dtype_of(dtype)
    down = ops.arange(rows, device=input.device)[:, None]
    across = ops.arange(columns, device=input.device)
    return (across - down == k).to(kind)


@operator("Trilu", host=("k",))
def trilu(input: Tensor, k: Any = None, *, upper: int = 1) -> Tensor:
    [diagonal] = k if isinstance(k, list) else [k or 0]
    return (ops.triu if upper else ops.tril)(input, diagonal)


@operator("DepthToSpace")
def depth_to_space(input: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, h, w = input.shape
    b = blocksize
    if mode == "CRD":
        return F.pixel_shuffle(input, b)
    blocks = input.reshape(n, b, b, c // (b * b), h, w)
    return blocks.permute(0, 3, 4, 1, 5, 2).reshape(n, c // (b * b), h * b, w * b)


@operator("SpaceToDepth")
def space_to_depth(input: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, h, w = input.shape
    b = blocksize
    if mode == "CRD":
        return F.pixel_unshuffle(input, b)
    blocks = input.reshape(n, c, h // b, b, w // b, b)
    return blocks.permute(0, 3, 5, 1, 2, 4).reshape(n, c * b * b, h // b, w // b)


@operator("ReverseSequence", host=("sequence_lens",))
def reverse_sequence(
    input: Tensor, sequence_lens: Sequence[int], *, batch_axis: int = 1, time_axis: int = 0
) -> Tensor:
    rows = ops.movedim(input, (batch_axis, time_axis), (0, 1))
    length = rows.shape[1]
    lengths = tensor(sequence_lens, device=input.device)[:, None]
    places = ops.arange(length, device=input.device)
    source = ops.where(places < lengths, lengths - 1 - places, places)
    batch = ops.arange(rows.shape[0], device=input.device)[:, None]
    return ops.movedim(rows[batch, source], (0, 1), (batch_axis, time_axis))


@operator("CenterCropPad", host=("shape",))
def center_crop_pad(
    input_data: Tensor, shape: Sequence[int], *, axes: Sequence[int] | None = None
) -> Tensor:
    axes = list(range(input_data.dim())) if axes is None else axes
    for wanted, axis in zip(shape, axes, strict=True):
        axis %= input_data.dim()
        there = input_data.shape[axis]
        if wanted < there:
            input_data = ops.narrow(input_data, axis, (there - wanted) // 2, wanted)
        elif wanted > there:
            before = (wanted - there) // 2
            behind = 2 * (input_data.dim() - 1 - axis)
            flat = [0] * behind + [before, wanted - there - before]
            input_data = F.pad(input_data, flat)
    return input_data
