"""Gathering from and scattering to positions along a dimension."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .. import operators
from ..dtypes import Number, bool_, int32, int64
from ..operators import Spec, composite, in_place, primitive
from ..shapes import Shape, broadcast_shapes, normalize_dim
from ..tensor_base import TensorBase, new_tensor
from ..writing import inplace
from .indexing import at, index, index_put, index_vector, part
from .rules import cast, check_tensor
from .shape import expand, reshape, shown_as

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = [
    "gather",
    "index_add",
    "index_copy",
    "index_fill",
    "index_reduce",
    "index_select",
    "masked_scatter",
    "masked_select",
    "put",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "take",
    "take_along_dim",
]

_INDEX_PUT = operators.handle("index_put")
_NONZERO = operators.handle("nonzero")
_WHERE = operators.handle("where")
_NUMBERS = (bool, int, float, complex)


def number_tensor(value: Number, like: Any) -> Any:
    """Return a number as a 0-d tensor of the dtype and device of another."""
    kind = like._kind
    if isinstance(value, complex) and not kind.dtype.is_complex:
        raise RuntimeError(f"value cannot be converted to type {kind.dtype.name} without overflow")
    return new_tensor(kind.scalar(value), kind, ())


# --- along a dimension, with an index of as many dimensions -------------------------------------


def _positions(input: Any, dim: int, index: Any, name: str) -> tuple[int, Any]:
    """Return the canonical dimension, and the index as int64 of a rank that fits the input's."""
    check_tensor(input, name)
    check_tensor(index, name, "index")
    dtype = index._kind.dtype
    if dtype is int32:
        index = cast(index, int64)
    elif dtype is not int64:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index, got {dtype.name}")
    shape = input._shape
    dim = normalize_dim(dim, len(shape), name)
    if max(len(index._shape), 1) != max(len(shape), 1) and math.prod(index._shape):
        raise RuntimeError(
            f"{name}(): Index tensor must have the same number of dimensions as self tensor, got "
            f"{list(index._shape)} for {list(shape)}"
        )
    return dim, index


def _check_within(index: Shape, shape: Shape, dim: int, name: str, other: Shape | None) -> None:
    for d, size in enumerate(index):
        if d != dim and shape and size > shape[d]:
            raise RuntimeError(
                f"{name}(): Size does not match at dimension {d}: expected index {list(index)} to be no "
                f"larger than self {list(shape)} apart from dimension {dim}"
            )
    if other is not None:
        if len(other or (1,)) != len(index or (1,)):
            raise RuntimeError(
                f"{name}(): Index tensor must have the same number of dimensions as src tensor, got "
                f"{list(index)} and {list(other)}"
            )
        if any([a > b for a, b in zip(index, other, strict=False)]):
            raise RuntimeError(
                f"{name}(): Expected index {list(index)} to be no larger than self {list(shape)} apart "
                f"from dimension {dim} and to be no larger size than src {list(other)}"
            )


