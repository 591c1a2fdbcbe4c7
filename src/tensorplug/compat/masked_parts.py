"""What torch's masked functions are made of, under its names, for programs that build on it."""

from __future__ import annotations

from typing import Any

from tensorplug import masked
from tensorplug.core import ops
from tensorplug.core.tensor.shapes import normalize_dims

#: Functions whose results have the shape of the input.
_SAME_SHAPE = ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod")


def canonical_dim(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return the dimensions to reduce over, in order; all of them for None and ``()``."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    return tuple(sorted(normalize_dims(dim, ndim, "masked")))


def input_mask(input: Any, *args: Any, mask: Any = None, **kwargs: Any) -> Any:
    """Return a mask, of the input's shape.

    Raises
    ------
    ValueError
        If there is none.
    """
    if mask is None:
        raise ValueError("_input_mask requires explicit mask, got None")
    return masked._mask_of(input, mask)


def combine_input_and_mask(op: Any, input: Any, mask: Any, *args: Any) -> Any:
    """Return the input with the neutral element of a masked function where the mask is False."""
    return masked._filled(input, mask, op.__name__, *args)


def output_mask(op: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Return where a masked function has results of at least one element.

    Raises
    ------
    ValueError
        If `op` is no masked function.
    """
    name = getattr(op, "__name__", None)
    if name not in masked.__all__ or name == "logaddexp":
        raise ValueError(f"_output_mask expected masked operation (got {op!r})")
    found = input_mask(input, mask=kwargs.get("mask"))
    if name in _SAME_SHAPE:
        return found
    position = 1 if name == "norm" else 0
    dim = args[position] if len(args) > position else kwargs.get("dim")
    keepdim = bool(kwargs.get("keepdim", False))
    return ops.any(found, canonical_dim(dim, input.ndim), keepdim)
