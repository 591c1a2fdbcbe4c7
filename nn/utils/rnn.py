"""Sequences of different lengths in one tensor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from tensorplug.core import Tensor


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
        If `sequences` is not iterable.
    ValueError
        If there is no sequence, or the side is unknown.

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
    members = list(sequences)
    if not members:
        raise ValueError("pad_sequence: received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise ValueError(
            f"pad_sequence: padding_side should be 'left' or 'right', got {padding_side!r}"
        )
    longest = max(member.size(0) for member in members)
    first = members[0]
    padded = first.new_full((len(members), longest, *first.shape[1:]), padding_value)
    for i, member in enumerate(members):
        length = member.size(0)
        start = 0 if padding_side == "right" else longest - length
        padded[i, start : start + length] = member
    return padded if batch_first else padded.transpose(0, 1)


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
    return [batch[i, : int(length)] for i, length in enumerate(lengths.tolist())]
