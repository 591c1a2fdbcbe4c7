"""Norms of each sample by itself: over its last dimensions, its groups of channels, its positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative, no_grad
from tensorplug.core.device.dtypes import FLOATING, finfo, float32, promote_types
from tensorplug.core.dispatch.op_registry import Delegated, composite
from tensorplug.core.ops.rules import check_tensor
from tensorplug.core.tensor.shapes import as_ints

from ._shared import (
    check_parameters,
    check_per_channel,
    rows_backward,
    rows_normalized,
    with_weight,
)
from .batch_norm import batch_norm, of_nothing

if TYPE_CHECKING:
    from tensorplug.core import Tensor


def _last_dims(input: Any, normalized_shape: Sequence[int], name: str) -> tuple[int, ...]:
    """Return the sizes of the last dimensions."""
    check_tensor(input, name)
    wanted = as_ints(tuple(normalized_shape))
    if not wanted:
        raise RuntimeError(f"{name}(): Expected normalized_shape to be at least 1-dimensional")
    if input._shape[-len(wanted) :] != wanted:
        raise RuntimeError(
            f"Given normalized_shape={list(wanted)}, expected input with shape "
            f"[*, {', '.join(map(str, wanted))}], but got input of size{list(input.shape)}"
        )
    return wanted


def _check_shape(function: str, name: str, value: Any, wanted: tuple[int, ...]) -> None:
    if value is not None and value._shape != wanted:
        raise RuntimeError(
            f"{function}(): Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
            f"{list(value.shape)} and normalized_shape = {list(wanted)}"
        )


# --- layer_norm ------------------------------------------------------------------------------------


def _canonical_layer_norm(
    input: Any,
    normalized_shape: Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> tuple[Any, ...]:
    wanted = _last_dims(input, normalized_shape, "layer_norm")
    _check_shape("layer_norm", "weight", weight, wanted)
    _check_shape("layer_norm", "bias", bias, wanted)
    check_parameters("layer_norm", input, weight, bias)
    return input, wanted, with_weight(weight, bias), bias, eps


@composite(rule=_canonical_layer_norm, method=False)
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return `input` standardised over its last dimensions.

    Parameters
    ----------
    input : Tensor
        (*, *normalized_shape).
    normalized_shape : sequence of int
        The sizes of those dimensions.
    weight, bias : Tensor, optional
        Of that shape.

    Raises
    ------
    RuntimeError
        If the input's last dimensions are others, or a weight or bias is of another shape.

    Examples
    --------
    >>> import tensorplug as tp
    >>> layer_norm(tp.tensor([1.0, 2.0, 3.0]), (3,))
    tensor([-1.2247,  0.0000,  1.2247])
    """
    length = math.prod(normalized_shape)
    result: Tensor = rows_normalized(input, weight, bias, length, 1, eps, True)
    return result


def _check_rows(g: Any, input: Any, normalized_shape: Any, weight: Any, eps: float) -> None:
    _check_shape("backward", "weight", weight, _last_dims(input, normalized_shape, "backward"))


