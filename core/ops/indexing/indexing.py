"""Reading and writing at positions: what ``tensor[key]`` is made of, and its named relatives."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...device.dtypes import INTEGER, bool_, int32, int64, shown, uint8
from ...dispatch import op_registry
from ...dispatch.execution import show
from ...dispatch.op_registry import Spec, composite, primitive
from ...errors import type_name, warn
from ...tensor.predicates import is_tensor
from ...tensor.shapes import Shape, broadcast_shapes, is_truth, normalize_dim
from ..copying import cast, to_device
from ..rules import check_tensor

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["basic_index", "index", "index_put", "narrow", "place", "select"]

_BASIC_INDEX = op_registry.handle("basic_index")
_FILL_NEW = op_registry.handle("fill_new")
_NONZERO = op_registry.handle("nonzero")

_ALL = slice(None)


# --- ints and slices ----------------------------------------------------------------------------


def sliced_shape(shape: Shape, key: tuple[Any, ...]) -> Shape:
    """Return the shape of a canonical basic key's result: nonnegative ints, slices and None."""
    result: list[int] = []
    dim = 0
    for item in key:
        if item is None:
            result.append(1)
            continue
        if isinstance(item, slice):
            result.append(len(range(*item.indices(shape[dim]))))
        dim += 1
    return (*result, *shape[dim:])


@primitive("input, key", view=True, method=False)
def basic_index(input: Tensor, key: tuple[int | slice | None, ...]) -> Spec:
    """Return the view ``input[key]`` of a key of nonnegative ints, slices of positive step, and None.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.basic_index(tp.tensor([[1, 2], [3, 4]]), (slice(None), 1))
    tensor([2, 4])
    """
    return Spec((input, key), sliced_shape(input._shape, key), input.dtype)


@primitive("input, shape, key", method=False)
def place(input: Tensor, shape: Shape, key: tuple[int | slice | None, ...]) -> Spec:
    """Return zeros of `shape` that hold `input` at a basic key: the derivative of :func:`basic_index`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.place(tp.tensor([5, 6]), (2, 2), (0,))
    tensor([[5, 6],
            [0, 0]])
    """
    return Spec((input, shape, key), shape, input.dtype)


def at(input: Any, dim: int, index: int) -> Any:
    """Return the view of one position along a dimension; all arguments canonical."""
    shape = input._shape
    return show(
        _BASIC_INDEX,
        input,
        ((*((_ALL,) * dim), index) if dim else (index,),),
        shape[:dim] + shape[dim + 1 :],
    )


def part(input: Any, dim: int, start: int, stop: int) -> Any:
    """Return the view of positions from `start` to before `stop`; all arguments canonical."""
    return part_of_shape(input, dim, start, stop, resized(input._shape, dim, stop - start))


def part_of_shape(input: Any, dim: int, start: int, stop: int, shape: Shape) -> Any:
    """Return what :func:`part` does, whose shape is known, as the parts of a tensor share one."""
    positions = slice(start, stop)
    return show(
        _BASIC_INDEX, input, ((*((_ALL,) * dim), positions) if dim else (positions,),), shape
    )


def resized(shape: Shape, dim: int, size: int) -> Shape:
    """Return a shape with another size of one dimension."""
    return (*shape[:dim], size, *shape[dim + 1 :])


