"""Losses with a margin, and distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.autograd import derivative, no_grad
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import (
    INTEGER,
    get_default_dtype,
    int32,
    int64,
    promote_types,
    scalar_type,
)
from tensorplug.core.device.scalars import Real
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import arange, exp, log1p, minimum, relu, where, zeros
from tensorplug.core.ops.rules import in_float32
from tensorplug.core.tensor.predicates import result_type
from tensorplug.core.tensor.shapes import broadcast_shapes, normalize_dim

from .._gradients import gradients
from ..activation import logsigmoid
from .declaration import check_gradient, check_reduction, check_tensors, check_weight, loss, reduced


def _canonical_cosine_similarity(
    x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8
) -> tuple[Any, Any, int, float]:
    check_tensors("cosine_similarity", x1=x1, x2=x2)
    both = x1.dtype.category <= INTEGER and x2.dtype.category <= INTEGER
    if both or x1.dtype.is_complex or x2.dtype.is_complex:
        raise RuntimeError(
            "cosine_similarity(): expected common dtype to be floating point, yet common dtype is "
            f"{scalar_type(result_type(x1, x2))}"
        )
    if eps < 0:
        raise RuntimeError(f"cosine_similarity(): eps must be non-negative, got: {eps}")
    if x1.dtype.category <= INTEGER < x2.dtype.category:
        x1 = x1.to(x2.dtype)
    elif x2.dtype.category <= INTEGER < x1.dtype.category:
        x2 = x2.to(x1.dtype)
    return x1, x2, dim, eps


@composite(rule=_canonical_cosine_similarity, method=False)
@in_float32
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors along `dim`, whose norms count as at least `eps`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> cosine_similarity(tp.tensor([[1.0, 0.0]]), tp.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """

    def unit(x: Any) -> Any:
        norm = x.norm(2, dim, keepdim=True)
        if not norm.requires_grad:
            return x / norm.clamp_min(eps)
        norm = norm.clone()
        with no_grad():  # to its gradient the norm stays what it was
            norm.clamp_(min=eps)
        return x / norm

    # torch broadcasts before it takes the norms, which matters where `dim` counts from the front.
    if x1.ndim != x2.ndim:
        ndim = max(x1.ndim, x2.ndim)
        x1 = x1.reshape((*[1] * (ndim - x1.ndim), *x1.shape))
        x2 = x2.reshape((*[1] * (ndim - x2.ndim), *x2.shape))
    dim = normalize_dim(dim, x1.ndim, "cosine_similarity")
    if x1.ndim and x1.shape[dim] != x2.shape[dim]:
        size = broadcast_shapes(tuple(x1.shape), tuple(x2.shape))[dim]
        x1, x2 = (_stretched(x, dim, size) for x in (x1, x2))
    return (unit(x1) * unit(x2)).sum(dim)


def _stretched(x: Any, dim: int, size: int) -> Any:
    shape = list(x.shape)
    shape[dim] = size
    return x.expand(shape)


def _canonical_pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> tuple[Any, Any, float, float, bool]:
    check_tensors("pairwise_distance", x1=x1, x2=x2)
    return x1, x2, p, eps, keepdim


@composite(rule=_canonical_pairwise_distance, method=False)
@in_float32
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Return the p-norm of ``x1 - x2 + eps`` over the last dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> pairwise_distance(tp.tensor([[3.0, 4.0]]), tp.zeros(1, 2), eps=0.0)
    tensor([5.])
    """
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)


def _check_ranking(input1: Any, input2: Any, target: Any, *_: Any) -> None:
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {list(input1.shape)}, input2: {list(input2.shape)}, target: "
            f"{list(target.shape)} "
        )


@loss("input1, input2, target, margin, reduction", _check_ranking)
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``max(0, -target * (input1 - input2) + margin)``, reduced; targets are 1 or -1.

    Raises
    ------
    RuntimeError
        If the numbers of dimensions differ.
    """
    losses = (-target * (input1 - input2) + float(margin)).clamp(min=0)
    return reduced(losses, reduction, "margin_ranking_loss")


def _check_hinge(input: Any, *_: Any) -> None:
    check_tensors("hinge_embedding_loss", input=input)


