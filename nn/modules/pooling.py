"""Pooling as modules; what they compute is said where the functions are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tensorplug.core import Tensor

from .. import functional as F
from ..module import Module
from ._sizes import Ints, as_tuple

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _Pool(Module):
    """Pooling over the last `dimensions` dimensions."""

    dimensions: ClassVar[int]
    #: The functions for one dimension, two and three.
    _functions: ClassVar[tuple[Callable[..., Any] | None, ...]]
    #: The options that the functions take after the input, in their order.
    _arguments: ClassVar[tuple[str, ...]]
    #: The options that are printed.
    _printed: ClassVar[tuple[str, ...]] = ("kernel_size", "stride", "padding")

    def _pooled(self, input: Tensor) -> Any:
        function = self._functions[self.dimensions - 1]
        assert function is not None
        return function(input, *[getattr(self, name) for name in self._arguments])

    def extra_repr(self) -> str:
        """Return the options."""
        return ", ".join(f"{name}={getattr(self, name)}" for name in self._printed)


class _MaxPool(_Pool):
    _functions = (F.max_pool1d, F.max_pool2d, F.max_pool3d)
    _arguments = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")
    _printed = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """Return the maxima, and with `return_indices` their places."""
        return self._pooled(input)


class MaxPool1d(_MaxPool):
    """The largest element of each window of one dimension; see :class:`MaxPool2d`."""

    dimensions = 1


class MaxPool2d(_MaxPool):
    """The largest element of each window; see :func:`~tensorplug.nn.functional.max_pool2d`.

    Parameters
    ----------
    kernel_size : int or sequence of int
        The size of the window.
    stride : int or sequence of int, optional
        Its step; by default its size.
    padding : int or sequence of int
        Rows and columns of minus infinity on both sides.
    dilation : int or sequence of int
        The step within a window.
    return_indices : bool
        Whether to return the places as well.
    ceil_mode : bool
        Whether a last window may hang over the end.

    Examples
    --------
    >>> import tensorplug as tp
    >>> MaxPool2d(2)(tp.zeros(1, 3, 8, 8)).shape
    Size([1, 3, 4, 4])
    """

    dimensions = 2


class MaxPool3d(_MaxPool):
    """The largest element of each window of three dimensions; see :class:`MaxPool2d`."""

    dimensions = 3


class _MaxUnpool(_Pool):
    _functions = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0) -> None:
        super().__init__()
        count = self.dimensions
        step = stride if stride is not None else kernel_size
        self.kernel_size = as_tuple(kernel_size, count)
        self.stride = as_tuple(step, count)
        self.padding = as_tuple(padding, count)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """Return the maxima where they were, and zeros elsewhere."""
        function: Any = self._functions[self.dimensions - 1]
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    """A partial inverse of :class:`MaxPool1d`."""

    dimensions = 1


class MaxUnpool2d(_MaxUnpool):
    """A partial inverse of :class:`MaxPool2d`."""

    dimensions = 2


class MaxUnpool3d(_MaxUnpool):
    """A partial inverse of :class:`MaxPool3d`."""

    dimensions = 3


class AvgPool1d(_Pool):
    """The mean of each window of one dimension; see :class:`AvgPool2d`."""

    dimensions = 1
    _functions = (F.avg_pool1d,)
    _arguments = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = as_tuple(kernel_size, 1)
        self.stride = as_tuple(stride if stride is not None else kernel_size, 1)
        self.padding = as_tuple(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Return the means."""
        return self._pooled(input)


class _AvgPool(_Pool):
    _functions = (None, F.avg_pool2d, F.avg_pool3d)
    _arguments = (*AvgPool1d._arguments, "divisor_override")

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """Return the means."""
        return self._pooled(input)


class AvgPool2d(_AvgPool):
    """The mean of each window; see :func:`~tensorplug.nn.functional.avg_pool2d`."""

    dimensions = 2


class AvgPool3d(_AvgPool):
    """The mean of each window of three dimensions."""

    dimensions = 3


class _LPPool(_Pool):
    _functions = (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)
    _arguments = ("norm_type", "kernel_size", "stride", "ceil_mode")
    _printed = _arguments

    def __init__(
        self,
        norm_type: float,
        kernel_size: Ints,
        stride: Ints | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Return the norms."""
        return self._pooled(input)


class LPPool1d(_LPPool):
    """The p-norm of each window of one dimension."""

    dimensions = 1


class LPPool2d(_LPPool):
    """The p-norm of each window; see :func:`~tensorplug.nn.functional.lp_pool2d`."""

    dimensions = 2


class LPPool3d(_LPPool):
    """The p-norm of each window of three dimensions."""

    dimensions = 3


class _AdaptivePool(_Pool):
    _arguments: ClassVar[tuple[str, ...]] = ("output_size",)
    _printed = ("output_size",)

    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        super().__init__()
        self.output_size: Any = output_size


class _AdaptiveAvgPool(_AdaptivePool):
    _functions = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)

    def forward(self, input: Tensor) -> Tensor:
        """Return the means."""
        return self._pooled(input)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Means over windows of one dimension that divide the input evenly."""

    dimensions = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Means over windows that divide the input evenly.

    Parameters
    ----------
    output_size : int or sequence of int or None
        The size of the result; None stands for the input's.

    Examples
    --------
    >>> import tensorplug as tp
    >>> AdaptiveAvgPool2d((1, None))(tp.zeros(1, 3, 8, 9)).shape
    Size([1, 3, 1, 9])
    """

    dimensions = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Means over windows of three dimensions that divide the input evenly."""

    dimensions = 3


class _AdaptiveMaxPool(_AdaptivePool):
    _functions = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)
    _arguments = ("output_size", "return_indices")

    def __init__(
        self, output_size: int | Sequence[int | None] | None, return_indices: bool = False
    ) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """Return the maxima, and with `return_indices` their places."""
        return self._pooled(input)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of windows of one dimension that divide the input evenly."""

    dimensions = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest elements of windows that divide the input evenly."""

    dimensions = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest elements of windows of three dimensions that divide the input evenly."""

    dimensions = 3


class _FractionalMaxPool(Module):
    dimensions: ClassVar[int]

    def __init__(
        self,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        count = self.dimensions
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{type(self).__name__} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        self.kernel_size = as_tuple(kernel_size, count)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else as_tuple(output_size, count)
        self.output_ratio: tuple[float, ...] | None = None
        if output_ratio is not None:
            ratios = output_ratio if isinstance(output_ratio, Sequence) else (output_ratio,) * count
            self.output_ratio = tuple(ratios)
            if not all(0 < ratio < 1 for ratio in self.output_ratio):
                raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        """Return the maxima, and with `return_indices` their places."""
        function = F.fractional_max_pool2d if self.dimensions == 2 else F.fractional_max_pool3d
        return function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest elements of windows at random steps (Graham 2014)."""

    dimensions = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest elements of windows of three dimensions at random steps."""

    dimensions = 3
