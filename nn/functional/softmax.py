"""Softmax and its kin as functions."""

from __future__ import annotations

import warnings

from tensorplug.core import DType, Tensor
from tensorplug.core.dispatch.op_registry import defined_by
from tensorplug.core.dispatch.overrides import taken_over
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.ops import (
    log_softmax as _log_softmax,
    softmax as _softmax,
    softmin as _softmin,
)

from ..ops.softmax import gumbel_softmax
from ._common import tensor

__all__ = ["gumbel_softmax", "log_softmax", "softmax", "softmin"]


def _implicit_dim(name: str, ndim: int, level: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X "
        "as an argument.",
        UserWarning,
        stacklevel=level,
    )
    return 0 if ndim in (0, 1, 3) else 1


@defined_by(_softmax)
def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """Return the exponentials, divided by their sum along `dim`.

    Parameters
    ----------
    input : Tensor
        Floating point, any shape.
    dim : int
        The dimension that sums to one; leaving it out is deprecated.
    dtype : DType, optional
        Convert to this dtype first.

    Examples
    --------
    >>> import tensorplug as tp
    >>> softmax(tp.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    if dispatch_state.layers_active or not isinstance(input, Tensor):
        options = {"_stacklevel": _stacklevel, "dtype": dtype}
        made = taken_over(softmax, (input, dim), options)
        if made is not None:
            return made[0]
        tensor(input, "softmax")
    dim = _implicit_dim("softmax", input.ndim, _stacklevel) if dim is None else dim
    return _softmax(input, dim, dtype)


@defined_by(_log_softmax)
def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """Return the logarithm of :func:`softmax`, computed without leaving log space."""
    if dispatch_state.layers_active or not isinstance(input, Tensor):
        options = {"_stacklevel": _stacklevel, "dtype": dtype}
        made = taken_over(log_softmax, (input, dim), options)
        if made is not None:
            return made[0]
        tensor(input, "log_softmax")
    dim = _implicit_dim("log_softmax", input.ndim, _stacklevel) if dim is None else dim
    return _log_softmax(input, dim, dtype)


@defined_by(_softmin)
def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """Return :func:`softmax` of the negated input."""
    if dispatch_state.layers_active or not isinstance(input, Tensor):
        options = {"_stacklevel": _stacklevel, "dtype": dtype}
        made = taken_over(softmin, (input, dim), options)
        if made is not None:
            return made[0]
        tensor(input, "softmin")
    dim = _implicit_dim("softmin", input.ndim, _stacklevel) if dim is None else dim
    return _softmin(input, dim, dtype)