@composite(view=True)
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return the view of `input` at one position along a dimension, which disappears.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    dim : int
        The dimension.
    index : int
        The position; a negative one counts from the end.

    Raises
    ------
    IndexError
        If there is no such dimension or position.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.select(tp.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    check_tensor(input, "select")
    return at(input, *select_position(input._shape, dim, index))


def select_position(shape: Shape, dim: int, index: int) -> tuple[int, int]:
    """Return the canonical dimension and position of :func:`select`."""
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = normalize_dim(dim, len(shape), "select")
    size = shape[dim]
    position = _index(index, "select", "index")
    if not -size <= position < size:
        raise IndexError(
            f"select(): index {position} out of range for tensor of size {list(shape)} at dimension "
            f"{dim}"
        )
    return dim, position + size if position < 0 else position


def _index(value: Any, op: str, name: str) -> int:
    if is_truth(value) or not hasattr(value, "__index__"):
        raise TypeError(f"{op}(): {name} must be an int, not {type_name(value)}")
    return operator.index(value)


@composite(view=True)
def narrow(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """Return the view of `length` positions of `input` along a dimension, from `start` on.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    dim : int
        The dimension.
    start : int or 0-d integer tensor
        The first position; a negative one counts from the end.
    length : int
        How many positions.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.narrow(tp.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    check_tensor(input, "narrow")
    shape = input._shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    length = _index(length, "narrow", "length")
    if length < 0:
        raise RuntimeError(f"narrow(): length must be non-negative. Got {length}")
    dim = normalize_dim(dim, len(shape), "narrow")
    size = shape[dim]
    if is_tensor(start):
        if start._shape or start.dtype.category != INTEGER:
            raise RuntimeError("narrow(): start must be an 0-dim integral Tensor.")
        first = int(start)
    else:
        first = _index(start, "narrow", "start")
    if not -size <= first <= size:
        raise IndexError(
            f"narrow(): start out of range (expected to be in range of [{-size}, {size}], but got "
            f"{first})"
        )
    if first < 0:
        first += size
    if first + length > size:
        raise RuntimeError(
            f"narrow(): start ({first}) + length ({length}) exceeds dimension size ({size})."
        )
    return part(input, dim, first, first + length)


# --- index tensors ------------------------------------------------------------------------------


def mask_of_bytes(name: str) -> str:
    """Return the warning about a mask of uint8."""
    return (
        f"indexing with dtype {shown('uint8')} is now deprecated, please use a dtype {shown('bool')} "
        f"instead, in {name}()"
    )


def index_tensors(input: Any, indices: Sequence[Any], name: str) -> list[Any]:
    """Return indices as int64 tensors on the input's device, with None for dimensions left whole.

    A mask becomes one tensor per dimension of its own: the positions where it is True.
    """
    found: list[Any] = []
    for position, given in enumerate(indices):
        item: Any = given
        if item is None:
            found.append(None)
            continue
        if not is_tensor(item):
            raise TypeError(
                f"{name}(): indices must be tensors or None, got {type(item).__name__} at {position}"
            )
        dtype = item._key.dtype
        if item._key.device is not input._key.device:
            if item._key.device.type != "cpu":
                raise RuntimeError(
                    f"{name}(): indices should be either on cpu or on the same device as the indexed "
                    f"tensor ({input._key.device}), got {item._key.device}"
                )
            item = to_device(item, input._key.device)
        if dtype is bool_ or dtype is uint8:
            if dtype is uint8:
                warn(mask_of_bytes(name), UserWarning)
            found.extend(_of_mask(input, item, len(found)))
        elif dtype is int64:
            found.append(item)
        elif dtype is int32:
            found.append(cast(item, int64))
        else:
            raise IndexError(
                f"tensors used as indices must be long, int, byte or bool tensors, got {dtype}"
            )
    while found and found[-1] is None:
        found.pop()
    if len(found) > len(input._shape):
        raise IndexError(
            f"too many indices for tensor of dimension {len(input._shape)} (got {len(found)})"
        )
    return found


def _of_mask(input: Any, mask: Any, dim: int) -> list[Any]:
    shape = mask._shape
    covered = input._shape[dim : dim + len(shape)]
    if covered != shape:
        wrong = next(
            (d for d, size in enumerate(covered) if size != shape[d]), min(len(covered), len(shape))
        )
        raise IndexError(
            f"The shape of the mask {list(shape)} at index {wrong} does not match the shape of the "
            f"indexed tensor {list(input._shape)} at index {dim + wrong}"
        )
    positions = _NONZERO.call(mask)
    return [at(positions, 1, d) for d in range(len(shape))]


def indexed_shape(shape: Shape, indices: list[Any]) -> Shape:
    """Return the shape of ``input[indices]``, for the list that :func:`index_tensors` returns.

    The indices' common shape stands where they were if they are neighbours, else in front.
    """
    positions = [d for d, item in enumerate(indices) if item is not None]
    if not positions:
        return shape
    if len(positions) == 1:
        first = positions[0]
        return (*shape[:first], *indices[first]._shape, *shape[first + 1 :])
    shapes = [indices[d]._shape for d in positions]
    try:
        common = shapes[0] if shapes.count(shapes[0]) == len(shapes) else broadcast_shapes(*shapes)
    except RuntimeError:
        raise IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes "
            f"{', '.join([str(list(s)) for s in shapes])}"
        ) from None
    rest = [size for d, size in enumerate(shape) if d not in positions]
    first = positions[0] if positions[-1] - positions[0] == len(positions) - 1 else 0
    return (*rest[:first], *common, *rest[first:])


@primitive("input, indices", method=False)
def index(input: Tensor, indices: Sequence[Tensor | None]) -> Spec:
    """Return the elements of `input` at index tensors, which broadcast against each other.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    indices : sequence of Tensor or None
        int32 or int64 positions (negative ones count from the end) or masks; None leaves a dimension
        whole.

    Raises
    ------
    IndexError
        If a position is out of range or the indices do not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.index(tp.tensor([[1, 2], [3, 4]]), [None, tp.tensor([1, 1])])
    tensor([[2, 2],
            [4, 4]])
    """
    check_tensor(input, "index")
    found = index_tensors(input, indices, "index")
    return Spec((input, found), indexed_shape(input._shape, found), input.dtype)


@primitive("input, indices, values, accumulate", inplace=True)
def index_put(
    input: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: bool = False,
) -> Spec:
    """Return a copy of `input` that holds `values` at index tensors.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    indices : sequence of Tensor or None
        As in :func:`index`.
    values : Tensor
        Of the input's dtype; broadcast to the shape of ``input[indices]``.
    accumulate : bool
        Whether values are added to the elements, all of those that meet at one place, or replace them.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a = tp.zeros(3)
    >>> a.index_put_([tp.tensor([0, 0])], tp.tensor([1.0, 2.0]), accumulate=True)
    tensor([3., 0., 0.])
    """
    check_tensor(input, "index_put")
    check_tensor(values, "index_put", "values")
    if len(indices) == 1 and _is_mask(indices[0]):
        indices, values = _masked(input, indices[0], values, accumulate)
    found = index_tensors(input, indices, "index_put")
    target = indexed_shape(input._shape, found)
    _check_values(values._shape, target)
    if values._key.dtype is not input._key.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{input.dtype.name} for the destination and {values.dtype.name} for the source; convert the "
            "values with .to()"
        )
    if not values._shape and values._key.device is not input._key.device:
        values = to_device(values, input._key.device)
    return Spec((input, found, values, bool(accumulate)), input._shape, input.dtype)


def _is_mask(index: Any) -> bool:
    return is_tensor(index) and index._key.dtype in (bool_, uint8)


def _masked(input: Any, mask: Any, values: Any, accumulate: bool) -> tuple[list[Any], Any]:
    """Return the indices and values of a write to where a mask is True.

    One value fills those places whatever its dtype and number of dimensions, as ``masked_fill_`` does;
    a mask without dimensions has all of them or none.
    """
    if not mask._shape:
        if not input._shape:
            raise IndexError("too many indices for tensor of dimension 0 (got 1)")
        mask = mask.expand(input._shape)
    if accumulate or math.prod(values._shape) != 1:
        return [mask], values
    values = values.reshape(())
    if values._key.dtype is not input._key.dtype:
        values = cast(values, input._key.dtype)
    return [mask], values


def _check_values(shape: Shape, target: Shape) -> None:
    if not shape or shape == target:
        return
    try:
        fits = broadcast_shapes(shape, target) == target
    except RuntimeError:
        fits = False
    if not fits:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(shape)} cannot be broadcast to indexing "
            f"result of shape {list(target)}"
        )


def zeros_like_gradient(g: Any, shape: Shape) -> Any:
    """Return zeros of a shape, like `g` otherwise: for every sample, inside of vmap."""
    if g._batched:
        return g.new_zeros(shape)
    return _FILL_NEW.call(shape, 0, g.dtype, g.device)


def _index_backward_rule(g: Any, shape: Any, indices: Any) -> tuple[Any, ...]:
    check_tensor(g, "index_backward", "g")
    return g, tuple([operator.index(size) for size in shape]), indices


@composite(method=False, rule=_index_backward_rule)
def index_backward(g: Tensor, shape: Shape, indices: Sequence[Tensor | None]) -> Tensor:
    """Return zeros of `shape` with `g` added at index tensors: the gradient of :func:`index`."""
    return index_put(zeros_like_gradient(g, shape), indices, g, True)


def index_vector(index: Any, name: str) -> Any:
    """Return `index`, a tensor of positions of at most one dimension, as a 1-d int64 tensor."""
    check_tensor(index, name, "index")
    dtype = index._key.dtype
    errors: tuple[type[Exception], type[Exception]] = (IndexError, RuntimeError)
    of_shape, of_dtype = errors[::-1] if name == "index_fill" else errors  # as in torch
    if len(index._shape) > 1:
        raise of_shape(
            f"{name}(): Index is supposed to be a vector, got a tensor of shape {list(index._shape)}"
        )
    if dtype is not int64 and dtype is not int32:
        raise of_dtype(f"{name}(): Expected dtype int32/int64 for index, got {dtype}")
    if not index._shape:
        index = index.reshape(1)
    return cast(index, int64) if dtype is int32 else index
