"""Batching rules: what ops do with tensors of which one dimension is hidden.

A rule gets the op, the canonical arguments of the call on one sample, and the values with each batched
tensor as a :class:`LogicalTensor`, whose first dimension is the hidden one. It returns the result for all
samples, with that dimension first again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tensorplug.core.contexts import thread
from tensorplug.core.dispatch.op_registry import Op, Spec, handle
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.shapes import Shape, broadcast_shapes

from ..transforms.levels import call_like, map_tensors
from .batched_tensor import BatchLevel, is_batched, moved

_ALL = slice(None)
_ARANGE = handle("arange")
_STACK = handle("stack")
_CLONE = handle("clone")


class LogicalTensor:
    """A tensor whose first dimension is hidden.

    Attributes
    ----------
    tensor : Tensor
        All samples.
    shape : tuple of int
        Of one sample.
    """

    __slots__ = ("shape", "tensor")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.shape: Shape = tensor._shape[1:]


Rule: TypeAlias = Callable[[Op, Spec, tuple[Any, ...], int], Any]


def logical(value: Any, level: BatchLevel) -> Any:
    """Return a tensor as the rules of a level see it."""
    return LogicalTensor(moved(value.value, value.bdim, 0)) if is_batched(value, level) else value


def padded(tensor: Any, ndim: int) -> Any:
    """Return a batch of samples with dimensions of size 1 in front of each sample's, `ndim` in all."""
    missing = ndim + 1 - len(tensor._shape)
    return tensor[(_ALL, *((None,) * missing))] if missing > 0 else tensor


def full(value: Any, size: int) -> Any:
    """Return all samples of a value: of a tensor that is no batch, the same `size` times."""
    return value.tensor if isinstance(value, LogicalTensor) else value.expand((size, *value._shape))


def shape_of(value: Any) -> Shape:
    """Return the shape of one sample."""
    shape: Shape = value.shape if isinstance(value, LogicalTensor) else value._shape
    return shape


def batched(spec: Spec, size: int) -> Any:
    """Return the outputs of a spec, for all samples."""
    outputs: Any = spec.outputs
    return tuple([((size, *shape), dtype) for shape, dtype in outputs])


def _ndim(value: Any) -> int:
    if isinstance(value, LogicalTensor):
        return len(value.shape)
    return len(value._shape) if isinstance(value, TensorBase) else 0


# --- families ---------------------------------------------------------------------------------


