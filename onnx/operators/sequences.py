"""Sequences of tensors, which are lists, and values that may be missing, which are None then."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.core.tensor.creation import tensor

from ..registry import operator
from ..values import dtype_of

__all__: list[str] = []


@operator("SequenceConstruct")
def sequence_construct(*inputs: Any) -> list[Any]:
    return list(inputs)


@operator("SequenceEmpty", placed=True)
def sequence_empty(*, dtype: int = 1) -> list[Any]:
    return []


@operator("SequenceAt", host=("position",))
def sequence_at(input_sequence: list[Any], position: Any) -> Any:
    return input_sequence[_number(position)]


@operator("SequenceErase", host=("position",))
def sequence_erase(input_sequence: list[Any], position: Any = None) -> list[Any]:
    place = (-1 if position is None else _number(position)) % len(input_sequence)
    return [*input_sequence[:place], *input_sequence[place + 1 :]]


@operator("SequenceInsert", host=("position",))
def sequence_insert(input_sequence: list[Any], tensor: Any, position: Any = None) -> list[Any]:
    place = len(input_sequence) if position is None else _number(position)
    place += len(input_sequence) if place < 0 else 0
    return [*input_sequence[:place], tensor, *input_sequence[place:]]


@operator("SequenceLength")
def sequence_length(input_sequence: list[Any]) -> Tensor:
    return tensor(len(input_sequence), dtype=dtype_of(7), device="cpu")


@operator("ConcatFromSequence")
def concat_from_sequence(input_sequence: list[Any], *, axis: int, new_axis: int = 0) -> Tensor:
    return (ops.stack if new_axis else ops.cat)(input_sequence, axis)


@operator("SplitToSequence", host=("split",))
def split_to_sequence(
    input: Tensor, split: Any = None, *, axis: int = 0, keepdims: int = 1
) -> list[Any]:
    if split is None:
        parts = ops.split(input, 1, axis)
        return list(parts) if keepdims else [ops.squeeze(part, axis) for part in parts]
    return list(ops.split(input, split, axis))


@operator("Optional", placed=True)
def optional(input: Any = None, *, type: Any = None) -> Any:
    return input


@operator("OptionalHasElement", placed=True)
def optional_has_element(input: Any = None, *, device: Any) -> Tensor:
    return tensor(input is not None, device=device)


@operator("OptionalGetElement")
def optional_get_element(input: Any) -> Any:
    if input is None:
        raise ValueError("the optional value is missing")
    return input


def _number(position: Any) -> int:
    return position[0] if isinstance(position, list) else position
