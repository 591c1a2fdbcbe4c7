"""``tensor[key]`` and ``tensor[key] = value``.

A key is taken apart from left to right, as torch does: ints, slices, None and Ellipsis make a view; what
is left, tensors and masks, then indexes that view. (NumPy counts an int beside an index array as an
array; torch, and so this, does not.)
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, cast

from ..device.dtypes import bool_, int32, int64, uint8, uint64
from ..device.scalars import fitting, loosely
from ..dispatch import op_registry, overrides
from ..dispatch.arguments import Foreign
from ..dispatch.call_cache import CallCache, store_plan
from ..dispatch.execution import execute, show, verify
from ..dispatch.keys import DispatchKey, dispatch_key
from ..dispatch.op import Spec
from ..dispatch.overrides import taken_over
from ..dispatch.state import dispatch_state
from ..dispatch.view_calls import follow
from ..dispatch.view_plans import RowPlans, ViewPlan
from ..dispatch.writes import inplace
from ..errors import warn
from ..ops.indexing.indexing import mask_of_bytes, sliced_shape
from .base import TensorBase, new_tensor
from .host_data import from_data
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

_ALL = slice(None)


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
                return _row(input, position + size if position < 0 else position, shape)
        raise _out_of_bounds(key, input._shape)
    if tensor_key is tuple:
        result = _show_basic(input, key)
        if result is not None:
            return result
    elif tensor_key is slice or key is None or key is Ellipsis:
        result = _show_basic(input, (key,))
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
        result, indices = _parse(input, key)
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


def _row(input: Any, position: int, shape: Shape) -> Any:
    """Return the view of one position of the first dimension."""
    if dispatch_state.layers_active or input._key.is_meta:
        return show(BASIC_INDEX, input, ((position,),), shape[1:])
    latest: Any = _ROWS.latest
    if (
        latest is None
        or latest.key is not input._key
        or (latest.given is not shape and latest.given != shape)
    ):
        key = (input._key, shape)
        latest = _ROWS.calls.get(key)
        if latest is None:
            latest = store_plan(_ROWS, key, RowPlans(input, min(shape[0], _ROWS_KEPT)))
        _ROWS.latest = latest
    rows = latest.rows
    if position < len(rows):
        plan = rows[position]
        if plan is not None:
            return follow(plan, input)
    values = ((position,),)
    result = show(BASIC_INDEX, input, values, shape[1:])
    if position < len(rows):
        rows[position] = ViewPlan(BASIC_INDEX, values, shape, shape[1:])
    return result


def _show_basic(input: Any, key: tuple[Any, ...]) -> Any:
    """Return the view of a key of ints, slices, None and Ellipsis, or None for any other key."""
    tensor_key = input._key
    plan_key = None
    if not (dispatch_state.layers_active or tensor_key.is_meta):
        latest: Any = _PLANS.latest
        if (
            latest is not None
            and latest.key is tensor_key
            and (latest.given is input._shape or latest.given == input._shape)
            and _same_key(latest.first, key)
        ):
            return follow(latest, input)
        plan_key = _plan_key(tensor_key, input._shape, key)
        plan = None if plan_key is None else _PLANS.calls.get(plan_key)
        if plan is not None:
            _PLANS.latest = plan
            return follow(plan, input)
    shape = tuple(input._shape)
    ndim = len(shape)
    named = 0
    for item in key:
        if type(item) is int or type(item) is slice:
            named += 1
        elif item is not None and item is not Ellipsis:
            return None
    if named > ndim:
        return None
    basic: list[Any] = []
    sizes: list[Any] = []
    dim = 0
    used = 0  # how much of the key is not whole dimensions at its end
    for item in key:
        if type(item) is int:
            size = shape[dim]
            if not -size <= item < size:
                return None
            basic.append(item + size if item < 0 else item)
            dim += 1
        elif item is None:
            basic.append(None)
            sizes.append(1)
        elif item is Ellipsis:
            while named < ndim:  # a second Ellipsis stands for nothing
                basic.append(_ALL)
                sizes.append(shape[dim])
                dim += 1
                named += 1
            continue
        else:
            size = shape[dim]
            found = _slice(item, size)
            basic.append(found)
            dim += 1
            if found is _ALL:
                sizes.append(size)
                continue
            if found.step == 1:
                sizes.append(found.stop - found.start)
            else:
                sizes.append(len(range(found.start, found.stop, found.step)))
        used = len(basic)
    if used < len(basic):
        del basic[used:]
    values = (tuple(basic),)
    made = tuple(sizes) + shape[dim:]
    result = show(BASIC_INDEX, input, values, made)
    if plan_key is not None:
        plan = ViewPlan(BASIC_INDEX, values, shape, made)
        plan.note_call(input, ())
        plan.first = key
        _PLANS.latest = store_plan(_PLANS, plan_key, plan)
    return result


_PLANS = CallCache()
_ROWS = CallCache()  # of ``tensor[int]``, with the plans of all ints
_ROWS_KEPT = 256


def _same_key(planned: tuple[Any, ...], key: tuple[Any, ...]) -> bool:
    """Return whether a key is the same as one of ints, slices of ints, None and Ellipsis."""
    if len(planned) != len(key):
        return False
    for index in range(len(key)):
        mine, given = planned[index], key[index]
        if mine is not given and (
            type(mine) is not type(given)
            or not (_same_slice(mine, given) if type(mine) is slice else mine == given)
        ):
            return False
    return True


def _same_slice(mine: Any, given: Any) -> bool:
    start, stop, step = mine.start, mine.stop, mine.step
    return (
        (start is given.start or (type(given.start) is type(start) and given.start == start))
        and (stop is given.stop or (type(given.stop) is type(stop) and given.stop == stop))
        and (step is given.step or (type(given.step) is type(step) and given.step == step))
    )


def _plan_key(tensor_key: DispatchKey, shape: Shape, key: tuple[Any, ...]) -> Any:
    """Return what plans of such views are known by, None if the key holds more than constants."""
    parts: list[Any] = [tensor_key, shape]
    for item in key:
        kind = type(item)
        if kind is slice:
            bounds = item
            start, stop, step = bounds.start, bounds.stop, bounds.step
            if (
                (start is not None and type(start) is not int)
                or (stop is not None and type(stop) is not int)
                or (step is not None and type(step) is not int)
            ):
                return None
            parts += (slice, start, stop, step)
        elif kind is int or item is None or item is Ellipsis:
            parts.append(item)
        else:
            return None
    return tuple(parts)


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
        target, indices = _parse(input, None if key is True else key)
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


# --- keys ---------------------------------------------------------------------------------------


def _parse(input: Any, key: Any) -> tuple[Any, list[Any]]:
    """Return the view that the basic parts of a key make, and the index tensors that are left."""
    items: Any = key if type(key) is tuple else _items(key)
    shape: Shape = input._shape
    named = 0  # dimensions that the key speaks of
    parts: list[Any] = []
    part: Any
    for item in items:
        if item is None or item is Ellipsis or isinstance(item, (bool, int, slice)):
            part = item
        else:
            part = _part(item, input)
        parts.append(part)
        if isinstance(part, TensorBase):
            named += len(part._shape) if part._key.dtype in (bool_, uint8) else 1
        elif part is not None and part is not Ellipsis and not isinstance(part, bool):
            named += 1
    if named > len(shape):
        if not shape:
            raise _out_of_bounds(0, shape)
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
    basic: list[Any] = []
    indices: list[Any] = []
    advanced = changed = False
    dim = 0
    for part in parts:
        if part is Ellipsis:
            whole = len(shape) - named
            named = len(shape)  # a second Ellipsis stands for nothing
            basic.extend([_ALL] * whole)
            indices.extend([None] * whole)
            dim += whole
        elif part is None:
            basic.append(None)
            indices.append(None)
            changed = True
        elif isinstance(part, bool):
            basic.append(None)
            indices.append(_truth(part, input))
            changed = advanced = True
        elif isinstance(part, int):
            size = shape[dim]
            if not -size <= part < size:
                raise IndexError(
                    f"index {part} is out of bounds for dimension {dim} with size {size}"
                )
            basic.append(part + size if part < 0 else part)
            dim += 1
            changed = True
        elif isinstance(part, slice):
            basic.append(_slice(part, shape[dim]))
            indices.append(None)
            dim += 1
            changed = True
        elif not isinstance(part, TensorBase):
            # As torch, for which a string is data of a new tensor.
            kind = TypeError if isinstance(part, str) else IndexError
            raise kind(_no_index(part))
        else:
            width = len(part._shape) if part._key.dtype in (bool_, uint8) else 1
            basic.extend([_ALL] * width)
            indices.append(part)
            dim += width
            advanced = True
    if changed:
        while basic and basic[-1] is _ALL:
            basic.pop()
        found = tuple(basic)
        if found:
            input = show(BASIC_INDEX, input, (found,), sliced_shape(shape, found))
    return input, indices if advanced else []


def _no_index(part: Any) -> str:
    return (
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {type(part).__name__})"
    )


def _items(key: Any) -> tuple[Any, ...]:
    """Return the parts of a key that is no tuple.

    A short list that holds anything but numbers stands for a tuple, as in torch (with its warning).
    """
    if not isinstance(key, list) or len(key) >= 32:
        return (key,)
    if any([_is_key(item) for item in key]):
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated, because it may come to "
            "mean a tensor of positions; use x[tuple(seq)] instead of x[seq]",
            UserWarning,
            stacklevel=5,
        )
        return tuple(key)
    return (key,)


def _is_key(item: Any) -> bool:
    """Return whether an entry of a list makes the list stand for a tuple."""
    return isinstance(item, (TensorBase, list, tuple, slice)) or item is None or item is Ellipsis


def _part(item: Any, input: Any) -> Any:
    """Return a part of a key as int, bool or index tensor; what is none of these as it is."""
    if isinstance(item, TensorBase):
        dtype = item._key.dtype
        if dtype is bool_ or dtype is uint8:
            if dtype is uint8 and not item._shape:
                warn(mask_of_bytes("index"), UserWarning)
            return item if item._shape else bool(item)
        if dtype not in (int32, int64) and (item._shape or dtype.category > 1):
            raise IndexError(
                f"tensors used as indices must be long, int, byte or bool tensors, got {dtype}"
            )
        # A position that differs along a dimension that vmap hides is no number.
        return item if item._shape or getattr(item, "_batched", False) else int(cast(Any, item))
    if isinstance(item, (list, tuple, range)) or hasattr(item, "__array_interface__"):
        return _from_host(item, input)
    if hasattr(item, "__index__"):
        if getattr(item, "shape", None):  # a number would drop the dimensions that the index has
            raise TypeError(
                f"an index of type {type(item).__module__}.{type(item).__qualname__} and shape "
                f"{list(item.shape)} is no tensor of this library; from_dlpack() takes those of others"
            )
        return item.__index__()
    if overrides.overrides(type(item)):
        raise Foreign(_no_index(item))
    return item  # refused when its turn comes, as in torch


def _from_host(item: Any, input: Any) -> Any:
    """Return a sequence or NumPy array as an index tensor; a 0-d array as an int or bool."""
    if not getattr(item, "shape", True) and hasattr(item, "__index__"):
        try:
            return item.__index__()
        except TypeError:
            pass
    if isinstance(item, range):
        item = list(item)
    if isinstance(item, (list, tuple)) and not item:
        array, dtype = from_data([], int64, "index")
    else:
        array, dtype = from_data(item, None, "index")
    if dtype is not bool_ and dtype is not uint8:
        if dtype.category > 1:
            raise IndexError(
                f"tensors used as indices must be long, int, byte or bool tensors, got {dtype}"
            )
        array, dtype = from_data(array, int64, "index")
    if not array.shape:
        return bool(array)
    key = dispatch_key(input._key.device, dtype)
    device_array = key.runtime.from_host(array, dtype, key.device.index or 0)
    return new_tensor(device_array, key, tuple(array.shape))


def _truth(value: bool, input: Any) -> Any:
    """Return the index tensor that keeps a new dimension of size 1, or empties it."""
    return _from_host([0] if value else [], input)


def _slice(item: slice, size: int) -> slice:
    """Return a slice with nonnegative bounds within the size."""
    start, stop, step = item.start, item.stop, item.step
    if step is None and type(start) is int and type(stop) is int and 0 <= start <= stop <= size:
        return slice(start, stop, 1)
    if step is not None and step.__index__() <= 0:
        raise ValueError("step must be greater than zero" if step else "slice step cannot be zero")
    if start is None and stop is None and step is None:
        return _ALL
    if isinstance(start, TensorBase):
        start = cast(Any, start).__index__()
    if isinstance(stop, TensorBase):
        stop = cast(Any, stop).__index__()
    start, stop, step = slice(start, stop, step).indices(size)
    return slice(start, max(start, stop), step)


def _out_of_bounds(key: int, shape: Shape) -> IndexError:
    if not shape:
        return IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert a 0-dim tensor "
            "to a number"
        )
    return IndexError(f"index {key} is out of bounds for dimension 0 with size {shape[0]}")


# --- values -------------------------------------------------------------------------------------


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
