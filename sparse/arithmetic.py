"""Pointwise ops of sparse tensors, conversions and copies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorplug.core.device.dtypes import can_cast, int64, promote_types, scalar_type
from tensorplug.core.dispatch import op_registry
from tensorplug.core.ops import cat, empty, searchsorted, zeros
from tensorplug.core.ops.arithmetic.pointwise import check_factor, check_not_bool
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.layout import strided
from tensorplug.core.tensor.predicates import result_type
from tensorplug.core.tensor.shapes import broadcast_shapes

from .broadcasting import broadcast, fits, shape_beside
from .compressed import CompressedTensor
from .coordinates import CooTensor
from .layouts import title
from .structure import compressed_of_coo, coo_of_compressed, flat_places
from .tensors import SparseTensor

#: Pointwise ops of one tensor that are zero at zero, so that what is not stored stays so.
ZERO_AT_ZERO = (
    "abs", "angle", "asin", "asinh", "atan", "atanh", "ceil", "deg2rad", "erf",
    "erfinv", "expm1", "floor", "frac", "isinf", "isnan", "isneginf", "isposinf",
    "log1p", "nan_to_num", "rad2deg", "relu", "round", "sgn", "sign", "signbit",
    "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip
#: Those that are linear, too, so that elements at one place need not be added up before.
LINEAR = ("neg", "positive", "conj", "conj_physical", "real", "imag")


def as_coo(tensor: Any) -> CooTensor:
    """Return a sparse tensor by coordinates."""
    return coo_of_compressed(tensor) if isinstance(tensor, CompressedTensor) else tensor


def unique(tensor: Any) -> Any:
    """Return a sparse tensor with each place once."""
    return tensor.coalesce() if isinstance(tensor, CooTensor) else tensor


def like(tensor: CooTensor, example: Any) -> Any:
    """Return a tensor by coordinates in the layout, and with blocks of the size, of another sparse one."""
    if not isinstance(example, CompressedTensor):
        return tensor
    dtype = example._starts.dtype
    return compressed_of_coo(tensor, example._layout, example._blocksize, dtype)


def at_places_of(tensor: Any, values: Any) -> Any:
    """Return a sparse tensor like another with other values, (nnz, dense), in the order of :func:`as_coo`."""
    if not isinstance(tensor, CompressedTensor):
        return tensor._with_values(values)
    leading = tensor._stored._shape[: len(tensor._stored._shape) - tensor.dense_dim()]
    return tensor._with_values(values.reshape((*leading, *values._shape[1:])))


def _pointwise(name: str, linear: bool) -> Callable[..., Any]:
    op = op_registry.handle(name)

    def compute(input: Any, *args: Any, **kwargs: Any) -> Any:
        stored = input if linear else unique(input)
        return stored._with_values(op.call(stored._stored, *args, **kwargs))

    return compute


def is_number(value: Any) -> bool:
    """Return whether a value is a number or a dense tensor without dimensions."""
    if isinstance(value, TensorBase):
        return not isinstance(value, SparseTensor) and not value._shape
    return not isinstance(value, (list, tuple))


def _mul(input: Any, other: Any) -> Any:
    if not isinstance(input, SparseTensor):
        input, other = other, input
    if is_number(other):
        return _times_number(input, other)
    if isinstance(other, SparseTensor):
        if not input._shape and (other._shape or other._nnz() > input._nnz()):
            input, other = other, input
        if not other._shape:  # a number, which may be stored in parts
            return _times_number(input, other.to_dense())
        return _intersection(input, other)
    places = as_coo(input)
    shape = shape_beside(other, places)
    if shape is None:
        raise RuntimeError(
            f"mul(): the dense tensor, {list(other.shape)}, and the sparse one, {list(places.shape)}, are "
            "not broadcast to each other"
        )
    if shape == places._shape:
        return at_places_of(input, places._stored * _gathered(other, places, "mul"))
    places = broadcast(places, shape)
    product = places._with_values(places._stored * _gathered(other, places, "mul"))
    return like(product, input)


def _times_number(input: Any, number: Any) -> Any:
    """Return a product; the dtype is of the tensors' dimensions, not of those of the stored values."""
    stored = input._stored
    if isinstance(number, TensorBase) and not input._shape:
        stored = stored.to(promote_types(input.dtype, number._key.dtype))
    return input._with_values(stored * number)


