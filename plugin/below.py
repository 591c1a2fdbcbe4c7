"""What a kernel does with calls that it does not serve: hand them to the kernel below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core import resolution
from tensorplug.core.devices import Device
from tensorplug.core.dtypes import DType
from tensorplug.core.kinds import kind_of
from tensorplug.core.operators import get_op


def kernel_below(op: str, device: str, dtype: DType, plugin: str) -> Callable[..., Any]:
    """Return what would serve an op if one plugin's kernels were not there.

    Parameters
    ----------
    op : str
        The op's name.
    device : str
        The device type.
    dtype : DType
        The dtype of the arguments.
    plugin : str
        The plugin whose kernels are passed over: the caller's.

    Returns
    -------
    callable
        Over raw arrays, called with the op's arguments by position.

    Raises
    ------
    KernelNotFoundError
        If there is nothing.

    Examples
    --------
    >>> from tensorplug.plugin import dtype_named, kernel_below
    >>> int(kernel_below("neg", "cpu", dtype_named("int32"), "acme")(3))
    -3
    """
    return resolution.callable_without(get_op(op), kind_of(Device(device), dtype), plugin)
