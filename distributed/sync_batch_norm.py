"""Batch normalisation by the statistics of all processes; what ``nn.SyncBatchNorm`` calls."""

from __future__ import annotations

from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.autograd.function import Function, once_differentiable
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import float32, float64
from tensorplug.core.ops import cat, empty, full

from . import distributed_c10d as c10d

__all__ = ["sync_batch_norm"]


def sync_batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: float,
    eps: float,
    group: Any,
) -> Tensor:
    """Return a batch standardised per channel by mean and variance of all processes' batches.

    Parameters
    ----------
    input : Tensor
        (N, C, …); N may differ between processes, and be 0 in some.
    running_mean, running_var : Tensor or None
        (C,): updated in place, by `momentum`.
    weight, bias : Tensor or None
        (C,).
    momentum, eps : float
        As in :class:`tensorplug.nn.BatchNorm2d`.
    group : ProcessGroup
        Whose processes share statistics.

    Raises
    ------
    ValueError
        If all of them have one value per channel together.
    """
    with no_grad():
        mean, var, count = _statistics(input.detach(), group)
        if count <= 1:
            raise ValueError(
                f"Expected more than 1 value per channel when training, got {count:g} in all processes, "
                f"{list(input.shape)} in this one"
            )
        if running_mean is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
        if running_var is not None:
            running_var.lerp_((var * (count / (count - 1))).to(running_var.dtype), momentum)
        rstd = (var + eps).rsqrt()
    result: Tensor = _Standardize.apply(input, weight, bias, mean, rstd, count, group)
    return result


def _over(input: Tensor) -> list[int]:
    """Return the dimensions over which statistics are taken."""
    return [dim for dim in range(input.ndim) if dim != 1]


def _per_channel(values: Tensor, input: Tensor) -> Tensor:
    return values.view(1, -1, *[1] * (input.ndim - 2))


def _statistics(input: Tensor, group: Any) -> tuple[Tensor, Tensor, float]:
    """Return mean, variance and count per channel over all processes.

    Each contributes its mean and the sum of squares around that, which are put together as in Chan, Golub
    and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
    """
    wide = input.to(float64 if input.dtype is float64 else float32)
    channels = input.shape[1]
    count = input.numel() // max(channels, 1)
    mean = wide.sum(_over(input)) / max(count, 1)
    squares = (wide - _per_channel(mean, input)).square().sum(_over(input))
    mine = cat([mean, squares, full((1,), float(count), dtype=wide.dtype, device=wide.device)])
    size = c10d.get_world_size(group)
    everybody = empty(size * mine.numel(), dtype=mine.dtype, device=mine.device)
    c10d.all_gather_into_tensor(everybody, mine, group=group)
    means, sums, counts = everybody.view(size, -1).split([channels, channels, 1], 1)
    total = float(counts.sum().item())
    mean = (means * counts).sum(0) / max(total, 1.0)
    var = (sums + counts * (means - mean).square()).sum(0) / max(total, 1.0)
    return mean, var, total


class _Standardize(Function):
    """(x - mean) · rstd · weight + bias, where mean and rstd depend on all processes' x."""

    @staticmethod
    def forward(
        ctx: Any,
        input: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean: Tensor,
        rstd: Tensor,
        count: float,
        group: Any,
    ) -> Tensor:
        ctx.save_for_backward(input, weight, mean, rstd)
        ctx.count, ctx.group = count, group
        scale = rstd if weight is None else rstd * weight
        shift = -mean * scale if bias is None else bias - mean * scale
        output = input * _per_channel(scale, input) + _per_channel(shift, input)
        return output.to(input.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        input, weight, mean, rstd = ctx.saved_tensors
        wide = gradient.to(mean.dtype)
        centered = input.to(mean.dtype) - _per_channel(mean, input)
        sums = cat([wide.sum(_over(input)), (wide * centered).sum(_over(input)) * rstd])
        channels = input.shape[1]
        of_weight = sums[channels:].clone() if ctx.needs_input_grad[1] else None
        of_bias = sums[:channels].clone() if ctx.needs_input_grad[2] else None
        of_input = None
        if ctx.needs_input_grad[0]:
            c10d.all_reduce(sums, group=ctx.group)
            of_shift, of_scale = (sums / ctx.count).split(channels)
            scale = rstd if weight is None else rstd * weight
            of_input = wide - _per_channel(of_shift, input)
            of_input -= centered * _per_channel(of_scale * rstd, input)
            of_input = (of_input * _per_channel(scale, input)).to(input.dtype)
        if weight is not None:
            of_weight = None if of_weight is None else of_weight.to(weight.dtype)
            of_bias = None if of_bias is None else of_bias.to(weight.dtype)
        return of_input, of_weight, of_bias, None, None, None, None
