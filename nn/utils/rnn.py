"""Sequences of different lengths in one tensor."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, Self

from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import (
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from tensorplug.core.errors import check_flag
from tensorplug.core.ops import arange, argsort, cat
from tensorplug.core.ops.rules import check_tensor
from tensorplug.core.tensor.creation import tensor as make_tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Sequences of different lengths without padding: all first elements, all second ones, and so on.

    Attributes
    ----------
    data : Tensor
        (total, *): the elements.
    batch_sizes : Tensor
        int64 on the CPU: how many sequences have a first, a second… element.
    sorted_indices, unsorted_indices : Tensor or None
        The order that puts the longest sequence first, and its inverse.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        """Check and put together."""
        if batch_sizes is None:
            raise ValueError("PackedSequence(): batch_sizes must be given")
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created "
                "manually. They should be instantiated by functions like pack_sequence and "
                "pack_padded_sequence in nn.utils.rnn."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Return the sequences with data moved or converted as by ``Tensor.to``."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        orders = [
            None if order is None else order.to(data.device)
            for order in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *orders)

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """Return the sequences on the CPU; other arguments as those of :meth:`to`."""
        return self.to(*args, device="cpu", **kwargs)

    def double(self) -> Self:
        """Return the sequences in float64."""
        return self.to(dtype=float64)

    def float(self) -> Self:
        """Return the sequences in float32."""
        return self.to(dtype=float32)

    def half(self) -> Self:
        """Return the sequences in float16."""
        return self.to(dtype=float16)

    def long(self) -> Self:
        """Return the sequences in int64."""
        return self.to(dtype=int64)

    def int(self) -> Self:
        """Return the sequences in int32."""
        return self.to(dtype=int32)

    def short(self) -> Self:
        """Return the sequences in int16."""
        return self.to(dtype=int16)

    def char(self) -> Self:
        """Return the sequences in int8."""
        return self.to(dtype=int8)

    def byte(self) -> Self:
        """Return the sequences in uint8."""
        return self.to(dtype=uint8)

    def _converted(self, data: Tensor) -> Self:
        return type(self)(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def pin_memory(self) -> Self:
        """Return the sequences in page-locked memory."""
        return self._converted(self.data.pin_memory())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("is_"):  # whether the data is on a device, as `Tensor.is_<type>`
            return getattr(self.data, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def is_pinned(self) -> bool:
        """Return whether the data is in page-locked memory."""
        return bool(self.data.is_pinned())


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse of a permutation of 0 … n - 1."""
    if permutation is None:
        return None
    indices = arange(permutation.shape[0], device=permutation.device)
    return indices.scatter(0, permutation, indices)


