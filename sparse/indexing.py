"""Parts of sparse tensors, their dimensions in another order, and several in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from tensorplug.core.device.dtypes import INTEGER, int64
from tensorplug.core.dispatch import op_registry
from tensorplug.core.ops import arange, full_like, searchsorted
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.shapes import normalize_dim

from .arithmetic import as_coo, like
from .compressed import CompressedTensor
from .compressed_indexing import permuted, selected
from .coordinates import CooTensor, sparse_dim_of
from .layouts import sparse_coo
from .structure import spread
from .tensors import SparseTensor

CAT = op_registry.handle("cat")


def permute(input: Any, *sizes: Any, dims: Any = None) -> Any:
    """Return a tensor with its dimensions in another order, sparse ones before dense ones."""
    given: Any = sizes if dims is None else (dims,)
    given = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    count = len(input._shape)
    order = [normalize_dim(dim, count, "permute") for dim in given]
    if len(order) != count:
        raise RuntimeError(
            f"permute(): the number of dimensions, {count}, does not match the length of the order that is "
            f"wanted, {len(order)}"
        )
    if sorted(order) != list(range(count)):
        raise RuntimeError(
            f"permute(): expected each of the {count} dimensions once, got {list(given)}"
        )
    if isinstance(input, CompressedTensor):
        return permuted(input, order)
    places = input
    sparse = places.sparse_dim()
    if sorted(order[:sparse]) != list(range(sparse)):
        raise RuntimeError(
            "permute(): transpositions between sparse and dense dimensions are not allowed; got "
            f"{list(given)} of a tensor of {sparse} sparse dimensions"
        )
    where = places._where.index_select(0, _as_index(order[:sparse], places._where))
    values = places._stored
    if order[sparse:] != list(range(sparse, count)):
        values = values.permute(0, *[dim - sparse + 1 for dim in order[sparse:]])
    coalesced = places._coalesced and order[:sparse] == list(range(sparse))
    shape = tuple([input._shape[dim] for dim in order])
    return CooTensor.of(where, values, shape, coalesced)


def _as_index(numbers: Sequence[int], beside: Any) -> Any:
    from tensorplug.core.tensor.creation import tensor

    return tensor(list(numbers), dtype=int64, device=beside.device)


def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Return a tensor with two dimensions exchanged."""
    count = len(input._shape)
    order = list(range(count))
    a, b = normalize_dim(dim0, count, "transpose"), normalize_dim(dim1, count, "transpose")
    order[a], order[b] = b, a
    return permute(input, order) if isinstance(input, SparseTensor) else input.transpose(a, b)


def _t(input: Any) -> Any:
    count = len(input._shape)
    if count > 2 and isinstance(input, CompressedTensor):
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {count}D")
    if count > 2 or input.dense_dim():
        raise RuntimeError(
            "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
            f"{input.sparse_dim()} sparse, {input.dense_dim()} dense"
        )
    return transpose(input, 0, 1) if count == 2 else input


def index_select(input: Any, dim: int, index: Any) -> Any:
    """Return the slices at positions along a dimension, by coordinates."""
    if isinstance(index, SparseTensor) or index.dim() > 1 or index.dtype.category != INTEGER:
        raise IndexError(
            f"index_select(): index should be dense, of integers and 1-D, got {index.dtype} of shape "
            f"{list(index.shape)}"
        )
    places = as_coo(input)
    is_sparse, dim = sparse_dim_of(places, dim, "index_select")
    index = index.reshape(-1).to(int64)
    whole = dim if is_sparse else dim + places.sparse_dim()
    size = places._shape[whole]
    if index.numel() and (int(index.min()) < -size or int(index.max()) >= size):
        raise IndexError(
            f"index_select(): index contains {index.tolist()} that is out of range for tensor of size "
            f"{list(input.shape)} at dimension {whole}"
        )
    index = (index < 0) * full_like(index, size) + index
    shape = (*places._shape[:whole], index._shape[0], *places._shape[whole + 1 :])
    if not is_sparse:
        values = places._stored.index_select(dim + 1, index)
        return CooTensor.of(places._where, values, shape, places._coalesced)
    ordered, order = places._where[dim].sort(stable=True)
    owners, found = spread(searchsorted(ordered, index), searchsorted(ordered, index, right=True))
    chosen = order.index_select(0, found)
    where = places._where.index_select(1, chosen)
    where[dim] = owners
    made = CooTensor.of(where, places._stored.index_select(0, chosen), shape)
    return like(made, input)


