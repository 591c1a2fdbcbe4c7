"""Random bits: Philox, as on every device."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.plugin import ArrayApiBackend, Shape

from .. import _mlx
from .._mlx import mx
from .creation import whole

# Philox 4x32 (Salmon et al. 2011, section 3.3): the multipliers and the steps of the key.
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_WORD = 0xFFFFFFFF


def _product(word: Any, factor: int) -> tuple[Any, Any]:
    """Return the upper and the lower half of a product of 32-bit words."""
    product = word.astype(mx.uint64) * mx.array(factor, dtype=mx.uint32).astype(mx.uint64)
    return mx.right_shift(product, mx.array(32, dtype=mx.uint64)).astype(mx.uint32), product.astype(
        mx.uint32
    )


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""

    @plugin.kernel(dtypes=plugin.runtime.natives)
    def philox_bits(shape: Shape, seed: int, offset: int) -> Any:
        _mlx.thread.ready  # noqa: B018
        count = math.prod(shape)
        blocks = -(-count // 4)
        upper, lower = divmod(offset, 1 << 64)
        numbers = mx.arange(blocks, dtype=mx.int64).astype(mx.uint64) + whole(lower, mx.uint64)
        # The upper half of the counter's 128 bits is one more where the lower wraps around.
        carried = numbers < whole(lower, mx.uint64)
        top = mx.where(carried, whole(upper + 1, mx.uint64), whole(upper, mx.uint64))
        shift = mx.array(32, dtype=mx.uint64)
        a, b = numbers.astype(mx.uint32), mx.right_shift(numbers, shift).astype(mx.uint32)
        c, d = top.astype(mx.uint32), mx.right_shift(top, shift).astype(mx.uint32)
        key0, key1 = seed & _WORD, seed >> 32
        for _ in range(_ROUNDS):
            high0, low0 = _product(a, _MULTIPLIERS[0])
            high1, low1 = _product(c, _MULTIPLIERS[1])
            first, second = mx.array(key0, dtype=mx.uint32), mx.array(key1, dtype=mx.uint32)
            a, b, c, d = high1 ^ b ^ first, low1, high0 ^ d ^ second, low0
            key0, key1 = (key0 + _STEPS[0]) & _WORD, (key1 + _STEPS[1]) & _WORD
        words = mx.stack([a, b, c, d], axis=1).astype(mx.int64)
        return mx.reshape(mx.reshape(words, (-1,))[:count], shape)