@loss("input, target, margin, reduction", _check_hinge)
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the input where the target is 1, and ``max(0, margin - input)`` where it is -1."""
    apart = where(target != 1, (margin - input).clamp(min=0), 0.0)
    together = where(target != -1, input, 0.0)
    return reduced(apart + together, reduction, "hinge_embedding_loss")


def _check_soft_margin(input: Any, target: Any, *_: Any) -> None:
    check_tensors("soft_margin_loss", input=input)
    if target.shape != input.shape:
        whole = broadcast_shapes(input.shape, target.shape)
        if whole != tuple(input.shape):
            raise RuntimeError(
                f"soft_margin_loss(): output with shape {list(input.shape)} doesn't match the broadcast "
                f"shape {list(whole)}: there are more targets than elements of input"
            )


@loss("input, target, reduction", _check_soft_margin)
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``log(1 + exp(-target * input))``, reduced; targets are 1 or -1."""
    product = target * input
    if product.dtype.is_complex:
        return reduced(log1p(exp(-product)), reduction, "soft_margin_loss")
    return -reduced(logsigmoid(product), reduction, "soft_margin_loss")


def _check_multi_margin(
    input: Any, target: Any, p: int, margin: float, weight: Any, reduction: str
) -> None:
    check_tensors("multi_margin_loss", input=input)
    check_reduction(reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    if weight is not None and len(weight) != input.shape[-1]:
        raise RuntimeError(
            f"inconsistent weight size, expected {input.shape[-1]} but got [{len(weight)}]"
        )
    if input.ndim > 2 or 0 in input.shape[-1:]:
        raise RuntimeError(
            f"multi_margin_loss(): Expected non-empty vector or matrix with optional 0-dim batch size, "
            f"but got: {list(input.shape)}"
        )
    n = 1 if input.ndim < 2 else input.shape[0]
    if target.ndim > 1 or target.numel() != n:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples "
            f"(batch size). Expected target size [{n}], but got {list(target.shape)}. "
            f"Input has shape {list(input.shape)}."
        )
    check_weight(input, weight)


@loss("input, target, p, margin, weight, reduction", _check_multi_margin)
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: Real = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return by how much other classes come within `margin` of the target class.

    Parameters
    ----------
    input : Tensor
        (N, C) or (C,).
    target : Tensor
        int64, (N,) or ().
    p : {1, 2}
        The power.
    margin : float
        How far the target class should be ahead.
    weight : Tensor, optional
        (C,): what each target class weighs.
    size_average, reduce : bool, optional
        Deprecated spellings of `reduction`.
    reduction : {"mean", "sum", "none"}
        How the losses are put together.

    Raises
    ------
    ValueError
        If `p` is neither 1 nor 2, or `weight` is no vector.
    RuntimeError
        If shapes do not fit.
    """
    scores = input.reshape(1, -1) if input.ndim < 2 else input
    n, classes = scores.shape
    index = target.reshape(n, 1)
    terms = relu(margin - scores.gather(1, index) + scores)
    if p == 2:
        terms = terms * terms
    if weight is not None:
        terms = terms * weight.index_select(0, index.reshape(-1)).unsqueeze(1)
    others = arange(classes, device=input.device) != index
    losses = where(others, terms, 0.0).sum(1) / classes
    losses = losses.reshape(target.shape) if input.ndim < 2 else losses
    return reduced(losses, reduction, "multi_margin_loss")


def _check_multi_margin_gradient(grad_output: Any, input: Any, target: Any, *options: Any) -> None:
    _check_multi_margin(input, target, *options)
    check_gradient(grad_output, target._shape, options[-1])


@composite(shapes="grad_output(*R)", rule=_check_multi_margin_gradient, method=False)
@in_float32
def multi_margin_loss_backward(
    grad_output: Tensor,
    input: Tensor,
    target: Tensor,
    p: int,
    margin: Real,
    weight: Tensor | None,
    reduction: str,
) -> Tensor:
    """Return the gradient of :func:`multi_margin_loss`'s input."""
    arguments = (input, target, p, margin, weight, reduction)
    result: Tensor = gradients(multi_margin_loss, grad_output, arguments, 0)[0]
    return result