@primitive("input, dim, index")
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Spec:
    """Return the elements of `input` whose position along a dimension `index` tells.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    dim : int
        The dimension.
    index : Tensor
        int32 or int64, of as many dimensions as `input`, and but for `dim` no larger.
    sparse_grad : bool
        Accepted; gradients are dense.

    Returns
    -------
    Tensor
        Of the shape of `index`; for two dimensions and dim 1, ``out[i, j] = input[i, index[i, j]]``.

    Raises
    ------
    RuntimeError
        If the shapes do not fit or a position is out of range.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.gather(tp.tensor([[1, 2], [3, 4]]), 1, tp.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    dim, index = _positions(input, dim, index, "gather")
    if math.prod(index._shape):
        _check_within(index._shape, input._shape, dim, "gather", None)
    return Spec((input, dim, index), index._shape, input.dtype)


def _source(input: Any, dim: int, index: Any, src: Any, name: str) -> Any:
    """Return what is scattered, of the shape of the index."""
    if src._kind.dtype is not input._kind.dtype:
        raise RuntimeError(
            f"{name}(): Expected self.dtype to be equal to src.dtype, got {input.dtype.name} and "
            f"{src.dtype.name}"
        )
    shape = index._shape
    if not math.prod(shape):
        return src
    _check_within(shape, input._shape, dim, name, src._shape)
    if not src._shape and shape:
        src = shown_as(src, (1,))
    if src._shape != shape:
        for d, size in enumerate(shape):
            if src._shape[d] != size:
                src = part(src, d, 0, size)
    return src


@primitive("input, dim, index, src, reduce", inplace=True)
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | Number | None = None,
    *,
    value: Number | None = None,
    reduce: str | None = None,
) -> Spec:
    """Return a copy of `input` with values written to the positions along a dimension that `index` tells.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    dim : int
        The dimension.
    index : Tensor
        int32 or int64, of as many dimensions as `input`; where it is empty, nothing is written.
    src : Tensor or number
        The values (``value=`` for a number): of the input's dtype, no smaller than `index`.
    reduce : {"add", "multiply"}, optional
        Combine with what is there; :func:`scatter_reduce` knows more ways.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not fit or a position is out of range.

    Notes
    -----
    Where several values go to one place, one of them is kept.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.scatter(tp.zeros(2, 2), 1, tp.tensor([[1], [0]]), 5.0)
    tensor([[0., 5.],
            [5., 0.]])
    """
    dim, index = _positions(input, dim, index, "scatter")
    if src is None:
        src = value
    if isinstance(src, _NUMBERS):
        source: Any = number_tensor(src, input)
        _check_within(index._shape, input._shape, dim, "scatter", None)
    else:
        check_tensor(src, "scatter", "src")
        source = _source(input, dim, index, src, "scatter")
    if reduce not in _LEGACY:
        raise RuntimeError(f"reduce argument must be either add or multiply, got {reduce!r}")
    return Spec((input, dim, index, source, _LEGACY[reduce]), input._shape, input.dtype)


_LEGACY = {None: None, "add": "sum", "multiply": "prod"}


@composite(inplace=True)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy of `input` with values added at the positions along a dimension that `index` tells.

    Parameters
    ----------
    input, dim, index, src
        As for :func:`scatter`; all values that go to one place are added.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.scatter_add(tp.zeros(3), 0, tp.tensor([0, 0, 2]), tp.tensor([1.0, 2.0, 3.0]))
    tensor([3., 0., 3.])
    """
    dim, index = _positions(input, dim, index, "scatter_add")
    check_tensor(src, "scatter_add", "src")
    return _scatter_add(input, dim, index, _source(input, dim, index, src, "scatter_add"))


@composite(method=False)
def _scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return :func:`scatter_add` for canonical arguments."""
    return scatter_reduce(input, dim, index, src, "sum")


@primitive("input, dim, index, src, reduce, include_self", inplace=True)
def scatter_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Spec:
    """Return a copy of `input` with values combined at the positions along a dimension that `index` tells.

    Parameters
    ----------
    input, dim, index, src
        As for :func:`scatter`.
    reduce : {"sum", "prod", "mean", "amax", "amin"}
        How all values that go to one place are combined.
    include_self : bool
        Whether the element of `input` at the place takes part.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a, where = tp.tensor([1.0, 2.0]), tp.tensor([0, 0])
    >>> tp.scatter_reduce(a, 0, where, tp.tensor([3.0, 5.0]), "mean", include_self=False)
    tensor([4., 2.])
    """
    dim, index = _positions(input, dim, index, "scatter_reduce")
    check_tensor(src, "scatter_reduce", "src")
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    source = _source(input, dim, index, src, "scatter_reduce")
    return Spec((input, dim, index, source, reduce, bool(include_self)), input._shape, input.dtype)


@composite()
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Return the elements at positions along a dimension; input and index broadcast but for it.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    indices : Tensor
        int64.
    dim : int, optional
        By default both are taken as flat.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a = tp.tensor([[3, 1], [2, 4]])
    >>> tp.take_along_dim(a, tp.tensor([[1], [0]]), 1)
    tensor([[1],
            [2]])
    """
    check_tensor(input, "take_along_dim")
    check_tensor(indices, "take_along_dim", "indices")
    if indices._kind.dtype is not int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.name}"
        )
    if dim is None:
        return gather(reshape(input, -1), 0, reshape(indices, -1))
    own, wanted = input._shape, indices._shape
    if len(own) != len(wanted):
        raise RuntimeError(
            "take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{len(own)} dimensions for input, and {len(wanted)} dimensions for indices"
        )
    dim = normalize_dim(dim, len(own), "take_along_dim")
    common = broadcast_shapes(
        (*own[:dim], 1, *own[dim + 1 :]), (*wanted[:dim], 1, *wanted[dim + 1 :])
    )
    return gather(
        expand(input, (*common[:dim], own[dim], *common[dim + 1 :])),
        dim,
        expand(indices, (*common[:dim], wanted[dim], *common[dim + 1 :])),
    )


