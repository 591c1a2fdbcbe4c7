"""Views with the dimensions in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...dispatch.op_registry import Spec, composite, in_place, primitive
from ...tensor.shapes import given_sizes, normalize_dim, one_or_several
from ..rules import check_tensor
from .shape import permuted, relaid

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = [
    "adjoint",
    "matrix_H",
    "moveaxis",
    "movedim",
    "permute",
    "swapaxes",
    "swapdims",
    "t",
    "transpose",
]


@primitive("input, dims", view=True, layout=True)
def permute(input: Tensor, *order: Any, dims: Sequence[int] | None = None) -> Spec:
    """Return a view of `input` with its dimensions in another order.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    *order : int, or one sequence of int
        Each dimension once; ``dims=`` takes it too.

    Raises
    ------
    RuntimeError
        If a dimension is missing or named twice.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3, 4).permute(2, 0, 1).shape
    Size([4, 2, 3])
    """
    check_tensor(input, "permute")
    ndim = len(input._shape)
    given = given_sizes(order, dims, "permute", "dims")
    if len(given) != ndim:
        raise RuntimeError(
            "permute(): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(given)}"
        )
    found: list[int] = []
    for dim in given:
        position = normalize_dim(dim, ndim, "permute")
        if position in found:
            raise RuntimeError(f"permute(): duplicate dims are not allowed. Got {list(given)}")
        found.append(position)
    return Spec((input, tuple(found)), tuple([input._shape[dim] for dim in found]), input.dtype)


@composite(view=True, layout=True, inplace=True, aliases=("swapaxes", "swapdims"))
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return a view of `input` with two dimensions exchanged.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3, 4).transpose(0, 2).shape
    Size([4, 3, 2])
    """
    check_tensor(input, "transpose")
    ndim = len(input._shape)
    first = normalize_dim(dim0, ndim, "transpose")
    second = normalize_dim(dim1, ndim, "transpose")
    order = list(range(ndim))
    if ndim:
        order[first], order[second] = second, first
    return permuted(input, tuple(order))


swapaxes = swapdims = transpose


@composite(view=True, layout=True, inplace=True)
def t(input: Tensor) -> Tensor:
    """Return the transpose of a matrix as a view; a vector or number stays as it is.

    Raises
    ------
    RuntimeError
        If `input` has more than two dimensions.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3).t().shape
    Size([3, 2])
    """
    check_tensor(input, "t")
    ndim = len(input._shape)
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return permuted(input, tuple(range(ndim - 1, -1, -1)))


@composite(aliases=("moveaxis",), view=True)
def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Return a view with the dimensions `source` moved to `destination`; the others keep their order.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3, 4).movedim(0, -1).shape
    Size([3, 4, 2])
    """
    check_tensor(input, "movedim")
    ndim = len(input._shape)
    sources = one_or_several(source)
    targets = one_or_several(destination)
    if len(sources) != len(targets):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(sources)} dims) should "
            f"contain the same number of dims as destination ({list(targets)} dims)"
        )
    given = ((sources, "source"), (targets, "destination"))
    sources = tuple([normalize_dim(dim, ndim, "movedim") for dim in sources])
    targets = tuple([normalize_dim(dim, ndim, "movedim") for dim in targets])
    for dims, (named, role) in zip((sources, targets), given, strict=True):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{role}` ({list(named)})")
    if not ndim:
        return permuted(input, ())
    moved = dict(zip(targets, sources, strict=True))
    rest = iter([dim for dim in range(ndim) if dim not in sources])
    order = tuple([moved[dim] if dim in moved else next(rest) for dim in range(ndim)])
    return permuted(input, order)


moveaxis = movedim


@composite(view=True)
def adjoint(input: Tensor) -> Tensor:
    """Return the conjugate transpose of a matrix or a batch of matrices.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor([[1 + 1j, 2j]]).adjoint()
    tensor([[1.-1.j],
            [0.-2.j]])
    """
    check_tensor(input, "adjoint")
    if not input._shape:
        return input.conj() if input.dtype.is_complex else input
    if len(input._shape) < 2:
        raise RuntimeError(
            "tensor.adjoint() is only supported on matrices or batches of matrices. Got "
            f"{len(input._shape)}-D tensor."
        )
    turned = transpose(input, -2, -1)
    return turned.conj() if input.dtype.is_complex else turned


@composite(name="matrix_H", method=False, view=True)
def matrix_H(input: Tensor) -> Tensor:
    """Return the conjugate transpose of a matrix: what ``input.H`` is.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3).H.shape
    Size([3, 2])
    """
    if len(input._shape) not in (0, 2):
        raise RuntimeError(
            "tensor.H is only supported on matrices (2-D tensors). Got "
            f"{len(input._shape)}-D tensor. For batches of matrices, consider using tensor.mH"
        )
    turned = t(input)
    return turned.conj() if input.dtype.is_complex else turned


@in_place(transpose)
def _transpose(input: Any, dim0: int, dim1: int) -> Any:
    return relaid("transpose_", input, transpose, dim0, dim1)


@in_place(t)
def _t(input: Any) -> Any:
    return relaid("t_", input, t)
