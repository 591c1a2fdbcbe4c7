"""Attention whose scores a function changes, and whose pairs a function allows.

The functions are evaluated for all pairs of positions at once, through :func:`tensorplug.vmap`, and the
scores stand in memory as a whole: blocks that a mask rules out save nothing here, and change nothing.
"""
# ruff: noqa: N803  # the names are torch's

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple, Self, TypeAlias

from tensorplug.autograd.vmap import vmap
from tensorplug.core import Device, Tensor
from tensorplug.core.device.dtypes import bool_, float32, float64, int32
from tensorplug.core.dispatch.keys import default_device
from tensorplug.core.ops import arange, argsort, full, where, zeros

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

#: Returns a score, given one and its batch, head, query and key.
ScoreMod: TypeAlias = Callable[..., Tensor]
#: Returns whether a query may attend to a key, given batch, head, query and key.
MaskMod: TypeAlias = Callable[..., Tensor]
#: What torch's kernels take; there are none here, and nothing is read.
FlexKernelOptions: TypeAlias = dict[str, Any]

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_mask_mod_signature = MaskMod
_score_mod_signature = ScoreMod


class AuxRequest(NamedTuple):
    """What :func:`flex_attention` is to return beside its result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for by an :class:`AuxRequest`, each of shape (B, H, Q), else None."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


# --- masks ------------------------------------------------------------------------------------


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:  # noqa: ARG001
    """Allow every pair."""
    return batch.new_ones((), dtype=bool_)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """Return a function that allows what all of several allow."""
    _check_callable(mask_mods)

    def every(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype=bool_)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return every


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """Return a function that allows what any of several allows."""
    _check_callable(mask_mods)

    def some(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=bool_)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return some


def _check_callable(mask_mods: tuple[Any, ...]) -> None:
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def _for_all_pairs(function: Callable[..., Tensor], *, scores: bool) -> Callable[..., Tensor]:
    """Return a function of ``(scores,) (B,) (H,) (Q,) (K,)`` from one of single values."""
    first = (0,) if scores else ()
    for place in (3, 2, 1, 0):
        dims: list[int | None] = [None] * 4
        dims[place] = 0
        function = vmap(function, in_dims=(*first, *dims), out_dims=0)
    return function


def _positions(*sizes: int, device: Any) -> list[Tensor]:
    return [arange(0, size, device=device) for size in sizes]


def _place(device: Device | str | None) -> Device:
    return default_device() if device is None else Device(device)


def create_mask(
    mod_fn: ScoreMod | MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Device | str | None = None,
) -> Tensor:
    """Return a mask (B, H, Q_LEN, KV_LEN) of booleans: which pairs a function allows.

    Parameters
    ----------
    mod_fn : callable
        Of a mask, with four parameters; or of scores, with five, where -inf rules a pair out.
    B, H : int or None
        The sizes of batch and heads; None is 1.
    Q_LEN, KV_LEN : int
        The lengths of queries and keys.
    device : Device or str, optional
        Where the mask is.

    Examples
    --------
    >>> from tensorplug.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 3)
    tensor([[[[ True, False, False],
              [ True,  True, False]]]])
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    where_to = _place(device)
    places = _positions(*sizes, device=where_to)
    if _is_score_mod(mod_fn):
        scores = _for_all_pairs(mod_fn, scores=True)(zeros(*sizes, device=where_to), *places)
        return scores != -math.inf
    mask = _for_all_pairs(mod_fn, scores=False)(*places)
    return mask.expand(sizes)


