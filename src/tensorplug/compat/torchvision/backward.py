"""What torchvision's own derivatives call: gradients of its ops, as ops. And ops of quantized tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.plugin import composite

from .deformable import deform_conv2d
from .pooling import ps_roi_align, ps_roi_pool, roi_align


def _gradients(grad: Tensor, call: Callable[..., Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
    with tp.enable_grad():
        leaves = [x.detach().requires_grad_() for x in inputs]
        return tuple(tp.autograd.grad(call(*leaves), leaves, grad, materialize_grads=True))


@composite(name="torchvision._roi_align_backward", method=False)
def roi_align_backward(
    grad: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """Return the gradient of ``roi_align`` by its input."""
    options = spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned
    zeros = grad.new_zeros(batch_size, channels, height, width)
    return _gradients(grad, lambda x: roi_align(x, rois, *options), zeros)[0]


@composite(name="torchvision._roi_pool_backward", method=False)
def roi_pool_backward(
    grad: Tensor,
    rois: Tensor,
    argmax: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    """Return the gradient of ``roi_pool`` by its input, from the pixels that were the maxima."""
    images = rois[:, 0].long().reshape(-1, 1, 1, 1) * channels
    planes = images + tp.arange(channels, device=grad.device).reshape(-1, 1, 1)
    index = planes * (height * width) + argmax.long().clamp(min=0)
    values = grad * (argmax >= 0)
    zeros = grad.new_zeros(batch_size * channels * height * width)
    result = zeros.index_add(0, index.flatten(), values.flatten())
    return result.reshape(batch_size, channels, height, width)


@composite(name="torchvision._ps_roi_align_backward", method=False)
def ps_roi_align_backward(
    grad: Tensor,
    rois: Tensor,
    channel_mapping: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    """Return the gradient of ``ps_roi_align`` by its input."""
    options = spatial_scale, pooled_height, pooled_width, sampling_ratio
    zeros = grad.new_zeros(batch_size, channels, height, width)
    return _gradients(grad, lambda x: ps_roi_align(x, rois, *options)[0], zeros)[0]


@composite(name="torchvision._ps_roi_pool_backward", method=False)
def ps_roi_pool_backward(
    grad: Tensor,
    rois: Tensor,
    channel_mapping: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    """Return the gradient of ``ps_roi_pool`` by its input."""
    options = spatial_scale, pooled_height, pooled_width
    zeros = grad.new_zeros(batch_size, channels, height, width)
    return _gradients(grad, lambda x: ps_roi_pool(x, rois, *options)[0], zeros)[0]


_OF_CONVOLUTION = "grad_input, grad_weight, grad_offset, grad_mask, grad_bias"


@composite(name="torchvision._deform_conv2d_backward", method=False, outputs=_OF_CONVOLUTION)
def deform_conv2d_backward(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> tuple[Tensor, ...]:
    """Return the gradients of ``deform_conv2d`` by its tensors."""
    options: tuple[Any, ...] = (
        stride_h,
        stride_w,
        pad_h,
        pad_w,
        dilation_h,
        dilation_w,
        groups,
        offset_groups,
        use_mask,
    )
    return _gradients(
        grad, lambda *x: deform_conv2d(*x, *options), input, weight, offset, mask, bias
    )


def _no_quantized(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"torchvision.{name}(): tensorplug has no quantized tensors; dequantize, and call "
        f"torchvision.{name.removeprefix('q')}()"
    )


@composite(name="torchvision.qnms", method=False)
def qnms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Refuse: there are no quantized tensors."""
    raise _no_quantized("qnms")


@composite(name="torchvision.qroi_align", method=False)
def qroi_align(input: Tensor, rois: Tensor, *options: Any) -> Tensor:
    """Refuse: there are no quantized tensors."""
    raise _no_quantized("qroi_align")


OPS = [
    roi_align_backward, roi_pool_backward, ps_roi_align_backward, ps_roi_pool_backward,
    deform_conv2d_backward, qnms, qroi_align,
]  # fmt: skip
