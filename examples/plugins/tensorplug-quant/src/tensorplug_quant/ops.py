"""The ops of this package."""

from __future__ import annotations

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.plugin import composite


@composite(name="quant.linear_int8", method=False)
def linear_int8(input: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``(input @ weight.T) * scale + bias``, for a weight of 8-bit integers.

    Parameters
    ----------
    input : Tensor
        (*, in_features), of floating point.
    weight : Tensor
        (out_features, in_features), int8.
    scale : Tensor
        (out_features,), of the input's dtype: what a step of the integers in each row stands for.
    bias : Tensor, optional
        (out_features,), of the input's dtype.

    Returns
    -------
    Tensor
        (*, out_features).

    Raises
    ------
    TypeError
        If `weight` is not int8, or the others are not of one floating-point dtype.
    ValueError
        If the shapes do not fit.

    Notes
    -----
    It can be differentiated by the input, the scale and the bias. The scale is applied to the result, one
    multiplication per output, not to the weight.

    Examples
    --------
    >>> weight, scale = tp.tensor([[127, -127]], dtype=tp.int8), tp.tensor([0.01])
    >>> linear_int8(tp.tensor([3.0, 1.0]), weight, scale)
    tensor([2.5400])
    """
    _check(input, weight, scale, bias)
    # A composite's body is written in other ops, so it runs on every device and is differentiated by itself.
    result = _matmul_int8(input, weight.t()) * scale
    return result if bias is None else result + bias


@composite(name="quant._matmul_int8", method=False)
def _matmul_int8(input: Tensor, weight: Tensor) -> Tensor:
    """Return ``input @ weight``, (*, k) times int8 (k, n); the arguments are known to fit.

    It stands on its own because it is worth a kernel: this body writes down the whole weight in floating
    point before it multiplies.
    """
    return input @ weight.to(input.dtype)


def _check(input: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None) -> None:
    name = "linear_int8()"
    if weight.dtype is not tp.int8:
        raise TypeError(f"{name}: expected an int8 weight, got {weight.dtype}")
    if not input.is_floating_point():
        raise TypeError(f"{name}: expected an input of floating point, got {input.dtype}")
    if weight.ndim != 2:
        raise ValueError(
            f"{name}: expected a weight (out_features, in_features), got {list(weight.shape)}"
        )
    outputs, inputs = weight.shape
    if input.ndim == 0 or input.shape[-1] != inputs:
        raise ValueError(
            f"{name}: expected an input (..., {inputs}) for a weight {list(weight.shape)}, got "
            f"{list(input.shape)}"
        )
    for what, values in (("scale", scale), ("bias", bias)):
        if values is None:
            continue
        if values.dtype is not input.dtype:
            raise TypeError(
                f"{name}: expected a {what} of the input's dtype {input.dtype}, got {values.dtype}"
            )
        if tuple(values.shape) != (outputs,):
            raise ValueError(
                f"{name}: expected a {what} of shape [{outputs}], got {list(values.shape)}"
            )
