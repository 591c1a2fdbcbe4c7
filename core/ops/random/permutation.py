"""Numbers in random order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...device.device import Device
from ...device.dtypes import BOOL, COMPLEX, INTEGER, DType, finfo, iinfo, int64
from ...device.generator import Generator, chosen_generator
from ...dispatch.keys import dispatch_key
from ...dispatch.op import Op
from ...dispatch.op_registry import composite
from ...dispatch.out_dtypes import resizes_silently
from ...tensor.shapes import Shape
from ..creation.creation import made, options
from .numbers import by_kernel, counted
from .random import whole
from .words import bits

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["randperm"]


@composite(method=False)
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return the numbers from 0 to `n` - 1 in random order.

    Parameters
    ----------
    n : int
        How many.
    generator, dtype, layout, device, requires_grad, pin_memory
        As for :func:`randint`.

    Raises
    ------
    RuntimeError
        If `n` is negative.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.randperm(5).sort().values
    tensor([0, 1, 2, 3, 4])
    """
    count = whole(n, "randperm", "n")
    if count < 0:
        raise RuntimeError(f"randperm(): n must be non-negative, got {n}")
    chosen, where = options(dtype, device, int64)
    if chosen.category in (BOOL, COMPLEX):
        raise NotImplementedError(f"randperm(): not implemented for {chosen.name}")
    # The last number, of those that the dtype tells apart.
    most = iinfo(chosen).max if chosen.category == INTEGER else int(2 / finfo(chosen).eps)
    if count - 1 > most:
        raise RuntimeError(
            f"randperm(): n is too large for result tensor type: {n} numbers do not fit into {chosen.name}"
        )
    source = chosen_generator(generator, where, "randperm")
    key = dispatch_key(where, int64)
    result: Any = by_kernel(_ORDER, (count,), key, source, 2, (), None)
    if result is None:
        result = _order(partial(bits, device=where, generator=source), (count,))
    return made(result if chosen is int64 else result.to(chosen), requires_grad)


@composite(random=True, method=False)
def permutation_new(shape: Shape, seed: int, offset: int, dtype: DType, device: Device) -> Tensor:
    """Return the numbers below the only size in random order, as int64, by counter.

    Parameters
    ----------
    shape, seed, offset, dtype, device
        As for :func:`uniform_new`. The order is that of numbers of 63 bits, made of two words each, the upper
        ones of which come first.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.permutation_new((4,), 0, 0, tp.int64, tp.device("cpu"))
    tensor([3, 2, 1, 0])
    """
    return _order(counted(seed, offset, device), shape)


_ORDER: Op = permutation_new.op  # type: ignore[attr-defined]


def _order(words: Callable[[Shape], Any], shape: Shape) -> Tensor:
    # Two equal ones of 63 bits among a million have a chance of 1 in 20 million.
    upper = words(shape) & 0x7FFFFFFF
    order: Tensor = (upper * (1 << 32) + words(shape)).argsort(stable=True)
    return order


resizes_silently(randperm)