def _canonical_multilabel_margin(input: Any, target: Any, reduction: str) -> tuple[Any, Any, str]:
    check_tensors("multilabel_margin_loss", input=input)
    check_reduction(reduction)
    if target.dtype not in (int64, int32):
        raise RuntimeError(
            f"multilabel_margin_loss(): expected scalar type Long but found {scalar_type(target.dtype)}"
        )
    # One score, with or without a dimension.
    if input.ndim < 2 and target.ndim < 2 and input.numel() == target.numel() == 1:
        return input, target.reshape(input.shape), reduction
    if input.ndim > 2 or 0 in input.shape[-1:]:
        raise RuntimeError(
            "multilabel_margin_loss(): Expected non-empty vector or matrix with optional 0-dim batch size, "
            f"but got: {list(input.shape)}"
        )
    if tuple(input.shape) != tuple(target.shape):
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    return input, target, reduction


@loss("input, target, reduction", _canonical_multilabel_margin)
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return by how much other classes come within 1 of each of several target classes.

    Parameters
    ----------
    input : Tensor
        (N, C) or (C,).
    target : Tensor
        int64 of that shape: the target classes come first, -1 ends them.
    size_average, reduce : bool, optional
        Deprecated spellings of `reduction`.
    reduction : {"mean", "sum", "none"}
        How the losses are put together.

    Raises
    ------
    RuntimeError
        If the shapes differ.
    """
    scores = input.reshape(1, -1) if input.ndim < 2 else input
    labels = target.reshape(scores.shape)
    n, classes = scores.shape
    valid = (labels < 0).cumsum(1) == 0
    index = where(valid, labels, 0)
    marks = zeros(n, classes, dtype=int64, device=input.device)
    other = marks.scatter_add(1, index, valid.to(int64)) == 0
    terms = relu(1 - scores.gather(1, index).unsqueeze(2) + scores.unsqueeze(1))
    counted = valid.unsqueeze(2).logical_and(other.unsqueeze(1))
    losses = where(counted, terms, 0.0).sum((1, 2)) / classes
    losses = losses.reshape(()) if input.ndim < 2 else losses
    return reduced(losses, reduction, "multilabel_margin_loss")


def _check_multilabel_gradient(grad_output: Any, input: Any, target: Any, reduction: str) -> None:
    _canonical_multilabel_margin(input, target, reduction)
    check_gradient(grad_output, input._shape[:-1], reduction)


@composite(shapes="grad_output(*R)", rule=_check_multilabel_gradient, method=False)
@in_float32
def multilabel_margin_loss_backward(
    grad_output: Tensor, input: Tensor, target: Tensor, reduction: str
) -> Tensor:
    """Return the gradient of :func:`multilabel_margin_loss`'s input."""
    arguments = (input, target, reduction)
    result: Tensor = gradients(multilabel_margin_loss, grad_output, arguments, 0)[0]
    return result


def _check_multilabel_soft_margin(input: Any, *_: Any) -> None:
    check_tensors("multilabel_soft_margin_loss", input=input)
    if not input.ndim:
        raise IndexError(
            "multilabel_soft_margin_loss(): Dimension specified as -1 but tensor has no dimensions; the "
            "last one of input holds the classes"
        )


@loss("input, target, weight, reduction", _check_multilabel_soft_margin)
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the cross-entropy of each class by itself, averaged over the last dimension's classes."""
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    dim = input.ndim - 1  # as in torch, also where the target has more
    losses = losses.sum(dim) / input.shape[dim]
    return reduced(losses, reduction, "multilabel_soft_margin_loss")


def _check_cosine_embedding(input1: Any, input2: Any, target: Any, *_: Any) -> None:
    if target.ndim not in (0, 1):
        raise RuntimeError(
            f"0D or 1D target tensor expected, multi-target not supported, got {target.ndim}D"
        )
    if target.ndim + 1 != input1.ndim or target.ndim + 1 != input2.ndim:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs "
            f"with sizes {list(input1.shape)} and {list(input2.shape)}."
        )


