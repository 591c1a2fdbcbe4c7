"""Functions of torch's top level that return what backward needs beside the result, and steps of others.

Torch's modules come down to them; programs that were traced, or written close to them, name them so. What is
returned beside the result has no gradients.
"""

# pyright: reportUnusedFunction=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import DType, bfloat16, bool_, float16, float32
from tensorplug.core.ops import (
    addmm,
    aminmax,
    arange,
    ones_like,
    rand_like,
    searchsorted,
    zeros,
)
from tensorplug.core.ops.rules import check_tensor
from tensorplug.core.ops.softmax import log_softmax_backward, softmax_backward
from tensorplug.nn import functional as F
from tensorplug.nn.ops.normalization.batch_norm import batch_norm_with_statistics
from tensorplug.nn.ops.normalization.statistics import row_statistics

from ._top_level import grid_sampler

_BAGS = ("sum", "mean", "max")


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return ``nn.functional.embedding_bag``, the bag of each index, and the bags' sizes, twice.

    Parameters are that function's, but for `mode`: 0 for sums, 1 for means, 2 for maxima.

    Examples
    --------
    >>> import tensorplug as tp
    >>> found = tp.embedding_bag(tp.eye(3), tp.tensor([2, 0, 0]), tp.tensor([0, 1]))
    >>> found[0].tolist(), found[1].tolist(), found[2].tolist()
    ([[0.0, 0.0, 1.0], [2.0, 0.0, 0.0]], [0, 1, 1], [1, 2])
    """
    if mode not in (0, 1, 2):
        raise ValueError(f"embedding_bag(): {mode} is not a mode (0 sum, 1 mean, 2 max)")
    bags = F.embedding_bag(
        indices, weight, offsets, None, 2.0, scale_grad_by_freq, _BAGS[mode], sparse,
        per_sample_weights, include_last_offset, padding_idx,
    )  # fmt: skip
    starts = offsets[:-1] if include_last_offset else offsets
    places = arange(indices.numel(), dtype=offsets.dtype, device=offsets.device)
    of_each = searchsorted(starts, places, right=True) - 1
    counted = of_each if padding_idx is None else of_each[indices != padding_idx]
    sizes = counted.bincount(minlength=starts.numel()).to(offsets.dtype)
    return bags, of_each.to(offsets.dtype), sizes, sizes.clone()


def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Return :func:`grid_sampler` of images (N, C, H, W)."""
    _check_dims("grid_sampler_2d", input, 4)
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Return :func:`grid_sampler` of volumes (N, C, D, H, W)."""
    _check_dims("grid_sampler_3d", input, 5)
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


def _check_dims(name: str, input: Tensor, dims: int) -> None:
    if input.dim() != dims:
        raise RuntimeError(f"{name}(): expected {dims}D input, got shape {list(input.shape)}")


def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """Return the convolution of ``nn.functional`` for the dimensions of `weight`, transposed or not.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.convolution(tp.ones(1, 1, 3), tp.ones(1, 1, 2), None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2.]]])
    """
    dims = weight.dim() - 2
    if dims not in (1, 2, 3):
        raise RuntimeError(
            f"convolution(): expected a weight of 3 to 5 dimensions, got {list(weight.shape)}"
        )
    if transposed:
        function: Any = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[dims - 1]
        return function(input, weight, bias, stride, padding, output_padding, groups, dilation)
    function = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
    return function(input, weight, bias, stride, padding, dilation, groups)


# --- norms ---


def _statistics(
    input: Tensor, shape: tuple[int, ...], eps: float, dtype: Any
) -> tuple[Tensor, Tensor]:
    """Return means and reciprocal deviations of rows, computed in float32 at least."""
    if not input.numel():
        rows = zeros(shape, dtype=dtype, device=input.device)
        return rows, rows / 0.0
    kept = input.dtype is dtype or input.dtype not in (float16, bfloat16)
    mean, rstd = row_statistics(input if kept else input.to(float32), shape, eps)
    return (mean, rstd) if mean.dtype is dtype else (mean.to(dtype), rstd.to(dtype))


def native_layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``nn.functional.layer_norm``, the means, and the reciprocals of the deviations.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.native_layer_norm(tp.tensor([[1.0, 3.0]]), [2], None, None, 0.0)
    (tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))
    """
    wanted = tuple(normalized_shape)
    result = F.layer_norm(input, wanted, weight, bias, eps)
    sizes = (*input._shape[: -len(wanted)], *[1] * len(wanted))
    dtype = input.dtype if weight is None else weight.dtype
    return result, *_statistics(input.detach(), sizes, eps, dtype)


