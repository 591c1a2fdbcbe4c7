"""The affine map, by itself and with an activation behind it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.autograd.vmap.vmap_rules import VmapInfo, vmap_rule
from tensorplug.core.device.dtypes import BOOL, DType, scalar_type
from tensorplug.core.dispatch.op_registry import Delegated, composite
from tensorplug.core.dispatch.out_dtypes import exact_out
from tensorplug.core.ops import arange, cat, where, zeros_like
from tensorplug.core.ops.rules import check_tensor, in_float32

from .activation import gelu, silu

if TYPE_CHECKING:
    from tensorplug.core import Tensor


def _canonical_linear(input: Any, weight: Any, bias: Any = None) -> Any:
    check_tensor(input, "linear")
    check_tensor(weight, "linear", "weight")
    shape, other = input._shape, weight._shape
    if not shape or not other:
        raise RuntimeError(
            f"linear(): both arguments to linear need to be at least 1D, but they are {len(shape)}D and "
            f"{len(other)}D"
        )
    if len(other) > 2 or shape[-1] != other[-1]:
        rows, columns = math.prod(shape[:-1]), "x".join(map(str, other[::-1]))
        raise RuntimeError(
            f"linear(): mat1 and mat2 shapes cannot be multiplied ({rows}x{shape[-1]} and "
            f"{columns}): the last sizes of input {list(shape)} and weight {list(other)} must be equal, "
            "and the weight have one or two dimensions"
        )
    if bias is not None and bias._shape not in ((), (1,), other[:-1]):
        raise RuntimeError(
            f"linear(): expected bias of shape {list(other[:-1])}, got {list(bias._shape)}"
        )
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"linear(): expected input and weight to have the same dtype, but got: {input.dtype} != "
            f"{weight.dtype}"
        )
    if bias is not None and bias._key.dtype is not input._key.dtype:
        raise RuntimeError(
            "linear(): self and mat2 must have the same dtype, but got "
            f"{scalar_type(bias.dtype)} and {scalar_type(input.dtype)}: bias and input"
        )
    if input._key.dtype.category == BOOL and 0 not in shape and 0 not in other:
        raise NotImplementedError(
            "linear(): \"addmm\" not implemented for 'Bool'; convert input and weight to an integer dtype"
        )
    return input, weight, bias


@composite(rule=_canonical_linear, method=False)
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
    output = input @ (weight if weight.ndim == 1 else weight.t())
    return output if bias is None else output + bias


def _canonical_grouped_mm(
    mat_a: Any, mat_b: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    name = "grouped_mm()"
    check_tensor(mat_a, "grouped_mm", "mat_a")
    check_tensor(mat_b, "grouped_mm", "mat_b")
    dims = mat_a.ndim, mat_b.ndim
    if not {*dims} <= {2, 3} or mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError(
            f"{name}: {list(mat_a.shape)} and {list(mat_b.shape)} cannot be multiplied: expected "
            "matrices, or stacks of them, that share a size"
        )
    if mat_a.dtype is not mat_b.dtype:
        raise RuntimeError(
            f"{name}: expected matrices of one dtype, got {mat_a.dtype} and {mat_b.dtype}"
        )
    if bias is not None:
        raise RuntimeError(f"{name}: bias is not supported, as in torch")
    if (offs is None) != (dims == (3, 3)):
        raise RuntimeError(f"{name}: offs is needed where a matrix is in groups, and only there")
    for stacked in (mat_a, mat_b):
        if offs is not None and stacked.ndim == 3 and len(stacked) != len(offs):
            raise RuntimeError(f"{name}: {len(offs)} offs for {len(stacked)} matrices")
    if out_dtype is not None:
        return Delegated(grouped_mm(mat_a, mat_b, offs=offs).to(out_dtype))
    return mat_a, mat_b, offs


@composite("mat_a, mat_b, offs", rule=_canonical_grouped_mm, method=False)
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
    if offs is None:
        return mat_a @ mat_b
    # By kernels group after group; here without a look at data, so that graphs and vmap may hold it.
    inner = mat_a.ndim == mat_b.ndim
    size = mat_a._shape[-1] if inner else mat_a._shape[0] if mat_a.ndim == 2 else mat_b._shape[-1]
    places, ends = arange(size, device=offs.device), offs.reshape(-1, 1)
    starts = cat([zeros_like(ends[:1]), ends[:-1]])
    within = (places >= starts) & (places < ends)
    if inner:
        return where(within.unsqueeze(1), mat_a, 0) @ mat_b
    products = mat_a @ mat_b
    within = within.unsqueeze(1) if mat_a.ndim == 3 else within.unsqueeze(2)
    return where(within, products, 0).sum(0, dtype=products.dtype)


def _grouped_mm_a(g: Any, mat_b: Any, offs: Any) -> Any:
    return grouped_mm(g, mat_b.mT, offs=offs)


def _grouped_mm_b(g: Any, mat_a: Any, offs: Any) -> Any:
    return grouped_mm(mat_a.mT, g, offs=offs)


def _check_bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> None:
    given = {"input1": input1, "input2": input2, "weight": weight}
    for name, value in given.items():
        check_tensor(value, "bilinear", name)
    if bias is not None:
        given["bias"] = bias
    if len({value._key.dtype for value in given.values()}) > 1:
        got = ", ".join([f"{name}: {scalar_type(value.dtype)}" for name, value in given.items()])
        raise RuntimeError(f"bilinear(): All tensors must have the same dtype, got {got}")
    one, other = input1._shape[:-1], input2._shape[:-1]
    if len(one) != len(other):
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {len(one) + 1} and {len(other) + 1}"
        )
    for dim, (a, b) in enumerate(zip(one, other, strict=True)):
        if a != b:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {dim}: got {a} and {b}"
            )


@composite(
    shapes="input1(*, I), input2(*, J), weight(O, I, J), bias(O)",
    rule=_check_bilinear,
    method=False,
)
@in_float32
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

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not fit: what stands for * is the same of both inputs.
    """
    # (..., 1, 1, in1) @ (out, in1, in2) -> (..., out, 1, in2)
    mixed = input1.unsqueeze(-2).unsqueeze(-2).matmul(weight).squeeze(-2)
    output = (mixed * input2.unsqueeze(-2)).sum(-1, dtype=mixed.dtype)
    return output if bias is None else output + bias


