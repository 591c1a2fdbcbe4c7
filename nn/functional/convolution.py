"""Convolutions and transposed convolutions over one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import BOOL
from tensorplug.core.dispatch.op_registry import Delegated, composite, defined_by
from tensorplug.core.tensor.shapes import Shape

from ..ops.convolution.convolution import convolution, convolution_input
from ..ops.convolution.unfold import col2im, im2col, pad_zeros, positions
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
    "fold",
    "unfold",
]

Ints = int | Sequence[int]


def _check_weight(input: Any, weight: Any, bias: Any, groups: int, count: int, name: str) -> None:
    tensor(weight, name, "weight")
    if len(weight._shape) < 3:
        raise RuntimeError(
            f"{name}(): weight should have at least three dimensions, got shape {list(weight.shape)}"
        )
    if len(weight._shape) != count + 2:
        raise RuntimeError(
            f"{name}(): weight must have {count + 2} dimensions, got shape {list(weight.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(f"{name}(): non-positive groups is not supported, got {groups}")
    key = input._key
    if weight._key is not key and weight.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}(): Input type ({input.dtype}) and weight type ({weight.dtype}) should be the same"
        )
    if bias is not None and bias._key is not key and bias.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}(): Input type ({input.dtype}) and bias type ({bias.dtype}) should be the same"
        )
    if key.dtype.category == BOOL and 0 not in input._shape:
        raise NotImplementedError(
            f"{name}(): \"{name}\" not implemented for 'Bool'; convert input and weight to an integer dtype"
        )


def _rule(count: int) -> Callable[..., Any]:
    """Return the rule of ``conv<count>d``: a batch, and one number per dimension."""
    name = f"conv{count}d"

    def canonical(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Ints = 1,
        padding: Any = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Any:
        x, added = batched(input, count, name)
        _check_weight(x, weight, bias, groups, count, name)
        steps = per_dimension(stride, count, name, "stride", 1)
        spread = per_dimension(dilation, count, name, "dilation", 1)
        before, after = _padding(weight, padding, steps, spread, count, name)
        channels, *kernel = weight._shape[1:]
        outputs = weight._shape[0]
        if x._shape[1] != channels * groups:
            raise RuntimeError(
                f"Given groups={groups}, weight of size {list(weight.shape)}, expected "
                f"input{list(x.shape)} to have {channels * groups} channels, but got "
                f"{x.shape[1]} channels instead"
            )
        if outputs % groups:
            raise RuntimeError(
                f"{name}(): groups={groups} must divide the {outputs} output channels"
            )
        if bias is not None and bias._shape != (outputs,):
            raise RuntimeError(
                f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with "
                f"{outputs} elements, but got bias of size {list(bias.shape)} instead"
            )
        for size, k, p, q, d in zip(x._shape[2:], kernel, before, after, spread, strict=True):
            if size + p + q < d * (k - 1) + 1:
                padded = [n + p + q for n, p, q in zip(x._shape[2:], before, after, strict=True)]
                spans = [d * (k - 1) + 1 for d, k in zip(spread, kernel, strict=True)]
                raise RuntimeError(
                    f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel "
                    f"size: ({' x '.join(map(str, spans))}). Kernel size can't be greater than actual input "
                    "size"
                )
        if before != after:
            x, before = pad_zeros(x, before, after), (0,) * count
        if x is not input:
            output = _CONVS[count](x, weight, bias, steps, before, spread, groups)
            return Delegated(unbatched(output, added))
        return input, weight, bias, steps, before, spread, groups

    return canonical


def _padding(
    weight: Any, padding: Any, stride: Shape, dilation: Shape, count: int, name: str
) -> tuple[Shape, Shape]:
    """Return what to pad before and behind; "same" may pad one more behind."""
    if not isinstance(padding, str):
        around = per_dimension(padding, count, name, "padding", 0)
        return around, around
    if padding == "valid":
        return (0,) * count, (0,) * count
    if padding != "same":
        raise RuntimeError(f"{name}(): padding must be 'valid', 'same', or ints, got {padding!r}")
    if any(step != 1 for step in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    return tuple([t // 2 for t in total]), tuple([t - t // 2 for t in total])


def _transposed_rule(count: int) -> Callable[..., Any]:
    """Return the rule of ``conv_transpose<count>d``: a batch, and one number per dimension."""
    name = f"conv_transpose{count}d"

    def canonical(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        dilation: Ints = 1,
    ) -> Any:
        x, added = batched(input, count, name)
        _check_weight(x, weight, bias, groups, count, name)
        steps = per_dimension(stride, count, name, "stride", 1)
        around = per_dimension(padding, count, name, "padding", 0)
        extra = per_dimension(output_padding, count, name, "output_padding", 0)
        spread = per_dimension(dilation, count, name, "dilation", 1)
        if x._shape[1] != weight._shape[0]:
            raise RuntimeError(
                f"Given transposed=1, weight of size {list(weight.shape)}, expected "
                f"input{list(x.shape)} to have {weight.shape[0]} channels, but got {x.shape[1]} "
                "channels instead"
            )
        outputs = weight._shape[1] * groups
        if bias is not None and bias._shape != (outputs,):
            raise RuntimeError(
                f"Given transposed=1, weight of size {list(weight.shape)}, expected bias to be "
                f"1-dimensional with {outputs} elements, but got bias of size {list(bias.shape)} instead"
            )
        for s, d, e in zip(steps, spread, extra, strict=True):
            if e >= s and e >= d:
                raise RuntimeError(
                    f"output padding must be smaller than either stride or dilation, but got "
                    f"output_padding {list(extra)}, stride {list(steps)}, dilation {list(spread)}"
                )
        size = _transposed_size(x, weight, steps, around, extra, spread)
        if min(size) < 0:
            raise RuntimeError(f"{name}(): the output size {list(size)} is too small")
        values = (x, weight, bias, steps, around, extra, groups, spread)
        return Delegated(unbatched(_TRANSPOSED[count](*values), added)) if added else values

    return canonical


def _transposed_size(
    input: Any, weight: Any, stride: Shape, padding: Shape, extra: Shape, dilation: Shape
) -> Shape:
    sizes, kernel = input._shape[2:], weight._shape[2:]
    return tuple(
        [
            (n - 1) * s - 2 * p + d * (k - 1) + e + 1
            for n, s, p, d, k, e in zip(
                sizes, stride, padding, dilation, kernel, extra, strict=True
            )
        ]
    )


def _transposed(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Any:
    """Return a transposed convolution, of canonical arguments."""
    size = _transposed_size(input, weight, stride, padding, output_padding, dilation)
    if any(output_padding):
        unreached = [e // s for e, s in zip(output_padding, stride, strict=True)]
        if any(unreached):  # further windows fit into the output: they come from zeros
            input = pad(input, [end for number in reversed(unreached) for end in (0, number)])
    output = convolution_input(input, weight, size, stride, padding, dilation, groups)
    return output if bias is None else output + bias.reshape(-1, *[1] * len(stride))


@composite(rule=_rule(1), method=False)
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
    return convolution(input, weight, bias, stride, padding, dilation, groups)  # type: ignore[arg-type]


@composite(rule=_rule(2), method=False)
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
    return convolution(input, weight, bias, stride, padding, dilation, groups)  # type: ignore[arg-type]


@composite(rule=_rule(3), method=False)
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
    return convolution(input, weight, bias, stride, padding, dilation, groups)  # type: ignore[arg-type]


@composite(method=False)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Return :func:`conv1d` of (time, batch, channels), with a weight (kernel, in, out)."""
    tensor(input, "conv_tbc")
    tensor(bias, "conv_tbc", "bias")
    output = conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return output.permute(2, 0, 1)


