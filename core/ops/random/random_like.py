"""Ops that make random tensors like another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...device.device import Device
from ...device.dtypes import DType
from ...device.generator import Generator, chosen_generator
from ...dispatch.op_registry import composite
from ...tensor.shapes import Shape
from ..creation.creation_like import made_like
from .random import _floating, _fresh, normal_numbers, randint, uniform_numbers

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["rand_like", "randint_like", "randn_like"]


def _like(
    make: Any, input: Any, options: tuple[Any, Any, Any, bool], generator: Any, name: str
) -> Any:
    def draw(shape: Shape, dtype: DType, device: Device) -> Any:
        source = chosen_generator(generator, device, name)
        return _fresh(make, shape, _floating(dtype, name), device, source)

    return made_like(input, options, name, draw)


@composite(method=False)
def rand_like(
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
    """Return :func:`rand` of the shape, and by default the dtype and device, of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.rand_like(tp.zeros(2, dtype=tp.float64)).dtype
    tensorplug.float64
    """
    options = (dtype, device, memory_format, requires_grad)
    return _like(uniform_numbers, input, options, generator, "rand_like")


@composite(method=False)
def randn_like(
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
    """Return :func:`randn` of the shape, and by default the dtype and device, of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.randn_like(tp.zeros(2, 3)).shape
    Size([2, 3])
    """
    options = (dtype, device, memory_format, requires_grad)
    return _like(normal_numbers, input, options, generator, "randn_like")


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

    def draw(size: Shape, dtype: DType, device: Device) -> Any:
        return randint(
            *bounds, low=low, high=high, size=size, generator=generator, dtype=dtype, device=device
        )

    options = (dtype, device, memory_format, requires_grad)
    made: Tensor = made_like(input, options, "randint_like", draw)
    return made
