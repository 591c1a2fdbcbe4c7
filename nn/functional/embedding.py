"""Rows of tables, bags of them, and classes as vectors."""

from __future__ import annotations

from typing import Any

from tensorplug.autograd import derivative
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import FLOATING, int32, int64, scalar_type
from tensorplug.core.dispatch.op_registry import Delegated, composite
from tensorplug.core.errors import warn
from tensorplug.core.ops import aminmax, arange, full, searchsorted, where, zeros
from tensorplug.core.ops.rules import in_float32
from tensorplug.core.tensor.predicates import all_samples, any_in_samples, largest_in_samples

from ..ops._gradients import gradients
from ..ops.embedding import embedding, has_gradient, limit_norms
from ._common import tensor

__all__ = ["embedding", "embedding_bag", "one_hot"]


def _canonical_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    tensor(input, "embedding_bag")
    tensor(weight, "embedding_bag", "weight")
    if weight._key.dtype is int64 and input._key.dtype.category == FLOATING:
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, "
            "...)` is deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            UserWarning,
        )
        return Delegated(
            embedding_bag(
                weight, input, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse,
                per_sample_weights, include_last_offset, padding_idx,
            )
        )  # fmt: skip
    _check(input, weight, offsets, mode, scale_grad_by_freq, per_sample_weights, sparse)
    padding = None if padding_idx is None else _padding_row(padding_idx, weight._shape[0])
    if max_norm is not None:
        _check_offsets(offsets, input)
        limit_norms(weight, input.reshape(-1).to(int64), max_norm, norm_type)
    if sparse and has_gradient(weight):
        return Delegated(
            _bags(
                weight, input, offsets, scale_grad_by_freq, mode, per_sample_weights,
                include_last_offset, padding, True,
            )
        )  # fmt: skip
    if sparse or max_norm is not None:
        return Delegated(
            embedding_bag(
                input, weight, offsets, None, norm_type, scale_grad_by_freq, mode, False,
                per_sample_weights, include_last_offset, padding,
            )
        )  # fmt: skip
    return (
        weight, input, offsets, scale_grad_by_freq, mode, per_sample_weights, include_last_offset,
        padding,
    )  # fmt: skip


@composite(
    "weight, input, offsets, scale_grad_by_freq, mode, per_sample_weights, include_last_offset, "
    "padding_idx",
    rule=_canonical_bag,
    method=False,
)
@in_float32
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return one row for each bag of rows of `weight`.

    Parameters
    ----------
    input : Tensor
        Integers, (bags, length), or (total,) with `offsets`.
    weight : Tensor
        (rows, features).
    offsets : Tensor, optional
        Where each bag begins in `input`.
    max_norm, norm_type, scale_grad_by_freq, sparse
        As in :func:`embedding`.
    mode : {"sum", "mean", "max"}
        What is made of a bag; an empty one gives zeros.
    per_sample_weights : Tensor, optional
        Of the input's shape: factors of the rows, with mode "sum" only.
    include_last_offset : bool
        Whether the last offset is the end of the last bag.
    padding_idx : int, optional
        A row that takes no part.

    Raises
    ------
    ValueError, RuntimeError, NotImplementedError
        If shapes or options do not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> weight = tp.tensor([[1.0], [2.0], [4.0]])
    >>> embedding_bag(tp.tensor([0, 1, 2]), weight, tp.tensor([0, 2]), mode="sum")
    tensor([[3.],
            [4.]])
    """
    return _bags(
        weight, input, offsets, scale_grad_by_freq, mode, per_sample_weights, include_last_offset,
        padding_idx, False,
    )  # fmt: skip


def _check_bag_gradient(g: Any, weight: Any, input: Any, offsets: Any, *options: Any) -> None:
    by_frequency, mode, factors, include_last_offset, _ = options
    _check(input, weight, offsets, mode, by_frequency, factors, False)
    bags = offsets._shape[0] - include_last_offset if input.ndim == 1 else input._shape[0]
    if g._shape != (bags, weight._shape[1]):
        raise RuntimeError(
            f"embedding_bag_backward(): a gradient {list(g._shape)} is not of {bags} bags of rows of "
            f"{weight._shape[1]} numbers"
        )


@composite(
    shapes="g(B, F), weight(R, F)",
    rule=_check_bag_gradient,
    method=False,
    outputs="weight, per_sample_weights",
)
@in_float32
def embedding_bag_backward(
    g: Tensor,
    weight: Tensor,
    input: Tensor,
    offsets: Tensor | None,
    scale_grad_by_freq: bool,
    mode: str,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int | None,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of :func:`embedding_bag`'s weight and factors; without factors an empty one.

    Parameters
    ----------
    g : Tensor
        (bags, features).
    weight, input, offsets, scale_grad_by_freq, mode, per_sample_weights, include_last_offset, padding_idx
        As of :func:`embedding_bag`.
    """
    arguments = (
        weight, input, offsets, scale_grad_by_freq, mode, per_sample_weights, include_last_offset,
        padding_idx,
    )  # fmt: skip
    wanted = (0,) if per_sample_weights is None else (0, 5)
    of_weight, *of_factors = gradients(embedding_bag, g, arguments, *wanted)
    return of_weight, of_factors[0] if of_factors else weight.new_zeros((0,))