# --- whole slices -------------------------------------------------------------------------------


def _at_dim(
    input: Any, dim: int, index: Any, name: str, from_end: bool = False
) -> tuple[int, list[Any]]:
    """Return the dimension and the key of ``index``; `from_end` says what negative indices mean."""
    check_tensor(input, name)
    dim = normalize_dim(dim, len(input._shape), name)
    vector = index_vector(index, name)
    if not from_end:
        # Out of range, then, which the kernel of ``index`` says.
        size = input._shape[dim] if input._shape else 1
        vector = _WHERE.call(vector < 0, -size - 1, vector)
    return dim, [*[None] * dim, vector]


@composite()
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return a copy of the slices of `input` at positions along a dimension.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    dim : int
        The dimension.
    index : Tensor
        int32 or int64, of at most one dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.index_select(tp.tensor([[1, 2], [3, 4]]), 1, tp.tensor([1]))
    tensor([[2],
            [4]])
    """
    _, indices = _at_dim(input, dim, index, "index_select")
    if not input._shape:
        if indices[-1]._shape != (1,):
            raise RuntimeError(
                "index_select(): Index to scalar can have only 1 value, got "
                f"{indices[-1]._shape[0]} value(s)"
            )
        return reshape(_index(shown_as(input, (1,)), indices), ())
    return _index(input, indices)


_index = index  # the ops below have an argument of that name


def _added(input: Any, dim: int, index: Any, source: Any, alpha: Any) -> tuple[list[Any], Any]:
    """Return indices and values of the index_put that an index_add is."""
    dim, indices = _at_dim(input, dim, index, "index_add")
    check_tensor(source, "index_add", "source")
    count = indices[-1]._shape[0]
    if source._kind.dtype is not input._kind.dtype:
        raise RuntimeError(
            f"index_add(): self ({input.dtype.name}) and source ({source.dtype.name}) must have the "
            "same scalar type"
        )
    own = source._shape or (1,)
    if len(own) != len(input._shape or (1,)) or own[dim] != count:
        raise RuntimeError(
            f"index_add(): Number of indices ({count}) should be equal to source.size(dim): "
            f"({own[dim] if dim < len(own) else '-'}), for dim: {dim}"
        )
    if not source._shape:
        source = shown_as(source, (1,))
    expected = (*input._shape[:dim], count, *input._shape[dim + 1 :])
    if source._shape != expected and input._shape:
        raise RuntimeError(
            f"index_add(): source of shape {list(source._shape)} does not match the slices to add to, "
            f"{list(expected)}"
        )
    return indices, source if alpha == 1 else source * alpha


def _put(input: Any, indices: list[Any], values: Any, accumulate: bool) -> Any:
    """Return an index_put, also of an input without dimensions."""
    if input._shape:
        return index_put(input, indices, values, accumulate)
    return reshape(index_put(shown_as(input, (1,)), indices, values, accumulate), ())


def _put_in_place(input: Any, indices: list[Any], values: Any, accumulate: bool) -> Any:
    target = input if input._shape else shown_as(input, (1,))
    inplace(_INDEX_PUT, "index_put_", target, (indices, values, accumulate), {})
    return input


@composite(inplace=True)
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1
) -> Tensor:
    """Return a copy of `input` with ``alpha * source`` added to its slices at positions along a dimension.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    dim : int
        The dimension.
    index : Tensor
        int32 or int64, of at most one dimension; a position may occur more than once.
    source : Tensor
        Of the input's dtype and shape, but with one slice per position.
    alpha : number
        Multiplies `source`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(3).index_add(0, tp.tensor([0, 0, 2]), tp.tensor([1.0, 2.0, 3.0]))
    tensor([3., 0., 3.])
    """
    return _put(input, *_added(input, dim, index, source, alpha), True)


@in_place(index_add)
def _index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Number = 1) -> Any:
    return _put_in_place(input, *_added(input, dim, index, source, alpha), True)


def _copied(input: Any, dim: int, index: Any, source: Any) -> tuple[list[Any], Any]:
    dim, indices = _at_dim(input, dim, index, "index_copy")
    check_tensor(source, "index_copy", "source")
    if source._kind.dtype is not input._kind.dtype:
        raise RuntimeError(
            "index_copy(): self and source expected to have the same dtype, but got (self) "
            f"{input.dtype.name} and (source) {source.dtype.name}"
        )
    count = indices[-1]._shape[0]
    if not source._shape:
        if count != 1:
            raise IndexError(
                f"index_copy(): When source is scalar, index should have one element (got {count})"
            )
        source = shown_as(source, (1,))
    if len(source._shape) != len(input._shape or (1,)):
        raise IndexError(
            "index_copy(): When source and destination are not scalars, their dimensionality must match. "
            f"Source dimensionality ({len(source._shape)}), destination dimensionality "
            f"({len(input._shape)})"
        )
    if source._shape[dim] != count:
        raise IndexError(
            f"index_copy(): Number of indices ({count}) should be equal to source.size(dim) "
            f"({source._shape[dim]})"
        )
    expected = (*input._shape[:dim], count, *input._shape[dim + 1 :])
    if source._shape != expected and input._shape:
        raise RuntimeError(
            f"index_copy(): source of shape {list(source._shape)} does not match the slices to write, "
            f"{list(expected)}"
        )
    return indices, source


@composite(inplace=True)
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy of `input` with the slices of `source` written to positions along a dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(3).index_copy(0, tp.tensor([2, 0]), tp.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    return _put(input, *_copied(input, dim, index, source), False)


@in_place(index_copy)
def _index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    return _put_in_place(input, *_copied(input, dim, index, source), False)


def _filled(input: Any, dim: int, index: Any, value: Any) -> tuple[list[Any], Any]:
    _, indices = _at_dim(input, dim, index, "index_fill", from_end=True)
    if isinstance(value, TensorBase):
        if value._shape:
            raise RuntimeError(
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{len(value._shape)} dimension(s)."
            )
        return indices, cast(value, input._kind.dtype)
    return indices, number_tensor(value, input)


@composite(inplace=True)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor | Number) -> Tensor:
    """Return a copy of `input` with its slices at positions along a dimension filled with a number.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(3).index_fill(0, tp.tensor([0, 2]), 1.0)
    tensor([1., 0., 1.])
    """
    return _put(input, *_filled(input, dim, index, value), False)


@in_place(index_fill)
def _index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    return _put_in_place(input, *_filled(input, dim, index, value), False)


@composite(inplace=True)
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Return a copy of `input` with slices of `source` combined at positions along a dimension.

    Parameters
    ----------
    input, dim, index, source
        As for :func:`index_add`.
    reduce : {"prod", "mean", "amax", "amin"}
        How.
    include_self : bool
        Whether the slice of `input` at the position takes part.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ones(2).index_reduce(0, tp.tensor([0, 0]), tp.tensor([2.0, 3.0]), "prod")
    tensor([6., 1.])
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}."
        )
    indices, values = _added(input, dim, index, source, 1)
    vector = indices[-1]
    place = len(indices) - 1
    shape = [1] * len(values._shape)
    shape[place] = vector._shape[0]
    full = expand(shown_as(vector, tuple(shape)), values._shape)
    return scatter_reduce(input, place, full, values, reduce, include_self=include_self)


# --- flat positions, and masks ------------------------------------------------------------------


@composite()
def take(input: Tensor, index: Tensor) -> Tensor:
    """Return the elements of `input`, taken as flat, at positions; the result has the index's shape.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.take(tp.tensor([[1, 2], [3, 4]]), tp.tensor([0, -1]))
    tensor([1, 4])
    """
    check_tensor(input, "take")
    check_tensor(index, "take", "index")
    if index._kind.dtype is not int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {index.dtype.name}")
    return _index(reshape(input, (math.prod(input._shape),)), [index])


def _put_values(input: Any, index: Any, source: Any) -> Any:
    check_tensor(input, "put")
    check_tensor(index, "put", "index")
    check_tensor(source, "put", "source")
    if index._kind.dtype is not int64:
        raise RuntimeError(f"put(): Expected a long tensor for index, but got {index.dtype.name}")
    if source._kind.dtype is not input._kind.dtype:
        raise RuntimeError(
            "put(): self and source expected to have the same dtype, but got self.dtype = "
            f"{input.dtype.name} and source.dtype = {source.dtype.name}"
        )
    if math.prod(index._shape) != math.prod(source._shape):
        raise IndexError(
            "put(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {math.prod(source._shape)}, index.numel() = {math.prod(index._shape)}"
        )
    return reshape(source, index._shape)


@composite(inplace=True)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy of `input` with values written, or added, to positions of it taken as flat.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 2).put(tp.tensor([0, 3]), tp.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    values = _put_values(input, index, source)
    flat = reshape(input, (math.prod(input._shape),))
    return reshape(index_put(flat, [index], values, accumulate), input._shape)


@in_place(put)
def _put_(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    values = _put_values(input, index, source)
    if input.is_contiguous():
        flat = shown_as(input, (math.prod(input._shape),))
        inplace(_INDEX_PUT, "index_put_", flat, ([index], values, accumulate), {})
        return input
    return input.copy_(put(input, index, source, accumulate))


def _mask(input: Any, mask: Any, name: str) -> None:
    check_tensor(input, name)
    check_tensor(mask, name, "mask")
    if mask._kind.dtype is not bool_:
        raise RuntimeError(f"{name}: expected BoolTensor for mask, got dtype {mask.dtype.name}")


@composite()
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements of `input` where a mask, broadcast with it, is True, in one dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a = tp.tensor([1, 2, 3])
    >>> tp.masked_select(a, a > 1)
    tensor([2, 3])
    """
    _mask(input, mask, "masked_select")
    shape = broadcast_shapes(input._shape, mask._shape) or (1,)
    return _index(expand(input, shape), [expand(mask, shape)])


