"""The exchange of tensors with other libraries, under torch's names."""

# ruff: noqa: N815  # the names are the standard's

from __future__ import annotations

import enum
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.tensor.creation import from_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """Where the memory of a capsule lies, as the DLPack standard numbers it."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14


def to_dlpack(tensor: Tensor) -> Any:
    """Return a capsule that shares the tensor's memory; other libraries take the tensor itself as well.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.zeros(2)
    >>> y = tp.utils.dlpack.from_dlpack(x)
    >>> y[0] = 1.0
    >>> x
    tensor([1., 0.])
    """
    return tensor.__dlpack__()