def _gradients(
    g: Any,
    weight: Any,
    input: Any,
    offsets: Any,
    scale_grad_by_freq: bool,
    mode: str,
    per_sample_weights: Any,
    include_last_offset: bool,
    padding_idx: int | None,
) -> list[Any]:
    found = embedding_bag_backward(
        g, weight, input, offsets, scale_grad_by_freq, mode, per_sample_weights, include_last_offset,
        padding_idx,
    )  # fmt: skip
    return [found[0], None if per_sample_weights is None else found[1]]


DERIVATIVES = [derivative("embedding_bag", joint={"weight, per_sample_weights": _gradients})]


def _bags(
    weight: Any,
    input: Any,
    offsets: Any,
    scale_grad_by_freq: bool,
    mode: str,
    per_sample_weights: Any,
    include_last_offset: bool,
    padding_idx: int | None,
    sparse: bool,
) -> Any:
    length = 0
    inside = None  # what comes after the end of the last bag is in none
    if input.ndim == 2:
        bags, length = input.shape
        flat = input.reshape(-1).to(int64)
        factors = None if per_sample_weights is None else per_sample_weights.reshape(-1)
        membership: Any = None  # bags of one length lie one after the other
        if mode == "max":
            membership = arange(bags * length, device=input.device).floor_divide(max(length, 1))
    else:
        assert offsets is not None
        _check_offsets(offsets, input)
        starts = offsets.to(int64)
        starts = starts[:-1] if include_last_offset else starts
        flat, factors, bags = input.to(int64), per_sample_weights, starts.shape[0]
        positions = arange(flat.shape[0], device=input.device)
        membership = searchsorted(starts, positions, right=True) - 1
        if include_last_offset:
            inside = positions < offsets[-1]
    try:
        members = embedding(
            flat, weight, padding_idx, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse
        )
    except IndexError as error:
        raise RuntimeError(
            f"embedding_bag: Expected idx >= 0 && idx < num_embeddings; {error}"
        ) from error
    if membership is None and padding_idx is None:
        if factors is not None:
            members = members * factors.unsqueeze(1)
        together = members.unflatten(0, (bags, length)).sum(1)
        return together if mode == "sum" else together / max(length, 1)
    counted = flat != (-1 if padding_idx is None else padding_idx)
    if inside is not None:
        counted = counted & inside
    empty = weight.new_zeros((bags, weight.shape[1]))
    if mode == "max":
        return _largest(members, membership, counted, empty)
    if factors is not None:
        members = members * factors.unsqueeze(1)
    members = where(counted.unsqueeze(1), members, 0.0)
    if membership is None:
        totals = members.unflatten(0, (bags, length)).sum(1)
        if mode == "sum":
            return totals
        counts = counted.unflatten(0, (bags, length)).sum(1).to(weight.dtype)
        return totals / counts.clamp(min=1).unsqueeze(1)
    totals = empty.index_add(0, membership, members)
    if mode == "sum":
        return totals
    counts = weight.new_zeros((bags,)).index_add(0, membership, counted.to(weight.dtype))
    return totals / counts.clamp(min=1).unsqueeze(1)


