"""Checks that the functions share."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

from tensorplug.core.errors import OutOfMemoryError, type_name
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.shapes import Shape


def tensor(value: Any, name: str, argument: str = "input") -> Any:
    """Return `value`, or raise TypeError if it is no tensor, nor takes calls over."""
    if not isinstance(value, TensorBase) and not hasattr(type(value), "__torch_function__"):
        raise TypeError(f"{name}(): argument '{argument}' must be Tensor, not {type_name(value)}")
    return value


# What torch says, in convolutions and in pooling.
_TOO_SMALL = {
    "stride": "non-positive stride is not supported: stride must be greater than zero, but got {}",
    "padding": "negative padding is not supported: pad must be non-negative, but got pad: {}",
    "dilation": "dilation should be greater than zero, but got {}",
    "kernel_size": "kernel size should be greater than zero, but got {}",
}


def per_dimension(
    value: int | Sequence[int], count: int, name: str, argument: str, least: int = 0
) -> Shape:
    """Return one int per spatial dimension, from one int or a sequence.

    Raises
    ------
    TypeError, RuntimeError
        If a value is no int, there are too many or too few, or one is below `least`.
    """
    if type(value) is int and value >= least:
        return (value,) * count
    if type(value) is tuple and len(value) == count:
        for item in value:
            if type(item) is not int or item < least:
                break
        else:
            return value
    values: tuple[Any, ...] = tuple(value) if isinstance(value, (tuple, list)) else (value,) * count
    if len(values) == 1:
        values = values * count
    if len(values) != count:
        raise RuntimeError(
            f"{name}(): {argument} must be an int or have {count} of them, got {list(values)}"
        )
    for item in values:
        if isinstance(item, bool) or not hasattr(item, "__index__"):
            raise TypeError(f"{name}(): {argument} must be made of ints, got {item!r}")
        if item.__index__() < least:
            words = _TOO_SMALL.get(argument, f"{argument} must be at least {least}, but got {{}}")
            raise RuntimeError(f"{name}(): {words.format(item)} in {list(values)}")
    return tuple([item.__index__() for item in values])


def check_room(sizes: Collection[int], name: str) -> None:
    """Refuse sizes for which no memory suffices, where a list in Python would come before the memory."""
    if math.prod(sizes) > 1 << 44:
        raise OutOfMemoryError(
            f"{name}(): can't allocate memory for an output of size {list(sizes)}"
        )


# What torch says of inputs of another rank, by the function that finds it.
_WRONG_RANK = (
    "Expected {least}D (unbatched) or {most}D (batched) input to {name}, but got input of "
    "size: {size}"
)

EITHER_RANK = "{name}(): Expected {least}D or {most}D tensor, but got: {size}"
RANK_BETWEEN = (
    "Expected {least} to {most} dimensions, but got {rank}-dimensional tensor for argument #1 'self' "
    "(while checking arguments for {name})"
)


def batched(input: Any, count: int, name: str, words: str = _WRONG_RANK) -> tuple[Any, bool]:
    """Return the input as (N, C, *spatial), and whether a batch dimension had to be added.

    Of other ranks it is refused, in these words.
    """
    tensor(input, name)
    ndim = len(input._shape)
    if ndim == count + 2:
        return input, False
    if ndim == count + 1:
        return input.unsqueeze(0), True
    raise RuntimeError(
        words.format(name=name, least=count + 1, most=count + 2, rank=ndim, size=list(input._shape))
    )


def batched_channels(
    input: Any, count: int, name: str, words: str = _WRONG_RANK
) -> tuple[Any, bool]:
    """Return what :func:`batched` does, where channels are independent and there may be none.

    A batch may be empty, channels may not: those of an unbatched input without channels are the batch.
    """
    x, added = batched(input, count, name, words)
    return (input.unsqueeze(1) if added and not input._shape[0] else x), added


def unbatched(output: Any, added: bool) -> Any:
    """Take the batch dimension away again."""
    return output.squeeze(0 if output._shape[0] else 1) if added else output
