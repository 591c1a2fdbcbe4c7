"""Numbers of few bits with a scale and a zero point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.core.device.dtypes import iinfo

from ..registry import operator
from ..values import dtype_of
from .convolution import conv
from .matmul import integers
from .pointwise import converted

__all__: list[str] = []


def _spread(values: Tensor, x: Tensor, axis: int, block_size: int) -> Tensor:
    """Return scales or zero points in a shape that goes with x: one, by axis, or by blocks along it."""
    if values.numel() == 1 and values.dim() <= 1:
        return values.reshape(())
    axis %= x.dim()
    if block_size:
        return values.repeat_interleave(block_size, axis).narrow(axis, 0, x.shape[axis])
    shape = [1] * x.dim()
    shape[axis] = -1
    return values.reshape(shape)


def _quantized(x: Tensor, scale: Tensor, zero: Tensor | None, dtype: Any, saturate: bool) -> Tensor:
    if dtype.is_floating_point:
        return converted(x / scale.to(x.dtype), dtype, saturate)
    rounded = ops.round(x / scale.to(x.dtype))
    if zero is not None:
        rounded = rounded + zero.to(rounded.dtype)
    info = iinfo(dtype)
    return ops.clamp(rounded, info.min, info.max).to(dtype)


@operator("QuantizeLinear")
def quantize(
    x: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Tensor:
    dtype = dtype_of(output_dtype or 2) if y_zero_point is None else y_zero_point.dtype
    scale = _spread(y_scale, x, axis, block_size)
    zero = None if y_zero_point is None else _spread(y_zero_point, x, axis, block_size)
    wide = x.to(dtype_of(precision)) if precision else x.float() if x.dtype.itemsize < 4 else x
    return _quantized(wide.float(), scale.float(), zero, dtype, bool(saturate))


@operator("DequantizeLinear")
def dequantize(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Tensor:
    scale = _spread(x_scale, x, axis, block_size)
    wide = x.float() if x.dtype.is_floating_point else x.int()
    if x_zero_point is not None:
        zero = _spread(x_zero_point, x, axis, block_size)
        wide = wide - zero.to(wide.dtype)
    kind = dtype_of(output_dtype) if output_dtype else x_scale.dtype
    return (wide.float() * scale.float()).to(kind)


@operator("DynamicQuantizeLinear")
def dynamic_quantize(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    low = ops.clamp(ops.amin(x), max=0.0)
    high = ops.clamp(ops.amax(x), min=0.0)
    scale = (high - low) / 255
    scale = ops.where(scale == 0, ops.ones_like(scale), scale)
    zero = ops.clamp(ops.round(-low / scale), 0, 255)
    y = ops.clamp(ops.round(x / scale) + zero, 0, 255)
    return y.to(dtype_of(2)), scale, zero.to(dtype_of(2))


def _rows(values: Tensor, x: Tensor) -> Tensor:
    """Return scales with one element per row of a matrix as a column."""
    return values[:, None] if values.dim() == 1 and values.numel() > 1 and x.dim() > 1 else values


@operator("QLinearMatMul")
def qlinear_matmul(
    a: Tensor,
    a_scale: Tensor,
    a_zero_point: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
) -> Tensor:
    left, right = integers(a, a_zero_point, True), integers(b, b_zero_point)
    product = ops.matmul(left, right).double()
    scale = _rows(a_scale, a).double() * b_scale.double() / y_scale.double()
    return _quantized(
        product * scale, ops.ones_like(y_scale).double(), y_zero_point, y_zero_point.dtype, True
    )


@operator("QLinearConv")
def qlinear_conv(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
    B: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    column = (-1,) + (1,) * (w.dim() - 1)
    weight = w.double() - w_zero_point.double().reshape(column)
    bias = None if B is None else B.double()
    total = conv(
        integers(x, x_zero_point).double(),
        weight,
        bias,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        pads=pads,
        strides=strides,
    )
    scale = x_scale.double() * w_scale.double().reshape(column[:-1]) / y_scale.double()
    return _quantized(
        total * scale, ops.ones_like(y_scale).double(), y_zero_point, y_zero_point.dtype, True
    )