def _check_offsets(offsets: Any, input: Any) -> None:
    if offsets is None or offsets.is_meta or not offsets.numel():
        return
    first = offsets[0]
    if any_in_samples(first):
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {all_samples(first).tolist()}"
        )
    last, length = largest_in_samples(offsets[-1]), input.shape[0]
    if last > length:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {length} but got offsets[-1] of {last}"
        )
    # Elsewhere than on the CPU this would wait for the device once more.
    if offsets.device.type == "cpu" and any_in_samples(offsets[1:] < offsets[:-1]):
        raise RuntimeError(f"embedding_bag(): offsets must not decrease, got {offsets}")


def _padding_row(padding_idx: int, rows: int) -> int:
    if not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but got "
            f"{padding_idx}"
        )
    return padding_idx % rows


def _largest(members: Any, membership: Any, counted: Any, empty: Any) -> Any:
    """Return the largest number of each bag and feature, which the first of equal ones gives."""
    lowest = where(counted.unsqueeze(1), members, -float("inf"))
    bag = membership.unsqueeze(1).expand(members.shape)
    best = (empty - float("inf")).scatter_reduce(0, bag, lowest.detach(), "amax", include_self=True)
    length = members.shape[0]
    if not length:
        return empty
    candidate = ((members == best.gather(0, bag)) | members.isnan()) & counted.unsqueeze(1)
    place = where(candidate, arange(length, device=members.device).unsqueeze(1), length)
    none = full(empty.shape, length, dtype=int64, device=members.device)
    first = none.scatter_reduce(0, bag, place, "amin", include_self=True)
    return where(first == length, 0.0, members.gather(0, first.clamp(max=length - 1)))


def _check(
    input: Any, weight: Any, offsets: Any, mode: str, by_frequency: bool, factors: Any, sparse: bool
) -> None:
    if input.dtype not in (int64, int32):
        raise RuntimeError(
            f"embedding_bag(): expected 'input' to be of type Long or Int, got {input.dtype}"
        )
    if offsets is not None and offsets.dtype.category >= FLOATING:
        raise RuntimeError(f"embedding_bag(): expected integers as 'offsets', got {offsets.dtype}")
    if weight.ndim != 2:
        raise RuntimeError(f"embedding_bag(): 'weight' must be 2-D, got {list(weight.shape)}")
    if weight.dtype.category != FLOATING:
        raise RuntimeError(
            "embedding_bag(): Expected tensor for argument #1 'weight' to have one of the following scalar "
            f"types: Half, BFloat16, Float, Double; but got {scalar_type(weight.dtype)}: its rows are "
            "averaged"
        )
    if input.ndim == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed "
            "length sequences."
        )
    if input.ndim == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.ndim != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    elif input.ndim != 2:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}"
        )
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and by_frequency:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if factors is not None:
        if factors.dtype is not weight.dtype:
            raise RuntimeError(
                f"embedding_bag(): expected 'weight' to have the same type as 'per_sample_weights', got "
                f"{weight.dtype} and {factors.dtype}"
            )
        if tuple(factors.shape) != tuple(input.shape):
            raise ValueError(
                f"embedding_bag: If per_sample_weights ({list(factors.shape)}) is not None, then it must "
                f"have the same shape as the input ({list(input.shape)})"
            )
        if mode != "sum":
            raise NotImplementedError(
                "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for "
                f"mode='sum' (got mode='{mode}')."
            )


@composite(method=False)
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return a last dimension of classes with a one at the class and zeros elsewhere.

    Parameters
    ----------
    tensor : Tensor
        int64 of any shape, not negative.
    num_classes : int
        How many classes; by default one more than the largest.

    Examples
    --------
    >>> import tensorplug as tp
    >>> one_hot(tp.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if tensor.dtype is not int64:
        raise RuntimeError(
            f"one_hot is only applicable to index tensor of type int64, got {tensor.dtype}"
        )
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return zeros(*tensor.shape, num_classes, dtype=int64, device=tensor.device)
    if not tensor.is_meta:
        smallest, largest = (int(extreme) for extreme in aminmax(all_samples(tensor)))
        if smallest < 0:
            raise RuntimeError("Class values must be non-negative.")
        if num_classes == -1:
            num_classes = largest + 1
        elif largest >= num_classes:
            raise RuntimeError(
                f"Class values must be smaller than num_classes. {largest} is not below {num_classes}"
            )
    result = zeros(*tensor.shape, num_classes, dtype=int64, device=tensor.device)
    return result.scatter(-1, tensor.unsqueeze(-1), 1)
