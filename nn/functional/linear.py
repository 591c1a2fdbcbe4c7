"""Linear maps and embeddings."""

from __future__ import annotations

from tensorplug.core import Tensor
from tensorplug.core.current import current
from tensorplug.core.dtypes import INTEGER, int64
from tensorplug.core.layers import seen_by_layers
from tensorplug.core.ops import aminmax, einsum, zeros

from ..ops import linear as ops
from ..ops.embedding import embedding_rows
from ._common import tensor

__all__ = ["bilinear", "embedding", "linear", "one_hot"]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``input @ weight.T + bias`` over the last dimension.

    Parameters
    ----------
    input : Tensor
        (*, in_features).
    weight : Tensor
        (out_features, in_features), or (in_features,).
    bias : Tensor, optional
        (out_features,), or ().

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> linear(tp.tensor([1.0, 2.0]), tp.tensor([[3.0, 4.0]]), tp.tensor([0.5]))
    tensor([11.5000])
    """
    shape, other = tensor(input, "linear")._shape, tensor(weight, "linear", "weight")._shape
    if not shape or len(other) not in (1, 2) or shape[-1] != other[-1]:
        raise RuntimeError(
            f"linear(): input of shape {list(shape)} and weight of shape {list(other)} cannot be "
            "multiplied: the last sizes must be equal, and the weight have one or two dimensions"
        )
    if bias is not None and bias._shape not in ((), (1,), other[:-1]):
        raise RuntimeError(
            f"linear(): expected bias of shape {list(other[:-1])}, got {list(bias._shape)}"
        )
    if input.dtype is not weight.dtype and not current.interposed:  # else autocast may see to it
        raise RuntimeError(
            f"linear(): expected input and weight to have the same dtype, but got: {input.dtype} != "
            f"{weight.dtype}"
        )
    return ops.linear(input, weight, bias)


@seen_by_layers
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``input1 @ weight[k] @ input2 + bias[k]`` for each output feature k.

    Parameters
    ----------
    input1, input2 : Tensor
        (*, in1) and (*, in2).
    weight : Tensor
        (out, in1, in2).
    bias : Tensor, optional
        (out,).
    """
    output = einsum("...i,kij,...j->...k", input1, weight, input2)
    return output if bias is None else output + bias


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
        Accepted; gradients are always dense here.

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
    tensor(input, "embedding")
    if input.dtype.category != INTEGER:
        raise RuntimeError(
            f"embedding(): Expected tensor for argument 'indices' to have an integer dtype, got {input.dtype}"
        )
    if weight.ndim != 2:
        raise RuntimeError(f"embedding(): 'weight' must be 2-D, got shape {list(weight.shape)}")
    rows = weight.shape[0]
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise AssertionError(
                f"embedding(): padding_idx must be within the {rows} rows, got {padding_idx}"
            )
        padding_idx %= rows
    if max_norm is not None:
        limit_norms(weight, input, max_norm, norm_type)
    return embedding_rows(
        weight, input.to(int64), -1 if padding_idx is None else padding_idx, scale_grad_by_freq
    )


def limit_norms(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that `indices` names down to `max_norm`, in place."""
    from tensorplug.autograd import no_grad

    with no_grad():
        used = indices.reshape(-1).unique()
        rows = weight[used]
        norms = rows.norm(norm_type, 1, keepdim=True)
        scale = (max_norm / (norms + 1e-7)).clamp(max=1.0)
        weight[used] = rows * scale


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return a last dimension of classes with a one at the class and zeros elsewhere.

    Parameters
    ----------
    tensor : Tensor
        int64 of any shape, not negative.
    num_classes : int
        How many classes; by default one more than the largest.

    Examples
    --------
    >>> import tensorplug as tp
    >>> one_hot(tp.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if tensor.dtype is not int64:
        raise RuntimeError(
            f"one_hot is only applicable to index tensor of type int64, got {tensor.dtype}"
        )
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return zeros(*tensor.shape, num_classes, dtype=int64, device=tensor.device)
    if not tensor.is_meta:
        smallest, largest = (int(extreme) for extreme in aminmax(tensor))
        if smallest < 0:
            raise RuntimeError("Class values must be non-negative.")
        if num_classes == -1:
            num_classes = largest + 1
        elif largest >= num_classes:
            raise RuntimeError(
                f"Class values must be smaller than num_classes: {largest} is not below {num_classes}"
            )
    result = zeros(*tensor.shape, num_classes, dtype=int64, device=tensor.device)
    return result.scatter_(-1, tensor.unsqueeze(-1), 1)
