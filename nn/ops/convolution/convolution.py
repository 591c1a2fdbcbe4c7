"""Convolution and its two adjoints.

The three are bilinear and each is made of the others' arguments, so their derivatives close:
``convolution``, ``convolution_input`` (the adjoint with respect to the input, which is also the transposed
convolution) and ``convolution_weight`` (with respect to the weight). A backend may supply any of them.
"""

from __future__ import annotations

import math
from operator import gt
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.autograd.vmap.vmap_rules import first_dim_is_batch
from tensorplug.core.device.dtypes import bfloat16, float16, float32
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.tensor.shapes import Shape

from .._formats import formatted
from .unfold import col2im, pad_zeros, positions, window_view

if TYPE_CHECKING:
    from tensorplug.core import Tensor


def _columns(
    input: Any, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, groups: int
) -> Any:
    """Return the windows as (groups, C/groups * prod(kernel), N * prod(positions))."""
    padded = pad_zeros(input, padding)
    windows = window_view(padded, kernel, stride, dilation)
    c = windows._shape[1]
    count = len(kernel)
    spatial = tuple(range(2, 2 + count))
    inner = tuple(range(2 + count, 2 + 2 * count))
    rows = c // groups * math.prod(kernel)
    places = windows._shape[0] * math.prod(windows._shape[2 : 2 + count])
    return windows.permute(1, *inner, 0, *spatial).reshape(groups, rows, places)


