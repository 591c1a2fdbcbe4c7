"""Collation: from the samples of a batch to tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import float64
from tensorplug.core.ops import stack
from tensorplug.core.tensor.creation import as_tensor, tensor

_NOT_FOUND = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)

#: What :func:`default_collate` asks first: libraries put functions for their own types here.
default_collate_fn_map: dict[type, Callable[..., Any]] = {}


def _is_array(value: Any) -> bool:
    """Return whether `value` is an array (or array scalar) of another library with numeric data."""
    if not (hasattr(value, "__array__") and hasattr(value, "dtype") and hasattr(value, "shape")):
        return False
    kind = getattr(value.dtype, "kind", "")
    if kind in "SUOMmV" and not getattr(value.dtype, "num", 0) >= 256:
        raise TypeError(_NOT_FOUND.format(value.dtype))
    return True


def default_convert(data: Any) -> Any:
    """Return `data` with every array in it turned into a tensor; the structure stays.

    Examples
    --------
    >>> default_convert({"a": [1, "b"]})
    {'a': [1, 'b']}
    """
    if isinstance(data, (Tensor, str, bytes)):
        return data
    try:
        if _is_array(data):
            return as_tensor(data)
    except TypeError:
        return data
    if isinstance(data, Mapping):
        return _rebuild_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*[default_convert(item) for item in data])
    if isinstance(data, tuple):
        return [default_convert(item) for item in data]  # a tuple of a batch is read as its columns
    if isinstance(data, Sequence):
        return _rebuild_sequence(data, [default_convert(item) for item in data])
    return data


def default_collate(batch: Sequence[Any]) -> Any:
    """Put the samples of a batch together: tensors are stacked, structures keep their form.

    Tensors and arrays are stacked, ints and floats become an int64 and a float64 tensor, strings
    stay a list; mappings, named tuples and sequences are collated element by element.

    Parameters
    ----------
    batch : sequence
        The samples, all of one structure.

    Raises
    ------
    TypeError
        If a sample holds something else; pass your own ``collate_fn``.
    RuntimeError
        If sequences within the batch differ in length.

    Examples
    --------
    >>> default_collate([{"x": 1, "y": "a"}, {"x": 2, "y": "b"}])
    {'x': tensor([1, 2]), 'y': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(
    batch: Sequence[Any], *, collate_fn_map: Mapping[type, Callable[..., Any]] | None = None
) -> Any:
    """Collate as :func:`default_collate`, with functions of one's own for some types of samples.

    Parameters
    ----------
    batch : sequence
        The samples.
    collate_fn_map : mapping of type to callable, optional
        For samples of this type, ``function(batch, collate_fn_map=collate_fn_map)`` makes the result.

    Examples
    --------
    >>> collate([{"x": "a"}, {"x": "b"}], collate_fn_map={str: lambda batch, **_: "".join(batch)})
    {'x': 'ab'}
    """
    functions = collate_fn_map or {}
    if not len(batch):  # an array of strings is one, too
        raise IndexError("default_collate: the batch is empty")
    first = batch[0]
    for kind in (type(first), *functions):  # its own type before those that it is derived from
        if kind in functions and isinstance(first, kind):
            return functions[kind](batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Tensor):
        return stack(list(batch), 0)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, float) and not hasattr(first, "dtype"):
        return tensor(batch, dtype=float64)
    if isinstance(first, int):
        return tensor(batch)
    if _is_array(first):
        return stack([as_tensor(item) for item in batch], 0)
    if isinstance(first, Mapping):
        parts = {
            key: collate([item[key] for item in batch], collate_fn_map=functions) for key in first
        }
        return _rebuild_mapping(first, parts)
    if isinstance(first, Sequence):
        return _collate_sequences(batch, first, functions)
    raise TypeError(_NOT_FOUND.format(type(first)))


def _collate_sequences(
    batch: Sequence[Sequence[Any]],
    first: Sequence[Any],
    functions: Mapping[type, Callable[..., Any]],
) -> Any:
    lengths = {len(item) for item in batch}
    if len(lengths) > 1:
        raise RuntimeError(
            "each element in list of batch should be of equal size, got sequences of lengths "
            f"{sorted(lengths)}"
        )
    columns = [collate(column, collate_fn_map=functions) for column in zip(*batch, strict=True)]
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*columns)
    if isinstance(first, tuple):
        return columns
    return _rebuild_sequence(first, columns)


def _rebuild_mapping(like: Mapping[Any, Any], parts: dict[Any, Any]) -> Any:
    """Return the parts as a mapping of the class of `like`, or as a dict if that cannot be made."""
    if type(like) is dict:
        return parts
    try:
        if isinstance(like, MutableMapping):
            clone = copy.copy(like)
            clone.update(parts)
            return clone
        return type(like)(parts)  # type: ignore[call-arg]
    except TypeError:
        return parts


def _rebuild_sequence(like: Sequence[Any], parts: list[Any]) -> Any:
    """Return the parts as a sequence of the class of `like`, or else as a list."""
    if type(like) is list or isinstance(like, range):
        return parts
    try:
        if isinstance(like, MutableSequence):
            clone = copy.copy(like)
            for i, part in enumerate(parts):
                clone[i] = part
            return clone
        return type(like)(parts)  # type: ignore[call-arg]
    except TypeError:
        return parts
