"""Linear maps."""

from __future__ import annotations

from tensorplug.core import DType, Tensor
from tensorplug.core.dispatch.op_registry import defined_by
from tensorplug.core.ops import bmm, cat, stack

from ..ops.linear import bilinear, linear

__all__ = ["bilinear", "grouped_mm", "linear"]


@defined_by(bmm)
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: DType | None = None,
) -> Tensor:
    """Return the products of groups of a matrix with a matrix each, as mixtures of experts use them.

    Parameters
    ----------
    mat_a, mat_b : Tensor
        Matrices, or stacks of them, one for each group: (rows, k) and (groups, k, columns), in groups of
        rows; (groups, rows, k) and (k, columns), in groups of columns; (rows, k) and (k, columns), in groups
        along k; or two stacks.
    offs : Tensor, optional
        (groups,), int32: where each group ends. Not for two stacks.
    bias : None
        As in torch, which does not take one yet.
    out_dtype : dtype, optional
        Of the result; by default the inputs'.

    Returns
    -------
    Tensor
        (rows, columns), or (groups, rows, columns) for two stacks and for groups along k. What no group
        covers is 0.

    Raises
    ------
    RuntimeError
        If shapes do not fit, or `offs` is missing or superfluous.

    Examples
    --------
    >>> import tensorplug as tp
    >>> rows, experts = tp.ones(3, 2), tp.tensor([[[1.0], [1.0]], [[2.0], [2.0]]])
    >>> grouped_mm(rows, experts, offs=tp.tensor([1, 3], dtype=tp.int32)).tolist()
    [[2.0], [4.0], [4.0]]
    """
    name = "grouped_mm()"
    dims = mat_a.ndim, mat_b.ndim
    if not {*dims} <= {2, 3} or mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError(
            f"{name}: {list(mat_a.shape)} and {list(mat_b.shape)} cannot be multiplied: expected "
            "matrices, or stacks of them, that share a size"
        )
    if bias is not None:
        raise RuntimeError(f"{name}: bias is not supported, as in torch")
    if (offs is None) != (dims == (3, 3)):
        raise RuntimeError(f"{name}: offs is needed where a matrix is in groups, and only there")
    if offs is None:
        result = bmm(mat_a, mat_b)
    else:
        ends = [int(end) for end in offs.tolist()]
        parts = list(enumerate(zip([0, *ends[:-1]], ends, strict=True)))
        for stacked in (mat_a, mat_b):
            if stacked.ndim == 3 and len(stacked) != len(ends):
                raise RuntimeError(f"{name}: {len(ends)} offs for {len(stacked)} matrices")
        if dims == (2, 3):
            rows = [mat_a[start:end] @ mat_b[group] for group, (start, end) in parts]
            rest = mat_a.new_zeros(mat_a.shape[0] - max(ends, default=0), mat_b.shape[-1])
            result = cat([*rows, rest])
        elif dims == (3, 2):
            columns = [mat_a[group] @ mat_b[:, start:end] for group, (start, end) in parts]
            rest = mat_a.new_zeros(mat_a.shape[1], mat_b.shape[1] - max(ends, default=0))
            result = cat([*columns, rest], dim=1)
        else:
            result = stack([mat_a[:, start:end] @ mat_b[start:end] for _, (start, end) in parts])
    return result if out_dtype is None else result.to(out_dtype)
