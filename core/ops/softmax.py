"""Softmax and its kin, each one op with a derivative of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..device.dtypes import FLOATING, DType, as_dtype, bfloat16, float16, float32
from ..dispatch.op_registry import Delegated, composite
from ..dispatch.out_dtypes import exact_out
from ..errors import type_name
from ..tensor.shapes import Shape, normalize_dim, normalize_dims
from .arithmetic.division import div
from .arithmetic.pointwise import sub
from .copying import clone
from .reductions.reductions import amax, sum
from .rules import cast, check_tensor, to_floating, widened

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = ["log_softmax", "logsumexp", "softmax", "softmin"]


def _canonical(name: str, input: Tensor, dim: int, dtype: DType | None) -> Any:
    check_tensor(input, name)
    if not hasattr(dim, "__index__"):
        raise TypeError(f"{name}(): argument 'dim' must be int, not {type_name(dim)}")
    dim = normalize_dim(dim, len(input._shape), name)
    input = cast(input, input.dtype if dtype is None else as_dtype(dtype))
    if input.dtype.category != FLOATING:
        if not input.numel():
            return Delegated(clone(input))
        raise NotImplementedError(
            f"{name}(): not implemented for {input.dtype}; pass dtype=tp.float32 or convert the "
            "input"
        )
    return input, dim


def _canonical_softmax(input: Any, dim: int, dtype: DType | None = None) -> Any:
    return _canonical("softmax", input, dim, dtype)


@composite("input, dim", rule=_canonical_softmax)
def softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """Return ``exp(input)`` divided by its sum along `dim`.

    Parameters
    ----------
    input : Tensor
        Floating-point, unless `dtype` names such a dtype.
    dim : int
        The dimension along which the results sum to one.
    dtype : DType, optional
        Convert to this dtype first, which guards against overflow of half precision.

    Notes
    -----
    The maximum is subtracted before ``exp``, so that nothing overflows.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.softmax(tp.tensor([[0.0, 0.0], [1000.0, 0.0]]), dim=1)
    tensor([[0.5000, 0.5000],
            [1.0000, 0.0000]])
    """
    powers = sub(input, amax(input, dim, True)).exp() if input.numel() else input.clone()
    return div(powers, sum(powers, dim, True))


def _canonical_log_softmax(input: Any, dim: int, dtype: DType | None = None) -> Any:
    return _canonical("log_softmax", input, dim, dtype)


@composite("input, dim", rule=_canonical_log_softmax)
def log_softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """Return the logarithm of :func:`softmax`, computed without leaving log space.

    Parameters
    ----------
    input : Tensor
        Floating-point, unless `dtype` names such a dtype.
    dim : int
        The dimension along which the exponentials of the results sum to one.
    dtype : DType, optional
        Convert to this dtype first.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.log_softmax(tp.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    if not input.numel():
        return input.clone()
    shifted = sub(input, amax(input, dim, True))
    return sub(shifted, sum(shifted.exp(), dim, True).log())


def _gradient_rule(name: str) -> Callable[..., tuple[Any, Any, Any]]:
    """Return the rule of the composite of some name, which takes two tensors and a dimension."""

    def rule(g: Any, result: Any, dim: Any) -> tuple[Any, Any, Any]:
        check_tensor(g, name, "g")
        check_tensor(result, name, "result")
        return g, result, dim

    return rule


@composite(method=False, rule=_gradient_rule("softmax_backward"))
def softmax_backward(g: Tensor, result: Tensor, dim: int) -> Tensor:
    """Return the gradient of softmax's input, from that of its result and the result."""

    def body(g: Any, result: Any) -> Any:
        weighted = g * result
        return sub(weighted, result * sum(weighted, dim, True))

    return widened(body, g, result)


@composite(method=False, rule=_gradient_rule("log_softmax_backward"))
def log_softmax_backward(g: Tensor, result: Tensor, dim: int) -> Tensor:
    """Return the gradient of log_softmax's input, from that of its result and the result."""
    return widened(lambda g, result: sub(g, result.exp() * sum(g, dim, True)), g, result)


@composite(method=False)
def softmin(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """Return :func:`softmax` of the negated input.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.softmin(tp.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    check_tensor(input, "softmin")
    return softmax(-input, dim, dtype)


def _canonical_logsumexp(
    input: Any, dim: int | Sequence[int], keepdim: bool = False
) -> tuple[Tensor, Shape, bool]:
    check_tensor(input, "logsumexp")
    dims = normalize_dims(dim, len(input._shape), "logsumexp")
    return cast(input, to_floating(input.dtype)), dims, bool(keepdim)


@composite(rule=_canonical_logsumexp)
def logsumexp(input: Tensor, dim: int | Sequence[int], keepdim: bool = False) -> Tensor:
    """Return the logarithm of the sum of the exponentials over the dimensions `dim`.

    Parameters
    ----------
    input : Tensor
        Any dtype; integers and bool are computed in the default dtype.
    dim : int or sequence of int
        The dimensions to reduce.
    keepdim : bool
        Whether the reduced dimensions stay, with size 1.

    Notes
    -----
    The maximum is subtracted before ``exp`` and added after ``log``, so that nothing overflows.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.logsumexp(tp.tensor([0.0, 0.0, 1000.0]), dim=0)
    tensor(1000.)
    """
    wide = cast(input, float32) if input.dtype in (float16, bfloat16) else input
    if 0 in wide._shape:
        return cast(sum(wide.exp(), dim, keepdim).log(), input.dtype)
    peak = amax(wide.real if wide.is_complex() else wide, dim, True)
    peak = peak.masked_fill(peak.abs() == float("inf"), 0)
    total = sum((wide - peak).exp(), dim, keepdim).log()
    return cast(total + (peak if keepdim else peak.reshape(total._shape)), input.dtype)


exact_out(softmax, log_softmax)
