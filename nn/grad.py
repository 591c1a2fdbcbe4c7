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


def _gradients(count: int) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """Return the gradients of a convolution over `count` dimensions, with respect to input and weight."""

    def options(
        stride: Ints, padding: Ints, dilation: Ints, groups: int
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int]:
        return _each(stride, count), _each(padding, count), _each(dilation, count), groups

    def of_input(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:
        given = options(stride, padding, dilation, groups)
        return convolution_input(grad_output, weight, tuple(input_size)[2:], *given)

    def of_weight(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:
        given = options(stride, padding, dilation, groups)
        return convolution_weight(input, grad_output, tuple(weight_size)[2:], *given)

    sizes = "sequence of int"
    for function, what, first, second in (
        (of_input, "input", f"input_size : {sizes}", "weight : Tensor"),
        (of_weight, "weight", "input : Tensor", f"weight_size : {sizes}"),
    ):
        function.__name__ = function.__qualname__ = f"conv{count}d_{what}"
        function.__doc__ = f"""Return the gradient of :func:`conv{count}d` with respect to its {what}.

    Parameters
    ----------
    {first}
        The input or its shape, (N, C, *).
    {second}
        The weight or its shape, (O, C/groups, *).
    grad_output : Tensor
        The gradient of the output.
    stride, padding, dilation, groups
        As in the convolution.
    """
    return of_input, of_weight


conv1d_input, conv1d_weight = _gradients(1)
conv2d_input, conv2d_weight = _gradients(2)
conv3d_input, conv3d_weight = _gradients(3)
