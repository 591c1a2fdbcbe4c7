"""The statistics that rows are standardised by."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tensorplug.core.device.dtypes import FLOATING
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops.rules import check_tensor
from tensorplug.core.ops.statistics.variance import var_mean
from tensorplug.core.tensor.shapes import Shape

from ._shared import wide

if TYPE_CHECKING:
    from tensorplug.core import Tensor


def _canonical_row_statistics(input: Any, shape: Shape, eps: float) -> tuple[Any, ...]:
    check_tensor(input, "row_statistics")
    dtype = input._key.dtype
    if dtype.category != FLOATING:
        raise RuntimeError(f"row_statistics(): expected floating-point input, got {dtype.name}")
    count, rows = math.prod(input._shape), math.prod(shape)
    if not count or rows <= 0 or count % rows:
        raise RuntimeError(
            f"row_statistics(): expected input of elements that {list(shape)} divides into rows, got size "
            f"{list(input._shape)}"
        )
    return input, tuple(shape), eps


@composite(rule=_canonical_row_statistics, method=False, outputs="mean, rstd")
def row_statistics(input: Tensor, shape: Shape, eps: float) -> tuple[Tensor, Tensor]:
    """Return means and reciprocal deviations of rows of elements, as many as `shape` has places.

    Parameters
    ----------
    input : Tensor
        Floating-point, with elements.
    shape : tuple of int
        Of the results: into so many rows of one length the elements are divided, as they are listed.
    eps : float
        Added to the variance.

    Returns
    -------
    mean, rstd : Tensor
        Of that shape: the mean and 1 / sqrt(biased variance + eps).

    Raises
    ------
    RuntimeError
        If the elements cannot be divided so.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.row_statistics(tp.tensor([[1.0, 3.0], [5.0, 5.0]]), (2,), 1.0)
    (tensor([2., 5.]), tensor([0.7071, 1.0000]))
    """
    var, mean = var_mean(wide(input).reshape(*shape, -1), -1, correction=0)
    return mean.to(input.dtype), (var + eps).rsqrt().to(input.dtype)
