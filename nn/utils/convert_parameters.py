"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from tensorplug.core import Device, Tensor
from tensorplug.core.ops import cat


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return all elements of the parameters, one after the other.

    Raises
    ------
    TypeError
        If they are on different devices.

    Examples
    --------
    >>> import tensorplug as tp
    >>> parameters_to_vector([tp.zeros(1), tp.ones(1, 2)])
    tensor([0., 1., 1.])
    """
    parts = []
    device: Device | None = None
    for parameter in parameters:
        device = _same_device(parameter, device)
        parts.append(parameter.reshape(-1))
    return cat(parts)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make the elements of a vector the data of the parameters, in order, without copying.

    Raises
    ------
    TypeError
        If `vec` is no tensor, or the parameters are on different devices.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.zeros(1, 2)
    >>> vector_to_parameters(tp.tensor([3.0, 4.0]), [x])
    >>> x
    tensor([[3., 4.]])
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected Tensor, but got: {type(vec).__name__}")
    start = 0
    device: Device | None = None
    for parameter in parameters:
        device = _same_device(parameter, device)
        end = start + parameter.numel()
        parameter.data = vec[start:end].view_as(parameter).data
        start = end


def _same_device(parameter: Tensor, device: Device | None) -> Device:
    if device is not None and parameter.device != device:
        raise TypeError(
            f"Found two parameters on different devices, {device} and {parameter.device}; this is "
            "currently not supported."
        )
    return parameter.device
