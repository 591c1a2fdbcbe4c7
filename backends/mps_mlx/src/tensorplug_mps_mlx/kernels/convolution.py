"""Convolution and its two adjoints, by MLX's own, whose channels come last."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import ArrayApiBackend, Shape

from .._mlx import mx
from ..dtypes import FLOATS


def _channels_last(array: Any) -> Any:
    return mx.moveaxis(array, 1, -1)


def _by_mlx(
    image: Any, weight: Any, stride: Shape, padding: Shape, dilation: Shape, groups: int
) -> Any:
    """Return the cross-correlation of arrays with channels last."""
    if groups > 1 and len(stride) > 2:  # MLX has groups in up to two dimensions
        images = mx.split(image, groups, axis=-1)
        weights = mx.split(weight, groups, axis=0)
        parts = [
            _by_mlx(i, w, stride, padding, dilation, 1)
            for i, w in zip(images, weights, strict=True)
        ]
        return mx.concatenate(parts, axis=-1)
    return mx.conv_general(
        image,
        weight,
        stride=list(stride),
        padding=list(padding),
        kernel_dilation=list(dilation),
        groups=groups,
    )


def convolution(
    input: Any,
    weight: Any,
    bias: Any | None,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> Any:
    """Return the cross-correlation."""
    sizes = zip(input.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
    where = [(s + 2 * p - d * (k - 1) - 1) // st + 1 for s, k, st, p, d in sizes]
    shape = (input.shape[0], weight.shape[0], *where)
    if input.size and weight.size and 0 not in shape:
        output = _by_mlx(
            _channels_last(input), _channels_last(weight), stride, padding, dilation, groups
        )
        output = mx.moveaxis(output, -1, 1)
    else:
        output = mx.zeros(shape, dtype=input.dtype)
    return output if bias is None else output + bias.reshape(-1, *[1] * len(where))


def convolution_input(
    gradient: Any,
    weight: Any,
    size: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> Any:
    """Return the adjoint with respect to the input."""
    shape = (gradient.shape[0], weight.shape[1] * groups, *size)
    start = mx.zeros(shape, dtype=gradient.dtype)
    if not gradient.size or not weight.size or not start.size:
        return start

    def forward(input: Any) -> Any:
        return convolution(input, weight, None, stride, padding, dilation, groups)

    return mx.vjp(forward, [start], [gradient])[1][0]


def convolution_weight(
    input: Any,
    gradient: Any,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> Any:
    """Return the adjoint with respect to the weight."""
    shape = (gradient.shape[1], input.shape[1] // groups, *kernel)
    start = mx.zeros(shape, dtype=input.dtype)
    if not gradient.size or not input.size or not start.size:
        return start

    def forward(weight: Any) -> Any:
        return convolution(input, weight, None, stride, padding, dilation, groups)

    return mx.vjp(forward, [start], [gradient])[1][0]


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin; complex numbers are left to the ops' bodies."""
    for function in (convolution, convolution_input, convolution_weight):
        plugin.kernel(dtypes=FLOATS)(function)