def _is_score_mod(function: Callable[..., Any]) -> bool:
    """Return whether a function takes a score in front of the positions."""
    parameters = inspect.signature(function).parameters.values()
    needed = [
        p
        for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return len(needed) == 5


class BlockMask:
    """Which blocks of pairs of queries and keys take part, and which pairs in them.

    Of the blocks of a row of queries, the *full* ones take part as a whole, and the other ones as far as
    `mask_mod` allows.

    Parameters
    ----------
    seq_lengths : (int, int)
        The lengths of queries and keys.
    kv_num_blocks : Tensor
        (B, H, rows): how many partial blocks each row of blocks has.
    kv_indices : Tensor
        (B, H, rows, columns): which, in the first places.
    full_kv_num_blocks, full_kv_indices : Tensor, optional
        The same of full blocks.
    BLOCK_SIZE : (int, int)
        The number of queries and keys in a block.
    mask_mod : callable
        Says which pairs of partial blocks take part.

    Examples
    --------
    >>> from tensorplug.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, 1, 1, 256, 256)
    >>> mask.shape, mask.to_dense().tolist(), mask.sparsity()
    ((1, 1, 256, 256), [[[[1, 0], [1, 1]]]], 25.0)
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: MaskMod = noop_mask,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise ValueError("full_kv_num_blocks and full_kv_indices must be given together")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,  # noqa: ARG003
    ) -> Self:
        """Make a mask of the blocks of each row; see the class."""
        size = BLOCK_SIZE if isinstance(BLOCK_SIZE, tuple) else (BLOCK_SIZE, BLOCK_SIZE)
        rows, columns = kv_indices.shape[-2:]
        lengths = seq_lengths or (rows * size[0], columns * size[1])
        mod = mask_mod or noop_mask
        return cls(
            lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, size, mod
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of batch and heads, and the lengths."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Return the number of pairs."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Return how many percent of the pairs are in blocks that take no part."""
        blocks = self.kv_num_blocks.sum()
        if self.full_kv_num_blocks is not None:
            blocks = blocks + self.full_kv_num_blocks.sum()
        return 100 * (1 - int(blocks) * math.prod(self.BLOCK_SIZE) / self.numel())

    def to_dense(self) -> Tensor:
        """Return which blocks take part, (B, H, rows, columns)."""
        partial, full_ones = self._blocks()
        return (partial if full_ones is None else partial | full_ones).to(int32)

    def _blocks(self) -> tuple[Tensor, Tensor | None]:
        partial = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return partial, None
        return partial, _dense(self.full_kv_num_blocks, self.full_kv_indices)

    def allowed(self, heads: int, batch: int) -> Tensor:
        """Return which pairs take part, as booleans that broadcast to (batch, heads, Q, K)."""
        given = (*self.shape[:-2], 1, 1)[:2]
        sizes = [
            size if size > 1 else wanted for size, wanted in zip(given, (batch, heads), strict=True)
        ]
        device = self.kv_indices.device
        pairs = create_mask(self.mask_mod, sizes[0], sizes[1], *self.seq_lengths, device)
        partial, full_ones = self._blocks()
        pairs = pairs & self._spread(partial)
        return pairs if full_ones is None else pairs | self._spread(full_ones)

    def _spread(self, blocks: Tensor) -> Tensor:
        """Return what is said of blocks for each pair in them."""
        rows, columns = self.BLOCK_SIZE
        spread = blocks.repeat_interleave(rows, -2).repeat_interleave(columns, -1)
        return spread[..., : self.seq_lengths[0], : self.seq_lengths[1]]

    def _tensors(self) -> list[Tensor | None]:
        return [
            self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices
        ]  # fmt: skip

    def _like(
        self, tensors: list[Tensor | None], lengths: tuple[int, int] | None = None
    ) -> BlockMask:
        lengths = lengths or self.seq_lengths
        partial: list[Any] = tensors[:2]
        return BlockMask(
            lengths, partial[0], partial[1], tensors[2], tensors[3], self.BLOCK_SIZE, self.mask_mod
        )

    def __getitem__(self, index: Any) -> BlockMask:
        """Return the mask of some of the batches, heads and rows of blocks."""
        if not isinstance(index, tuple):
            index = (index,)
        # A number keeps its dimension: the mask stays one of (B, H, rows).
        kept = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in index)
        taken = self._like([None if t is None else t[kept] for t in self._tensors()])
        rows = taken.kv_indices.shape[-2]
        if rows != self.kv_indices.shape[-2]:
            taken.seq_lengths = (rows * self.BLOCK_SIZE[0], self.seq_lengths[1])
        return taken

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """Return the upper left corner of the mask."""
        rows = -(-new_q_len // self.BLOCK_SIZE[0])
        columns = -(-new_kv_len // self.BLOCK_SIZE[1])
        partial, full_ones = self._blocks()
        cut = [_ordered(partial[..., :rows, :columns])]
        if full_ones is not None:
            cut.append(_ordered(full_ones[..., :rows, :columns]))
        tensors: list[Tensor | None] = [tensor for pair in cut for tensor in pair]
        return self._like(tensors + [None] * (4 - len(tensors)), (new_q_len, new_kv_len))

    def to(self, device: Device | str) -> BlockMask:
        """Return the mask on a device."""
        return self._like([None if t is None else t.to(device) for t in self._tensors()])

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Return the lengths, the tensors, the size of blocks and the function."""
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        size = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        return (*lengths, *self._tensors(), *size, self.mask_mod)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """Return the blocks as text: a square for each that takes part."""
        dense = self.to_dense()
        pages = dense.reshape(-1, *dense.shape[-2:])[:limit].tolist()
        return "\n\n".join(
            ["\n".join(["".join(["█░"[not b] for b in row]) for row in page]) for page in pages]
        )

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def _dense(num_blocks: Tensor, indices: Tensor) -> Tensor:
    """Return booleans (…, rows, columns) of the first ``num_blocks`` indices of each row."""
    columns = indices.shape[-1]
    counted = arange(columns, device=indices.device) < num_blocks.unsqueeze(-1)
    result = zeros(*indices.shape[:-1], columns + 1, dtype=bool_, device=indices.device)
    places = where(counted, indices.long(), columns)  # what is not counted goes behind the last
    return result.scatter(-1, places, counted)[..., :columns]


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many blocks each row has, and their indices in front of those of the others."""
    order = argsort(blocks.to(int32), dim=-1, descending=True, stable=True)
    return blocks.sum(-1).to(int32), order.to(int32)


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Device | str | None = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:
    """Return the mask of blocks of a function that says which queries attend to which keys.

    Parameters
    ----------
    mask_mod : callable
        ``mask_mod(b, h, q_idx, kv_idx)`` returns a boolean tensor without dimensions.
    B, H : int or None
        The sizes of batch and heads; None where the mask is the same for all.
    Q_LEN, KV_LEN : int
        The lengths of queries and keys.
    device : Device or str, optional
        Where the mask is.
    BLOCK_SIZE : int or (int, int)
        The number of queries and keys in a block.
    separate_full_blocks : bool
        Whether blocks all of whose pairs take part are held apart.
    """
    size = BLOCK_SIZE if isinstance(BLOCK_SIZE, tuple) else (BLOCK_SIZE, BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    counts = _pairs_in_blocks(mask, size)
    if not separate_full_blocks:
        return BlockMask((Q_LEN, KV_LEN), *_ordered(counts > 0), None, None, size, mask_mod)
    is_full = counts == math.prod(size)
    partial = _ordered((counts > 0) & ~is_full)
    return BlockMask((Q_LEN, KV_LEN), *partial, *_ordered(is_full), size, mask_mod)


def _pairs_in_blocks(mask: Tensor, size: tuple[int, int]) -> Tensor:
    """Return how many pairs of each block take part, with the mask filled up to whole blocks."""
    batch, heads, queries, keys = mask.shape
    rows, columns = -(-queries // size[0]), -(-keys // size[1])
    filled = zeros(batch, heads, rows * size[0], columns * size[1], dtype=bool_, device=mask.device)
    filled[..., :queries, :keys] = mask
    blocks = filled.reshape(batch, heads, rows, size[0], columns, size[1])
    return blocks.sum((3, 5))


# --- attention --------------------------------------------------------------------------------


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,  # noqa: ARG001
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Return attention with scores that a function changes and pairs that a mask allows.

    Parameters
    ----------
    query : Tensor
        (B, Hq, Q, E).
    key, value : Tensor
        (B, Hkv, K, E) and (B, Hkv, K, Ev); a batch of 1 serves all.
    score_mod : callable, optional
        ``score_mod(score, b, h, q_idx, kv_idx)`` returns the score to use, a tensor without dimensions.
    block_mask : BlockMask, optional
        Which pairs take part. A query without any has the result 0.
    scale : float, optional
        What scores are multiplied by, ``1 / sqrt(E)`` by default.
    enable_gqa : bool
        Whether Hq may be a multiple of Hkv, so that several heads share keys and values.
    return_lse : bool
        Whether to return the logarithm of the sum of exponentials, (B, Hq, Q), as well.
    kernel_options : dict, optional
        For torch's kernels; nothing is read.
    return_aux : AuxRequest, optional
        What else to return, as an :class:`AuxOutput`.

    Returns
    -------
    Tensor
        (B, Hq, Q, Ev); or a pair with what was asked for.

    Raises
    ------
    ValueError
        If the shapes, dtypes or devices do not go together, or `block_mask` has other lengths.

    Notes
    -----
    Dong et al., "Flex Attention: A Programming Model for Generating Optimized Attention Kernels" (2024).

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> q, k, v = tp.randn(3, 1, 2, 4, 8)
    >>> causal = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 4, 4)
    >>> out = flex_attention(q, k, v, lambda s, b, h, q, kv: s - 0.1 * (q - kv), block_mask=causal)
    >>> out.shape
    Size([1, 2, 4, 8])
    """
    _check(query, key, value, enable_gqa, block_mask)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    batch, heads, queries, width = query.shape
    if key.shape[1] != heads:
        key, value = (t.repeat_interleave(heads // t.shape[1], 1) for t in (key, value))
    precision = float64 if query.dtype is float64 else float32
    factor = 1.0 / math.sqrt(width) if scale is None else scale
    scores = (query @ key.transpose(-2, -1)).to(precision) * factor
    if score_mod is not None:
        places = _positions(batch, heads, queries, key.shape[-2], device=query.device)
        scores = _for_all_pairs(score_mod, scores=True)(scores, *places).to(precision)
    if block_mask is not None:
        ruled_out = full((), -math.inf, dtype=precision, device=query.device)
        scores = where(block_mask.allowed(heads, batch), scores, ruled_out)
    none = (scores == -math.inf).all(-1, keepdim=True)
    weights = scores.masked_fill(none, 0.0).softmax(-1).masked_fill(none, 0.0)
    result = weights.to(query.dtype) @ value
    if return_aux is None and not return_lse:
        return result
    wants = return_aux or AuxRequest(lse=True)
    lse = scores.logsumexp(-1) if wants.lse else None
    if return_aux is None:
        return result, lse
    return result, AuxOutput(lse, scores.amax(-1) if wants.max_scores else None)


def _check(
    query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool, block_mask: BlockMask | None
) -> None:
    """Raise ValueError unless the arguments of :func:`flex_attention` go together."""
    if not query.dim() == key.dim() == value.dim() == 4:
        raise ValueError("Expected query, key, and value to all be 4 dimensional")
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype}, key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    if query.device != key.device or query.device != value.device:
        raise ValueError(
            "Expected query, key, and value to have the same device type, but got query.device: "
            f"{query.device}, key.device: {key.device}, and value.device: {value.device} instead."
        )
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.shape[-1]} and E={key.shape[-1]}."
        )
    if query.shape[0] != key.shape[0] and key.shape[0] != 1:
        raise ValueError(
            f"Expect query and key/value to have the same batch size, or non-none block_mask, but got "
            f"Bq={query.shape[0]} and Bkv={key.shape[0]}."
        )
    heads, shared = query.shape[1], key.shape[1]
    if heads != shared and not enable_gqa:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={shared}. Try setting enable_gqa=True for GQA."
        )
    if heads % shared:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={shared}."
        )
    lengths = (query.shape[-2], key.shape[-2])
    if block_mask is not None and block_mask.seq_lengths != lengths:
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got "
            f"q_len={lengths[0]} and kv_len={lengths[1]}; create one for these lengths"
        )
