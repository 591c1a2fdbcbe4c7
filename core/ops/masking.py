"""Choice by a mask: where, masked_fill, masked_select, masked_scatter, and fill."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..device.dtypes import BOOL, DType, Number, bool_, result_dtype, scalar_type, uint8
from ..device.scalars import fitting, loosely
from ..dispatch import op_registry
from ..dispatch.arguments import Foreign, fits, plain
from ..dispatch.execution import kernel_of
from ..dispatch.op import Op
from ..dispatch.op_registry import Delegated, composite, defined_by, handle, in_place, primitive
from ..dispatch.out_dtypes import exact_out
from ..dispatch.overrides import taken_over
from ..dispatch.state import dispatch_state
from ..dispatch.writes import inplace, is_free, written
from ..errors import warn
from ..tensor.base import TensorBase, bump_version
from ..tensor.shapes import broadcast_shapes
from .copying import copy
from .indexing.indexing import at, index as index_op, index_put, part
from .rules import cast, check_tensor, elementwise
from .shape.expansion import expand
from .shape.shape import reshape, shown_as

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = [
    "fill",
    "fill_",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "where",
    "zero_",
]

_NE = handle("ne")


_NONZERO = handle("nonzero")


@primitive(
    "condition, input, other",
    pointwise=True,
    masks="condition",
    delegates="nonzero that of a condition alone",
    method=False,
)
def where(
    condition: Tensor, input: Tensor | Number | None = None, other: Tensor | Number | None = None
) -> Any:
    """Return `input` where the condition is true, else `other`.

    Parameters
    ----------
    condition : Tensor of bool
        Broadcast against both values.
    input, other : Tensor or number
        Promoted to one dtype. Without both the result is ``nonzero(condition, as_tuple=True)``.

    Raises
    ------
    RuntimeError
        If the condition is not of bool.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([-1.0, 2.0])
    >>> tp.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    check_tensor(condition, "where", "condition")
    if input is None and other is None:
        return Delegated(_NONZERO.call(condition, as_tuple=True))
    if input is None or other is None:
        raise TypeError("where(): give both values, or none for the places of the true elements")
    if condition.dtype.category != BOOL:
        if condition.dtype is not uint8:
            raise RuntimeError(
                "where expected condition to be a boolean tensor, but got a tensor with dtype "
                f"{condition.dtype.name}; compare it with something, for example != 0"
            )
        warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a "
            "future version of PyTorch. Use a boolean condition instead.",
            UserWarning,
        )
        condition = _NE.call(condition, 0)
    compute = result_dtype((input, other))
    values = [
        v if isinstance(v, TensorBase) else loosely(plain(v), compute) for v in (input, other)
    ]
    return elementwise("where", *values, condition=condition, compute=compute, exact=True)


_WHERE: Op = where.op  # type: ignore[attr-defined]


@composite(rows=True, inplace=True)
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    """Return `input` with `value` where the mask is true, in the dtype of `input`.

    Parameters
    ----------
    input : Tensor
        Broadcast against the mask.
    mask : Tensor of bool
        Where to put the value.
    value : number or 0-d Tensor
        Converted to the dtype of `input`.

    Raises
    ------
    RuntimeError
        If the mask is not of bool, the value has dimensions, or is complex beside a real input.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.masked_fill(tp.tensor([1.0, 2.0]), tp.tensor([True, False]), 0.0)
    tensor([0., 2.])
    """
    check_tensor(input, "masked_fill")
    check_tensor(mask, "masked_fill", "mask")
    if mask.dtype.category != BOOL:
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype.name}"
        )
    return where(mask, _filling("masked_fill", input, value), input)


@in_place(masked_fill)
def _masked_fill(target: Any, mask: Any, value: Any) -> Any:
    """Write a number at a mask, if there is nothing to record or to convert."""
    if dispatch_state.layers_active or dispatch_state.preferences or dispatch_state.verify:
        return NotImplemented
    if not isinstance(mask, TensorBase) or isinstance(value, TensorBase):
        return NotImplemented
    own: Any = target._key
    tensor: Any = mask
    if tensor._key.dtype is not bool_ or tensor._key.device is not own.device:
        return NotImplemented
    shape, sizes = target._shape, tensor._shape
    if sizes != shape and (
        len(sizes) != len(shape)
        or not all([size in (1, wanted) for size, wanted in zip(sizes, shape, strict=True)])
    ):
        return NotImplemented
    if own.is_meta or not fits(value, own.dtype) or not is_free(target):
        return NotImplemented
    array = target._array
    chosen = kernel_of(_WHERE, own)(tensor._array, own.scalar(value), array)
    own.runtime.copy_into(array, chosen)
    bump_version(target)
    return target


def _filling(name: str, input: Tensor, value: Tensor | Number) -> Tensor | Number:
    """Return a fill value fit for the dtype of `input`."""
    dtype = input._key.dtype
    if isinstance(value, TensorBase):
        if value._shape:
            raise RuntimeError(
                f"{name}(): only supports a 0-dimensional value tensor, but got tensor with "
                f"{len(value._shape)} dimension(s)"
            )
        if dtype.category != BOOL and _may_overflow(value, dtype):
            for number in _numbers(value):
                fitting(number, dtype)
        return cast(value, dtype)
    return fitting(plain(value), dtype)


