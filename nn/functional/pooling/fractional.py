"""Fractional max pooling: windows at random steps (Graham 2014)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tensorplug.autograd import derivative
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import int64
from tensorplug.core.dispatch.op_registry import Delegated, composite
from tensorplug.core.ops import arange, cat, full_like, rand

from ...ops.pooling import gradient_of_maxima, max_pool_backward
from .._common import EITHER_RANK, batched_channels, per_dimension, unbatched

__all__ = [
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]

Ints = int | Sequence[int]
Ratio = float | Sequence[float]

_EXTENTS = ("time", "height", "width")


def _rule(count: int, *, both: bool) -> Callable[..., Any]:
    """Return the rule of ``fractional_max_pool<count>d``, or of the op that returns indices too."""
    name = f"fractional_max_pool{count}d"

    def canonical(
        input: Any,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: Ratio | None = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        x, added = batched_channels(input, count, name, EITHER_RANK)
        if 0 in x._shape[1:]:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input "
                f"has sizes {list(input._shape)}"
            )
        _check_count(kernel_size, count, name, "kernel_size")
        kernel = per_dimension(kernel_size, count, name, "kernel_size", 1)
        n, c, *size = x._shape
        if output_size is None:
            if output_ratio is None:
                raise ValueError(
                    f"{name} requires specifying either an output_size or an output_ratio"
                )
            ratios = output_ratio if isinstance(output_ratio, Sequence) else (output_ratio,) * count
            if len(ratios) != count:
                raise ValueError(
                    f"{name} requires output_ratio to either be a single Int or tuple of Ints."
                )
            wanted = tuple([int(s * r) for s, r in zip(size, ratios, strict=True)])
        else:
            _check_count(output_size, count, name, "output_size")
            wanted = per_dimension(output_size, count, name, "output_size")
        for of, s, k, w in zip(_EXTENTS[-count:], size, kernel, wanted, strict=True):
            if w + k - 1 > s:
                raise RuntimeError(
                    f"{name}(): pool {of} {k} too large relative to input {of} {s}, for an output of {w}"
                )
        samples = None if _random_samples is None else _checked(_random_samples, x, name)
        if added or samples is None or (return_indices and not both):
            if samples is None:
                samples = rand(n, c, count, dtype=x.dtype, device=x.device)
            results = _POOLS[count][both or return_indices](
                x, kernel, wanted, _random_samples=samples
            )
            if isinstance(results, tuple):
                return Delegated(tuple([unbatched(result, added) for result in results]))
            return Delegated(unbatched(results, added))
        return input, kernel, wanted, samples

    return canonical


def _check_count(value: Any, count: int, name: str, argument: str) -> None:
    if isinstance(value, (tuple, list)) and len(value) != count:
        words = {2: "two", 3: "three"}[count]
        raise RuntimeError(
            f"{name}: {argument} must either be a single Int or tuple of {words} Ints, got {list(value)}"
        )


def _checked(samples: Any, x: Any, name: str) -> Any:
    """Return the samples (N, C, number of dimensions) of images or volumes; there may be more than these."""
    n, c, *size = x._shape
    given = samples._shape
    if samples.dtype != x.dtype:
        raise RuntimeError(
            f"{name}(): Expect _random_samples to have the same dtype as input, {x.dtype}, got "
            f"{samples.dtype}"
        )
    if len(given) != 3 or given[0] < n or given[1:] != (c, len(size)):
        raise RuntimeError(
            f"{name}(): Expect _random_samples of shape ({n} or more, {c}, {len(size)}), got {given}"
        )
    return samples if given[0] == n else samples[:n]


def _pool(x: Any, kernel: Any, wanted: Any, samples: Any) -> tuple[Tensor, Tensor]:
    n, c, *size = x._shape
    count = len(size)
    flat: Any = None
    for dim in range(count):
        # Of images the first sample is that of the width, of volumes that of the depth, as in torch.
        sample = samples[..., count - 1 - dim if count == 2 else dim].reshape(n, c)
        starts = _starts(sample, size[dim], wanted[dim], kernel[dim])
        positions = starts.unsqueeze(-1) + arange(kernel[dim], device=x.device)
        shape = [n, c] + [1] * (2 * count)
        shape[2 + dim], shape[2 + count + dim] = wanted[dim], kernel[dim]
        along = positions.reshape(shape) * math.prod(size[dim + 1 :])
        flat = along if flat is None else flat + along
    windows = flat.reshape(n, c, math.prod(wanted), math.prod(kernel))
    elements = (
        x.reshape(n, c, 1, math.prod(size)).expand(n, c, windows.shape[2], -1).gather(3, windows)
    )
    best = elements.detach().argmax(3, keepdim=True)
    values = elements.gather(3, best).reshape(n, c, *wanted)
    indices = windows.gather(3, best).reshape(n, c, *wanted)
    return values, indices


def _starts(sample: Any, size: int, wanted: int, kernel: int) -> Any:
    """Return (N, C, wanted) where windows begin: evenly spread, moved by the sample, then cut to ints."""
    last = full_like(sample.to(int64), size - kernel).unsqueeze(-1)
    if wanted < 2:
        return last[..., :wanted]
    alpha = (size - kernel) / (wanted - 1)
    steps = arange(wanted - 1, dtype=sample.dtype, device=sample.device)
    moved = sample.unsqueeze(-1)
    starts = ((steps + moved) * alpha).to(int64) - (moved * alpha).to(int64)
    return cat([starts, last], -1)


@composite(
    "input, kernel_size, output_size, _random_samples", rule=_rule(2, both=False), method=False
)
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the largest element of each of windows at random steps.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W).
    kernel_size : int or sequence of int
        The size of the window.
    output_size : int or sequence of int, optional
        The size of the result. Either this or `output_ratio`.
    output_ratio : float or sequence of float, optional
        The result's size over the input's.
    return_indices : bool
        Whether to return the places as well.

    Raises
    ------
    ValueError
        If neither size nor ratio is given.
    RuntimeError
        If the windows do not fit.
    """
    return _pool(input, kernel_size, output_size, _random_samples)[0]


