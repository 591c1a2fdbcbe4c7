"""The name under which torch 1 had calls of modules with other parameters."""

from __future__ import annotations

from typing import Any

from tensorplug.core.errors import warn

from .. import functional_call as calls
from ..module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call :func:`tensorplug.func.functional_call`, under a name that torch has deprecated; warn."""
    warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0: call "
        "`tensorplug.func.functional_call`, which takes the same arguments",
        FutureWarning,
    )
    return calls.functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
