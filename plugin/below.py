"""The kernel below: what would run without a plugin's own kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core.device.dtypes import DType
from tensorplug.core.dispatch import resolution


def kernel_below(
    op: str, device: str, dtype: DType, plugin: str, *, out: bool = False
) -> Callable[..., Any]:
    """Return what would serve an op if one plugin's kernels, and those that come before them, were not there.

    Ask for it at each call: the answer is cached until a plugin comes or goes.

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
    out : bool
        Whether the callable shall take a keyword `out`, an array to write to or None, as a kernel with
        ``out=True`` does; where the one below does not, the result is copied.

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
    return resolution.kernel_below(op, device, dtype, plugin, out)
