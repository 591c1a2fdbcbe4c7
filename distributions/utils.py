"""What the distributions share: broadcast parameters, probabilities and their logarithms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tensorplug.autograd import enable_grad
from tensorplug.core.device.dtypes import finfo, get_default_dtype, int64
from tensorplug.core.ops import (
    arange,
    broadcast_tensors,
    cat,
    log_softmax,
    randn,
    softmax,
    tril_indices,
    zeros,
)
from tensorplug.core.tensor.creation import tensor
from tensorplug.core.tensor.predicates import is_tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
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


def standard_normal(shape: Any, dtype: Any, device: Any) -> Any:
    """Return normal numbers of mean 0 and deviation 1."""
    return randn(shape, dtype=dtype, device=device)


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Return matrices that have vectors, row by row, in their lower triangles up to a diagonal."""
    count = vec.shape[-1]
    n = (
        -(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5
    ) / 2
    if round(n) - n > finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    size = round(n)
    rows, columns = tril_indices(size, size, diag, device=vec.device)
    places = zeros(size * size, dtype=int64, device=vec.device)
    places[rows * size + columns] = arange(1, count + 1, device=vec.device)
    padded = cat([vec.new_zeros((*vec.shape[:-1], 1)), vec], -1)
    return padded[..., places].reshape((*vec.shape[:-1], size, size))


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """Return the lower triangles of matrices up to a diagonal, row by row."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


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
        with enable_grad():  # whoever asks first may do so where nothing is recorded
            value = instance.__dict__[self.name] = self.compute(instance)
        return value
