"""The transformer (Vaswani et al. 2017): layers, their stacks, and both together."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tensorplug.core import Device, DType, Tensor
from tensorplug.core.ops import full

from .. import functional as F, init
from ..module import Module
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear, activated
from .normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Tensor], Tensor]


def _function(activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _copies(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _is_causal(mask: Tensor | None, hint: bool | None) -> bool:
    """Return the hint; without one nothing is assumed, since a mask works all the same."""
    return bool(hint) and mask is not None


def _triangle(size: int, device: Device | str | None = None, dtype: DType | None = None) -> Tensor:
    return full((size, size), float("-inf"), dtype=dtype, device=device).triu(1)


class TransformerEncoderLayer(Module):
    """Self-attention and two linear layers, each with a residual connection and normalisation.

    Parameters
    ----------
    d_model : int
        Size of input and output.
    nhead : int
        Heads of attention.
    dim_feedforward : int
        Size between the two linear layers.
    dropout : float
        The share that is dropped in training.
    activation : {"relu", "gelu"} or callable
        Between the two linear layers.
    layer_norm_eps : float
        Added to variances.
    batch_first : bool
        Whether tensors are (N, L, E) rather than (L, N, E).
    norm_first : bool
        Whether normalisation comes before attention and linear layers, rather than after.
    bias : bool
        Whether linear layers and normalisation have biases.
    device, dtype
        Where and of which dtype the parameters are made.

    Examples
    --------
    >>> import tensorplug as tp
    >>> TransformerEncoderLayer(8, 2, 16)(tp.zeros(5, 1, 8)).shape
    Size([5, 1, 8])
    """

    activation: Callable[[Tensor], Tensor]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **made
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _function(activation)
        # Of no use here; torch's class asks for it, and finds it where a module was saved.
        known: list[Any] = [None, F.relu, F.gelu]
        chosen = self.activation
        self.activation_relu_or_gelu = known.index(chosen) if chosen in known else 0

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return the layer's output; for the masks see :class:`MultiheadAttention`."""
        x = src
        if self.norm_first:
            x = x + self._attend(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._feed_forward(self.norm2(x))
        x = self.norm1(x + self._attend(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._feed_forward(x))

    def _attend(self, x: Tensor, mask: Any, padding: Any, is_causal: bool) -> Tensor:
        output = self.self_attn(
            x,
            x,
            x,
            attn_mask=mask,
            key_padding_mask=padding,
            need_weights=False,
            is_causal=_is_causal(mask, is_causal),
        )[0]
        return self.dropout1(output)

    def _feed_forward(self, x: Tensor) -> Tensor:
        inner = self.dropout(activated(self.linear1, self.activation, x))
        return self.dropout2(self.linear2(inner))


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the encoder's output, and two linear layers.

    The parameters are those of :class:`TransformerEncoderLayer`.
    """

    activation: Callable[[Tensor], Tensor]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        attention: dict[str, Any] = {
            "dropout": dropout,
            "batch_first": batch_first,
            "bias": bias,
            **made,
        }
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _function(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the layer's output; `memory` is the encoder's."""

        def own(x: Tensor) -> Tensor:
            output = self.self_attn(
                x,
                x,
                x,
                attn_mask=tgt_mask,
                key_padding_mask=tgt_key_padding_mask,
                is_causal=_is_causal(tgt_mask, tgt_is_causal),
                need_weights=False,
            )[0]
            return self.dropout1(output)

        def other(x: Tensor) -> Tensor:
            output = self.multihead_attn(
                x,
                memory,
                memory,
                attn_mask=memory_mask,
                key_padding_mask=memory_key_padding_mask,
                is_causal=_is_causal(memory_mask, memory_is_causal),
                need_weights=False,
            )[0]
            return self.dropout2(output)

        x = tgt
        if self.norm_first:
            x = x + own(self.norm1(x))
            x = x + other(self.norm2(x))
            return x + self._feed_forward(self.norm3(x))
        x = self.norm1(x + own(x))
        x = self.norm2(x + other(x))
        return self.norm3(x + self._feed_forward(x))

    def _feed_forward(self, x: Tensor) -> Tensor:
        inner = self.dropout(activated(self.linear1, self.activation, x))
        return self.dropout3(self.linear2(inner))


class TransformerEncoder(Module):
    """A stack of copies of an encoder layer.

    Parameters
    ----------
    encoder_layer : TransformerEncoderLayer
        What is copied.
    num_layers : int
        How often.
    norm : Module, optional
        Applied at the end.
    enable_nested_tensor, mask_check : bool
        Accepted; there are no nested tensors here.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Return the last layer's output."""
        output = src
        for layer in self.layers:
            output = layer(
                output,
                src_mask=mask,
                src_key_padding_mask=src_key_padding_mask,
                is_causal=_is_causal(mask, is_causal),
            )
        return output if self.norm is None else self.norm(output)


class TransformerDecoder(Module):
    """A stack of copies of a decoder layer; see :class:`TransformerEncoder`."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the last layer's output."""
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=_is_causal(tgt_mask, tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """Encoder and decoder.

    Parameters
    ----------
    d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias
        See :class:`TransformerEncoderLayer`.
    num_encoder_layers, num_decoder_layers : int
        Layers of each stack.
    custom_encoder, custom_decoder : Module, optional
        Used instead of a stack of our own.
    device, dtype
        Where and of which dtype the parameters are made.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        layer: tuple[Any, ...] = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
        )

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)

        self.encoder = (
            custom_encoder
            if custom_encoder is not None
            else TransformerEncoder(
                TransformerEncoderLayer(*layer, **made), num_encoder_layers, norm()
            )
        )
        self.decoder = (
            custom_decoder
            if custom_decoder is not None
            else TransformerDecoder(
                TransformerDecoderLayer(*layer, **made), num_decoder_layers, norm()
            )
        )
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoder's output for `tgt`, with the encoder's for `src` as its memory."""
        batched = src.ndim == 3
        if batched:
            side = 0 if self.batch_first else 1
            if src.shape[side] != tgt.shape[side]:
                raise RuntimeError(
                    f"the batch number of src and tgt must be equal, got {src.shape[side]} and "
                    f"{tgt.shape[side]}"
                )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(
                f"the feature number of src and tgt must be equal to d_model ({self.d_model}), got "
                f"{src.shape[-1]} and {tgt.shape[-1]}"
            )
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Device | str | None = None, dtype: DType | None = None
    ) -> Tensor:
        """Return the causal mask: -inf above the diagonal, zero elsewhere."""
        return _triangle(sz, device, dtype)