def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,  # noqa: N803  torch's name
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``nn.functional.group_norm``, and means and reciprocals of the deviations, (N, group).

    As in torch these have gradients, other than those of the other norms.
    `N`, `C` and `HxW` are the sizes of `input`, those after the second multiplied.
    """
    check_tensor(input, "native_group_norm")
    if input.numel() != N * C * HxW:
        raise RuntimeError(
            f"native_group_norm(): expected N, C, HxW of an input of {input.numel()} elements, got {N}, {C} "
            f"and {HxW}"
        )
    result = F.group_norm(input, group, weight, bias, eps)
    dtype = input.dtype if weight is None else weight.dtype
    return result, *_statistics(input, (N, group), eps, dtype)


def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``nn.functional.batch_norm``; if training, also means and reciprocals of the deviations."""
    check_tensor(input, "native_batch_norm")
    dtype = input.dtype if weight is None else weight.dtype
    if training and input.numel():
        result, mean, rstd = batch_norm_with_statistics(
            input, running_mean, running_var, weight, bias, momentum, eps
        )
        mean, rstd = mean.detach(), rstd.detach()
        if mean.dtype is not dtype:
            mean, rstd = mean.to(dtype), rstd.to(dtype)
        return result, mean, rstd
    result = F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if training:
        return result, *_statistics(input.detach(), result._shape[1:2], eps, dtype)
    nothing = input.new_empty(0, dtype=dtype)
    return result, nothing, nothing.detach()


# --- others ---


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Return `input` with elements zeroed at random, unless `train` is False, and where they were kept.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.native_dropout(tp.ones(2), 1.0, True)
    (tensor([0., 0.]), tensor([False, False]))
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if train is False or p == 0:
        return input.clone(), ones_like(input, dtype=bool_)
    kept = rand_like(input, dtype=float32) >= p
    return input * kept * (0.0 if p == 1 else 1 / (1 - p)), kept


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Return ``nn.functional.channel_shuffle``."""
    return F.channel_shuffle(input, groups)


def _addmm_activation(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    use_gelu: bool = False,
) -> Tensor:
    """Return ``relu(addmm(…))``, or ``gelu`` of it."""
    found = addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return F.gelu(found) if use_gelu else F.relu(found)


def _aminmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return smallest and largest elements, of all or along a dimension."""
    found = aminmax(input, dim=dim, keepdim=keepdim)
    return found.min, found.max


def _softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: DType
) -> Tensor:
    """Return the gradient of softmax's input in its dtype."""
    return softmax_backward(grad_output, output, dim).to(input_dtype)


def _log_softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: DType
) -> Tensor:
    """Return the gradient of log_softmax's input in its dtype."""
    return log_softmax_backward(grad_output, output, dim).to(input_dtype)


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """Raise RuntimeError if the only element of a tensor is zero; here at once, on devices too."""
    if input.numel() != 1:
        many = "more than one value" if input.numel() else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {many} is ambiguous")
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _assert_scalar(input: Any, assert_msg: str) -> None:
    """Raise RuntimeError with a message if a number is zero."""
    if not input:
        raise RuntimeError(assert_msg)


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Raise RuntimeError if a number is smaller than ``min`` or larger than ``max``."""
    if (min is not None and size < min) or (max is not None and size > max):
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")


def sym_constrain_range_for_size(
    size: Any, *, min: int | None = None, max: int | None = None
) -> None:
    """Raise RuntimeError if a size is negative, smaller than ``min`` or larger than ``max``."""
    sym_constrain_range(size, min=0 if min is None else min, max=max)


def _assert_tensor_metadata(
    a: Tensor,
    size: Any = None,
    stride: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    layout: Any = None,
) -> None:
    """Raise RuntimeError if a tensor has another shape, dtype, device or layout than is named."""
    expectations: tuple[tuple[str, Any, Callable[[], Any]], ...] = (
        ("sizes", None if size is None else tuple(size), lambda: tuple(a.shape)),
        ("strides", None if stride is None else tuple(stride), lambda: tuple(a.stride())),
        ("dtype", dtype, lambda: a.dtype),
        ("device", None if device is None else Device(device), lambda: a.device),
        ("layout", layout, lambda: a.layout),
    )
    for what, expected, found in expectations:
        if expected is not None and expected != found():
            raise RuntimeError(f"Tensor {what} mismatch! Expected: {expected}, Got: {found()}")


def _is_all_true(input: Tensor) -> Tensor:
    """Return ``all(input)`` of a bool tensor."""
    return _of_bools("_is_all_true", input).all()


def _is_any_true(input: Tensor) -> Tensor:
    """Return ``any(input)`` of a bool tensor."""
    return _of_bools("_is_any_true", input).any()


def _of_bools(op: str, input: Tensor) -> Tensor:
    if input.dtype != bool_:
        raise RuntimeError(f"{op}: expected a tensor of bools, got {input.dtype}")
    return input
