"""Batch normalization, of one dtype or of half-precision images with float32 weights."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tensorplug.plugin import FLOATS, KernelTable

from ... import sources
from ..._cupy import cp
from ...dtypes import BFLOAT16, name_of
from ..layouts import dense, empty_like, is_wide, like

# As in sources/batchnorm.cu.
IMAGES = np.dtype([(n, np.int64) for n in ("samples", "channels", "positions", "channels_last")])
_LANES = 32
_BLOCKS = 2048  # that keep a device busy
_LEAST = 4096  # elements that are worth a block


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    for function in (
        native_batch_norm,
        native_batch_norm_backward,
        batch_norm_inference,
        batch_norm_update_stats,
    ):
        table.add(function.__name__, function, dtypes=FLOATS)


def _images(image: Any) -> Any:
    return _given(image.shape, image.flags.c_contiguous)


@lru_cache(maxsize=1024)
def _given(shape: tuple[int, ...], by_rows: bool) -> Any:
    """Return the kernels' argument, which nobody writes to."""
    return sources.by_value(_described(shape, by_rows))


def _described(shape: tuple[int, ...], by_rows: bool) -> Any:
    images = np.zeros(1, IMAGES)
    images["samples"], images["channels"] = shape[:2]
    images["positions"] = math.prod(shape[2:])
    # Rows of single elements are rows of channels as well, and those are longer.
    images["channels_last"] = images["positions"] == 1 or not by_rows
    return images


def _computed(image: Any) -> Any:
    return np.dtype(np.float64 if image.dtype == np.float64 else np.float32)


def _macros(image: Any, weight: Any) -> dict[str, int]:
    narrow = weight.dtype == image.dtype and image.dtype.itemsize == 2
    return {"NARROW": int(narrow), "WIDE": is_wide(image.shape)}


def _split(image: Any) -> tuple[int, int]:
    """Return into how many parts each channel is split, and how many blocks that makes."""
    return _parts(image.shape, image.flags.c_contiguous)