def pointwise(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Line the samples up, and let broadcasting do the rest."""
    ndim = max([_ndim(value) for value in values])
    arranged = tuple(
        [padded(v.tensor, ndim) if isinstance(v, LogicalTensor) else v for v in values]
    )
    shapes = [v._shape for v in arranged if isinstance(v, TensorBase)]
    shape = shapes[0] if len(shapes) == 1 else broadcast_shapes(*shapes)
    dtype = spec.outputs[0][1]
    return call_like(op, arranged, spec, shape=shape, dtype=dtype)


def as_is(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Call the op as it is: it treats leading dimensions as a batch, or all elements alike."""
    arranged = tuple([v.tensor if isinstance(v, LogicalTensor) else v for v in values])
    return call_like(op, arranged, spec, outputs=batched(spec, size))


def leading(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Bring all tensors to as many dimensions: the op broadcasts leading ones as batches."""
    ndim = max([_ndim(value) for value in values])
    arranged = tuple(
        [
            padded(full(v, size), ndim) if isinstance(v, (LogicalTensor, TensorBase)) else v
            for v in values
        ]
    )
    return call_like(op, arranged, spec, outputs=batched(spec, size))


def over_dims(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """``op(input, dims, …)``: each dimension has moved on by one."""
    input, dims, *rest = values
    moved_on = tuple([d + 1 for d in dims])
    return call_like(op, (input.tensor, moved_on, *rest), spec, outputs=batched(spec, size))


def along_dim(position: int) -> Rule:
    """Return the rule for ops along one dimension, given at a place among the arguments."""

    def rule(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
        dim = values[position]
        scalar = not _ndim(values[0])
        arranged = []
        for index, value in enumerate(values):
            if index == position:
                value = dim if dim is None else (0 if scalar else dim) + 1
            elif isinstance(value, (LogicalTensor, TensorBase)):
                value = full(value, size)
                if scalar and value.ndim == 1:
                    value = value[:, None]  # a number counts as one dimension of size 1
            arranged.append(value)
        if not scalar:
            return call_like(op, tuple(arranged), spec, outputs=batched(spec, size))
        outputs = tuple([((size, *(shape or (1,))), dtype) for shape, dtype in spec.outputs])
        result = call_like(op, tuple(arranged), spec, outputs=outputs)
        shape = spec.outputs[0][0]
        return result.reshape((size, *(shape or ())))

    return rule


along_second_argument = along_dim(1)
along_third_argument = along_dim(2)


def extreme_place(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Rule of argmax and argmin."""
    input, dim, keepdim = values
    tensor = input.tensor
    if dim is None or not input.shape:
        flat = tensor.reshape((size, -1)) if tensor.numel() else tensor.reshape((size, 0))
        found = call_like(op, (flat, 1, False), spec, shape=(size,))
        return found.reshape((size, *spec.outputs[0][0]))  # type: ignore[misc]
    return call_like(op, (tensor, dim + 1, keepdim), spec, outputs=batched(spec, size))


def gather(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """``gather(input, dim, index)``: a number counts as one dimension of size 1."""
    input, dim, index = values
    tensor, indices = full(input, size), full(index, size)
    tensor = tensor[:, None] if tensor.ndim == 1 else tensor
    indices = indices[:, None] if indices.ndim == 1 else indices
    result = call_like(op, (tensor, dim + 1, indices), spec, shape=indices._shape)
    return result.reshape((size, *spec.outputs[0][0]))  # type: ignore[misc]


def copy(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """``copy(input, src)``: the result has the shape of input, whatever src has."""
    input, src = values
    whole = full(input, size)
    if isinstance(src, LogicalTensor):
        src = padded(src.tensor, len(whole._shape) - 1)
    return call_like(op, (whole, src), spec, shape=whole._shape)


def linalg_qr(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Call the op, which treats leading dimensions as a batch, but for the Q that nobody asked for."""
    input, mode = values
    outputs = batched(spec, size)
    if mode != "r":
        return call_like(op, (input.tensor, mode), spec, outputs=outputs)
    q, r = call_like(op, (input.tensor, mode), spec, outputs=(spec.outputs[0], outputs[1]))
    return q.expand((size, *q._shape)), r


def view_as_complex(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Copy where the hidden dimension keeps the two parts of a number from being neighbours."""
    tensor = values[0].tensor
    if tensor.stride(-1) != 1 or any(step % 2 for step in tensor.stride()[:-1]):
        tensor = tensor.contiguous()
    return call_like(op, (tensor,), spec, outputs=batched(spec, size))


# --- views ------------------------------------------------------------------------------------


def view(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Keep the hidden dimension as it is."""
    input, shape = values
    return call_like(op, (input.tensor, (size, *shape)), spec, outputs=batched(spec, size))


def permute(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Leave the hidden dimension in front."""
    input, dims = values
    order = (0, *[d + 1 for d in dims])
    return call_like(op, (input.tensor, order), spec, outputs=batched(spec, size))


def expand(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Put new dimensions behind the hidden one."""
    input, shape = values
    tensor = padded(input.tensor, len(shape))
    return call_like(op, (tensor, (size, *shape)), spec, outputs=batched(spec, size))


def _reach(shape: Shape, strides: Shape) -> int:
    """Return how far behind the first element the last one lies; -1 if there is none."""
    if 0 in shape:
        return -1
    return sum([(size - 1) * step for size, step in zip(shape, strides, strict=True)])


def as_strided(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Leave samples as far apart in memory as they are."""
    input, shape, strides, offset, _ = values
    tensor = input.tensor
    if tensor.stride(0) == 0 and size > 1:
        # The samples share memory, but neither tangents nor gradients.
        return one_by_one(op, spec, values, size)
    layout = (tensor.stride(), tensor.storage_offset())
    start = layout[1]
    end = start + _reach(input.shape, layout[0][1:])
    last = offset + _reach(shape, strides)
    if last >= offset and not (start <= offset and last <= end):
        raise RuntimeError(
            f"result = tensor.as_strided({list(shape)}, {list(strides)}, {offset}) can access memory outside "
            f"of `tensor`. `result` can access some memory in range [{offset}, {last}], but `tensor` can "
            f"only access some memory in range [{start}, {end}]. This is not supported inside of vmap, "
            "please try to rewrite the `as_strided` call as a sequence of view operations"
        )
    arranged = (tensor, (size, *shape), (layout[0][0], *strides), offset, layout)
    return call_like(op, arranged, spec, outputs=batched(spec, size))


def unfold(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Count the dimension from behind the hidden one."""
    input, dim, width, step = values
    if not input.shape:
        return input.tensor.reshape((size, *spec.outputs[0][0]))  # type: ignore[misc]
    return call_like(op, (input.tensor, dim + 1, width, step), spec, outputs=batched(spec, size))


def diagonal(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Count the dimensions from behind the hidden one."""
    input, offset, dim1, dim2 = values
    arranged = (input.tensor, offset, dim1 + 1, dim2 + 1)
    return call_like(op, arranged, spec, outputs=batched(spec, size))


def basic_index(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Leave the hidden dimension whole."""
    input, key = values
    return call_like(op, (input.tensor, (_ALL, *key)), spec, outputs=batched(spec, size))


def place(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Leave the hidden dimension whole."""
    input, shape, key = values
    arranged = (input.tensor, (size, *shape), (_ALL, *key))
    return call_like(op, arranged, spec, outputs=batched(spec, size))


# --- products ---------------------------------------------------------------------------------


def matmul(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Bring both to matrices whose leading dimensions broadcast."""
    left, right = values
    shape = (size, *spec.outputs[0][0])  # type: ignore[misc]
    a_ndim, b_ndim = _ndim(left), _ndim(right)
    if isinstance(left, LogicalTensor) and not isinstance(right, LogicalTensor) and b_ndim <= 2:
        # The batch is just more rows.
        return call_like(op, (left.tensor, right), spec, shape=shape)
    a = full(left, size) if isinstance(left, LogicalTensor) else left
    b = full(right, size) if isinstance(right, LogicalTensor) else right
    if a_ndim == 1:
        a = a[..., None, :]
    if b_ndim == 1:
        b = b[..., :, None]
    ndim = max(a_ndim, b_ndim, 2)
    if isinstance(left, LogicalTensor):
        a = padded(a, ndim)
    if isinstance(right, LogicalTensor):
        b = padded(b, ndim)
    batch = broadcast_shapes(a._shape[:-2], b._shape[:-2])
    assert batch is not None
    product = call_like(op, (a, b), spec, shape=(*batch, a._shape[-2], b._shape[-1]))
    return product if product._shape == shape else product.reshape(shape)


# --- joining, gathering, indexing -------------------------------------------------------------


def cat(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Join behind the hidden dimension."""
    tensors, dim = values
    arranged = [full(tensor, size) for tensor in tensors]
    return call_like(op, (arranged, dim + 1), spec, outputs=batched(spec, size))


def scatter(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """``scatter(input, dim, index, src, …)``, where a number may stand for src."""
    input, dim, index, src, *rest = values
    scalar = not _ndim(input)
    shape = shape_of(index)
    source: Any = src
    if isinstance(src, LogicalTensor) and not src.shape and shape:
        source = padded(src.tensor, len(shape)).expand((size, *shape))
    elif isinstance(src, LogicalTensor) or (isinstance(src, TensorBase) and src._shape):
        source = full(src, size)
    arranged = [full(input, size), dim + 1, full(index, size), source]
    if scalar:
        arranged = [
            v[:, None] if n in (0, 2) and v.ndim == 1 else v for n, v in enumerate(arranged)
        ]
        arranged[1] = 1
        last: Any = arranged[3]
        if isinstance(last, TensorBase) and len(last._shape) == 1:
            arranged[3] = arranged[3][:, None]
        made = call_like(op, (*arranged, *rest), spec, shape=(size, 1))
        return made.reshape((size,))
    if not shape:  # one position, without a dimension of its own
        arranged[2] = arranged[2][:, None]
        if isinstance(source, TensorBase):
            arranged[3] = full(src, size)[:, None]
    return call_like(op, (*arranged, *rest), spec, outputs=batched(spec, size))


def _positions(indices: list[Any]) -> list[int]:
    return [d for d, item in enumerate(indices) if item is not None]


def _adjacent(indices: list[int]) -> bool:
    return indices[-1] - indices[0] == len(indices) - 1


def index(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Index each sample by its own positions."""
    input, indices = values
    shape = (size, *spec.outputs[0][0])  # type: ignore[misc]
    positions = _positions(indices)
    if not positions:
        return input.tensor
    depth = max([len(shape_of(indices[d])) for d in positions])
    adjacent = _adjacent(positions)
    if not any(isinstance(item, LogicalTensor) for item in indices):
        arranged = [None, *indices]
        if adjacent:
            return call_like(op, (input.tensor, arranged), spec, shape=shape)
        common = shape[1 : 1 + depth]
        raw = call_like(
            op, (input.tensor, arranged), spec, shape=(*common, size, *shape[1 + depth :])
        )
        return moved(raw, depth, 0)
    lined = [
        padded(item.tensor, depth) if isinstance(item, LogicalTensor) else item for item in indices
    ]
    start = positions[0] if adjacent else 0
    common = shape[1 + start : 1 + start + depth]
    rest = (*shape[1 : 1 + start], *shape[1 + start + depth :])
    if not isinstance(input, LogicalTensor):
        # The hidden dimension is one more of the positions.
        at = start if adjacent else 0
        raw_shape = (*rest[:at], size, *common, *rest[at:])
        return moved(call_like(op, (input, lined), spec, shape=raw_shape), at, 0)
    own = _ARANGE.call(size, device=input.tensor.device).reshape((size, *((1,) * depth)))
    raw = call_like(op, (input.tensor, [own, *lined]), spec, shape=(size, *common, *rest))
    if not start:
        return raw
    order = [0, *range(1 + depth, 1 + depth + start), *range(1, 1 + depth)]
    order.extend(range(len(order), raw.ndim))
    return raw.permute(tuple(order))


def index_put(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Write to each sample at its own positions."""
    input, indices, new, accumulate = values
    positions = _positions(indices)
    shape = (size, *spec.outputs[0][0])  # type: ignore[misc]
    if not positions or not _adjacent(positions):
        return one_by_one(op, spec, values, size)
    depth = max([len(shape_of(indices[d])) for d in positions])
    tensor = full(input, size)
    written = (
        depth
        + len(input.shape if isinstance(input, LogicalTensor) else input._shape)
        - len(positions)
    )
    source = padded(new.tensor, written) if isinstance(new, LogicalTensor) else new
    if not any(isinstance(item, LogicalTensor) for item in indices):
        return call_like(op, (tensor, [None, *indices], source, accumulate), spec, shape=shape)
    if positions[0]:
        return one_by_one(op, spec, values, size)
    own = _ARANGE.call(size, device=tensor.device).reshape((size, *((1,) * depth)))
    lined = [
        padded(item.tensor, depth) if isinstance(item, LogicalTensor) else item for item in indices
    ]
    return call_like(op, (tensor, [own, *lined], source, accumulate), spec, shape=shape)


# --- random numbers, and everything else ------------------------------------------------------

#: How far apart, in blocks, the streams of samples are that draw from a generator nobody knows.
_APART = 1 << 44


def random_bits(op: Op, spec: Spec, size: int) -> Any:
    """Draw other bits for each sample: those that a batch of them gets, which may be compared."""
    import math

    shape, seed, offset = spec.values
    count = math.prod(shape)
    drawn_from, thread.drawn_from = thread.drawn_from, None
    if drawn_from is not None:
        claimed = seed, offset + -(-count // 4)
        with drawn_from._lock:
            latest = drawn_from._position == claimed
            if latest:  # one sample's words are given back for all samples'
                drawn_from._position = seed, offset
        if latest:
            seed, offset = drawn_from.take(count * size)
            return call_like(op, ((size, *shape), seed, offset), spec, shape=(size, *shape))
    rows = [call_like(op, (shape, seed, offset + n * _APART), spec) for n in range(size)]
    return _STACK.call(rows)


def one_by_one(op: Op, spec: Spec, values: tuple[Any, ...], size: int) -> Any:
    """Call the op once per sample, and stack what it returns: right for every op."""
    if not size:
        raise RuntimeError(
            f"vmap: {op.name} has no batching rule, and there is no sample to run it on"
        )
    rows = []
    for number in range(size):
        picked = one_sample(values, number)
        result = call_like(op, picked, spec, outputs=spec.outputs)
        rows.append(result if isinstance(result, tuple) else (result,))
    stacked = tuple([_STACK.call(list(column)) for column in zip(*rows, strict=True)])
    return stacked if len(spec.outputs) > 1 else stacked[0]


def one_sample(values: Any, number: int) -> Any:
    """Return values with one sample in place of each batch."""
    if isinstance(values, LogicalTensor):
        return values.tensor[number]
    if isinstance(values, (list, tuple)):
        return type(values)([one_sample(value, number) for value in values])
    return values


def physical(values: Any) -> Any:
    """Return values with the tensors of all samples in place of what rules see."""
    return map_tensors(values, lambda t: t.tensor if isinstance(t, LogicalTensor) else t)
