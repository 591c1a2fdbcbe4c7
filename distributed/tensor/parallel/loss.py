"""Cross-entropy of logits that are divided by classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

from tensorplug.core import Tensor
from tensorplug.core.dispatch.overrides import PushedMode
from tensorplug.core.ops import full
from tensorplug.nn import functional as F

from ... import distributed_c10d as c10d
from ..dtensor import DTensor
from ..exchanges import summed
from ..placement_types import Partial, Placement, Replicate, Shard

__all__ = ["loss_parallel"]


def loss_parallel() -> _LossParallel:
    """Have ``cross_entropy`` in a ``with`` block take logits of which each process has some classes.

    The processes exchange a maximum, a sum and a logit for each sample, in place of the logits. What else is
    in the block is as it was.

    Returns
    -------
    context manager
        In it ``nn.functional.cross_entropy`` and ``nn.CrossEntropyLoss`` take class indices, and a `DTensor`
        that one dimension of the mesh divides along its classes, the others along others or not at all. The
        loss is a `DTensor`: whole in each process; of a batch that is divided, its parts for
        ``reduction="none"``, summands for ``"sum"``.

    Raises
    ------
    ValueError
        In the block: if logits are plain tensors, which may be parts, or not divided so; for the mean over a
        batch that is divided, of which a process does not know the rest.
    NotImplementedError
        In the block: of probabilities of classes, and with `label_smoothing`.

    Examples
    --------
    >>> style = ColwiseParallel(use_local_output=False)  # doctest: +SKIP
    >>> parallelize_module(model, mesh, {"head": style})  # doctest: +SKIP
    >>> with loss_parallel():  # doctest: +SKIP
    ...     tp.nn.functional.cross_entropy(model(batch), targets).backward()
    """
    return _LossParallel()


class _LossParallel(PushedMode):
    __slots__ = ()

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def __torch_function__(
        self,
        func: Callable[..., Any],
        _types: Iterable[type[Any]],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        call: Any = _cross_entropy if func is F.cross_entropy else func
        return call(*args, **(kwargs or {}))


def _cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> DTensor:
    if not isinstance(input, DTensor):
        raise ValueError(
            "loss_parallel(): the logits are a plain tensor, of which nobody knows whether it is a part; "
            "pass DTensor.from_local(logits, mesh, placements), after what changes their shape"
        )
    if label_smoothing or size_average is not None or reduce is not None:
        raise NotImplementedError("loss_parallel() has no label_smoothing, size_average and reduce")
    if target.is_floating_point():
        raise NotImplementedError("loss_parallel() takes class indices, not probabilities")
    dim = min(1, input.ndim - 1)
    number = _divides(input.placements, dim)
    group = input.device_mesh.get_group(number)
    # How the loss of each sample lies: as the logits do, without the classes.
    layout: list[Placement] = [
        Shard(p.dim - (p.dim > dim)) if isinstance(p, Shard) else p for p in input.placements
    ]
    layout[number] = Replicate()
    divided = any([p.is_shard() for p in layout])
    if isinstance(target, DTensor):
        if list(target.placements) != layout:
            raise ValueError(
                f"loss_parallel(): expected a target {layout}, got {target.placements}"
            )
        target = target.to_local()
    elif divided:
        raise ValueError(f"loss_parallel(): pass the target as a DTensor that lies {layout}")
    if reduction == "mean" and divided:
        raise ValueError("loss_parallel(): of a batch that is divided, take the sum and divide it")
    starts, _ = input.extents()
    counted = target != ignore_index
    losses, weights = _losses(
        input.to_local(), target.masked_fill(~counted, 0), dim, starts[dim], weight, group
    )
    losses = (losses * weights).masked_fill(~counted, 0)
    sizes = [size for i, size in enumerate(input.full_shape) if i != dim]
    if reduction == "none":
        return DTensor.from_local(losses, input.device_mesh, layout, shape=sizes)
    total = losses.sum()
    if reduction == "mean":
        total = total / weights.masked_fill(~counted, 0).sum()
    elif reduction != "sum":
        raise ValueError(f"{reduction} is not a valid value for reduction")
    placements = [Partial() if p.is_shard() else p for p in layout]
    return DTensor.from_local(total, input.device_mesh, placements, shape=())


def _divides(placements: tuple[Placement, ...], dim: int) -> int:
    """Return the dimension of the mesh that divides the classes."""
    found = [i for i, placement in enumerate(placements) if placement.is_shard(dim)]
    if len(found) != 1 or any([placement.is_partial() for placement in placements]):
        raise ValueError(
            f"loss_parallel() requires exactly one mesh dim to shard tensor dimension {dim}, and none with "
            f"summands, got {placements}"
        )
    return found[0]


def _losses(
    part: Tensor, target: Tensor, dim: int, start: int, weight: Tensor | None, group: Any
) -> tuple[Tensor, Tensor]:
    """Return the loss of each sample, from this process's logits of it, and its weight."""
    count = part.shape[dim]
    lowest = [size for i, size in enumerate(part.shape) if i != dim]
    peak = full(lowest, -float("inf"), dtype=part.dtype, device=part.device)
    if count:
        peak = part.detach().amax(dim)
    c10d.all_reduce(peak, c10d.ReduceOp.MAX, group)
    shifted = part - peak.unsqueeze(dim)
    total = summed(shifted.exp().sum(dim), group)
    chosen = full(lowest, 0.0, dtype=part.dtype, device=part.device)
    if count:
        outside = (target < start) | (target >= start + count)
        index = (target - start).masked_fill(outside, 0).unsqueeze(dim)
        chosen = shifted.gather(dim, index).squeeze(dim).masked_fill(outside, 0)
    losses = total.log() - summed(chosen, group)
    if weight is None:
        return losses, full(lowest, 1.0, dtype=part.dtype, device=part.device)
    whole = weight.to_local() if isinstance(weight, DTensor) else weight
    return losses, whole[target]
