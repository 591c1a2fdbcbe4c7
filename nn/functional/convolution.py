"""Convolutions and transposed convolutions over one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.layers import seen_by_layers
from tensorplug.core.shapes import Shape

from ..ops.convolution.convolution import convolution, convolution_input
from ..ops.convolution.unfold import pad_zeros
from ._common import batched, per_dimension, tensor, unbatched
from .padding import pad

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
]

Ints = int | Sequence[int]


def _check_weight(input: Any, weight: Any, bias: Any, groups: int, count: int, name: str) -> None:
    tensor(weight, name, "weight")
    if len(weight._shape) != count + 2:
        raise RuntimeError(
            f"{name}(): weight must have {count + 2} dimensions, got shape {list(weight.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(f"{name}(): non-positive groups is not supported, got {groups}")
    kind = input._kind
    if weight._kind is not kind and weight.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}(): Input type ({input.dtype}) and weight type ({weight.dtype}) should be the same"
        )
    if bias is not None and bias._kind is not kind and bias.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}(): Input type ({input.dtype}) and bias type ({bias.dtype}) should be the same"
        )


def _conv(
    count: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Ints,
    padding: Any,
    dilation: Ints,
    groups: int,
) -> Any:
    name = f"conv{count}d"
    input, added = batched(input, count, name)
    _check_weight(input, weight, bias, groups, count, name)
    steps = per_dimension(stride, count, name, "stride", 1)
    spread = per_dimension(dilation, count, name, "dilation", 1)
    channels, *kernel = weight._shape[1:]
    outputs = weight._shape[0]
    if input._shape[1] != channels * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected "
            f"input{list(input.shape)} to have {channels * groups} channels, but got "
            f"{input.shape[1]} channels instead"
        )
    if outputs % groups:
        raise RuntimeError(f"{name}(): groups={groups} must divide the {outputs} output channels")
    if bias is not None and bias._shape != (outputs,):
        raise RuntimeError(f"{name}(): expected bias of shape [{outputs}], got {list(bias.shape)}")
    input, around = _padding(input, weight, padding, steps, spread, count, name)
    for size, k, p, d in zip(input._shape[2:], kernel, around, spread, strict=True):
        if size + 2 * p < d * (k - 1) + 1:
            raise RuntimeError(
                f"Calculated padded input size per channel: {size + 2 * p}. Kernel size: "
                f"{d * (k - 1) + 1}. Kernel size can't be greater than actual input size"
            )
    return unbatched(convolution(input, weight, bias, steps, around, spread, groups), added)


def _padding(
    input: Any, weight: Any, padding: Any, stride: Shape, dilation: Shape, count: int, name: str
) -> tuple[Any, Shape]:
    """Return the input and what is left to pad evenly; "same" may pad one more behind."""
    if not isinstance(padding, str):
        return input, per_dimension(padding, count, name, "padding", 0)
    if padding == "valid":
        return input, (0,) * count
    if padding != "same":
        raise RuntimeError(f"{name}(): padding must be 'valid', 'same', or ints, got {padding!r}")
    if any(step != 1 for step in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    before = tuple([t // 2 for t in total])
    after = tuple([t - t // 2 for t in total])
    if before == after:
        return input, before
    return pad_zeros(input, before, after), (0,) * count


def _conv_transpose(
    count: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    groups: int,
    dilation: Ints,
) -> Any:
    name = f"conv_transpose{count}d"
    input, added = batched(input, count, name)
    _check_weight(input, weight, bias, groups, count, name)
    steps = per_dimension(stride, count, name, "stride", 1)
    around = per_dimension(padding, count, name, "padding", 0)
    extra = per_dimension(output_padding, count, name, "output_padding", 0)
    spread = per_dimension(dilation, count, name, "dilation", 1)
    if input._shape[1] != weight._shape[0]:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(weight.shape)}, expected "
            f"input{list(input.shape)} to have {weight.shape[0]} channels, but got {input.shape[1]} "
            "channels instead"
        )
    sizes, kernel = input._shape[2:], weight._shape[2:]
    reached = []
    for n, s, p, d, k, e in zip(sizes, steps, around, spread, kernel, extra, strict=True):
        if e >= s and e >= d:
            raise RuntimeError(
                f"output padding must be smaller than either stride or dilation, but got "
                f"output_padding {list(extra)}, stride {list(steps)}, dilation {list(spread)}"
            )
        reached.append((n - 1) * s - 2 * p + d * (k - 1) + e + 1)
    size = tuple(reached)
    if min(size) < 1:
        raise RuntimeError(f"{name}(): the output size {list(size)} is too small")
    if any(extra):
        unreached = [e // s for e, s in zip(extra, steps, strict=True)]
        if any(unreached):  # further windows fit into the output: they come from zeros
            input = pad(input, [end for number in reversed(unreached) for end in (0, number)])
    output = convolution_input(input, weight, size, steps, around, spread, groups)
    if bias is not None:
        output = output + bias.reshape(-1, *[1] * count)
    return unbatched(output, added)


@seen_by_layers
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Return the cross-correlation over one dimension; see :func:`conv2d`."""
    return _conv(1, input, weight, bias, stride, padding, dilation, groups)


@seen_by_layers
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Return the cross-correlation over two dimensions.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W).
    weight : Tensor
        (O, C/groups, kH, kW).
    bias : Tensor, optional
        (O,).
    stride, dilation : int or sequence of int
        Step of the windows, and of the elements within one.
    padding : int, sequence of int, "valid" or "same"
        Zeros on both sides.
    groups : int
        Into how many independent parts the channels are divided.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> conv2d(tp.ones(1, 1, 4, 4), tp.ones(1, 1, 3, 3))
    tensor([[[[9., 9.],
              [9., 9.]]]])
    """
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


@seen_by_layers
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Return the cross-correlation over three dimensions; see :func:`conv2d`."""
    return _conv(3, input, weight, bias, stride, padding, dilation, groups)


@seen_by_layers
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Return :func:`conv1d` of (time, batch, channels), with a weight (kernel, in, out)."""
    tensor(input, "conv_tbc")
    output = conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return output.permute(2, 0, 1)


@seen_by_layers
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """Return the transposed convolution over one dimension; see :func:`conv_transpose2d`."""
    return _conv_transpose(
        1, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@seen_by_layers
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """Return the transposed convolution over two dimensions: conv2d's adjoint.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W).
    weight : Tensor
        (C, O/groups, kH, kW).
    output_padding : int or sequence of int
        Rows and columns added at the end, below the stride or the dilation.

    Examples
    --------
    >>> import tensorplug as tp
    >>> conv_transpose2d(tp.ones(1, 1, 1, 1), tp.ones(1, 1, 2, 2))
    tensor([[[[1., 1.],
              [1., 1.]]]])
    """
    return _conv_transpose(
        2, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@seen_by_layers
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """Return the transposed convolution over three dimensions; see :func:`conv_transpose2d`."""
    return _conv_transpose(
        3, input, weight, bias, stride, padding, output_padding, groups, dilation
    )
