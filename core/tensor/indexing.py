"""``tensor[key]`` and ``tensor[key] = value``.

A key is taken apart from left to right, as torch does: ints, slices, None and Ellipsis make a view; what
is left, tensors and masks, then indexes that view. (NumPy counts an int beside an index array as an
array; torch, and so this, does not.)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

from ..device.dtypes import bool_, int64, uint8, uint64
from ..device.scalars import fitting, loosely
from ..dispatch import op_registry, overrides
from ..dispatch.arguments import Foreign
from ..dispatch.execution import execute, show, verify
from ..dispatch.op import Spec
from ..dispatch.overrides import taken_over
from ..dispatch.state import dispatch_state
from ..dispatch.writes import inplace
from .base import TensorBase, new_tensor
from .basic_views import row, show_basic
from .index_keys import out_of_bounds, parse
from .shapes import Shape

if TYPE_CHECKING:
    from .tensor import Tensor

BASIC_INDEX = op_registry.handle("basic_index")
COPY = op_registry.handle("copy")
INDEX = op_registry.handle("index")
INDEX_PUT = op_registry.handle("index_put")
MASKED_FILL = op_registry.handle("masked_fill")
MASKED_SELECT = op_registry.handle("masked_select")
RESHAPE = op_registry.handle("reshape")
_FEW = 4096


def get_item(input: Any, key: Any) -> Tensor:
    """Return ``input[key]``.

    Raises
    ------
    IndexError
        If a position does not exist or a part of the key can be no index.
    TypeError, ValueError
        If a slice is malformed or its step is not positive.
    """
    tensor_key = type(key)
    if tensor_key is int:
        shape = input._shape
        if shape:
            size = shape[0]
            if -size <= key < size:
                position: int = key
                return row(input, position + size if position < 0 else position, shape)
        raise out_of_bounds(key, input._shape)
    if tensor_key is tuple:
        result = show_basic(input, key)
        if result is not None:
            return result
    elif tensor_key is slice or key is None or key is Ellipsis:
        result = show_basic(input, (key,))
        if result is not None:
            return result
    if dispatch_state.layers_active:
        made = taken_over(BASIC_INDEX, (input, key))
        if made is not None:
            return made[0]
    if isinstance(key, TensorBase):
        index = key
        dtype = index._key.dtype
        if index._shape and (dtype is int64 or dtype is bool_):
            shape = input._shape
            beside = index._key.device is input._key.device and not dispatch_state.layers_active
            if dtype is int64:
                if not beside or not shape:
                    return INDEX.call(input, [key])
                return _gathered(input, index, index._shape + shape[1:])
            if beside and index._shape == shape:
                return MASKED_SELECT.call(input, key)
    try:
        result, indices = parse(input, key)
    except Foreign as error:
        return _handed_over("__getitem__", error, input, key)
    if indices:
        return INDEX.call(result, indices)
    # Never the tensor itself: a[...] can be written to without changing what `a` is.
    return show(BASIC_INDEX, input, ((),), input._shape) if result is input else result


def _gathered(input: Any, index: Any, shape: Shape) -> Any:
    """Return what stands at positions of the first dimension; no layer is active."""
    key = input._key
    values = (input, [index])
    try:
        array = None if key.is_meta else key.kernels[INDEX.index](input._array, [index._array])
    except Exception:  # raised again below, if it is no warning
        array = None
    if array is None or type(array) is not key.array_type or array.shape != shape:
        spec = Spec.__new__(Spec)  # no call of an __init__
        spec.values = values
        spec.key = key
        spec.outputs = ((shape, key.dtype),)
        return execute(INDEX, spec)
    if dispatch_state.verify:
        verify(INDEX, key, array, ((shape, key.dtype),))
    output = new_tensor(array, key, shape)
    if input._state and (not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()):
        dispatch_state.gradient.record(INDEX, values, (output,))
    if dispatch_state.inference:
        dispatch_state.gradient.mark_if_inference(output)
    return output


_WIDE = int("8000000000000000", 16)  # a number of Python's also where the module is compiled


def set_item(input: Any, key: Any, value: Any) -> None:
    """Write `value` to ``input[key]``.

    Raises
    ------
    IndexError, TypeError, ValueError
        As :func:`get_item` for the key.
    RuntimeError
        If the value does not broadcast to what is indexed, or its dtype differs where index tensors are used.
    """
    if not isinstance(value, (TensorBase, bool, int, float, complex)):
        if overrides.overrides(type(value)):
            _handed_over("__setitem__", None, input, key, value)
            return
        value = _number(value, input)
    if type(value) is complex:
        value = fitting(value, input._key.dtype)
    elif isinstance(value, (bool, int, float)) and not -60000 < value < 60000:
        most = 2 * _WIDE if input._key.dtype is uint64 else _WIDE
        if isinstance(value, int) and not -_WIDE <= value < most:
            raise ValueError(f"Overflow when unpacking long long: {value} has more than 64 bits")
        value = loosely(value, input._key.dtype)
    if isinstance(key, TensorBase) and key._key.dtype is bool_ and key._shape:
        sizes: Shape = key._shape
        shape: Shape = input._shape
        plain = not isinstance(value, TensorBase)
        whole = sizes == shape and (plain or not value._shape)
        # Of few elements it is quicker to look at all than to find the rows.
        rows = plain and sizes == shape[: len(sizes)] and math.prod(shape) <= _FEW
        if (whole or rows) and op_registry.has_op("masked_fill"):
            if len(sizes) < len(shape):  # of whole rows
                key = RESHAPE.call(key, (*sizes, *[1] * (len(shape) - len(sizes))))
            inplace(MASKED_FILL, "masked_fill_", input, (key, value), {})
            return
    if key is False:
        return
    try:
        target, indices = parse(input, None if key is True else key)
    except Foreign as error:
        _handed_over("__setitem__", error, input, key, value)
        return
    if not indices:
        if isinstance(value, TensorBase):
            value = _strip(value, len(target._shape))
        inplace(COPY, "copy_", target, (value,), {})
        return
    if not isinstance(value, TensorBase):
        value = _scalar(value, target)
    elif math.prod(value._shape) == 1 and _is_mask(indices):
        # One number at a mask fills it, whatever the number's dtype (torch makes it masked_fill_).
        value = cast(Any, value).to(target._key.device, target._key.dtype)
    inplace(INDEX_PUT, "index_put_", target, (indices, _fit(value, indices, target)), {})


def _handed_over(name: str, error: Foreign | None, *args: Any) -> Any:
    """Have an object that is no tensor index, or be assigned, by its ``__torch_function__``."""
    found = overrides.relevant(args)
    if not found:  # nobody is asked in this block
        if error is None:
            return _number(args[2], args[0])
        raise IndexError(str(error))
    return overrides.handle(getattr(overrides.tensor_class, name), found, args, {})


def _is_mask(indices: list[Any]) -> bool:
    """Return whether a single mask is all that a key has beside basic parts."""
    found = [item for item in indices if item is not None]
    return len(found) == 1 and found[0]._key.dtype is bool_


def _number(value: Any, input: Any) -> Any:
    """Return a NumPy scalar as a number."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    raise TypeError(
        f"can't assign a {type(value).__name__} to a tensor of {input.dtype}; make it a tensor first, "
        "with tp.tensor(value)"
    )


def _scalar(value: Any, like: Any) -> Any:
    """Return a number as a 0-d tensor of the dtype and device of another."""
    key = like._key
    return new_tensor(key.scalar(value), key, ())


def _strip(value: Any, ndim: int) -> Any:
    """Return a value without the leading dimensions of size 1 that the indexed part lacks."""
    shape = value._shape
    extra = len(shape) - ndim
    if extra <= 0 or any([size != 1 for size in shape[:extra]]):
        return value
    return value.reshape(shape[extra:])


def _fit(value: Any, indices: list[Any], target: Any) -> Any:
    """Return a value without leading dimensions of size 1 beyond those of the indexed part."""
    shape = value._shape
    if not shape or shape[0] != 1:
        return value
    positions = [d for d, item in enumerate(indices) if item is not None]
    width = sum([_width(indices[d]) for d in positions])
    common = max([_depth(indices[d]) for d in positions])
    return _strip(value, len(target._shape) - width + common)


def _width(item: Any) -> int:
    return len(item._shape) if item._key.dtype in (bool_, uint8) else 1


def _depth(item: Any) -> int:
    return 1 if item._key.dtype in (bool_, uint8) else len(item._shape)


dispatch_state.get_item = get_item
dispatch_state.set_item = set_item