def _gathered(dense: Any, places: CooTensor, name: str) -> Any:
    """Return the elements of a dense tensor at the places of a sparse one."""
    if not fits(tuple(dense.shape), places._shape):
        raise RuntimeError(
            f"{name}(): the dense tensor, {list(dense.shape)}, has to have the shape of the sparse one, "
            f"{list(places._shape)}, or be broadcast to it"
        )
    count = places.sparse_dim()
    sizes = places._shape[:count]
    rows = dense.expand(places._shape).reshape((math.prod(sizes), *places._shape[count:]))
    return rows.index_select(0, flat_places(places._where, sizes))


def _intersection(input: Any, other: Any) -> Any:
    a, b = unique(as_coo(input)), unique(as_coo(other))
    sparse = a.sparse_dim()
    alike = sparse == b.sparse_dim() and a._shape[:sparse] == b._shape[:sparse]
    if not alike or len(a._shape) != len(b._shape):
        _check_alike(a, b, "mul")
    shape = broadcast_shapes(a._shape, b._shape)  # dense dimensions are free to
    where, found = _looked_up(a, b)
    chosen = found.nonzero().squeeze(1)
    values = a._stored.index_select(0, chosen) * b._stored.index_select(
        0, where.index_select(0, chosen)
    )
    result = CooTensor.of(a._where.index_select(1, chosen), values, shape, True)
    return like(result, input)


def _looked_up(a: CooTensor, b: CooTensor) -> tuple[Any, Any]:
    """Return where in `b`, whose places are in order, those of `a` are, and which are there at all."""
    shape = a._shape[: a.sparse_dim()]
    own, theirs = flat_places(a._where, shape), flat_places(b._where, shape)
    if not theirs._shape[0]:
        return zeros(own._shape[0], dtype=int64, device=own.device), own < 0
    where = searchsorted(theirs, own).clamp(max=theirs._shape[0] - 1)
    return where, theirs.index_select(0, where) == own


def all_found(input: Any, other: Any) -> bool:
    """Return whether a sparse tensor has elements only where another of its shape has."""
    a, b = as_coo(input), unique(as_coo(other))
    alike = a._shape == b._shape and a.sparse_dim() == b.sparse_dim()
    return alike and bool(_looked_up(a, b)[1].all())


def _check_alike(a: CooTensor, b: CooTensor, name: str) -> None:
    if a._shape != b._shape:
        raise RuntimeError(
            f"{name}(): Expected input tensors to have the same shape, of sparse tensors one shape, got "
            f"{list(a.shape)} and {list(b.shape)}"
        )
    if a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(
            f"{name}(): expected tensors of equal sparse dimensions, got {a.sparse_dim()} and "
            f"{b.sparse_dim()}"
        )


def _div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    if not isinstance(input, SparseTensor) or not is_number(other):
        shape = list(getattr(other, "shape", ()))
        kind = {"floor": "floor division"}.get(rounding_mode or "", "division")
        raise RuntimeError(
            f"Sparse {kind} requires a scalar or zero-dim dense tensor divisor (got shape "
            f"{shape} for divisor)"
        )
    stored = input if rounding_mode is None else unique(input)
    return stored._with_values(stored._stored.div(other, rounding_mode=rounding_mode))


def _floor_divide(input: Any, other: Any) -> Any:
    return _div(input, other, rounding_mode="floor")


