"""Attention, with what its derivative needs kept in place of the weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.device.dtypes import bfloat16, bool_, float16, float32
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import ones, where, zeros_like
from tensorplug.core.tensor.shapes import broadcast_shapes

if TYPE_CHECKING:
    from tensorplug.core import Tensor


_INPUTS = "inputs.0(*B, L, E), inputs.1(*B, S, E), inputs.2(*B, S, V)"
_OUTPUT = "(*B, L, V)"


def _scores(query: Any, key: Any, mask: Any, is_causal: bool, scale: float) -> Any:
    """Return the masked scores; where nothing may be seen they are minus infinity."""
    scores = (query * scale) @ key.transpose(-2, -1)
    if is_causal:
        mask = ones(query.shape[-2], key.shape[-2], dtype=bool_, device=query.device).tril()
    if mask is None:
        return scores
    return where(mask, scores, -math.inf) if mask.dtype is bool_ else scores + mask


def _weights(scores: Any, logsumexp: Any) -> Any:
    """Return the softmax of the scores; a row with nothing to see has no weights."""
    total = logsumexp.unsqueeze(-1)
    return (scores - where(total == -math.inf, 0.0, total)).exp()


def _wide(tensors: Sequence[Any]) -> list[Any]:
    return [tensor.to(float32) for tensor in tensors]


def _wide_mask(mask: Any) -> Any:
    return mask if mask is None or mask.dtype is bool_ else mask.to(float32)


def _check_mask(inputs: Any, mask: Any, *_: Any) -> None:
    """Raise if a mask does not broadcast to the scores: kernels read it by their sizes."""
    query, key, _value = inputs
    scores = (*query.shape[:-1], key.shape[-2])
    if mask is not None and broadcast_shapes(scores, mask.shape) != scores:
        raise RuntimeError(
            f"scaled_dot_product_attention(): a mask of shape {list(mask.shape)} does not broadcast to "
            f"{list(scores)}"
        )


@composite(
    rule=_check_mask,
    shapes=_INPUTS,
    method=False,
    outputs="output, logsumexp",
)
def scaled_dot_product_efficient_attention(
    inputs: Sequence[Tensor], mask: Tensor | None, is_causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    r"""Return :math:`softmax(Q K^T s + M) V`, and the logarithm of what the softmax divides by.

    Parameters
    ----------
    inputs : sequence of three Tensor
        Query (\*batch, L, E), key (\*batch, S, E) and value (\*batch, S, Ev).
    mask : Tensor, optional
        Broadcast to (\*batch, L, S): bool, True where attention is allowed, or numbers to add.
    is_causal : bool
        Whether position i sees positions up to i only, in place of a mask.
    scale : float
        s.

    Returns
    -------
    output : Tensor
        (\*batch, L, Ev); a row with nothing to see is zero.
    logsumexp : Tensor
        (\*batch, L), minus infinity for such a row.

    Notes
    -----
    With it the weights can be computed once more, block by block, so that they are never kept (Dao et al.,
    "FlashAttention", 2022). Half precision is computed in float32.
    """
    query, key, value = inputs
    dtype = query.dtype
    if dtype is float16 or dtype is bfloat16:
        output, total = scaled_dot_product_efficient_attention(
            _wide(inputs), _wide_mask(mask), is_causal, scale
        )
        return output.to(dtype), total.to(dtype)
    scores = _scores(query, key, mask, is_causal, scale)
    logsumexp = scores.logsumexp(-1)
    return _weights(scores, logsumexp) @ value, logsumexp


@composite(
    rule=lambda _g, _sum, *others: _check_mask(*others),
    shapes=f"{_INPUTS}, g_output{_OUTPUT}, g_logsumexp(*B, L), output{_OUTPUT}, logsumexp(*B, L)",
    method=False,
    outputs="g_query, g_key, g_value",
)
def scaled_dot_product_efficient_attention_backward(
    g_output: Tensor,
    g_logsumexp: Tensor,
    inputs: Sequence[Tensor],
    mask: Tensor | None,
    output: Tensor,
    logsumexp: Tensor,
    is_causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of query, key and value, see :func:`scaled_dot_product_efficient_attention`.

    Notes
    -----
    With the weights P: dV = Pᵀ dO, dS = P (dO Vᵀ - rowsum(dO O) + g_logsumexp), dQ = s dS K, dK = s dSᵀ Q.
    """
    query, key, value = inputs
    dtype = query.dtype
    if dtype is float16 or dtype is bfloat16:
        g, g_total, result, total = _wide((g_output, g_logsumexp, output, logsumexp))
        gradients = scaled_dot_product_efficient_attention_backward(
            g, g_total, _wide(inputs), _wide_mask(mask), result, total, is_causal, scale
        )
        return gradients[0].to(dtype), gradients[1].to(dtype), gradients[2].to(dtype)
    weights = _weights(_scores(query, key, mask, is_causal, scale), logsumexp)
    along = (g_output * output).sum(-1) - g_logsumexp
    g_scores = weights * (g_output @ value.transpose(-2, -1) - along.unsqueeze(-1)) * scale
    return (
        g_scores @ key,
        g_scores.transpose(-2, -1) @ query,
        weights.transpose(-2, -1) @ g_output,
    )


