"""Attention, with caches of keys and values, and convolution with a state."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.nn import functional as F

from ..registry import operator
from ..values import dtype_of

__all__: list[str] = []


def _heads(x: Tensor, count: int | None) -> Tensor:
    """Return (batch, heads, length, size), of what may have its heads in the last dimension."""
    if x.dim() == 4 or count is None:
        return x
    return ops.transpose(x.reshape(x.shape[0], x.shape[1], count, -1), 1, 2)


def _additive(mask: Tensor, length: int, dtype: Any) -> Tensor:
    """Return a mask as numbers to add, as long as there are keys: none beyond it is attended to."""
    if mask.dtype == dtype_of(9):
        mask = ops.where(mask, 0.0, -math.inf).to(dtype)
    missing = length - mask.shape[-1]
    return F.pad(mask, [0, missing], value=-math.inf) if missing > 0 else mask


def _allowed(
    queries: int, keys: int, offset: Any, causal: bool, left: int, right: int, device: Any
) -> Tensor:
    """Return which keys each query may see, the first query being at ``offset`` among the keys."""
    at = ops.arange(queries, device=device)[:, None] + offset
    key = ops.arange(keys, device=device)
    allowed = key >= -1
    if causal:
        allowed = allowed & (key <= at)
    if left >= 0:
        allowed = allowed & (at - key <= left)
    if right >= 0:
        allowed = allowed & (key - at <= right)
    return allowed


@operator("Attention", since=23)
def attention(
    Q: Tensor,
    K: Tensor,
    V: Tensor,
    attn_mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    nonpad_kv_seqlen: Tensor | None = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
    n_outputs: int,
) -> Any:
    flat = Q.dim() == 3
    q, k, v = _heads(Q, q_num_heads), _heads(K, kv_num_heads), _heads(V, kv_num_heads)
    if past_key is not None and past_value is not None:
        k, v = ops.cat([past_key, k], 2), ops.cat([past_value, v], 2)
    present = k, v
    groups = q.shape[1] // k.shape[1]
    if groups > 1:
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    queries, keys = q.shape[2], k.shape[2]
    bias: Tensor | None = None
    if is_causal or left_window_size >= 0 or right_window_size >= 0:
        offset: Any = 0 if past_key is None else past_key.shape[2]
        if past_key is None and nonpad_kv_seqlen is not None:
            offset = (nonpad_kv_seqlen.reshape(-1) - queries).reshape(-1, 1, 1, 1)
        window = left_window_size, right_window_size
        seen = _allowed(queries, keys, offset, bool(is_causal), *window, q.device)
        bias = _additive(seen, keys, q.dtype)
    if attn_mask is not None:
        mask = _additive(attn_mask, keys, q.dtype)
        bias = mask if bias is None else bias + mask
    if nonpad_kv_seqlen is not None:
        there = ops.arange(keys, device=q.device) < nonpad_kv_seqlen.reshape(-1, 1, 1, 1)
        mask = _additive(there, keys, q.dtype)
        bias = mask if bias is None else bias + mask
    if n_outputs < 4 and not softcap and bias is None and softmax_precision is None:
        result = F.scaled_dot_product_attention(q, k, v, scale=scale)
        products = None
    else:
        result, products = _explicit(
            q, k, v, bias, scale, softcap, softmax_precision, qk_matmul_output_mode
        )
    if flat:
        result = ops.transpose(result, 1, 2).flatten(2)
    return (result, *present, products)[:n_outputs]


def _explicit(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    scale: float,
    softcap: float,
    precision: int | None,
    mode: int,
) -> tuple[Tensor, Tensor]:
    """Return the result, and the products of queries and keys at the stage that ``mode`` names."""
    root = math.sqrt(scale)
    scores = ops.matmul(q * root, ops.transpose(k, 2, 3) * root)
    stages = [scores]
    if softcap:
        scores = softcap * ops.tanh(scores / softcap)
    stages.append(scores)
    if bias is not None:
        scores = scores + bias
    stages.append(scores)
    weights = F.softmax(scores if precision is None else scores.to(dtype_of(precision)), -1)
    if bias is not None:  # a query that sees no key gets zeros
        blind = ops.amax(bias, -1, keepdim=True) == -math.inf
        weights = ops.where(blind, ops.zeros_like(weights), weights)
    weights = weights.to(q.dtype)
    stages.append(weights)
    return ops.matmul(weights, v), stages[mode]


@operator("CausalConvWithState", since=27)
def causal_conv(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    past_state: Tensor | None = None,
    *,
    activation: str = "none",
) -> tuple[Tensor, Tensor]:
    """Convolve each channel with what came before, which is the state that is handed on."""
    reach = weight.shape[-1] - 1
    if past_state is None:
        whole = F.pad(input, [reach, 0])
    else:
        whole = ops.cat([past_state, input], -1)
    result = F.conv1d(whole, weight, bias, groups=weight.shape[0])
    if activation in ("silu", "swish"):
        result = F.silu(result)
    return result, ops.narrow(whole, -1, whole.shape[-1] - reach, reach)


@operator("LinearAttention", since=27)
def linear_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    past_state: Tensor | None = None,
    decay: Tensor | None = None,
    beta: Tensor | None = None,
    *,
    chunk_size: int = 64,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
) -> tuple[Tensor, Tensor]:
    """Attend through a state of fixed size that each key and value is written into."""
    q = _heads(query, q_num_heads).float()
    k, v = _heads(key, kv_num_heads).float(), _heads(value, kv_num_heads).float()
    fading = None if decay is None else ops.exp(_heads(decay, kv_num_heads).float())
    rate = None if beta is None else ops.transpose(beta, 1, 2).float()
    groups = q_num_heads // kv_num_heads
    size = (q.shape[0], kv_num_heads, k.shape[-1], v.shape[-1])
    kind = query.dtype if past_state is None else past_state.dtype
    start = ops.zeros(size, device=q.device) if past_state is None else past_state
    state = start.float()
    rows: list[Tensor] = []
    for t in range(q.shape[2]):
        if fading is not None:
            state = state * fading[:, :, t, :, None]
        written = v[:, :, t]
        if rate is not None:
            known = ops.matmul(k[:, :, t, None], state)[:, :, 0]
            written = rate[:, :, t, None] * (written - known)
        state = state + k[:, :, t, :, None] * written[:, :, None]
        read = state.repeat_interleave(groups, 1)
        rows.append(ops.matmul(q[:, :, t, None], read)[:, :, 0])
    result = ops.stack(rows, 1).flatten(2) * (scale or 1 / math.sqrt(k.shape[-1]))
    return result.to(query.dtype), state.to(kind)