@composite(shapes="g(*S), input(*S)", rule=_check_rows, method=False, outputs="input, weight, bias")
def layer_norm_backward(
    g: Tensor, input: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of :func:`layer_norm`; without a weight the last two are empty."""
    return rows_backward(g, input, weight, math.prod(normalized_shape), 1, eps, True)


# --- rms_norm --------------------------------------------------------------------------------------


def _canonical_rms_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None
) -> Any:
    wanted = _last_dims(input, normalized_shape, "rms_norm")
    _check_shape("rms_norm", "weight", weight, wanted)
    if input.dtype.category < FLOATING:
        raise NotImplementedError(f"rms_norm(): not implemented for {input.dtype.name}")
    # Half precision is computed in float32, and has that one's epsilon, as in torch.
    small = finfo(promote_types(input.dtype, float32)).eps if eps is None else eps
    if not input.is_complex():
        return input, wanted, weight, small
    dims = tuple(range(-len(wanted), 0))
    output = input * ((input * input).mean(dims, keepdim=True) + small).rsqrt()
    return Delegated(output if weight is None else (output * weight).to(input.dtype))


@composite(rule=_canonical_rms_norm, keeps_format=True, method=False)
def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Return `input` divided by its root mean square over its last dimensions (Zhang and Sennrich 2019).

    `eps` is the epsilon of the dtype unless given, of half precision that of float32.
    """
    assert eps is not None
    length = math.prod(normalized_shape)
    result: Tensor = rows_normalized(input, weight, None, length, 1, eps, False)
    return result


@composite(shapes="g(*S), input(*S)", rule=_check_rows, method=False, outputs="input, weight")
def rms_norm_backward(
    g: Tensor, input: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None, eps: float
) -> tuple[Tensor, Tensor]:
    """Return the gradients of :func:`rms_norm`; without a weight the last one is empty."""
    return rows_backward(g, input, weight, math.prod(normalized_shape), 1, eps, False)[:2]


# --- group_norm ------------------------------------------------------------------------------------


def _canonical_group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> tuple[Any, ...]:
    check_tensor(input, "group_norm")
    if input.ndim < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.ndim}"
        )
    channels = input.shape[1]
    if num_groups <= 0 or channels % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    if math.prod((input._shape[0], channels // num_groups, *input._shape[2:])) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {list(input.shape)}"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and value._shape != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got "
                f"{name} of shape {list(value.shape)} and input of shape {list(input.shape)}"
            )
    check_parameters("group_norm", input, weight, bias)
    return input, num_groups, with_weight(weight, bias), bias, eps


def _extents(input: Any, num_groups: int) -> tuple[int, int]:
    """Return the elements of a group, and of a channel."""
    indices = math.prod(input._shape[2:])
    return input._shape[1] // num_groups * indices, indices


@composite(rule=_canonical_group_norm, keeps_format=True, method=False)
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return `input` (N, C, *) standardised over each of `num_groups` groups of channels (Wu and He 2018)."""
    result: Tensor = rows_normalized(input, weight, bias, *_extents(input, num_groups), eps, True)
    return result


def _check_groups(g: Any, input: Any, num_groups: int, weight: Any, eps: float) -> None:
    if num_groups <= 0 or input._shape[1] % num_groups:
        raise RuntimeError(
            f"group_norm_backward(): {input._shape[1]} channels are not divided by {num_groups} groups"
        )


@composite(
    shapes="g(N, C, *S), input(N, C, *S), weight(C)",
    rule=_check_groups,
    method=False,
    outputs="input, weight, bias",
)
def group_norm_backward(
    g: Tensor, input: Tensor, num_groups: int, weight: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of :func:`group_norm`; without a weight the last two are empty."""
    return rows_backward(g, input, weight, *_extents(input, num_groups), eps, True)


# --- instance_norm ---------------------------------------------------------------------------------


def _canonical_instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    check_tensor(input, "instance_norm")
    options = (running_mean, running_var, weight, bias)
    check_parameters("instance_norm", input, *options)
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if not use_input_stats:
        return Delegated(batch_norm(input, *options, False, momentum, eps))
    if not math.prod(input._shape):
        return Delegated(of_nothing(input, weight, bias))
    if math.prod(input._shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {list(input.shape)}"
        )
    check_per_channel(input._shape[1], *options)
    return input, *options, True, momentum, eps


@composite(
    rule=_canonical_instance_norm,
    rows=True,
    updates="running_mean, running_var",
    mixed=True,
    method=False,
)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return `input` (N, C, *) standardised over the positions of each channel of each sample."""
    if running_mean is not None and running_var is not None:
        with no_grad():
            dims = tuple(range(2, input.ndim))
            count = math.prod(input._shape[2:])
            means = input.mean(dims)
            variances = input.var(dims, correction=0) * (count / (count - 1))
            for running, new in ((running_mean, means.mean(0)), (running_var, variances.mean(0))):
                running.mul_(1 - momentum).add_(new.to(running.dtype) * momentum)
    return group_norm(input, input._shape[1], weight, bias, eps)


# --- derivatives -----------------------------------------------------------------------------------


def _layer(g: Any, input: Any, normalized_shape: Any, weight: Any, eps: float) -> list[Any]:
    found = layer_norm_backward(g, input, normalized_shape, weight, eps)
    return [found[0], None, None] if weight is None else list(found)


def _rms(g: Any, input: Any, normalized_shape: Any, weight: Any, eps: float) -> list[Any]:
    found = rms_norm_backward(g, input, normalized_shape, weight, eps)
    return [found[0], None] if weight is None else list(found)


def _group(g: Any, input: Any, num_groups: int, weight: Any, eps: float) -> list[Any]:
    found = group_norm_backward(g, input, num_groups, weight, eps)
    return [found[0], None, None] if weight is None else list(found)


DERIVATIVES = [
    derivative("layer_norm", joint={"input, weight, bias": _layer}),
    derivative("rms_norm", joint={"input, weight": _rms}),
    derivative("group_norm", joint={"input, weight, bias": _group}),
]
