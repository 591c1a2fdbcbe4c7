"""Attention."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import FLOATING, bfloat16, bool_, float16, float32
from tensorplug.core.dispatch.op_registry import Delegated, composite
from tensorplug.core.ops import ones, where
from tensorplug.core.tensor.shapes import broadcast_shapes

from ...ops.attention import (
    scaled_dot_product_efficient_attention,
    scaled_dot_product_flash_attention,
)
from .._common import tensor
from ..dropout import dropout

__all__ = ["scaled_dot_product_attention"]


def _check_mask(query: Any, key: Any, mask: Any) -> None:
    """Raise RuntimeError for a mask that does not broadcast to the scores of queries and keys."""
    queries, keys, given = query._shape, key._shape, mask._shape
    if given == (queries[-2], keys[-2]):
        return
    scores = (*broadcast_shapes(queries[:-2], keys[:-2]), queries[-2], keys[-2])
    if len(given) > len(scores) or broadcast_shapes(given, scores) != scores:
        raise RuntimeError(
            f"scaled_dot_product_attention(): attn_mask of shape {list(given)} doesn't match the scores' "
            f"shape {list(scores)}, to which it has to broadcast"
        )


def _canonical_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    for name, x in (("query", query), ("key", key), ("value", value)):
        tensor(x, "scaled_dot_product_attention", name)
        if len(x._shape) < 2:
            raise RuntimeError(
                "scaled_dot_product_attention(): Expected query, key, and value to all be at least 2 "
                f"dimensional, but got {name} of shape {list(x.shape)}"
            )
        if x._key is not query._key and x.dtype is not query.dtype:
            raise RuntimeError(
                "Expected query, key, and value to have the same dtype, but got query.dtype: "
                f"{query.dtype}, {name}.dtype: {x.dtype}"
            )
    if query.dtype.category != FLOATING:
        raise NotImplementedError(
            f"scaled_dot_product_attention(): not implemented for {query.dtype}, of which there is no softmax"
        )
    if attn_mask is not None and is_causal:
        raise RuntimeError(
            "scaled_dot_product_attention(): Explicit attn_mask should not be set when is_causal=True"
        )
    if attn_mask is not None and attn_mask.dtype not in (bool_, float32, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {attn_mask.dtype} and query.dtype: {query.dtype} instead."
        )
    if enable_gqa:
        key, value = (_repeated(x, query) for x in (key, value))
        return Delegated(
            scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale)
        )
    if attn_mask is not None:
        _check_mask(query, key, attn_mask)
    if dropout_p > 0.0:
        return Delegated(attend(query, key, value, attn_mask, dropout_p, is_causal, scale)[0])
    factor = 1 / math.sqrt(query._shape[-1] or 1) if scale is None else float(scale)
    return query, key, value, attn_mask, bool(is_causal), factor


@composite(
    "query, key, value, attn_mask, is_causal, scale", rule=_canonical_attention, method=False
)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    r"""Return :math:`softmax(Q K^T s + M) V`.

    Parameters
    ----------
    query : Tensor
        (N, ..., Hq, L, E).
    key, value : Tensor
        (N, ..., H, S, E) and (N, ..., H, S, Ev).
    attn_mask : Tensor, optional
        Broadcast to (N, ..., L, S): bool, True where attention is allowed, or numbers that are added to
        the scores.
    dropout_p : float
        The share of attention weights that is dropped; unlike elsewhere, there is no training flag.
    is_causal : bool
        Whether position i sees positions up to i only; not together with `attn_mask`.
    scale : float, optional
        s; by default :math:`1 / \sqrt{E}`.
    enable_gqa : bool
        Whether several heads of the query share one of key and value.

    Returns
    -------
    Tensor
        (N, ..., Hq, L, Ev). A row whose positions are all masked is zero.

    Raises
    ------
    RuntimeError
        If both masks are given, or shapes or dtypes do not fit.

    Notes
    -----
    Vaswani et al., "Attention is all you need", 2017.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    >>> scaled_dot_product_attention(x, x, x, is_causal=True)
    tensor([[[1.0000, 0.0000],
             [0.3302, 0.6698]]])
    """
    assert scale is not None
    if not _fits(query, key, value):
        attended: Tensor = attend(query, key, value, attn_mask, 0.0, is_causal, scale)[0]
        return attended
    half = query.dtype in (float16, bfloat16)
    kept = scaled_dot_product_flash_attention if half else scaled_dot_product_efficient_attention
    return kept([query, key, value], attn_mask, is_causal, scale)[0]


def _fits(query: Any, key: Any, value: Any) -> bool:
    """Return whether nothing broadcasts, and there is something to see."""
    q, k, v = query._shape, key._shape, value._shape
    return q[:-2] == k[:-2] == v[:-2] and q[-1] == k[-1] > 0 and k[-2] == v[-2] > 0


def _repeated(x: Any, query: Any) -> Any:
    if x.ndim < 3 or query.shape[-3] % x.shape[-3]:
        raise RuntimeError(
            f"enable_gqa: expected the heads of query ({list(query.shape)}) to be a multiple of those of "
            f"key and value ({list(x.shape)})"
        )
    return x.repeat_interleave(query.shape[-3] // x.shape[-3], -3)


def attend(
    query: Any,
    key: Any,
    value: Any,
    mask: Any,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    blank: bool = True,
) -> tuple[Any, Any]:
    """Return the attended values and the attention weights; half precision is computed in float32.

    A row with nothing to see counts as zero if `blank` is true, and else is NaN.
    """
    dtype = query.dtype
    if dtype in (float16, bfloat16):
        query, key, value = (x.to(float32) for x in (query, key, value))
        if mask is not None and mask.dtype is not bool_:
            mask = mask.to(float32)
        output, shares = attend(query, key, value, mask, dropout_p, is_causal, scale, blank)
        return output.to(dtype), shares.to(dtype)
    size = query.shape[-1]
    factor = 1 / math.sqrt(size) if scale is None else scale
    scores = (query * factor) @ key.transpose(-2, -1)
    if is_causal:
        rows, columns = query.shape[-2], key.shape[-2]
        mask = ones(rows, columns, dtype=bool_, device=query.device).tril()
    blocked = None
    if mask is not None:
        if mask.dtype is bool_:
            hidden = mask.logical_not()
            scores = where(mask, scores, -math.inf)
        else:
            scores = scores + mask
            hidden = scores.detach() == -math.inf
        if blank:
            # A row with nothing to see is 0/0: it counts as zero, in value and gradient.
            blocked = hidden.all(-1, keepdim=True)
            scores = where(blocked, 0.0, scores)
    weights = scores.softmax(-1)
    if blocked is not None:
        weights = where(blocked, 0.0, weights)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return weights @ value, weights