def _may_overflow(value: Any, dtype: DType) -> bool:
    """Return whether a dtype might not hold a 0-d tensor's value, and the value is there to be looked at."""
    own = value._key.dtype
    if own is dtype or value.is_meta:
        return False
    return own.category > dtype.category or own.itemsize >= dtype.itemsize


def _numbers(value: Any) -> list[Number]:
    """Return the number of a 0-d tensor; inside of vmap those of all samples."""
    whole = value
    while getattr(whole, "_batched", False):
        whole = whole.value
    numbers: list[Number] = [value.item()] if whole is value else whole.detach().flatten().tolist()
    return numbers


@composite()
def fill(input: Tensor, value: Tensor | Number) -> Tensor:
    """Return a tensor like `input` whose elements are all `value`, a number or 0-d tensor.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fill(tp.tensor([1.0, 2.0]), 7)
    tensor([7., 7.])
    """
    check_tensor(input, "fill")
    return copy(input, _filling("fill", input, value))


@defined_by(fill)
def fill_(input: Tensor, value: Tensor | Number) -> Tensor:
    """Write `value`, a number or 0-d tensor, into every element of `input`; return `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2).fill_(7)
    tensor([7., 7.])
    """
    given: Any = input
    try:
        if not isinstance(given, TensorBase):
            raise Foreign
        filling = _filling("fill_", input, value)
    except Foreign:
        made = taken_over(fill_, (input, value))
        if made is not None:
            return made[0]
        check_tensor(input, "fill_")
        raise
    return inplace(_COPY, "fill_", input, (filling,), {})


@defined_by(fill)
def zero_(input: Tensor) -> Tensor:
    """Write zero into every element of `input`; return `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ones(2).zero_()
    tensor([0., 0.])
    """
    check_tensor(input, "zero_")
    zero = False if input._key.dtype is bool_ else 0
    if not dispatch_state.layers_active and written(_COPY, input, (input, zero)):
        return input
    return inplace(_COPY, "fill_", input, (zero,), {})


def _where_method(self: Tensor, condition: Tensor, other: Tensor | Number) -> Any:
    """Return ``where(condition, self, other)``: of the method the values come first."""
    return where(condition, self, other)


_COPY = handle("copy")


dispatch_state.add_method("fill_", fill_)


dispatch_state.add_method("zero_", zero_)


dispatch_state.add_method("where", _where_method)


_INDEX_PUT = op_registry.handle("index_put")


def _mask(input: Any, mask: Any, name: str, expected: str) -> None:
    check_tensor(input, name)
    check_tensor(mask, name, "mask")
    if mask._key.dtype is not bool_:
        raise RuntimeError(f"{name}: {expected}got mask with dtype {scalar_type(mask.dtype)}")


def _canonical_masked_select(input: Any, mask: Any) -> Any:
    _mask(input, mask, "masked_select", "expected BoolTensor for mask, ")
    if input._shape == mask._shape and input._shape and input._key.device is mask._key.device:
        return input, mask
    shape = broadcast_shapes(input._shape, mask._shape) or (1,)
    shown, mask = expand(input, shape), expand(mask, shape)
    if shown._key.device is not mask._key.device:
        return Delegated(index_op(shown, [mask]))
    return shown, mask


@composite(rule=_canonical_masked_select)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements of `input` where a mask, broadcast with it, is True, in one dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a = tp.tensor([1, 2, 3])
    >>> tp.masked_select(a, a > 1)
    tensor([2, 3])
    """
    return index_op(input, [mask])


def _canonical_masked_scatter(input: Any, mask: Any, source: Any) -> tuple[Any, Any, Any]:
    _mask(input, mask, "masked_scatter", "masked_scatter_ only supports boolean masks, but ")
    check_tensor(source, "masked_scatter", "source")
    if source._key.dtype is not input._key.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {input.dtype.name} "
            f"and {source.dtype.name}"
        )
    broadcast_shapes(input._shape, mask._shape)
    return input, mask, source


def _masked(input: Any, mask: Any, source: Any) -> tuple[list[Any], Any]:
    """Return where a mask of the shape of `input` is True, and the elements that go there."""
    found = _NONZERO.call(mask)
    count = found._shape[0]
    if math.prod(source._shape) < count:
        raise RuntimeError(
            f"masked_scatter: Number of elements of source ({math.prod(source._shape)}) < number of ones "
            f"in mask ({count})"
        )
    values = part(reshape(source, (math.prod(source._shape),)), 0, 0, count)
    return [at(found, 1, d) for d in range(found._shape[1])], values


@composite(rule=_canonical_masked_scatter, inplace=True)
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
    if not shape:
        flat = masked_scatter(shown_as(input, (1,)), shown_as(mask, (1,)), source)
        return reshape(flat, ())
    wide = expand(input, shape)
    indices, values = _masked(wide, expand(mask, shape), source)
    return index_put(wide, indices, values)


@in_place(masked_scatter)
def _masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    target = input if input._shape else shown_as(input, (1,))
    _canonical_masked_scatter(target, mask, source)
    indices, values = _masked(target, expand(mask, target._shape), source)
    inplace(_INDEX_PUT, "masked_scatter_", target, (indices, values), {})
    return input


exact_out(masked_select, where)