def _coalesced_in_place(name: str) -> Callable[..., Any]:
    """Return an in-place variant that, as torch's, refuses elements that are still to be added up."""
    compute = _pointwise(name, False)

    def in_place(input: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(input, CooTensor) and not input._coalesced:
            raise RuntimeError(
                f"{name}_ requires coalesced input: call .coalesce() first, or {name}(), which does"
            )
        return compute(input, *args, **kwargs)

    return in_place


def _pow(input: Any, exponent: Any) -> Any:
    if isinstance(exponent, TensorBase) or not isinstance(input, SparseTensor) or exponent <= 0:
        raise RuntimeError(
            f"pow(): of a sparse tensor to a positive number, got {exponent!r}: else what is not "
            "stored would not stay zero"
        )
    stored = unique(input)
    return stored._with_values(stored._stored.pow(exponent))


def _add(input: Any, other: Any, alpha: Any = 1) -> Any:
    check_factor("add", result_type(input, other), alpha)
    if isinstance(input, SparseTensor) and isinstance(other, SparseTensor):
        a, b = as_coo(input), as_coo(other)
        dtype = promote_types(a.dtype, b.dtype)
        if a._shape == b._shape and a.sparse_dim() != b.sparse_dim():
            # Nothing stored is nothing, of however many dense dimensions.
            if not b._nnz():
                return input.to(dtype)
            if not a._nnz():
                return like(b._with_values(_times(b._stored.to(dtype), alpha)), input)
        _check_alike(a, b, "add")
        added = _times(b._stored.to(dtype), alpha)
        values = cat([a._stored.to(dtype), added])
        total = CooTensor.of(cat([a._where, b._where], 1), values, a._shape)
        return like(total.coalesce() if a._coalesced and b._coalesced else total, input)
    if not isinstance(input, SparseTensor) and isinstance(input, TensorBase):
        return _added_to_dense(input, other, alpha)
    if isinstance(other, TensorBase) and not is_number(other):
        dense: Any = other
        return _added_to_dense(_times(dense.to(result_type(input, dense)), alpha), input, 1)
    raise RuntimeError(
        "add(): of a sparse tensor and a number: what is not stored would not stay zero; convert with "
        ".to_dense() first"
    )


def _times(values: Any, alpha: Any) -> Any:
    return values if alpha == 1 else (values * alpha).to(values.dtype)


def _added_to_dense(dense: Any, sparse: Any, alpha: Any) -> Any:
    """Return the sum of a dense tensor and a sparse one, which is dense."""
    if tuple(dense.shape) != sparse._shape:
        return dense.add(sparse.to_dense(), alpha=alpha)  # broadcasts, or says why not
    dtype = promote_types(dense.dtype, sparse.dtype)
    places = as_coo(sparse)
    values = places._stored.to(dtype)
    shape = places._shape[: places.sparse_dim()]
    rows = dense.to(dtype).reshape((math.prod(shape), *places._shape[len(shape) :]))
    flat = flat_places(places._where, shape)
    return rows.index_add(0, flat, values, alpha=alpha).reshape(dense.shape)


def check_kept(name: str, result: Any, target: Any) -> None:
    """Refuse to write a result into a tensor whose dtype would lose its kind, as of dense tensors."""
    if not can_cast(result.dtype, target.dtype):
        raise RuntimeError(
            f"{name}(): result type {scalar_type(result.dtype)} can't be cast to the desired output type "
            f"{scalar_type(target.dtype)}"
        )


def _sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    check_not_bool(input, other)
    return _add(input, other, alpha=-alpha)


def _add_in_place(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Add in place: to a dense tensor only where the sparse one has elements."""
    if isinstance(input, SparseTensor):
        if not isinstance(other, SparseTensor):
            raise RuntimeError(
                "add_(): a dense tensor cannot be added to a sparse one in place; add the sparse one to "
                "the dense one"
            )
        return _add(input, other, alpha=alpha)
    places = as_coo(other)
    if tuple(input.shape) != places._shape:
        return input.add_(other.to_dense(), alpha=alpha)
    dtype = result_type(input, places._stored)
    check_factor("add_", dtype, alpha)
    if dtype is not input.dtype:
        return input.add_(other.to_dense(), alpha=alpha)
    values = _times(places._stored.to(input.dtype), alpha)
    if places.sparse_dim() == 1:
        return input.index_add_(0, places._where[0], values)
    if not places.sparse_dim():
        return input.add_(values.sum(0))
    return input.index_put_(tuple(places._where.unbind(0)), values, accumulate=True)


def _sub_in_place(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    check_not_bool(input, other)
    return _add_in_place(input, other, alpha=-alpha)


def _scale_in_place(method: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(input: Any, other: Any, **options: Any) -> Any:
        if isinstance(input, SparseTensor) and is_number(other) and not options:
            getattr(input._stored, method)(other)
            return input
        if not isinstance(input, SparseTensor):
            result = function(input, other, **options)
            check_kept(method, result, input)
            return input.copy_(result.to_dense())
        return function(input, other, **options)

    return compute


def _cast(input: Any, dtype: Any) -> Any:
    return input._with_values(input._stored.to(dtype))


def _clone(input: Any) -> Any:
    return input._with(tuple([part.clone() for part in input._parts()]))


def _copy_in_place(input: Any, src: Any, non_blocking: bool = False) -> Any:
    if not isinstance(input, SparseTensor):
        return input.copy_(src.to_dense(), non_blocking)
    if isinstance(src, (int, float)) and not src:  # zero_()
        return nothing_stored(input)
    if not isinstance(src, SparseTensor) or src.layout is not input.layout:
        given: Any = getattr(src, "layout", strided)
        raise RuntimeError(
            "torch.copy_: copy of sparse compressed tensors having different layouts is not supported. self "
            f"layout is {title(input.layout)} and src layout is {title(given)}"
            if isinstance(input, CompressedTensor)
            else f"copy_(): to a tensor of layout {input.layout} another of it is copied, got "
            f"{given}"
        )
    if isinstance(input, CompressedTensor):
        _check_copied(input, src)
    elif src._shape != input._shape:
        raise RuntimeError(
            f"copy_(): expected the shape {list(input.shape)}, got {list(src.shape)}"
        )
    return _clone(src.to(device=input.device, dtype=input.dtype))


def _check_copied(input: CompressedTensor, src: Any) -> None:
    """Refuse to copy what is not of as many elements, rows or columns, and of blocks of the size."""
    if src._nnz() != input._nnz():
        raise RuntimeError(
            "torch.copy_: only sparse compressed tensors with the same number of specified elements are "
            f"supported, got {input._nnz()} and {src._nnz()}"
        )
    if src._blocksize != input._blocksize:
        raise RuntimeError(
            "torch.copy_: copy of sparse compressed tensors having different block sizes is not supported. "
            f"self and src block sizes are {list(input._blocksize)} and {list(src._blocksize)}, respectively."
        )
    if src._shape != input._shape:
        dim = input._batch + (0 if input._layout.by_rows else 1)
        raise RuntimeError(
            f"torch.copy_: expected shapes of self and src to match along dimension {dim} for "
            f"{title(input._layout)} layout, and along all others, got {list(input.shape)} and "
            f"{list(src.shape)}"
        )


def nothing_stored(input: Any, dtype: Any = None, device: Any = None) -> Any:
    """Return a sparse tensor of the shape and layout of another, in which nothing is stored."""
    device = input.device if device is None else device
    dtype = dtype or input.dtype
    if isinstance(input, CompressedTensor):
        starts, batch = input._starts, input._shape[: input._batch]
        value = input._stored._shape[len(batch) + 1 :]
        return input._with(
            (
                zeros(starts._shape, dtype=starts.dtype, device=device),
                empty((*batch, 0), dtype=starts.dtype, device=device),
                empty((*batch, 0, *value), dtype=dtype, device=device),
            )
        )
    values = empty((0, *input._shape[input.sparse_dim() :]), dtype=dtype, device=device)
    where = empty((input.sparse_dim(), 0), dtype=int64, device=device)
    return CooTensor.of(where, values, input._shape, True)


def sparse_mask(input: Any, mask: Any) -> Any:
    """Return the elements of a tensor at the places of a sparse one, in its layout.

    Parameters
    ----------
    input : Tensor
        Dense or sparse, of the shape of `mask`.
    mask : Tensor
        A sparse tensor; its values do not matter.

    Examples
    --------
    >>> import tensorplug as tp
    >>> mask = tp.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 1.0], (2, 2))
    >>> tp.tensor([[1.0, 2.0], [3.0, 4.0]]).sparse_mask(mask).to_dense()
    tensor([[0., 2.],
            [3., 0.]])
    """
    if not isinstance(mask, SparseTensor):
        raise RuntimeError(f"sparse_mask(): expected a sparse tensor as mask, got {mask.layout}")
    if tuple(input.shape) != mask._shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(input.shape)} but "
            f"mask has size {list(mask.shape)}"
        )
    places = as_coo(mask)
    if not isinstance(input, SparseTensor):
        return at_places_of(mask, _gathered(input, places, "sparse_mask"))
    source = unique(as_coo(input))
    _check_alike(source, places, "sparse_mask")
    where, found = _looked_up(places, source)
    values = zeros(
        (places._nnz(), *source._stored._shape[1:]), dtype=source.dtype, device=source.device
    )
    chosen = found.nonzero().squeeze(1)
    stored = source._stored.index_select(0, where.index_select(0, chosen))
    return at_places_of(mask, values.index_add(0, chosen, stored))


TABLE: dict[str, Callable[..., Any]] = {
    **{name: _pointwise(name, False) for name in ZERO_AT_ZERO},
    **{name: _pointwise(name, True) for name in LINEAR},
    "add": _add,
    "add_scaled": _add,
    "cast": _cast,
    "clone": _clone,
    "copy": _copy_in_place,
    "div": _div,
    "floor_divide": _floor_divide,
    "mul": _mul,
    "pow": _pow,
    "sub": _sub,
    "zero": nothing_stored,
}

#: In-place variants that are more than their results stored: by the variant's name.
IN_PLACE: dict[str, Callable[..., Any]] = {
    "add_": _add_in_place,
    "div_": _scale_in_place("div_", _div),
    "mul_": _scale_in_place("mul_", _mul),
    "sub_": _sub_in_place,
    "copy_": _copy_in_place,
    **{f"{name}_": _coalesced_in_place(name) for name in ZERO_AT_ZERO},
}