@composite(rule=_transposed_rule(1), rows=True, method=False)
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
    output: Tensor = _transposed(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )
    return output


@composite(rule=_transposed_rule(2), method=False)
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
    output: Tensor = _transposed(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )
    return output


@composite(rule=_transposed_rule(3), method=False)
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
    output: Tensor = _transposed(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )
    return output


_CONVS: dict[int, Callable[..., Any]] = {1: conv1d, 2: conv2d, 3: conv3d}
_TRANSPOSED: dict[int, Callable[..., Any]] = {
    1: conv_transpose1d,
    2: conv_transpose2d,
    3: conv_transpose3d,
}


@defined_by(im2col, name="nn.functional.unfold")
def unfold(
    input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """Return the sliding blocks of an image as columns.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W).
    kernel_size, dilation, padding, stride : int or sequence of int
        As in :func:`conv2d`.

    Returns
    -------
    Tensor
        (N, C * prod(kernel_size), blocks), or without N.

    Raises
    ------
    RuntimeError
        If sizes do not fit.
    """
    tensor(input, "unfold")
    if input.ndim not in (3, 4) or 0 in input._shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(input.shape)}"
        )
    kernel, spread, around, steps = _blocks("unfold", kernel_size, dilation, padding, stride)
    x = input if input.ndim == 4 else input.unsqueeze(0)
    padded = tuple([s + 2 * p for s, p in zip(x._shape[2:], around, strict=True)])
    where = positions(padded, kernel, steps, spread)
    if min(where) < 1:
        raise RuntimeError(
            f"unfold(): Given input with spatial size {tuple(x._shape[2:])}, kernel_size={kernel}, "
            f"dilation={spread}, padding={around}, stride={steps}, calculated shape of the array of sliding "
            f"blocks as {tuple(where)}, but its components must be at least one."
        )
    columns = im2col(x, kernel, spread, around, steps)
    return columns if input.ndim == 4 else columns.squeeze(0)