def select(input: Any, dim: int, index: Any) -> Any:
    """Return one slice along a dimension, by coordinates; dense if no sparse dimension is left."""
    whole = normalize_dim(dim, len(input._shape), "select")
    size, number = input._shape[whole], int(index)
    if not -size <= number < size:
        raise IndexError(
            f"select(): index {number} out of range for tensor of size {list(input.shape)} at "
            f"dimension {whole}"
        )
    number %= size
    made = selected(input, whole, number) if isinstance(input, CompressedTensor) else None
    if made is not None:
        return made
    places = as_coo(input)
    is_sparse, dim = sparse_dim_of(places, whole, "select")
    shape = (*places._shape[:whole], *places._shape[whole + 1 :])
    if not is_sparse:
        return CooTensor.of(
            places._where, places._stored.select(dim + 1, number), shape, places._coalesced
        )
    chosen = (places._where[dim] == number).nonzero().squeeze(1)
    values = places._stored.index_select(0, chosen)
    if places.sparse_dim() == 1:
        return values.sum(0, dtype=values.dtype)
    rest = [d for d in range(places.sparse_dim()) if d != dim]
    where = places._where.index_select(0, _as_index(rest, places._where)).index_select(1, chosen)
    ordered = places._coalesced
    if places is not input and not ordered:  # what is in one row or column of it is
        ordered = bool((where[0, 1:] > where[0, :-1]).all())
    return CooTensor.of(where, values, shape, ordered)


def _narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    places = as_coo(input)
    is_sparse, dim = sparse_dim_of(places, dim, "narrow")
    whole = dim if is_sparse else dim + places.sparse_dim()
    size, first = places._shape[whole], int(start)
    if length < 0 or not 0 <= first <= size - length:
        raise RuntimeError(
            "narrow(): Invalid range to narrow. range(start, start+length) must be a subset of "
            f"range(0, {size}), got start={first}, length={length}"
        )
    shape = (*places._shape[:whole], length, *places._shape[whole + 1 :])
    if not is_sparse:
        values = places._stored.narrow(dim + 1, first, length)
        return CooTensor.of(places._where, values, shape, places._coalesced)
    numbers = places._where[dim]
    chosen = ((numbers >= first) & (numbers < first + length)).nonzero().squeeze(1)
    where = places._where.index_select(1, chosen)
    where[dim] -= first
    made = CooTensor.of(where, places._stored.index_select(0, chosen), shape, places._coalesced)
    return like(made, input)


def _unsqueeze(input: Any, dim: int) -> Any:
    places = as_coo(input)
    count = len(places._shape)
    dim = normalize_dim(dim, count + 1, "unsqueeze")
    shape = (*places._shape[:dim], 1, *places._shape[dim:])
    sparse = places.sparse_dim()
    if dim > sparse:
        values = places._stored.unsqueeze(dim - sparse + 1)
        return CooTensor.of(places._where, values, shape, places._coalesced)
    rows = [*places._where[:dim], places._where.new_zeros(places._nnz()), *places._where[dim:]]
    where = op_registry.get_op("stack").call(rows)
    return CooTensor.of(where, places._stored, shape, places._coalesced)


def _cat(tensors: Any, dim: int = 0) -> Any:
    if not all([isinstance(tensor, SparseTensor) for tensor in tensors]):
        raise RuntimeError("cat(): expected all tensors to be sparse, or all dense")
    parts = [as_coo(tensor) for tensor in tensors]
    first = parts[0]
    is_sparse, place = sparse_dim_of(first, dim, "cat")
    whole = place if is_sparse else place + first.sparse_dim()
    for number, part in enumerate(parts):
        same = (*part._shape[:whole], *part._shape[whole + 1 :])
        if (
            same != (*first._shape[:whole], *first._shape[whole + 1 :])
            or part.sparse_dim() != first.sparse_dim()
        ):
            raise RuntimeError(
                f"cat(): All tensors must have the same shape: {list(first.shape)} (except in the "
                f"concatenating dimension, {whole}), and the same sparse dimensions, but found shape: "
                f"{list(part.shape)} at position {number}, of {part.sparse_dim()} sparse ones"
            )
    if not is_sparse:
        return _joined_values(parts, place + 1, whole)
    wheres, before = [], 0
    for part in parts:
        where = part._where.clone()
        where[place] += before
        wheres.append(where)
        before += part._shape[whole]
    shape = (*first._shape[:whole], before, *first._shape[whole + 1 :])
    values = CAT.call([part._stored for part in parts])
    ordered = whole == 0 and all([part._coalesced for part in parts])
    return like(CooTensor.of(CAT.call(wheres, 1), values, shape, ordered), tensors[0])


