"""Gathering from and scattering to positions along a dimension."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...device.dtypes import BOOL, COMPLEX, Number, int32, int64, scalar_type
from ...dispatch.keys import dispatch_key
from ...dispatch.op_registry import Spec, composite, primitive
from ...dispatch.out_dtypes import exact_out
from ...dispatch.state import dispatch_state
from ...tensor.base import new_tensor
from ...tensor.creation import tensor
from ...tensor.shapes import Shape, broadcast_shapes, existing_dim, normalize_dim
from ..arithmetic.division import remainder
from ..rules import cast, check_tensor
from ..shape.expansion import expand
from ..shape.shape import reshape, shown_as
from .indexing import part, zeros_like_gradient

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["gather", "scatter", "scatter_add", "scatter_reduce", "take_along_dim"]


_NUMBERS = (bool, int, float, complex)


def number_tensor(value: Number, like: Any) -> Any:
    """Return a number as a 0-d tensor of the dtype and device of another."""
    key = like._key
    if key.intercepts:
        key = dispatch_key(key.device, key.dtype)
    if key.is_meta and dispatch_state.layers_active:
        return tensor(value, dtype=key.dtype, device=key.device)  # of which tracers are told
    return new_tensor(key.scalar(value), key, ())


def _positions(input: Any, dim: int, index: Any, name: str, of: str = "self") -> tuple[int, Any]:
    """Return the canonical dimension, and the index as int64 of a rank that fits the input's."""
    check_tensor(input, name)
    check_tensor(index, name, "index")
    dtype = index._key.dtype
    if dtype is int32 or 0 in index._shape:  # tp.tensor([]) is of float32
        index = cast(index, int64)
    elif dtype is not int64:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index, got {dtype.name}")
    shape = input._shape
    dim = normalize_dim(dim, len(shape), name)
    if max(len(index._shape), 1) != max(len(shape), 1) and math.prod(index._shape):
        raise RuntimeError(
            f"{name}(): Index tensor must have the same number of dimensions as {of} tensor, got "
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
    dim, index = _positions(input, dim, index, "gather", "input")
    if math.prod(index._shape):
        _check_within(index._shape, input._shape, dim, "gather", None)
    return Spec((input, dim, index), index._shape, input.dtype)


def _source(input: Any, dim: int, index: Any, src: Any, name: str) -> Any:
    """Return what is scattered, of the shape of the index."""
    if src._key.dtype is not input._key.dtype:
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
    if value is not None:
        if src is not None:
            raise TypeError("scatter(): takes src or value, not both")
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


def _canonical_scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    dim, index = _positions(input, dim, index, "scatter_add")
    check_tensor(src, "scatter_add", "src")
    return input, dim, index, _source(input, dim, index, src, "scatter_add")


@composite(rule=_canonical_scatter_add, inplace=True)
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
    return scatter_reduce(input, dim, index, src, "sum")


def _canonical_gather_backward(g: Any, shape: Shape, dim: int, index: Any) -> Any:
    dim = normalize_dim(dim, len(shape), "gather_backward")
    _check_within(index._shape, shape, dim, "gather_backward", g._shape)
    return g, shape, dim, index


@composite(rule=_canonical_gather_backward, method=False)
def gather_backward(g: Tensor, shape: Shape, dim: int, index: Tensor) -> Tensor:
    """Return zeros of `shape` with `g` added where `index` tells: the gradient of :func:`gather`."""
    return scatter_add(zeros_like_gradient(g, shape), dim, index, g)


#: By reduction, the kind of numbers for which there is none.
_WITHOUT = {"amax": COMPLEX, "amin": COMPLEX, "mean": BOOL}


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
        Whether the element of `input` at the index takes part.

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
    if input._key.dtype.category == _WITHOUT.get(reduce):
        raise NotImplementedError(
            f'scatter_reduce(): "{reduce}" not implemented for {scalar_type(input.dtype)!r}: complex '
            "numbers have no order, and bools no mean"
        )
    return Spec((input, dim, index, source, reduce, bool(include_self)), input._shape, input.dtype)


@composite()
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Return the elements at positions along a dimension; input and index broadcast but for it.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    indices : Tensor
        int64; with `dim`, they count around: -1 and the dimension's size - 1 are one.
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
    if indices._key.dtype is not int64:
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
    dim = existing_dim(dim, len(own), "take_along_dim")
    if own[dim]:
        indices = remainder(indices, own[dim])
    common = broadcast_shapes(
        (*own[:dim], 1, *own[dim + 1 :]), (*wanted[:dim], 1, *wanted[dim + 1 :])
    )
    return gather(
        expand(input, (*common[:dim], own[dim], *common[dim + 1 :])),
        dim,
        expand(indices, (*common[:dim], wanted[dim], *common[dim + 1 :])),
    )


exact_out(gather, scatter, scatter_add, scatter_reduce, take_along_dim)