@defined_by(col2im)
def fold(
    input: Tensor,
    output_size: Ints,
    kernel_size: Ints,
    dilation: Ints = 1,
    padding: Ints = 0,
    stride: Ints = 1,
) -> Tensor:
    """Return the sums of blocks put back where :func:`unfold` took them from.

    Parameters
    ----------
    input : Tensor
        (N, C * prod(kernel_size), blocks) or (C * prod(kernel_size), blocks).
    output_size : int or sequence of int
        (H, W).
    kernel_size, dilation, padding, stride : int or sequence of int
        As in :func:`unfold`.

    Raises
    ------
    RuntimeError
        If sizes do not fit.
    """
    tensor(input, "fold")
    if input.ndim not in (2, 3) or 0 in input._shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
            f"dimensions for input, but got: {list(input.shape)}"
        )
    kernel, spread, around, steps = _blocks("fold", kernel_size, dilation, padding, stride)
    size = per_dimension(output_size, 2, "fold", "output_size", 1)
    x = input if input.ndim == 3 else input.unsqueeze(0)
    _, rows, blocks = x.shape
    if rows % (kernel[0] * kernel[1]):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={rows} and kernel_size={kernel}."
        )
    padded = tuple([s + 2 * p for s, p in zip(size, around, strict=True)])
    where = positions(padded, kernel, steps, spread)
    if where[0] * where[1] != blocks or min(where) < 1:
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={kernel}, dilation={spread}, padding={around}, "
            f"stride={steps}, "
            + (
                f"calculated shape of the array of sliding blocks as {where}, which is too small "
                "(non-positive)"
                if min(where) < 1
                else "expected size of input's dimension 2 to match the calculated number of sliding blocks "
                f"{where[0]} * {where[1]}, but got input.size(2)={blocks}."
            )
        )
    image = col2im(x, size, kernel, spread, around, steps)
    return image if input.ndim == 3 else image.squeeze(0)


def _blocks(name: str, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Any:
    return (
        per_dimension(kernel_size, 2, name, "kernel_size", 1),
        per_dimension(dilation, 2, name, "dilation", 1),
        per_dimension(padding, 2, name, "padding", 0),
        per_dimension(stride, 2, name, "stride", 1),
    )
