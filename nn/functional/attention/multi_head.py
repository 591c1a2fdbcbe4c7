"""Attention with several heads, with its projections."""

from __future__ import annotations

import warnings
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import FLOATING, bool_
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import cat, zeros

from ...ops.linear import linear
from ..padding import pad
from .scaled_dot_product import attend

__all__ = ["multi_head_attention_forward"]


@composite(random=True, outputs="attn_output, attn_output_weights", method=False)
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return the attended values, projected, and the attention weights if they are asked for.

    Parameters
    ----------
    query : Tensor
        (L, N, E) or (L, E).
    key, value : Tensor
        (S, N, E) or (S, E).
    embed_dim_to_check : int
        E.
    num_heads : int
        A divisor of E.
    in_proj_weight, in_proj_bias : Tensor, optional
        The projections of query, key and value, one below the other.
    bias_k, bias_v : Tensor, optional
        One more position of key and value.
    add_zero_attn : bool
        Whether to add a position of zeros to key and value.
    dropout_p : float
        The share of weights that is dropped in training.
    out_proj_weight, out_proj_bias : Tensor
        The projection of the result.
    training : bool
        Whether dropout is at work.
    key_padding_mask : Tensor, optional
        (N, S) or (S): True, or -inf, for positions of the key that nobody may see.
    need_weights : bool
        Whether to return the weights.
    attn_mask : Tensor, optional
        (L, S) or (N * num_heads, L, S): True, or -inf, where attention is not allowed.
    use_separate_proj_weight : bool
        Whether the next three are used instead of `in_proj_weight`.
    q_proj_weight, k_proj_weight, v_proj_weight : Tensor, optional
        Projections, where key and value have sizes of their own.
    static_k, static_v : Tensor, optional
        (N * num_heads, S, E / num_heads): key and value as projected before.
    average_attn_weights : bool
        Whether the weights are averaged over the heads.
    is_causal : bool
        Says that `attn_mask` is the causal mask.

    Raises
    ------
    RuntimeError, AssertionError
        If shapes do not fit.
    """
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, n, size = query.shape
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if size != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {size}"
        )
    head = size // num_heads
    if head * num_heads != size:
        raise AssertionError(f"embed_dim {size} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if tuple(key.shape[:2]) != tuple(value.shape[:2]):
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
        weights: Any = (q_proj_weight, k_proj_weight, v_proj_weight)
        biases: Any = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = (
            linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)
        )
    else:
        if tuple(key.shape) != tuple(value.shape):
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        assert in_proj_weight is not None
        q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias)
    added = 0
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k = cat([k, bias_k.expand(1, n, -1)])
        v = cat([v, bias_v.expand(1, n, -1)])
        added += 1

    def by_head(x: Any) -> Any:
        return x.reshape(x.shape[0], n, num_heads, head).permute(1, 2, 0, 3)

    q = by_head(q)
    k = by_head(k) if static_k is None else _static(static_k, n, num_heads, head, "static_k")
    v = by_head(v) if static_v is None else _static(static_v, n, num_heads, head, "static_v")
    if add_zero_attn:
        k = cat([k, zeros(n, num_heads, 1, head, dtype=k.dtype, device=k.device)], 2)
        v = cat([v, zeros(n, num_heads, 1, head, dtype=v.dtype, device=v.device)], 2)
        added += 1
    if key_padding_mask is not None:
        wanted = (n, k.shape[2] - added)
        if tuple(key_padding_mask.shape) != wanted:
            raise AssertionError(
                f"Expected key_padding_mask of shape {wanted}, (batch, source length), but got "
                f"{tuple(key_padding_mask.shape)}"
            )
    mask = _merged(attn_mask, key_padding_mask, added, n, num_heads, q.dtype)
    dropped = dropout_p if training else 0.0
    # As torch, whose weights are a plain softmax.
    output, shares = attend(q, k, v, mask, dropped, False, None, blank=not need_weights)
    output = output.permute(2, 0, 1, 3).reshape(length, n, size)
    output = linear(output, out_proj_weight, out_proj_bias)
    if average_attn_weights and need_weights:
        shares = shares.mean(1)
    if not batched:
        return output.squeeze(1), shares.squeeze(0) if need_weights else None
    return output, shares if need_weights else None


def _project(query: Any, key: Any, value: Any, weight: Any, bias: Any) -> Any:
    if query is key and key is value:
        return linear(query, weight, bias).chunk(3, -1)
    weights = weight.chunk(3)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple(
        [linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]
    )


def _static(x: Any, n: int, heads: int, head: int, name: str) -> Any:
    if x.shape[0] != n * heads or x.shape[2] != head:
        raise AssertionError(
            f"expecting {name} of shape [{n * heads}, S, {head}], but got {list(x.shape)}"
        )
    return x.reshape(n, heads, -1, head)


def _check_shapes(query: Any, key: Any, value: Any, padding: Any, mask: Any, heads: int) -> bool:
    if query.ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor"
        )
    which = (
        f"For {'batched' if query.ndim == 3 else 'unbatched'} ({query.ndim}-D) `query`, expected"
    )
    if key.ndim != query.ndim or value.ndim != query.ndim:
        raise AssertionError(
            f"{which} `key` and `value` to be {query.ndim}-D but found {key.ndim}-D and {value.ndim}-D "
            "tensors respectively"
        )
    if padding is not None and padding.ndim != query.ndim - 1:
        raise AssertionError(
            f"{which} `key_padding_mask` to be `None` or {query.ndim - 1}-D but found {padding.ndim}-D "
            "tensor instead"
        )
    if mask is not None:
        if mask.ndim not in (2, 3):
            raise AssertionError(
                f"{which} `attn_mask` to be `None`, 2-D or 3-D but found {mask.ndim}-D tensor instead"
            )
        length, source = query.shape[0], key.shape[0]
        batch = query.shape[1] if query.ndim == 3 else 1
        wanted = (length, source) if mask.ndim == 2 else (batch * heads, length, source)
        if tuple(mask.shape) != wanted and query.ndim == 2 and mask.ndim == 3:
            raise AssertionError(
                f"{which} `attn_mask` shape to be {wanted} but got {tuple(mask.shape)}"
            )
        if tuple(mask.shape) != wanted:
            raise RuntimeError(
                f"The shape of the {mask.ndim}D attn_mask is {tuple(mask.shape)}, but should be {wanted}."
            )
    return bool(query.ndim == 3)


def _merged(
    attn_mask: Any, key_padding_mask: Any, added: int, n: int, heads: int, dtype: Any
) -> Any:
    """Return what is added to the scores: the two masks as numbers, broadcast to (N, heads, L, S)."""
    mask = _numbers(attn_mask, dtype, "attn_mask")
    padding = _numbers(key_padding_mask, dtype, "key_padding_mask")
    if mask is not None:
        mask = pad(mask, (0, added)) if added else mask
        mask = mask.reshape(n, heads, *mask.shape[1:]) if mask.ndim == 3 else mask
    if padding is not None:
        padding = pad(padding, (0, added)) if added else padding
        padding = padding.reshape(n, 1, 1, -1)
        mask = padding if mask is None else mask + padding
    return mask


def _numbers(mask: Any, dtype: Any, name: str) -> Any:
    if mask is None:
        return None
    if mask.dtype is bool_:
        return zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -float("inf"))
    if mask.dtype.category != FLOATING:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if mask.dtype is not dtype:
        warnings.warn(
            f"Support for mismatched {name} and query is deprecated. Use same type for both instead.",
            UserWarning,
            stacklevel=3,
        )
    return mask.to(dtype)