def _masked(input: Any, mask: Any, source: Any) -> tuple[list[Any], Any]:
    _mask(input, mask, "masked_scatter")
    check_tensor(source, "masked_scatter", "source")
    if source._kind.dtype is not input._kind.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {input.dtype.name} "
            f"and {source.dtype.name}"
        )
    found = _NONZERO.call(expand(mask, input._shape))
    count = found._shape[0]
    if math.prod(source._shape) < count:
        raise RuntimeError(
            f"masked_scatter: Number of elements of source ({math.prod(source._shape)}) < number of ones "
            f"in mask ({count})"
        )
    values = part(reshape(source, (math.prod(source._shape),)), 0, 0, count)
    return [at(found, 1, d) for d in range(found._shape[1])], values


@composite(inplace=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return a copy of `input` with the first elements of `source` written where a mask is True.

    Examples
    --------
    >>> import tensorplug as tp
    >>> mask = tp.tensor([True, False, True])
    >>> tp.zeros(3).masked_scatter(mask, tp.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    shape = broadcast_shapes(input._shape, mask._shape)
    wide = expand(input, shape)
    if not shape:
        flat = masked_scatter(shown_as(wide, (1,)), reshape(mask, 1), source)
        return reshape(flat, ())
    indices, values = _masked(wide, mask, source)
    return index_put(wide, indices, values)


@in_place(masked_scatter)
def _masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    target = input if input._shape else shown_as(input, (1,))
    indices, values = _masked(target, mask, source)
    inplace(_INDEX_PUT, "index_put_", target, (indices, values), {})
    return input
