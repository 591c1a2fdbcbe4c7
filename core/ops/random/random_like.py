"""Ops that make random tensors like another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ...device.device import Device
from ...device.dtypes import DType
from ...device.generator import Generator, chosen_generator
from ...dispatch.keys import dispatch_key
from ...dispatch.op_registry import composite
from ...tensor.shapes import Shape
from ..creation.creation_like import called, made_like
from .numbers import normal_numbers, uniform_numbers
from .random import floating, fresh, integers_between

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["rand_like", "randint_like", "randn_like"]


class RandomLikeOp(Protocol):
    """The signature of :func:`rand_like` and its kind."""

    def __call__(
        self,
        input: Tensor,
        *,
        generator: Generator | None = None,
        dtype: DType | type | None = None,
        layout: Any = None,
        device: Device | str | None = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        """Return a random tensor like `input`."""
        ...


def _like(numbers: Callable[[], Any]) -> RandomLikeOp:
    """Declare the op that draws, of the shape of a tensor, what the function returned by `numbers` does."""
    name, draw_from = numbers.__name__, numbers()

    def drawn(
        input: Tensor,
        *,
        generator: Generator | None = None,
        dtype: DType | type | None = None,
        layout: Any = None,
        device: Device | str | None = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        def draw(shape: Shape, dtype: DType, device: Device) -> Any:
            source = chosen_generator(generator, device, name)
            return fresh(draw_from, shape, dispatch_key(device, floating(dtype, name)), source)

        made: Tensor = made_like(input, (dtype, device, memory_format, requires_grad), name, draw)
        return made

    return composite(method=False)(called(drawn, numbers))


@_like
def rand_like() -> Any:
    """Return :func:`rand` of the shape, and by default the dtype and device, of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.rand_like(tp.zeros(2, dtype=tp.float64)).dtype
    tensorplug.float64
    """
    return uniform_numbers


@_like
def randn_like() -> Any:
    """Return :func:`randn` of the shape, and by default the dtype and device, of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.randn_like(tp.zeros(2, 3)).shape
    Size([2, 3])
    """
    return normal_numbers


@composite(method=False)
def randint_like(
    input: Tensor,
    *bounds: Any,
    low: Any = None,
    high: Any = None,
    generator: Generator | None = None,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return :func:`randint` of the shape, and by default the dtype and device, of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.randint_like(tp.zeros(2), 5).dtype
    tensorplug.float32
    """

    def draw(shape: Shape, dtype: DType, device: Device) -> Any:
        return integers_between(
            list(bounds), low, high, shape, dtype, device, generator, "randint_like"
        )

    options = (dtype, device, memory_format, requires_grad)
    made: Tensor = made_like(input, options, "randint_like", draw)
    return made