@lru_cache(maxsize=1024)
def _parts(shape: tuple[int, ...], by_rows: bool) -> tuple[int, int]:
    images = _described(shape, by_rows)
    channels = int(images["channels"][0])
    last = bool(images["channels_last"][0])
    groups = -(-channels // _LANES) if last else channels
    count = int(images["samples"][0] * images["positions"][0])
    worth = -(-count * (min(channels, _LANES) if last else 1) // _LEAST)
    splits = max(1, min(_BLOCKS // max(groups, 1), worth))
    return splits, groups * splits


def native_batch_norm(input: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any]:
    """Return images standardized per channel, times a weight plus a bias; the means; 1 / the deviations."""
    image = dense(input)
    if weight is None:
        weight, bias = (fill(image.shape[1], image.dtype) for fill in (_ones, cp.zeros))
    weight, bias = [cp.ascontiguousarray(array) for array in (weight, bias)]
    output = empty_like(image, image.shape)
    mean, rstd = cp.empty(weight.shape, weight.dtype), cp.empty(weight.shape, weight.dtype)
    if not image.size:
        mean[...] = np.nan
        rstd[...] = np.nan
        return output, mean, rstd
    images, macros, name = _images(image), _macros(image, weight), name_of(image)
    channels = np.int64(image.shape[1])
    splits, blocks = _split(image)
    computed = _computed(image)
    partial = cp.empty((int(channels), splits, 3), computed)
    statistics = cp.empty((int(channels), 2), computed)
    few = sources.blocks_for(int(channels))
    sources.launch(
        "normalization_batch",
        "batch_partial_variances",
        name,
        blocks,
        (image, partial, images, np.int64(splits)),
        **macros,
    )
    arguments: tuple[Any, ...] = (
        partial,
        mean,
        rstd,
        statistics,
        channels,
        np.int64(splits),
        np.float64(eps),
    )
    sources.launch("normalization_batch", "batch_statistics", name, few, arguments, **macros)
    arguments = (image, weight, bias, statistics, output, images, np.int64(image.size))
    many = sources.blocks_for(image.size)
    sources.launch("normalization_batch", "batch_apply", name, many, arguments, **macros)
    return output, mean, rstd


def native_batch_norm_backward(
    g_output: Any, g_mean: Any, g_rstd: Any, input: Any, weight: Any, mean: Any, rstd: Any
) -> tuple[Any, Any, Any]:
    """Return the gradients of the images, the weight and the bias."""
    image = dense(input)
    if weight is None:
        ones = _ones(image.shape[1], image.dtype)
        result = native_batch_norm_backward(g_output, g_mean, g_rstd, input, ones, mean, rstd)[0]
        return result, cp.empty(0, image.dtype), cp.empty(0, image.dtype)
    gradient = like(g_output, image)
    g_mean, g_rstd, weight, mean, rstd = [
        cp.ascontiguousarray(array) for array in (g_mean, g_rstd, weight, mean, rstd)
    ]
    result = empty_like(image, image.shape)
    g_weight, g_bias = cp.empty(weight.shape, weight.dtype), cp.empty(weight.shape, weight.dtype)
    if not image.size:
        g_weight[...] = 0
        g_bias[...] = 0
        return result, g_weight, g_bias
    images, macros, name = _images(image), _macros(image, weight), name_of(image)
    channels = np.int64(image.shape[1])
    splits, blocks = _split(image)
    computed = _computed(image)
    partial = cp.empty((int(channels), splits, 2), computed)
    factors = cp.empty((int(channels), 3), computed)
    few = sources.blocks_for(int(channels))
    arguments: tuple[Any, ...] = (gradient, image, mean, rstd, partial, images, np.int64(splits))
    sources.launch("normalization_batch", "batch_sums", name, blocks, arguments, **macros)
    count = np.int64(image.size // int(channels))
    arguments = (
        partial, g_mean, g_rstd, weight, rstd, g_weight, g_bias, factors, channels, np.int64(splits), count,
    )  # fmt: skip
    sources.launch("normalization_batch", "batch_factors", name, few, arguments, **macros)
    arguments = (gradient, image, mean, rstd, factors, result, images, np.int64(image.size))
    many = sources.blocks_for(image.size)
    sources.launch("normalization_batch", "batch_gradient", name, many, arguments, **macros)
    return result, g_weight, g_bias


def _ones(count: int, dtype: Any) -> Any:
    if dtype == BFLOAT16:
        return cp.full(count, 0x3F80, np.uint16).view(BFLOAT16)
    return cp.full(count, 1, dtype)


def batch_norm_inference(
    input: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, eps: float
) -> Any:
    """Return images less a mean, over the root of a variance, perhaps times a weight plus a bias."""
    image = dense(input)
    output = empty_like(image, image.shape)
    if image.size:
        numbers = [cp.ascontiguousarray(array) for array in (running_mean, running_var)]
        weights = [None, None]
        if weight is not None:
            weights = [cp.ascontiguousarray(array) for array in (weight, bias)]
        extents = (_images(image), np.int64(image.size), np.float64(eps))
        arguments = (image, *numbers, *weights, output, *extents)
        blocks = sources.blocks_for(image.size)
        macros = _macros(image, numbers[0])
        sources.launch(
            "normalization_batch", "channel_norm", name_of(image), blocks, arguments, **macros
        )
    return output


def batch_norm_update_stats(
    running_mean: Any,
    running_var: Any,
    mean: Any,
    rstd: Any,
    momentum: float,
    eps: float,
    unbiased: float,
) -> None:
    """Move running statistics of channels towards those of a batch."""
    running = (running_mean, running_var)
    arrays = [cp.ascontiguousarray(array) for array in (*running, mean, rstd)]
    if mean.size:
        numbers = (np.float64(momentum), np.float64(eps), np.float64(unbiased))
        arguments = (*arrays, np.int64(mean.size), *numbers)
        blocks, macros = sources.blocks_for(mean.size), {"NARROW": 0, "WIDE": 0}
        name = name_of(running_mean)
        sources.launch(
            "normalization_batch", "update_statistics", name, blocks, arguments, **macros
        )
    for array, copy in zip(running, arrays, strict=False):
        if not array.flags.c_contiguous:
            array[...] = copy