def _joined_values(parts: list[CooTensor], dim: int, whole: int) -> Any:
    """Return tensors joined along a dense dimension: the values of each beside zeros of the others."""
    first = parts[0]
    sizes = [part._stored._shape[dim] for part in parts]
    values = []
    for number, part in enumerate(parts):
        shape = list(part._stored._shape)
        before, after = [*shape], [*shape]
        before[dim], after[dim] = sum(sizes[:number]), sum(sizes[number + 1 :])
        stored = part._stored
        values.append(CAT.call([stored.new_zeros(before), stored, stored.new_zeros(after)], dim))
    shape = [*first._shape[:whole], sum(sizes), *first._shape[whole + 1 :]]
    where = CAT.call([part._where for part in parts], 1)
    return CooTensor.of(where, CAT.call(values), tuple(shape))


def _stack(tensors: Any, dim: int = 0) -> Any:
    return _cat([_unsqueeze(tensor, dim) for tensor in tensors], dim)


def _unbind(input: Any, dim: int = 0) -> Any:
    size = input._shape[normalize_dim(dim, len(input._shape), "unbind")]
    return tuple([select(input, dim, number) for number in range(size)])


def get_item(tensor: Any, key: Any) -> Any:
    """Return ``tensor[key]`` for a key of ints, whole slices, ``...``, and one index along a dimension."""
    keys = key if isinstance(key, tuple) else (key,)
    given = [item for item in keys if item is not Ellipsis]
    if len(given) > len(tensor._shape):
        raise IndexError(f"too many indices for tensor of dimension {len(tensor._shape)}")
    if len(given) < len(keys):
        place = next(number for number, item in enumerate(keys) if item is Ellipsis)
        whole = (slice(None),) * (len(tensor._shape) - len(given))
        keys = (*keys[:place], *whole, *keys[place + 1 :])
    result, dim = tensor, 0
    for item in keys:
        if type(item) is int or (isinstance(item, TensorBase) and not item._shape):
            number = int(cast(Any, item))
            sparse = isinstance(result, SparseTensor)
            result = select(result, dim, number) if sparse else result.select(dim, number)
        elif isinstance(item, slice) and item == slice(None):
            dim += 1
        elif isinstance(item, (list, TensorBase)) and not isinstance(item, SparseTensor):
            index: Any = item if isinstance(item, TensorBase) else _as_index(item, tensor)
            result = index_select(result, dim, index)
            dim += 1
        else:
            raise NotImplementedError(
                f"a sparse tensor is indexed by ints, : and an index along a dimension, got {item!r}; "
                "convert with .to_dense() first"
            )
    return result


def rows_numbered(count: int, beside: Any) -> Any:
    """Return 0 to `count` - 1 on the device of a tensor."""
    return arange(count, dtype=int64, device=beside.device)


def _turned(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an in-place variant whose result may be of another shape."""

    def turn(input: Any, *args: Any, **kwargs: Any) -> Any:
        if input.layout is not sparse_coo:
            raise RuntimeError(
                f"{name}: in-place transposition is not supported for layout {input.layout}"
            )
        return input._take(function(input, *args, **kwargs))

    return turn


#: In-place variants of ops after which a tensor has another shape.
IN_PLACE: dict[str, Callable[..., Any]] = {
    "t_": _turned("t_", _t),
    "transpose_": _turned("transpose_", transpose),
}

TABLE: dict[str, Callable[..., Any]] = {
    # written in ops that are here
    **{name: op_registry.get_op(name).function for name in ("adjoint", "matrix_H")},
    "cat": _cat,
    "index_select": index_select,
    "narrow": _narrow,
    "permute": permute,
    "select": select,
    "stack": _stack,
    "t": _t,
    "transpose": transpose,
    "unbind": _unbind,
    "unsqueeze": _unsqueeze,
}
