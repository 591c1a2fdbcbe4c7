"""Random bits."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core.device.dtypes import int64, uint64
from tensorplug.core.tensor.shapes import Shape

from ..tables import KernelTable
from .namespace import ArrayNamespace

# Philox 4x32 (Salmon et al. 2011, section 3.3): the multipliers and the steps of the key.
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_WORD = 0xFFFFFFFF
# Blocks computed at a time, so that the working arrays stay in the processor's cache.
_CHUNK = 1 << 13


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp
    native = namespace.native
    wide = native(uint64)

    def fill(words: Any, seed: int, first: int, scratch: Any) -> None:
        """Write the four words of each block from counter `first` on into a row of `words`."""
        count = len(words)
        a, b, c, d, p, q = scratch[:, :count]
        # The counter has 128 bits: the lower half differs from block to block.
        upper, lower = divmod(first, 1 << 64)
        numbers = xp.arange(count, dtype=wide)
        numbers += lower
        xp.bitwise_and(numbers, _WORD, out=a)
        xp.right_shift(numbers, 32, out=b)
        c[...] = upper & _WORD
        d[...] = upper >> 32
        if lower + count > 1 << 64:  # the lower half wraps around
            c[(1 << 64) - lower :] = (upper + 1) & _WORD
            d[(1 << 64) - lower :] = (upper + 1) >> 32 & _WORD
        key0, key1 = seed & _WORD, seed >> 32
        for _ in range(_ROUNDS):
            xp.multiply(a, _MULTIPLIERS[0], out=p)
            xp.multiply(c, _MULTIPLIERS[1], out=q)
            xp.bitwise_xor(b, key0, out=b)
            xp.right_shift(q, 32, out=a)
            xp.bitwise_xor(a, b, out=a)
            xp.bitwise_and(q, _WORD, out=b)
            xp.bitwise_xor(d, key1, out=d)
            xp.right_shift(p, 32, out=c)
            xp.bitwise_xor(c, d, out=c)
            xp.bitwise_and(p, _WORD, out=d)
            key0, key1 = (key0 + _STEPS[0]) & _WORD, (key1 + _STEPS[1]) & _WORD
        for column, word in enumerate((a, b, c, d)):
            words[:, column] = word

    @table.kernel()
    def philox_bits(shape: Shape, seed: int, offset: int) -> Any:
        count = math.prod(shape)
        blocks = -(-count // 4)
        words = xp.empty((blocks, 4), native(int64))
        scratch = xp.empty((6, min(blocks, _CHUNK)), wide)
        for start in range(0, blocks, _CHUNK):
            fill(words[start : start + _CHUNK], seed, offset + start, scratch)
        return words.reshape(-1)[:count].reshape(shape)