_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: x.relu(),
    "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: x.sigmoid(),
    "gelu": lambda x: gelu(x, "none"),
    "gelu_tanh": lambda x: gelu(x, "tanh"),
    "silu": silu,
}


def _canonical_linear_activation(
    input: Any, weight: Any, bias: Any, activation: str
) -> tuple[Any, ...]:
    if activation not in _ACTIVATIONS:
        raise ValueError(
            f"linear_activation(): activation must be one of {', '.join(_ACTIVATIONS)}, got {activation!r}"
        )
    return *_canonical_linear(input, weight, bias), activation


@composite(rule=_canonical_linear_activation, method=False)
def linear_activation(
    input: Tensor, weight: Tensor, bias: Tensor | None, activation: str
) -> Tensor:
    """Return an activation of :func:`linear`.

    It has no derivative of its own: where one is recorded, that is of the two ops in the body.

    Parameters
    ----------
    input, weight, bias
        As for :func:`linear`; floating point.
    activation : {"relu", "tanh", "sigmoid", "gelu", "gelu_tanh", "silu"}
        ``gelu_tanh`` is the approximation of ``gelu`` by tanh.

    Returns
    -------
    Tensor
        Of the shape of :func:`linear`'s result.

    Raises
    ------
    ValueError
        If the activation is none of these.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x, weight = tp.tensor([1.0, 2.0]), tp.tensor([[3.0, 4.0], [-3.0, 0.0]])
    >>> linear_activation(x, weight, None, "relu")
    tensor([11.,  0.])
    """
    return _ACTIVATIONS[activation](linear(input, weight, bias))


def _flat(x: Any, last: int) -> Any:
    if x.ndim == 2:
        return x
    return x.reshape(math.prod(x.shape[:-1]), last)  # not -1: there may be no features


def _input_gradient(g: Any, weight: Any, input_shape: Any) -> Any:
    if weight.ndim == 1:
        return g.unsqueeze(-1) * weight._conj()
    gradient = _flat(g, weight.shape[0]) @ weight._conj()
    return gradient if g.ndim == 2 else gradient.reshape(input_shape)


def _weight_gradient(g: Any, input: Any, weight_shape: Any) -> Any:
    if len(weight_shape) == 1:
        return _flat(input._conj() * g.unsqueeze(-1), weight_shape[0]).sum(0)
    return _flat(g, weight_shape[0]).t() @ _flat(input._conj(), weight_shape[1])


def _bias_gradient(g: Any, bias_shape: Any) -> Any:
    return g.sum_to_size(bias_shape)


def _batched(info: VmapInfo, in_dims: Any, input: Any, weight: Any, bias: Any) -> Any:
    """Take the samples of the input as more rows."""
    dim, *others = in_dims
    if dim is None or input.ndim < 2 or any(other is not None for other in others):
        return NotImplemented
    return linear(input.movedim(dim, 0), weight, bias), 0


VMAP_RULES = [vmap_rule("linear", _batched)]

DERIVATIVES = [
    derivative("linear", input=_input_gradient, weight=_weight_gradient, bias=_bias_gradient),
    derivative("grouped_mm", mat_a=_grouped_mm_a, mat_b=_grouped_mm_b),
]


exact_out(linear)
