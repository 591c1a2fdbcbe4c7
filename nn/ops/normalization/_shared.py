"""What norms share."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import FLOATING, bfloat16, float16, float32, scalar_type
from tensorplug.core.ops import ones_like, zeros
from tensorplug.core.tensor.shapes import Shape

HALVES = (float16, bfloat16)


def wide(tensor: Any) -> Any:
    """Return a half-precision tensor in float32, in which torch computes it too."""
    return tensor.to(float32) if tensor.dtype in HALVES else tensor


def fit(input: Any, *numbers: Any) -> bool:
    """Return whether the numbers of channels are of the input's dtype, or float32 for half precision."""
    key = input._key
    for number in numbers:
        if number._key is not key:
            break
    else:
        return True
    dtype = numbers[0].dtype if numbers else None
    if dtype is not input.dtype and not (dtype is float32 and input.dtype in HALVES):
        return False
    return all([number.dtype is dtype for number in numbers])


def without_history(tensor: Any) -> Any:
    """Return a tensor of which nothing is differentiated; itself if it requires no gradient."""
    return tensor.detach() if tensor._state else tensor


def check_floating(name: str, input: Any) -> None:
    """Raise NotImplementedError for complex numbers, and for integers, whose quotients would be cut off."""
    category = input._key.dtype.category
    if category != FLOATING and input.numel():
        remedy = "normalize the real and the imaginary part"
        raise NotImplementedError(
            f'{name}(): "{name}" not implemented for {scalar_type(input.dtype)!r}; '
            f"{remedy if category > FLOATING else 'convert the input with .float()'}"
        )


def check_parameters(name: str, input: Any, *parameters: Any) -> None:
    """Raise RuntimeError for parameters of other dtypes than kernels take beside the input.

    Complex numbers are refused, as in torch: of their squares no variance is made.
    """
    key = input._key
    check_floating(name, input)
    for parameter in parameters:
        if parameter is not None and parameter._key is not key:
            given = [value for value in parameters if value is not None]
            if not fit(input, *given):
                wanted = float32 if input.dtype in HALVES else input.dtype
                raise RuntimeError(
                    f"{name}(): mixed dtype: expect parameter to have scalar type of "
                    f"{scalar_type(wanted)}, all of them, beside an input of "
                    f"{scalar_type(input.dtype)}; got "
                    f"{', '.join([scalar_type(value.dtype) for value in given])}"
                )
            return


def check_per_channel(channels: int, mean: Any, variance: Any, weight: Any, bias: Any) -> None:
    """Raise RuntimeError unless what is there has one number per channel."""
    for name, value in (
        ("running_mean", mean),
        ("running_var", variance),
        ("weight", weight),
        ("bias", bias),
    ):
        if value is not None and value._shape != (channels,):
            raise RuntimeError(
                f"{name} should contain {channels} elements not {value.numel()}: one per channel, got shape "
                f"{list(value._shape)}"
            )


def along_channels(input: Any) -> Shape:
    """Return the shape in which a number per channel broadcasts against the input."""
    return (1, -1, *[1] * (len(input._shape) - 2))


def all_but_channels(input: Any) -> Shape:
    """Return the dimensions of the input that are no channels."""
    return (0, *range(2, len(input._shape)))


def with_weight(weight: Any, bias: Any) -> Any:
    """Return the weight, or ones for a bias alone."""
    return ones_like(bias, requires_grad=False) if weight is None and bias is not None else weight


def nothing(like: Any) -> Any:
    """Return the empty tensor that stands for the gradient of a weight that is None."""
    return zeros(0, dtype=like.dtype, device=like.device)


def rows_normalized(
    input: Any, weight: Any, bias: Any, length: int, repeat: int, eps: float, centred: bool
) -> Any:
    """Return runs of `length` elements over their root mean square, times weights, plus biases.

    Parameters
    ----------
    weight, bias : Tensor or None
        Taken in turn along the elements of the input, as they are listed.
    length : int
        The elements of a run.
    repeat : int
        For how many elements in succession a weight counts.
    centred : bool
        Whether the mean of the run is taken off first.
    """
    if not input.numel():
        return input.clone()
    rows = wide(input).contiguous().reshape(-1, length)
    if centred:
        rows = rows - rows.mean(1, True)
    rows = rows * ((rows * rows).mean(1, True) + eps).rsqrt()
    if weight is not None:
        rows = rows.reshape(-1, weight.numel(), repeat) * wide(weight).reshape(-1, 1)
        if bias is not None:
            rows = rows + wide(bias).reshape(-1, 1)
    return rows.reshape(input._shape).to(input.dtype)


def rows_backward(
    g: Any, input: Any, weight: Any, length: int, repeat: int, eps: float, centred: bool
) -> tuple[Any, Any, Any]:
    """Return the gradients of input, weight and bias of :func:`rows_normalized`.

    Notes
    -----
    With the output x̂ and the weighted gradient g: dx = rstd (g - mean(g) - x̂ mean(g x̂)), without mean(g)
    where no mean is taken off. The statistics are computed again, so that nothing else is saved.
    """
    if not input.numel():
        none = nothing(input) if weight is None else weight * 0
        return g.clone(), none, none
    p = wide(g).contiguous()
    if weight is not None:
        p = p.reshape(-1, weight.numel(), repeat)
    inner = p if weight is None else p * wide(weight).reshape(-1, 1)
    inner, rows = inner.reshape(-1, length), wide(input).contiguous().reshape(-1, length)
    if centred:
        rows = rows - rows.mean(1, True)
    rstd = ((rows * rows).mean(1, True) + eps).rsqrt()
    output = rows * rstd
    result = inner - output * (inner * output).mean(1, True)
    if centred:
        result = result - inner.mean(1, True)
    g_input = (result * rstd).reshape(input._shape).to(input.dtype)
    if weight is None:
        return g_input, nothing(input), nothing(input)
    sums = [t.sum((0, 2)).reshape(weight._shape) for t in (p * output.reshape(p._shape), p)]
    return g_input, sums[0].to(weight.dtype), sums[1].to(weight.dtype)
