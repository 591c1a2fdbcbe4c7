"""What the distributions share: broadcast parameters, probabilities and their logarithms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tensorplug.core.device.dtypes import finfo, get_default_dtype
from tensorplug.core.ops import broadcast_tensors, log_softmax, softmax
from tensorplug.core.tensor.creation import tensor
from tensorplug.core.tensor.predicates import is_tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
]

T = TypeVar("T")


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Return numbers and tensors as tensors of one shape.

    Numbers take the dtype and device of the first tensor, or are of the default dtype.

    Raises
    ------
    ValueError
        If something else than a tensor or number is among them.
    """
    first = next((value for value in values if is_tensor(value)), None)
    dtype = get_default_dtype() if first is None else first.dtype
    if first is not None and not (dtype.is_floating_point or dtype.is_complex):
        dtype = get_default_dtype()
    made = []
    for value in values:
        if not is_tensor(value):
            if not isinstance(value, (int, float)):
                raise ValueError(
                    "input arguments must all be instances of Number or Tensor, got "
                    f"{type(value).__name__}"
                )
            value = tensor(value, dtype=dtype, device=None if first is None else first.device)
        made.append(value)
    return tuple(broadcast_tensors(*made))


def clamp_probs(probs: Any) -> Any:
    """Return probabilities kept off 0 and 1 by the dtype's precision."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Return log probabilities, or the log odds of binary ones."""
    safe = clamp_probs(probs)
    return safe.log() - (-safe).log1p() if is_binary else safe.log()


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Return the probabilities that :func:`probs_to_logits` took."""
    return logits.sigmoid() if is_binary else softmax(logits, -1)


def normalized(logits: Any) -> Any:
    """Return log probabilities that add up to 1."""
    return log_softmax(logits, -1)


class lazy_property(Generic[T]):
    """An attribute that is computed when it is first asked for."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.compute(instance)
        return value