def _gradient(
    g_output: Any,
    g_logsumexp: Any,
    inputs: Any,
    mask: Any,
    output: Any,
    logsumexp: Any,
    is_causal: bool,
    scale: float,
) -> list[Any]:
    return list(
        scaled_dot_product_efficient_attention_backward(
            g_output, g_logsumexp, inputs, mask, output, logsumexp, is_causal, scale
        )
    )


def _mask_gradient(
    g_output: Any,
    g_logsumexp: Any,
    inputs: Any,
    mask: Any,
    output: Any,
    logsumexp: Any,
    is_causal: bool,
    scale: float,
) -> Any:
    query, key, value = inputs
    weights = _weights(_scores(query, key, mask, is_causal, scale), logsumexp)
    along = (g_output * output).sum(-1) - g_logsumexp
    g_scores = weights * (g_output @ value.transpose(-2, -1) - along.unsqueeze(-1))
    return g_scores.sum_to_size(tuple(mask.shape))


# --- half precision -------------------------------------------------------------------------------


@composite(
    rule=_check_mask,
    shapes=_INPUTS,
    method=False,
    mixed=True,
    outputs="output, logsumexp",
)
def scaled_dot_product_flash_attention(
    inputs: Sequence[Tensor], mask: Tensor | None, is_causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    """Return attention of half precision, with float32 logarithms that are for the derivative alone.

    It is :func:`scaled_dot_product_efficient_attention` otherwise.

    Nothing flows back through them, so a backend may leave the derivative to a library that does not know
    them as a result.
    """
    output, logsumexp = scaled_dot_product_efficient_attention(
        _wide(inputs), _wide_mask(mask), is_causal, scale
    )
    return output.to(inputs[0].dtype), logsumexp


@composite(
    rule=lambda _g, *others: _check_mask(*others),
    shapes=f"{_INPUTS}, g_output{_OUTPUT}, output{_OUTPUT}, logsumexp(*B, L)",
    method=False,
    mixed=True,
    outputs="g_query, g_key, g_value",
)
def scaled_dot_product_flash_attention_backward(
    g_output: Tensor,
    inputs: Sequence[Tensor],
    mask: Tensor | None,
    output: Tensor,
    logsumexp: Tensor,
    is_causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of query, key and value, see :func:`scaled_dot_product_flash_attention`."""
    dtype = g_output.dtype
    g, result = _wide((g_output, output))
    none = zeros_like(logsumexp)
    g_query, g_key, g_value = scaled_dot_product_efficient_attention_backward(
        g, none, _wide(inputs), _wide_mask(mask), result, logsumexp, is_causal, scale
    )
    return g_query.to(dtype), g_key.to(dtype), g_value.to(dtype)


def _half_gradient(
    g_output: Any,
    inputs: Any,
    mask: Any,
    output: Any,
    logsumexp: Any,
    is_causal: bool,
    scale: float,
) -> list[Any]:
    return list(
        scaled_dot_product_flash_attention_backward(
            g_output, inputs, mask, output, logsumexp, is_causal, scale
        )
    )


def _half_mask_gradient(
    g_output: Any,
    inputs: Any,
    mask: Any,
    output: Any,
    logsumexp: Any,
    is_causal: bool,
    scale: float,
) -> Any:
    none = zeros_like(logsumexp)
    wide = _wide((g_output, output))
    gradient = _mask_gradient(
        wide[0], none, _wide(inputs), _wide_mask(mask), wide[1], logsumexp, is_causal, scale
    )
    return gradient.to(mask.dtype)


DERIVATIVES = [
    derivative("scaled_dot_product_efficient_attention", inputs=_gradient, mask=_mask_gradient),
    derivative(
        "scaled_dot_product_flash_attention", inputs=_half_gradient, mask=_half_mask_gradient
    ),
]
