"""Convolutions as modules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tensorplug.core import Device, DType, Tensor
from tensorplug.core.ops import empty

from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter
from ._sizes import Ints, as_tuple

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]


class _ConvNd(Module):
    """What convolutions share: options, parameters and their initialisation."""

    dimensions: ClassVar[int]
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints,
        padding: Ints | str,
        dilation: Ints,
        transposed: bool,
        output_padding: Ints,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        count = self.dimensions
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = as_tuple(kernel_size, count)
        self.stride = as_tuple(stride, count)
        self.padding: tuple[int, ...] | str
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string {padding!r}, should be one of same, valid"
                )
            if padding == "same" and any(step != 1 for step in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
            self.padding = padding
        else:
            self.padding = as_tuple(padding, count)
        self.dilation = as_tuple(dilation, count)
        self.transposed = transposed
        self.output_padding = as_tuple(output_padding, count)
        self.groups = groups
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                "padding_mode must be one of zeros, reflect, replicate, circular, but got "
                f"padding_mode='{padding_mode}'"
            )
        self.padding_mode = padding_mode
        # Of another padding than zeros: how much before and behind, the last dimension first.
        self._reversed_padding_repeated_twice = self._padding_for_pad()
        outer, inner = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        shape = (outer, inner // groups, *self.kernel_size)
        self.weight = Parameter(empty(*shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _padding_for_pad(self) -> list[int]:
        if not isinstance(self.padding, str):
            return [size for size in reversed(self.padding) for _ in range(2)]
        result = []
        for step, size in reversed(list(zip(self.dilation, self.kernel_size, strict=False))):
            total = step * (size - 1) if self.padding == "same" else 0
            result += [total // 2, total - total // 2]
        return result

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        # U(-1/sqrt(k), 1/sqrt(k)) with k the inputs of one output, as in torch.
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = init._calculate_fan_in_and_fan_out(self.weight)[0]
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """Return the options that differ from their defaults."""
        count = self.dimensions
        parts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        for name, default in {
            "padding": (0,) * count,
            "dilation": (1,) * count,
            "output_padding": (0,) * count,
            "groups": 1,
        }.items():
            if getattr(self, name) != default:
                parts.append(f"{name}={getattr(self, name)}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Conv(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation,
            False, 0, groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolution of `input`."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        function = (F.conv1d, F.conv2d, F.conv3d)[self.dimensions - 1]
        return function(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class Conv1d(_Conv):
    """Convolution over one dimension, (N, C, L) or (C, L); see :class:`Conv2d`."""

    dimensions = 1


class Conv2d(_Conv):
    r"""Convolution over two dimensions.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of input and output.
    kernel_size : int or sequence of int
        Size of the windows.
    stride, dilation : int or sequence of int
        Step of the windows, and of the elements within one.
    padding : int, sequence of int, "valid" or "same"
        How much is added on both sides.
    groups : int
        Into how many independent parts the channels are divided.
    bias : bool
        Whether to add a learned number per channel.
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
        What is added.
    device, dtype
        Where and of which dtype the parameters are made.

    Attributes
    ----------
    weight : Parameter
        (out_channels, in_channels / groups, \*kernel_size), from :math:`U(-\sqrt{k}, \sqrt{k})` with
        :math:`1 / k` the number of inputs of one output.
    bias : Parameter or None
        (out_channels,), from the same distribution.

    Raises
    ------
    ValueError
        If the groups do not divide the channels, or an option is none of those above.

    Examples
    --------
    >>> import tensorplug as tp
    >>> Conv2d(3, 8, 3, padding=1)(tp.zeros(2, 3, 5, 5)).shape
    Size([2, 8, 5, 5])
    """

    dimensions = 2


class Conv3d(_Conv):
    """Convolution over three dimensions, (N, C, D, H, W) or (C, D, H, W); see :class:`Conv2d`."""

    dimensions = 3


class _ConvTranspose(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}, got '
                f"{padding_mode!r}"
            )
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation,
            True, output_padding, groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None) -> Ints:
        """Return what has to be added behind to reach `output_size`."""
        if output_size is None:
            return self.output_padding
        count = self.dimensions
        wanted = list(output_size)
        if len(wanted) == input.ndim and input.ndim in (count + 1, count + 2):
            wanted = wanted[input.ndim - count :]
        if len(wanted) != count:
            raise ValueError(
                f"{type(self).__name__}: for {input.ndim}D input, output_size must have {count} or "
                f"{input.ndim} elements (got {len(output_size)})"
            )
        padding: Any = self.padding  # never a word here
        result = []
        for dim, size in enumerate(input.shape[-count:]):
            least = (
                (size - 1) * self.stride[dim]
                - 2 * padding[dim]
                + self.dilation[dim] * (self.kernel_size[dim] - 1)
                + 1
            )
            most = least + self.stride[dim] - 1
            if not least <= wanted[dim] <= most:
                raise ValueError(
                    f"requested an output size of {wanted}, but valid sizes of dimension {dim} range "
                    f"from {least} to {most} (for an input of {list(input.shape[-count:])})"
                )
            result.append(wanted[dim] - least)
        return tuple(result)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Return the transposed convolution of `input`; `output_size` settles what the stride leaves open."""
        extra = self._output_padding(input, output_size)
        functions: Any = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
        return functions[self.dimensions - 1](
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            extra,
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution over one dimension; see :class:`ConvTranspose2d`."""

    dimensions = 1


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution over two dimensions: the adjoint of :class:`Conv2d`.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of input and output.
    kernel_size : int or sequence of int
        Size of the windows.
    stride, dilation : int or sequence of int
        Step of the windows, and of the elements within one.
    padding : int or sequence of int
        How much is taken away on both sides of the output.
    output_padding : int or sequence of int
        Rows and columns added at the end, below the stride.
    groups : int
        Into how many independent parts the channels are divided.
    bias : bool
        Whether to add a learned number per channel.
    padding_mode : {"zeros"}
        There is no other.
    device, dtype
        Where and of which dtype the parameters are made.

    Examples
    --------
    >>> import tensorplug as tp
    >>> layer = ConvTranspose2d(3, 8, 3, stride=2, padding=1)
    >>> layer(tp.zeros(2, 3, 5, 5), output_size=(10, 10)).shape
    Size([2, 8, 10, 10])
    """

    dimensions = 2


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution over three dimensions; see :class:`ConvTranspose2d`."""

    dimensions = 3
