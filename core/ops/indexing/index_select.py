"""Ops that take, add, copy and fill whole slices at positions along one dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...device.dtypes import Number, bool_
from ...device.scalars import fitting
from ...dispatch import op_registry
from ...dispatch.op_registry import Delegated, composite, in_place
from ...dispatch.out_dtypes import check_out, exact_out
from ...dispatch.state import dispatch_state
from ...dispatch.writes import inplace
from ...tensor.base import TensorBase
from ...tensor.shapes import normalize_dim
from ..rules import cast, check_tensor
from ..shape.expansion import expand
from ..shape.shape import reshape, shown_as
from .gather import number_tensor, scatter_reduce
from .indexing import index, index_put, index_vector

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["index_add", "index_copy", "index_fill", "index_reduce", "index_select"]

_INDEX_PUT = op_registry.handle("index_put")
_WHERE = op_registry.handle("where")
_ZEROS = op_registry.handle("zeros")
_ONES = op_registry.handle("ones")


def _at_dim(input: Any, dim: int, index: Any, name: str) -> tuple[int, Any]:
    """Return the dimension, and the positions along it as a vector."""
    check_tensor(input, name)
    dim = normalize_dim(dim, len(input._shape), name)
    return dim, index_vector(index, name)


def _key(input: Any, dim: int, vector: Any) -> list[Any]:
    """Return the key of positions of which negative ones do not exist."""
    # Out of range, then, which the kernel of ``index`` says.
    outside = -(input._shape[dim] if input._shape else 1) - 1
    return [*[None] * dim, _WHERE.call(vector < 0, outside, vector)]


def _canonical_index_select(input: Any, dim: int, index: Any) -> Any:
    dim, vector = _at_dim(input, dim, index, "index_select")
    if input._shape:
        if not input._shape[dim] and vector._shape != (0,):
            raise RuntimeError(
                "index_select(): self indexing axis dim should be positive: there is nothing along dimension "
                f"{dim} of a tensor of size {list(input._shape)}"
            )
        return input, dim, vector
    if vector._shape != (1,):
        raise RuntimeError(
            "index_select(): Index to scalar can have only 1 value, got "
            f"{vector._shape[0]} value(s)"
        )
    return Delegated(reshape(index_select(shown_as(input, (1,)), 0, vector), ()))


@composite(rule=_canonical_index_select)
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
    return _index(input, _key(input, dim, index))


_index = index  # the ops have an argument of that name


def _added(
    input: Any, dim: int, index: Any, source: Any, alpha: Any, name: str = "index_add"
) -> tuple[int, Any, Any]:
    """Return dimension, positions and slices of an index_add, or an index_reduce."""
    dim, vector = _at_dim(input, dim, index, name)
    check_tensor(source, name, "source")
    count = vector._shape[0]
    if source._key.dtype is not input._key.dtype:
        raise RuntimeError(
            f"{name}(): self ({input.dtype.name}) and source ({source.dtype.name}) must have the "
            "same scalar type"
        )
    own = source._shape or (1,)
    expected = (*input._shape[:dim], count, *input._shape[dim + 1 :])
    if len(own) == len(expected) and own[dim] != count:
        raise RuntimeError(
            f"{name}(): Number of indices ({count}) should be equal to source.size(dim): "
            f"({own[dim]}), for dim: {dim}"
        )
    # A number takes a row of one as well, which is what the rule makes of a number.
    if (own != expected and (input._shape or len(own) != 1)) or len(source._shape) < len(
        input._shape
    ):
        raise RuntimeError(
            f"{name}(): source tensor shape must match self tensor shape, excluding the specified "
            f"dimension. Got self.shape = {list(input._shape)} source.shape = {list(source._shape)}"
        )
    if not source._shape:
        source = shown_as(source, (1,))
    alpha = fitting(alpha, input._key.dtype)
    return dim, vector, source if alpha == 1 else source * alpha


def _sliceable(input: Any) -> Any:
    """Return `input`, as a vector if it has no dimensions."""
    return input if input._shape else shown_as(input, (1,))


@composite(method=False, writes="input")
def index_write(input: Tensor, dim: int, index: Tensor, source: Tensor, accumulate: bool) -> None:
    """Write slices to, or add them at, positions along a dimension of `input`.

    What the in-place variants of :func:`index_copy` and :func:`index_add` call with canonical arguments.
    """
    key = _key(input, dim, index)
    inplace(_INDEX_PUT, "index_add_", input, (key, source, accumulate), {})


def _put_in_place(name: str, input: Any, dim: int, vector: Any, values: Any, add: bool) -> Any:
    target = _sliceable(input)
    check_out(name, target, input._key.dtype, input._key)
    index_write(target, dim, vector, values, add)
    return input


def _canonical_index_add(
    input: Any, dim: int, index: Any, source: Any, *, alpha: Number = 1
) -> Any:
    dim, vector, values = _added(input, dim, index, source, alpha)
    if input._shape:
        return input, dim, vector, values
    return Delegated(reshape(index_add(shown_as(input, (1,)), dim, vector, values), ()))


@composite("input, dim, index, source", rule=_canonical_index_add, inplace=True)
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
    return index_put(input, _key(input, dim, index), source, True)


@in_place(index_add)
def _index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Number = 1) -> Any:
    dim, vector, values = _added(input, dim, index, source, alpha)
    return _put_in_place("index_add_", input, dim, vector, values, True)


def _copied(input: Any, dim: int, index: Any, source: Any) -> tuple[int, Any, Any]:
    dim, vector = _at_dim(input, dim, index, "index_copy")
    check_tensor(source, "index_copy", "source")
    if source._key.dtype is not input._key.dtype:
        raise RuntimeError(
            "index_copy(): self and source expected to have the same dtype, but got (self) "
            f"{input.dtype.name} and (source) {source.dtype.name}"
        )
    count = vector._shape[0]
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
    return dim, vector, source


def _canonical_index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    dim, vector, values = _copied(input, dim, index, source)
    if input._shape:
        return input, dim, vector, values
    return Delegated(reshape(index_copy(shown_as(input, (1,)), dim, vector, values), ()))


@composite(rule=_canonical_index_copy, inplace=True)
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy of `input` with the slices of `source` written to positions along a dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(3).index_copy(0, tp.tensor([2, 0]), tp.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    return index_put(input, _key(input, dim, index), source)


@in_place(index_copy)
def _index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    dim, vector, values = _copied(input, dim, index, source)
    return _put_in_place("index_copy_", input, dim, vector, values, False)


def _filled(input: Any, dim: int, index: Any, value: Any) -> tuple[list[Any], Any]:
    dim, vector = _at_dim(input, dim, index, "index_fill")
    indices = [*[None] * dim, vector]
    given = isinstance(value, TensorBase)
    if given and value._shape:
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{len(value._shape)} dimension(s)."
        )
    is_complex = value._key.dtype.is_complex if given else isinstance(value, complex)
    if is_complex and not input._key.dtype.is_complex:
        raise RuntimeError(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported"
        )
    if given:
        return indices, cast(value, input._key.dtype)
    return indices, number_tensor(value, input)


def _may_be_asked(value: Any) -> bool:
    """Return whether a number may be asked for its gradient or tangent."""
    if not isinstance(value, TensorBase):
        return False
    known: Any = value
    return bool(known._state or dispatch_state.layers_active or known._tangents is not None)


def _hit(input: Any, dim: int, vector: Any) -> Any:
    """Return a mask of the slices: in a gradient, each counts once, however often it is named."""
    shape = input._shape or (1,)
    hit = _ZEROS.call(shape[dim], dtype=bool_, device=input.device)
    hit = index_put(hit, [vector], _ONES.call((), dtype=bool_, device=input.device))
    if not input._shape:
        return reshape(hit, ())
    return reshape(hit, tuple([size if d == dim else 1 for d, size in enumerate(shape)]))


@composite(inplace=True)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor | Number) -> Tensor:
    """Return a copy of `input` with its slices at positions along a dimension filled with a number.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(3).index_fill(0, tp.tensor([0, 2]), 1.0)
    tensor([1., 0., 1.])
    """
    indices, filling = _filled(input, dim, index, value)
    if _may_be_asked(value):
        return _WHERE.call(_hit(input, len(indices) - 1, indices[-1]), filling, input)
    written = index_put(_sliceable(input), indices, filling)
    return written if input._shape else reshape(written, ())


@in_place(index_fill)
def _index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    if _may_be_asked(value):
        return NotImplemented
    inplace(_INDEX_PUT, "index_fill_", _sliceable(input), _filled(input, dim, index, value), {})
    return input


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
    position, vector, values = _added(input, dim, index, source, 1, "index_reduce")
    vector = _key(input, position, vector)[-1]
    shape = [1] * len(values._shape)
    shape[position] = vector._shape[0]
    full = expand(shown_as(vector, tuple(shape)), values._shape)
    target = _sliceable(input)
    reduced = scatter_reduce(target, position, full, values, reduce, include_self=include_self)
    return reduced if input._shape else reshape(reduced, ())


exact_out(index_select, index_add, index_copy, index_reduce)