@composite(
    "input, kernel_size, output_size, _random_samples", rule=_rule(3, both=False), method=False
)
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the largest element of each window of a volume; see :func:`fractional_max_pool2d`."""
    return _pool(input, kernel_size, output_size, _random_samples)[0]


@composite(
    "input, kernel_size, output_size, _random_samples",
    rule=_rule(2, both=True),
    outputs="values, indices",
    method=False,
)
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return :func:`fractional_max_pool2d` and the places."""
    return _pool(input, kernel_size, output_size, _random_samples)


@composite(
    "input, kernel_size, output_size, _random_samples",
    rule=_rule(3, both=True),
    outputs="values, indices",
    method=False,
)
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return :func:`fractional_max_pool3d` and the places."""
    return _pool(input, kernel_size, output_size, _random_samples)


_POOLS: dict[int, tuple[Any, Any]] = {
    2: (fractional_max_pool2d, fractional_max_pool2d_with_indices),
    3: (fractional_max_pool3d, fractional_max_pool3d_with_indices),
}


def _gradient(both: Callable[..., Any]) -> Callable[..., Any]:
    """Return the formula of a pooling without indices, which `both` gives."""

    def gradient(
        g: Any, input: Any, kernel_size: Any, output_size: Any, _random_samples: Any
    ) -> Any:
        found = both(input, kernel_size, output_size, _random_samples=_random_samples)
        return max_pool_backward(g, found[1], input._shape)

    return gradient


DERIVATIVES = [
    item
    for count, (_, both) in _POOLS.items()
    for item in (
        derivative(f"fractional_max_pool{count}d", input=_gradient(both), _random_samples=None),
        derivative(
            f"fractional_max_pool{count}d_with_indices",
            input=gradient_of_maxima,
            _random_samples=None,
        ),
    )
]