@loss("input1, input2, target, margin, reduction", _check_cosine_embedding)
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return one minus the cosine where the target is 1, and its part above `margin` where it is -1.

    Parameters
    ----------
    input1, input2 : Tensor
        (N, D) or (D,).
    target : Tensor
        (N,) or (), of 1 and -1.
    margin : float
        Which cosine is small enough.
    size_average, reduce : bool, optional
        Deprecated spellings of `reduction`.
    reduction : {"mean", "sum", "none"}
        How the losses are put together.

    Raises
    ------
    RuntimeError
        If the numbers of dimensions do not fit.
    """
    tiny = 1e-12  # torch's, so that a zero vector gives no NaN
    squares = ((input1 * input1).sum(-1) + tiny) * ((input2 * input2).sum(-1) + tiny)
    cosine = (input1 * input2).sum(-1) / squares.sqrt()
    together = where(target == 1, 1 - cosine, 0.0)
    apart = where(target == -1, (cosine - margin).clamp(min=0), 0.0)
    return reduced(together + apart, reduction, "cosine_embedding_loss")


def _check_triplet(anchor: Any, positive: Any, negative: Any, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
            f"{negative.ndim}D inputs"
        )


def _beside_distances(triple: tuple[Any, Any, Any], swap: bool) -> tuple[Any, ...]:
    """Convert halves where another distance is one of whole numbers, and so of the default dtype."""
    whole = [not tensor._key.is_differentiable for tensor in triple]
    pairs = ((0, 1), (0, 2), (1, 2)) if swap else ((0, 1), (0, 2))
    if all(whole) or not any([whole[one] and whole[other] for one, other in pairs]):
        return triple
    default = get_default_dtype()
    return tuple(
        [
            tensor if is_whole else tensor.to(promote_types(tensor.dtype, default))
            for tensor, is_whole in zip(triple, whole, strict=True)
        ]
    )


def _canonical_triplet(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float,
    p: float,
    eps: float,
    swap: bool,
    reduction: str,
) -> tuple[Any, ...]:
    _check_triplet(anchor, positive, negative, margin)
    triple = _beside_distances((anchor, positive, negative), swap)
    return *triple, margin, p, eps, swap, reduction


@loss("anchor, positive, negative, margin, p, eps, swap, reduction", _canonical_triplet)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return by how much the positive example is not `margin` nearer to the anchor than the negative.

    Parameters
    ----------
    anchor, positive, negative : Tensor
        (N, D) or (D,).
    margin : float
        Positive.
    p, eps : float
        See :func:`pairwise_distance`.
    swap : bool
        Whether the negative's distance to the positive counts where it is smaller (Balntas et al. 2016).
    size_average, reduce : bool, optional
        Deprecated spellings of `reduction`.
    reduction : {"mean", "sum", "none"}
        How the losses are put together.

    Raises
    ------
    ValueError
        If `margin` is not positive.
    """

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


def _triplet(
    anchor: Any,
    positive: Any,
    negative: Any,
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: str,
) -> Any:
    near = distance(anchor, positive)
    far = distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp(min=0), reduction, "triplet_margin_loss")


def _check_triplet_with_distance(
    anchor: Any,
    positive: Any,
    negative: Any,
    distance_function: Any,
    margin: float,
    swap: bool,
    reduction: str,
) -> Any:
    check_reduction(reduction)
    check_tensors(
        "triplet_margin_with_distance_loss", anchor=anchor, positive=positive, negative=negative
    )
    _check_triplet(anchor, positive, negative, margin)
    if distance_function is not None:
        return None
    triple = _beside_distances((anchor, positive, negative), swap)
    return *triple, distance_function, margin, swap, reduction


@loss(
    "anchor, positive, negative, distance_function, margin, swap, reduction",
    _check_triplet_with_distance,
)
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return :func:`triplet_margin_loss` with a distance of one's own.

    Raises
    ------
    ValueError
        If `margin` is not positive.
    """
    distance = pairwise_distance if distance_function is None else distance_function
    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


DERIVATIVES = [
    derivative(
        "multi_margin_loss",
        input=lambda g, input, target, p, margin, weight, reduction: multi_margin_loss_backward(
            g, input, target, p, margin, weight, reduction
        ),
        weight=lambda g, input, target, p, margin, weight, reduction: gradients(
            multi_margin_loss, g, (input, target, p, margin, weight, reduction), 4
        )[0],
    ),
    derivative(
        "multilabel_margin_loss",
        input=lambda g, input, target, reduction: multilabel_margin_loss_backward(
            g, input, target, reduction
        ),
    ),
]
