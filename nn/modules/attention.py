"""Attention with several heads."""

from __future__ import annotations

from tensorplug.core import Device, DType, Tensor
from tensorplug.core.ops import empty

from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention with several heads, with projections before and after.

    Parameters
    ----------
    embed_dim : int
        Size of query and output.
    num_heads : int
        A divisor of `embed_dim`.
    dropout : float
        The share of attention weights dropped in training.
    bias : bool
        Whether the projections have biases.
    add_bias_kv : bool
        Whether to add a learned position to key and value.
    add_zero_attn : bool
        Whether to add a position of zeros to key and value.
    kdim, vdim : int, optional
        Sizes of key and value; by default `embed_dim`.
    batch_first : bool
        Whether tensors are (N, L, E) rather than (L, N, E).
    device, dtype
        Where and of which dtype the parameters are made.

    Raises
    ------
    ValueError, AssertionError
        If a size is not positive, or the heads do not divide `embed_dim`.

    Notes
    -----
    Vaswani et al., "Attention is all you need", 2017. Where every position is masked, the output is the
    bias of the last projection and the weights are zero.

    Examples
    --------
    >>> import tensorplug as tp
    >>> attention = MultiheadAttention(8, 2)
    >>> output, weights = attention(tp.zeros(5, 1, 8), tp.zeros(3, 1, 8), tp.zeros(3, 1, 8))
    >>> output.shape, weights.shape
    (Size([5, 1, 8]), Size([1, 5, 3]))
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def parameter(*shape: int) -> Parameter:
            return Parameter(empty(*shape, device=device, dtype=dtype))

        same = self._qkv_same_embed_dim
        if same:
            self.in_proj_weight = parameter(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = parameter(embed_dim, embed_dim)
            self.k_proj_weight = parameter(embed_dim, self.kdim)
            self.v_proj_weight = parameter(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", parameter(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        self.register_parameter("bias_k", parameter(1, 1, embed_dim) if add_bias_kv else None)
        self.register_parameter("bias_v", parameter(1, 1, embed_dim) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (
            self.in_proj_weight,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
        ):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            assert self.out_proj.bias is not None
            init.zeros_(self.out_proj.bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the output, and the attention weights if they are asked for.

        Parameters
        ----------
        query : Tensor
            (L, N, E), (N, L, E) with `batch_first`, or (L, E).
        key, value : Tensor
            Of that kind, with S for L.
        key_padding_mask : Tensor, optional
            (N, S) or (S): True, or -inf, for positions that nobody may see.
        need_weights : bool
            Whether to return the weights.
        attn_mask : Tensor, optional
            (L, S) or (N * num_heads, L, S): True, or -inf, where attention is not allowed.
        average_attn_weights : bool
            Whether weights are averaged over the heads.
        is_causal : bool
            Says that `attn_mask` is the causal mask.
        """
        swapped = self.batch_first and query.ndim == 3
        if swapped:  # one tensor for all three stays one: it is projected at once
            if query is key and key is value:
                query = key = value = query.transpose(0, 1)
            elif key is value:
                query = query.transpose(0, 1)
                key = value = key.transpose(0, 1)
            else:
                query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return output.transpose(0, 1) if swapped else output, weights
