"""Modules without initial values."""

from __future__ import annotations

import inspect
from typing import Any

from ..module import Module


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Return ``module_cls(*args, **kwargs)`` with parameters and buffers of any content.

    Parameters
    ----------
    module_cls : type
        A class of modules that takes ``device=``, and makes all of its tensors there.

    Raises
    ------
    RuntimeError
        If it is no such class.

    Examples
    --------
    >>> import tensorplug as tp
    >>> skip_init(tp.nn.Linear, 2, 3).weight.shape
    Size([3, 2])
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    final = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=final)