def _by_group(output: Any, groups: int) -> Any:
    """Return (N, O, *positions) as (groups, O/groups, N * prod(positions))."""
    n, o, *where = output._shape
    moved = output.permute(1, 0, *range(2, len(output._shape)))
    return moved.reshape(groups, o // groups, n * math.prod(where))


def _rows_by_group(weight: Any, groups: int) -> Any:
    """Return (O, C/groups, *kernel) as (groups, O/groups, C/groups * prod(kernel))."""
    o, *rest = weight._shape
    return weight.reshape(groups, o // groups, math.prod(rest))


def _check_windows(
    name: str, size: Shape, kernel: Shape, where: Shape | None, *options: Shape
) -> None:
    """Raise unless a kernel fits into an input of such spatial sizes, so often as the output says."""
    stride, padding, dilation = options
    if 0 in kernel:
        raise RuntimeError(
            f"{name}(): kernel size should be greater than zero, but got {list(kernel)}"
        )
    padded = tuple([s + 2 * p for s, p in zip(size, padding, strict=True)])
    fit = positions(padded, kernel, stride, dilation) if len(kernel) == len(size) else (0,)
    if min(fit, default=1) < 1 or (where is not None and any(map(gt, where, fit))):
        raise RuntimeError(
            f"{name}(): a kernel of {list(kernel)} does not fit into {list(size)} with stride "
            f"{list(stride)}, padding {list(padding)}, dilation {list(dilation)}"
            + ("" if where is None else f" as often as {list(where)}")
        )


def _check_groups(name: str, channels: int, share: int | None, outputs: int, groups: int) -> None:
    """Raise unless channels are divided by the groups, `share` into each."""
    if not outputs:
        raise RuntimeError(
            f"{name}(): Given groups={groups}, expected weight to be at least {groups} at dimension 0, got "
            "none"
        )
    if (
        groups < 1
        or channels % groups
        or outputs % groups
        or share not in (None, channels // groups)
    ):
        raise RuntimeError(
            f"{name}(): {channels} input and {outputs} output channels do not fit {groups} groups of {share}"
        )


def _check_convolution(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> None:
    name, (o, share, *kernel) = "convolution", weight._shape
    _check_groups(name, input._shape[1], share, o, groups)
    _check_windows(name, input._shape[2:], tuple(kernel), None, stride, padding, dilation)


def _check_convolution_input(
    gradient: Any,
    weight: Any,
    size: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> None:
    name, (o, share, *kernel) = "convolution_input", weight._shape
    _check_groups(name, share * groups, share, o, groups)
    where = gradient._shape[2:]
    _check_windows(name, size, tuple(kernel), where, stride, padding, dilation)


def _check_convolution_weight(
    input: Any,
    gradient: Any,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> None:
    name = "convolution_weight"
    _check_groups(name, input._shape[1], None, gradient._shape[1], groups)
    where = gradient._shape[2:]
    _check_windows(name, input._shape[2:], kernel, where, stride, padding, dilation)


@composite(
    shapes="input(N, C, *S), weight(O, G, *K), bias(O), stride[S]+, padding[S], dilation[S]+",
    rule=_check_convolution,
    method=False,
)
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> Tensor:
    """Return the cross-correlation of `input` with `weight`.

    Parameters
    ----------
    input : Tensor
        (N, C, *spatial).
    weight : Tensor
        (O, C/groups, *kernel).
    bias : Tensor, optional
        (O,).
    stride, padding, dilation : tuple of int
        One per spatial dimension; the padding is of zeros, on both sides.
    groups : int
        Into how many independent parts the channels are divided.

    Returns
    -------
    Tensor
        (N, O, *positions).
    """
    o, _, *kernel = weight._shape
    kernel_ = tuple(kernel)
    n = input._shape[0]
    size = tuple([s + 2 * p for s, p in zip(input._shape[2:], padding, strict=True)])
    where = positions(size, kernel_, stride, dilation)
    columns = _columns(input, kernel_, stride, padding, dilation, groups)
    output = (_rows_by_group(weight, groups) @ columns).reshape(o, n, *where)
    if bias is not None:
        output = output + bias.reshape(o, *[1] * (1 + len(where)))
    return formatted(output.transpose(0, 1), input)


@composite(
    shapes="gradient(N, O, *P), weight(O, G, *K), size[P], stride[P]+, padding[P], dilation[P]+",
    rule=_check_convolution_input,
    method=False,
)
def convolution_input(
    gradient: Tensor,
    weight: Tensor,
    size: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> Tensor:
    """Return the adjoint of :func:`convolution` with respect to its input.

    Parameters
    ----------
    gradient : Tensor
        (N, O, *positions).
    weight : Tensor
        (O, C/groups, *kernel).
    size : tuple of int
        The spatial size of the result.

    Returns
    -------
    Tensor
        (N, C, *size).

    Notes
    -----
    Where windows overlap their elements are added up, half precision in float32 as in torch.
    """
    dtype = gradient.dtype
    if dtype is float16 or dtype is bfloat16:
        wide = convolution_input(
            gradient.to(float32), weight.to(float32), size, stride, padding, dilation, groups
        )
        return wide.to(dtype)
    c, *kernel = weight._shape[1:]
    n = gradient._shape[0]
    where = gradient._shape[2:]
    columns = _rows_by_group(weight, groups).transpose(1, 2) @ _by_group(gradient, groups)
    columns = columns.reshape(c * groups * math.prod(kernel), n, math.prod(where))
    found = col2im(columns.transpose(0, 1), size, tuple(kernel), dilation, padding, stride)
    return formatted(found, gradient)


@composite(
    shapes="input(N, C, *S), gradient(N, O, *P), kernel[S]+, stride[S]+, padding[S], dilation[S]+",
    rule=_check_convolution_weight,
    method=False,
)
def convolution_weight(
    input: Tensor,
    gradient: Tensor,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> Tensor:
    """Return the adjoint of :func:`convolution` with respect to its weight.

    Parameters
    ----------
    input : Tensor
        (N, C, *spatial).
    gradient : Tensor
        (N, O, *positions).
    kernel : tuple of int
        The spatial size of the result.

    Returns
    -------
    Tensor
        (O, C/groups, *kernel).
    """
    o = gradient._shape[1]
    c = input._shape[1]
    size = tuple([s + 2 * p for s, p in zip(input._shape[2:], padding, strict=True)])
    where = gradient._shape[2:]
    if positions(size, kernel, stride, dilation) != where:
        # Rows and columns behind the last window take no part.
        used = [
            s * (w - 1) + d * (k - 1) + 1
            for w, k, s, d in zip(where, kernel, stride, dilation, strict=True)
        ]
        input = pad_zeros(input, padding)[(..., *[slice(0, u) for u in used])]
        padding = (0,) * len(padding)
    columns = _columns(input, kernel, stride, padding, dilation, groups)
    weight = _by_group(gradient, groups) @ columns.transpose(1, 2)
    return weight.reshape(o, c // groups, *kernel)


def _bias_gradient(g: Any) -> Any:
    return g.sum((0, *range(2, g.ndim)))


DERIVATIVES = [
    derivative(
        "convolution",
        input=lambda g, input_shape, weight, stride, padding, dilation, groups: convolution_input(
            g, weight._conj(), tuple(input_shape[2:]), stride, padding, dilation, groups
        ),
        weight=lambda g, input, weight_shape, stride, padding, dilation, groups: convolution_weight(
            input._conj(), g, tuple(weight_shape[2:]), stride, padding, dilation, groups
        ),
        bias=_bias_gradient,
    ),
    derivative(
        "convolution_input",
        gradient=lambda g, weight, stride, padding, dilation, groups: convolution(
            g, weight._conj(), None, stride, padding, dilation, groups
        ),
        weight=lambda g, gradient, weight_shape, stride, padding, dilation, groups: (
            convolution_weight(
                g, gradient._conj(), tuple(weight_shape[2:]), stride, padding, dilation, groups
            )
        ),
    ),
    derivative(
        "convolution_weight",
        input=lambda g, gradient, input_shape, stride, padding, dilation, groups: convolution_input(
            gradient._conj(), g, tuple(input_shape[2:]), stride, padding, dilation, groups
        ),
        gradient=lambda g, input, stride, padding, dilation, groups: convolution(
            input._conj(), g, None, stride, padding, dilation, groups
        ),
    ),
]

VMAP_RULES = [first_dim_is_batch("convolution")]
