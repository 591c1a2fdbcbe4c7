"""Rows of a table by their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative, no_grad
from tensorplug.autograd.transforms.levels import ActiveLevels, state
from tensorplug.core.device.dtypes import int32, int64
from tensorplug.core.dispatch.op_registry import Delegated, composite
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.ops import index_select, ones, where, zeros
from tensorplug.core.ops.rules import check_tensor, in_float32

if TYPE_CHECKING:
    from tensorplug.core import Tensor


def _canonical_embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    check_tensor(input, "embedding")
    if input.dtype not in (int64, int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
            f"but got {input.type()} instead (while checking arguments for embedding)"
        )
    if weight.ndim != 2:
        raise RuntimeError(f"embedding(): 'weight' must be 2-D, got shape {list(weight.shape)}")
    count = weight._shape[0]
    if padding_idx is not None:
        if not -count <= padding_idx < count:
            raise AssertionError(
                f"embedding(): padding_idx must be within the {count} rows, got {padding_idx}"
            )
        padding_idx %= count
    indices = input if input.dtype is int64 else input.to(int64)
    if max_norm is not None:
        limit_norms(weight, input, max_norm, norm_type)
    if sparse and has_gradient(weight):
        from tensorplug.sparse.gradients import rows  # on first use: few do

        return Delegated(rows(weight, indices, padding_idx, bool(scale_grad_by_freq)))
    if sparse or max_norm is not None:
        return Delegated(
            embedding(indices, weight, padding_idx, scale_grad_by_freq=scale_grad_by_freq)
        )
    return weight, indices, padding_idx, bool(scale_grad_by_freq)


@composite(
    "weight, input, padding_idx, scale_grad_by_freq", rule=_canonical_embedding, method=False
)
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of `weight` that `input` names.

    Parameters
    ----------
    input : Tensor
        Integers of any shape.
    weight : Tensor
        (rows, features).
    padding_idx : int, optional
        The row that gets no gradient.
    max_norm : float, optional
        Rows of a larger norm are scaled down to it, in place.
    norm_type : float
        Which norm.
    scale_grad_by_freq : bool
        Divide a row's gradient by how often it is named.
    sparse : bool
        Whether the gradient of `weight`, a leaf, is a sparse tensor of the rows that were taken.

    Raises
    ------
    IndexError
        If a number is out of range.

    Examples
    --------
    >>> import tensorplug as tp
    >>> embedding(tp.tensor([1, 0]), tp.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    flat = index_select(weight, 0, input.reshape(-1))
    return flat.reshape(*input._shape, weight._shape[1])


def has_gradient(weight: Any) -> bool:
    """Return whether a table may have a gradient: it is the only thing that can be sparse."""
    return bool(weight._state or dispatch_state.layers_active)


def limit_norms(weight: Any, indices: Any, max_norm: float, norm_type: float) -> None:
    """Scale the rows that `indices` names down to `max_norm`, in place, and leave tangents as they are."""
    indices = indices if indices.dtype is int64 else indices.to(int64)
    if not has_gradient(weight):  # entering modes takes longer
        embedding_renorm(weight, indices, float(max_norm), float(norm_type))
        return
    with no_grad(), ActiveLevels(state.batches, ()):
        embedding_renorm(weight, indices, float(max_norm), float(norm_type))


@composite(shapes="weight(R, F), indices:int64(*S)", method=False, writes="weight")
def embedding_renorm(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale rows of a table down to a norm, in place, as :func:`embedding` does with `max_norm`.

    Parameters
    ----------
    weight : Tensor
        (rows, features): changed in place.
    indices : Tensor
        Which rows, of any shape.
    max_norm : float
        The norm that none of them has more of.
    norm_type : float
        Which norm.
    """
    used = indices.reshape(-1).unique()
    rows = weight[used]
    norms = rows.norm(norm_type, 1, keepdim=True)
    # The small number keeps a row of no length from dividing by zero; torch adds the same.
    weight[used] = where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows)


@composite(shapes="grad_output(*S, F), indices:int64(*S)", method=False)
@in_float32
def embedding_dense_backward(
    grad_output: Tensor,
    indices: Tensor,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Tensor:
    """Return the gradient of :func:`embedding`'s weight.

    Parameters
    ----------
    grad_output : Tensor
        (*indices.shape, features).
    indices : Tensor
        Which rows of the weight were taken.
    num_weights : int
        How many rows there are.
    padding_idx : int
        The row that gets no gradient; -1 for none.
    scale_grad_by_freq : bool
        Divide a row's gradient by how often it is named.
    """
    features = grad_output._shape[-1]
    flat = indices.reshape(-1)
    sources = grad_output.reshape(len(flat), features)
    dtype, device = grad_output.dtype, grad_output.device
    if scale_grad_by_freq:
        named = ones(len(flat), dtype=dtype, device=device)
        counts = zeros(num_weights, dtype=dtype, device=device).scatter_add(0, flat, named)
        sources = sources / counts.gather(0, flat).unsqueeze(1)
    if padding_idx >= 0:
        sources = where((flat == padding_idx).unsqueeze(1), 0.0, sources)
    empty = zeros(num_weights, features, dtype=dtype, device=device)
    return empty.index_add(0, flat, sources)


def _weight_gradient(
    g: Any, weight_shape: Any, input: Any, padding_idx: int | None, scale_grad_by_freq: bool
) -> Any:
    padding = -1 if padding_idx is None else padding_idx
    return embedding_dense_backward(g, input, weight_shape[0], padding, scale_grad_by_freq)


DERIVATIVES = [derivative("embedding", weight=_weight_gradient)]
