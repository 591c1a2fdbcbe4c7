"""Weights of convolutions in the memory format of images."""

from __future__ import annotations

from typing import Any, TypeVar

from ..module import Module
from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

M = TypeVar("M", bound=Module)


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Put the weights of all Conv2d and ConvTranspose2d in a module into a memory format, in place.

    Unlike ``module.to(memory_format=...)`` this leaves other tensors of 4 dimensions as they are.

    Parameters
    ----------
    module : Module
        Itself, and all modules below it.
    memory_format : memory_format
        ``tp.channels_last`` or ``tp.contiguous_format``.

    Returns
    -------
    Module
        The module.

    Examples
    --------
    >>> import tensorplug as tp
    >>> model = tp.nn.Sequential(tp.nn.Conv2d(3, 4, 2))
    >>> model = tp.nn.utils.convert_conv2d_weight_memory_format(model, tp.channels_last)
    >>> model[0].weight.stride()
    (12, 1, 6, 3)
    """
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Put the weights of all Conv3d and ConvTranspose3d in a module into a memory format, in place.

    See :func:`convert_conv2d_weight_memory_format`; the format is ``tp.channels_last_3d``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> layer = tp.nn.Conv3d(3, 4, 2)
    >>> layer = tp.nn.utils.convert_conv3d_weight_memory_format(layer, tp.channels_last_3d)
    >>> layer.weight.stride()
    (24, 1, 12, 6, 3)
    """
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)


def _convert(module: M, layers: tuple[type[Module], ...], memory_format: Any) -> M:
    for part in module.modules():
        if isinstance(part, layers):
            weight: Any = part.weight
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module
