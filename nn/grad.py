"""The gradients of convolutions as functions (``torch.nn.grad``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorplug.core import Tensor

from .ops.convolution.convolution import convolution_input, convolution_weight

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]

Ints = int | Sequence[int]


def _each(value: Ints, count: int) -> tuple[int, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)


def _of_input(count: int) -> Callable[..., Tensor]:
    def gradient(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:
        size = tuple(input_size)[2:]
        steps, around, apart = (_each(value, count) for value in (stride, padding, dilation))
        return convolution_input(grad_output, weight, size, steps, around, apart, groups)

    gradient.__name__ = gradient.__qualname__ = f"conv{count}d_input"
    gradient.__doc__ = f"""Return the gradient of :func:`conv{count}d` with respect to its input.

    Parameters
    ----------
    input_size : sequence of int
        The input's shape, (N, C, *).
    weight : Tensor
        (O, C/groups, *).
    grad_output : Tensor
        The gradient of the output.
    stride, padding, dilation, groups
        As in the convolution.
    """
    return gradient


def _of_weight(count: int) -> Callable[..., Tensor]:
    def gradient(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:
        size = tuple(weight_size)[2:]
        steps, around, apart = (_each(value, count) for value in (stride, padding, dilation))
        return convolution_weight(input, grad_output, size, steps, around, apart, groups)

    gradient.__name__ = gradient.__qualname__ = f"conv{count}d_weight"
    gradient.__doc__ = f"""Return the gradient of :func:`conv{count}d` with respect to its weight.

    Parameters
    ----------
    input : Tensor
        (N, C, *).
    weight_size : sequence of int
        The weight's shape, (O, C/groups, *).
    grad_output : Tensor
        The gradient of the output.
    stride, padding, dilation, groups
        As in the convolution.
    """
    return gradient


conv1d_input, conv2d_input, conv3d_input = (_of_input(count) for count in (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = (_of_weight(count) for count in (1, 2, 3))