def _sorted_by_length(lengths: Tensor, enforce_sorted: bool, device: Any) -> tuple[list[int], Any]:
    if lengths.ndim != 1:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.ndim}D {lengths.device} "
            f"{lengths.dtype} tensor"
        )
    values = [int(length) for length in lengths.tolist()]
    if not values:
        raise RuntimeError("Cannot pack empty tensors: expected `len(lengths)` to be larger than 0")
    if min(values) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is "
            "<= 0"
        )
    if enforce_sorted:
        if any(a < b for a, b in itertools.pairwise(values)):
            raise RuntimeError(
                "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can "
                "pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this "
                "requirement."
            )
        return values, None
    order = argsort(lengths.cpu(), descending=True, stable=True)
    return [values[int(i)] for i in order.tolist()], order.to(device)


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack a padded batch of sequences.

    Parameters
    ----------
    input : Tensor
        (longest, N, *), or (N, longest, *) with `batch_first`.
    lengths : Tensor or sequence of int
        The length of each sequence.
    batch_first : bool
        See `input`.
    enforce_sorted : bool
        Whether the lengths have to come in decreasing order; else they are sorted.

    Raises
    ------
    RuntimeError
        If lengths are not positive, not sorted, or not one per sequence, or `input` has no elements.

    Examples
    --------
    >>> import tensorplug as tp
    >>> batch = tp.tensor([[1.0, 2.0, 3.0], [4.0, 0.0, 0.0]])
    >>> packed = pack_padded_sequence(batch, [3, 1], batch_first=True)
    >>> packed.data, packed.batch_sizes
    (tensor([1., 4., 2., 3.]), tensor([2, 1, 1]))
    """
    check_tensor(input, "pack_padded_sequence")
    check_flag(batch_first, "pack_padded_sequence", "batch_first")
    if not input.numel():
        raise RuntimeError(
            f"Cannot pack empty tensors. The input has the shape {list(input.shape)}"
        )
    sizes = (
        lengths
        if isinstance(lengths, Tensor)
        else make_tensor(list(lengths), dtype=int64, device="cpu")
    )
    values, order = _sorted_by_length(sizes, enforce_sorted, input.device)
    x = input.transpose(0, 1) if batch_first else input
    if x.shape[1] != len(values):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(values)} (batch_size="
            f"{x.shape[1]})"
        )
    if values[0] > x.shape[0]:
        raise RuntimeError(
            f"pack_padded_sequence(): a length of {values[0]} is beyond the {x.shape[0]} steps of the "
            "input"
        )
    if order is not None:
        x = x.index_select(1, order)
    batch = [sum(value > t for value in values) for t in range(values[0])]
    data = cat([x[t, :size] for t, size in enumerate(batch)])
    return PackedSequence(data, make_tensor(batch, dtype=int64, device="cpu"), order, None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return a packed batch padded, and the lengths.

    Parameters
    ----------
    sequence : PackedSequence
        What :func:`pack_padded_sequence` made.
    batch_first : bool
        Return (N, longest, *) instead of (longest, N, *).
    padding_value : float
        What fills up.
    total_length : int, optional
        Pad to this length.

    Raises
    ------
    ValueError
        If `total_length` is below the longest sequence.
    """
    check_flag(batch_first, "pad_packed_sequence", "batch_first")
    batch = [int(size) for size in sequence.batch_sizes.tolist()]
    steps = len(batch)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but "
                f"got total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    data = sequence.data
    n = batch[0]
    # Element t of sequence i stands at the start of step t, plus i.
    indices = [[0] * n for _ in range(steps)]
    given = [[False] * n for _ in range(steps)]
    start = 0
    for t, size in enumerate(batch):
        indices[t][:size] = range(start, start + size)
        given[t][:size] = [True] * size
        start += size
    index = make_tensor(indices, dtype=int64, device=data.device)
    shape = (steps, n, *[1] * (data.ndim - 1))
    missing = make_tensor(given, device=data.device).logical_not().reshape(shape)
    rows = data.index_select(0, index.reshape(-1)).reshape(steps, n, *data.shape[1:])
    padded = rows.masked_fill(missing, padding_value)
    counts = [sum(size > i for size in batch) for i in range(n)]
    lengths = make_tensor(counts, dtype=int64, device="cpu")
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths.index_select(0, sequence.unsorted_indices.cpu())
    return padded.transpose(0, 1) if batch_first else padded, lengths


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of shape (length, *), of which the longest comes first if `enforce_sorted`."""
    lengths = make_tensor([sequence.size(0) for sequence in sequences], dtype=int64, device="cpu")
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences that :func:`pack_sequence` put together."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def pad_sequence(
    sequences: Tensor | Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: Literal["left", "right"] = "right",
) -> Tensor:
    """Put sequences of shape (length, *) into one tensor, shorter ones filled up.

    Parameters
    ----------
    sequences : sequence of Tensor
        All of the same dimensions after the first.
    batch_first : bool
        Return (batch, longest, *) instead of (longest, batch, *).
    padding_value : float
        What fills up.
    padding_side : {"left", "right"}
        Where.

    Raises
    ------
    RuntimeError
        If there is no sequence, it has no length, or the side is unknown.
    TypeError
        If one is no tensor.

    Examples
    --------
    >>> import tensorplug as tp
    >>> pad_sequence([tp.ones(2), tp.ones(1)], batch_first=True)
    tensor([[1., 1.],
            [1., 0.]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    check_flag(batch_first, "pad_sequence", "batch_first")
    members = list(sequences)
    if not members:
        raise RuntimeError("pad_sequence: received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"pad_sequence: Expected padding_side to be one of left or right, but got {padding_side!r}"
        )
    for i, member in enumerate(members):
        if not isinstance(member, Tensor):
            raise TypeError(
                f"pad_sequence: expected Tensor as element {i}, but got {type(member).__name__}"
            )
        if not member.ndim:
            raise RuntimeError(f"pad_sequence: element {i} has no dimension to pad")
    longest = max(member.size(0) for member in members)
    first, count = members[0], len(members)
    lead = (count, longest) if batch_first else (longest, count)
    padded = first.new_full((*lead, *first.shape[1:]), padding_value)
    rows = padded if batch_first else padded.transpose(0, 1)
    for i, member in enumerate(members):
        length = member.size(0)
        start = 0 if padding_side == "right" else longest - length
        rows[i, start : start + length] = member
    return padded


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """Return the sequences that :func:`pad_sequence` put together.

    Parameters
    ----------
    padded_sequences : Tensor
        Of shape (longest, batch, *), or (batch, longest, *) with `batch_first`.
    lengths : Tensor
        The length of each sequence.
    batch_first : bool
        See :func:`pad_sequence`.
    """
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    sizes = lengths.tolist()
    if len(sizes) != len(batch):
        raise ValueError(
            f"unpad_sequence(): {len(sizes)} lengths are given for a batch of {len(batch)} sequences"
        )
    return [rows[: int(length)] for rows, length in zip(batch, sizes, strict=True)]
