"""Indices drawn with chances in proportion to weights."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from ...device.device import Device
from ...device.dtypes import FLOATING, DType, float32, float64, int64
from ...device.generator import Generator
from ...dispatch.op import Op
from ...dispatch.op_registry import composite
from ...dispatch.out_dtypes import exact_out, resizes_silently
from ...dispatch.state import dispatch_state
from ...errors import type_name
from ...tensor.shapes import Shape, is_truth
from ..comparison import is_within
from ..rules import check_tensor
from ..sorting.searching import searchsorted
from .distributions import source_of
from .numbers import by_kernel, uniform_new, uniform_numbers

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["multinomial"]


@composite()
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Return indices drawn from each row with chances in proportion to its values.

    Parameters
    ----------
    input : Tensor
        Weights, floating-point and not negative, of shape (categories) or (rows, categories).
    num_samples : int
        How many indices per row.
    replacement : bool
        Whether an index may be drawn more than once.
    generator : Generator, optional
        By default the device's own.

    Returns
    -------
    Tensor
        int64, of shape (num_samples) or (rows, num_samples).

    Raises
    ------
    RuntimeError
        If the weights are not of the kind said, or too few.

    Notes
    -----
    Without replacement, the largest *weight / e* win, where each *e* is drawn from an exponential
    distribution (Efraimidis and Spirakis 2006).

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.multinomial(tp.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
    """
    check_tensor(input, "multinomial")
    weights: Any = input.detach() if input._state or dispatch_state.layers_active else input
    if weights._key.dtype.is_half:
        weights = weights.to(float32)
    _check_weights(weights, num_samples, replacement)
    source = source_of(input, generator, "multinomial")
    if not replacement or num_samples == 1:
        drawn: Any = uniform_numbers(weights._shape, weights._key, source)
        race = -(-drawn).log1p()
        tiny = 1e-45 if weights._key.dtype is float32 else 5e-324
        scores = weights / race.clamp(min=tiny)
        if num_samples == 1:
            return scores.argmax(-1, keepdim=True)
        return scores.topk(num_samples, -1).indices
    key = weights._key
    shape = (*weights._shape[:-1], num_samples.__index__())
    words = 2 if key.dtype is float64 else 1
    made: Any = by_kernel(
        _CHOICES, shape, key, source, words, (weights._array,), None, key.with_dtype(int64)
    )
    if made is None:
        made = _chosen(weights, uniform_numbers(shape, key, source))
    return made


@composite(random=True, method=False)
def multinomial_new(
    shape: Shape, seed: int, offset: int, dtype: DType, device: Device, weights: Tensor
) -> Tensor:
    """Return which of the weights in each row the numbers of :func:`uniform_new` choose, with replacement.

    Parameters
    ----------
    shape, seed, offset, dtype, device
        As for :func:`uniform_new`, `dtype` being the weights'.
    weights : Tensor
        Of float32 or float64, of shape (categories) or (rows, categories).

    Examples
    --------
    >>> import tensorplug as tp
    >>> weights = tp.tensor([1.0, 0.0, 1.0])
    >>> tp.ops.multinomial_new((4,), 0, 0, tp.float32, tp.device("cpu"), weights)
    tensor([0, 2, 2, 2])
    """
    return _chosen(weights, uniform_new(shape, seed, offset, dtype, device))


_CHOICES: Op = multinomial_new.op  # type: ignore[attr-defined]


def _chosen(weights: Any, draws: Any) -> Tensor:
    steps = weights.cumsum(-1)
    return searchsorted(steps / steps[..., -1:], draws, right=True)


@composite(method=False, outputs="")
def fewest_positive(weights: Tensor) -> int:
    """Return how many weights of a row are positive, at the least; -1 if one is negative, infinite or NaN.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.fewest_positive(tp.tensor([[1.0, 0.0], [2.0, 3.0]]))
    1
    >>> tp.ops.fewest_positive(tp.tensor([1.0, -1.0]))
    -1
    """
    if not is_within(weights, 0.0, sys.float_info.max):
        return -1
    if not math.prod(weights._shape[:-1]):
        return 1
    return int((weights > 0).sum(-1).amin().item())


def _check_weights(weights: Any, count: Any, replacement: bool) -> None:
    dtype = weights._key.dtype
    if dtype.category != FLOATING:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {dtype.name}"
        )
    if len(weights._shape) not in (1, 2):
        raise RuntimeError(
            f"multinomial(): prob_dist must be 1 or 2 dim, got {list(weights.shape)}"
        )
    if is_truth(count) or not hasattr(count, "__index__"):
        raise TypeError(
            f"multinomial(): argument 'num_samples' must be int, not {type_name(count)}"
        )
    if count <= 0:
        raise RuntimeError(f"multinomial(): cannot sample n_sample <= 0 samples, got {count}")
    categories = weights._shape[-1]
    if not replacement and count > categories:
        raise RuntimeError(
            "multinomial(): cannot sample n_sample > prob_dist.size(-1) samples without "
            "replacement: "
            f"{count} of {categories}"
        )
    if weights._key.device.type != "cpu":
        return  # the questions below would wait for the device
    fewest = fewest_positive(weights)
    if fewest < 0:
        raise RuntimeError(
            "multinomial(): probability tensor contains either `inf`, `nan` or element < 0"
        )
    if not fewest:
        raise RuntimeError(
            "multinomial(): invalid multinomial distribution (sum of probabilities <= 0)"
        )
    if not replacement and fewest < count and math.prod(weights._shape[:-1]):
        raise RuntimeError(
            "multinomial(): invalid multinomial distribution (with replacement=False, not enough "
            "non-negative category to sample)"
        )


exact_out(multinomial)
resizes_silently(multinomial)
