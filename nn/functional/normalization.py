"""Normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.dispatch.op_registry import defined_by

from ..ops.normalization import normalize as _vectors
from ..ops.normalization.batch_norm import batch_norm
from ..ops.normalization.layer_norm import (
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from ..ops.normalization.normalize import local_response_norm

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "rms_norm",
]


@defined_by(_vectors.normalize)
def normalize(
    input: Tensor,
    p: float = 2.0,
    dim: int | Sequence[int] = 1,
    eps: float = 1e-12,
    out: Tensor | None = None,
) -> Tensor:
    """Return `input` divided by its p-norm over `dim`, which counts as at least `eps`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> normalize(tp.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    if out is None:
        return _vectors.normalize(input, p, dim, eps)
    normalized: Any = _vectors.normalize  # every op takes out=
    result: Tensor = normalized(input, p, dim, eps, out=out)
    return result
