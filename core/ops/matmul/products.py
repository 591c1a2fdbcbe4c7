"""Products of matrices and vectors: matmul, the one primitive, and what is written with it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...device.dtypes import BOOL, FLOATING, INTEGER, Number, result_dtype, scalar_type
from ...device.scalars import coefficient, fitting, rounded
from ...dispatch.op_registry import Spec, composite, primitive
from ...dispatch.out_dtypes import exact_out
from ...dispatch.registered_ops import handle, has_op
from ...tensor.base import TensorBase
from ...tensor.shapes import broadcast_shapes
from ..arithmetic.pointwise import add, check_factor, conj_physical, mul
from ..rules import cast, check_tensor, number, rounded_once, with_former_order

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = [
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "dot", "ger", "inner", "matmul", "mm",
    "mv", "outer", "vdot",
]  # fmt: skip

#: Of networks, which may not be loaded.
_LINEAR = handle("linear")


@primitive("input, other")
def matmul(input: Tensor, other: Tensor) -> Spec:
    """Return the matrix product of two tensors.

    Parameters
    ----------
    input : Tensor
        ``(..., n, k)``, or ``(k,)``, which counts as a row.
    other : Tensor
        ``(..., k, m)``, or ``(k,)``, which counts as a column. The leading dimensions of both
        broadcast.

    Returns
    -------
    Tensor
        ``(..., n, m)``; the dimension that a vector was given is left out.

    Raises
    ------
    RuntimeError
        If the dtypes differ, or the sizes do not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor([[1, 2], [3, 4]]) @ tp.tensor([5, 6])
    tensor([17, 39])
    """
    check_tensor(input, "matmul")
    check_tensor(other, "matmul", "other")
    key = input._key
    if key.dtype is not other._key.dtype:
        raise RuntimeError(
            "matmul(): expected m1 and m2 to have the same dtype, but got: "
            f"{key.dtype.name} != {other.dtype.name}; convert one of them with .to()"
        )
    if key.dtype.category == BOOL and 0 not in input._shape and 0 not in other._shape:
        raise NotImplementedError(
            "matmul(): not implemented for bool; convert the operands to an integer dtype"
        )
    a, b = input._shape, other._shape
    left, right = len(a), len(b)
    if left == 2 and right == 2:
        if a[1] != b[0]:
            raise _no_fit(a, b)
        return Spec((input, other), (a[0], b[1]), key.dtype)
    if not left or not right:
        raise RuntimeError(
            f"matmul(): both arguments to matmul need to be at least 1D, but they are {left}D and "
            f"{right}D; multiply by a number with *"
        )
    if a[-1] != (b[-2] if right > 1 else b[0]):
        raise _no_fit(a, b)
    if left > 2 and right > 2:
        shape = broadcast_shapes(a[:-2], b[:-2])
    else:
        shape = a[:-2] if left > 2 else b[:-2]
    if left > 1:
        shape += (a[-2],)
    if right > 1:
        shape += (b[-1],)
    return Spec((input, other), shape, key.dtype)


def _no_fit(a: tuple[int, ...], b: tuple[int, ...]) -> RuntimeError:
    if len(a) == 2 and len(b) == 1:
        what = f"size mismatch, got input ({a[0]}), mat ({_by(a)}), vec ({b[0]})"
    elif len(b) > 2:
        count = math.prod(b[:-2])
        what = (
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{count}, {a[-1]}] but got: [{count}, {b[-2]}]."
        )
    else:
        rows = math.prod(a[:-1])
        what = f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a[-1]} and {_by(b)})"
    return RuntimeError(
        f"matmul(): {what}: the inner sizes of {list(a)} and {list(b)} must be equal"
    )


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _check_ndim(name: str, tensor: Any, argument: str, ndim: int) -> None:
    check_tensor(tensor, name, argument)
    if len(tensor._shape) != ndim:
        what = {1: "a vector", 2: "a matrix", 3: "a 3D tensor"}[ndim]
        raise RuntimeError(
            f"{name}(): {argument} must be {what}, got {len(tensor._shape)}D of shape "
            f"{list(tensor._shape)}"
        )


#: What torch says of some products, and people search for.
_ALIKE = {
    **dict.fromkeys(("dot", "vdot"), "dot : expected both vectors to have same dtype, but found"),
    "inner": "both inputs should have same dtype, but found",
    "addmm": "self and mat2 must have the same dtype, but got",
    "addmv": "addmv input tensors must have the same dtype, but got",
    "baddbmm": "Input dtypes must be the same, got:",
}


def _check_same_dtype(name: str, *tensors: Any) -> None:
    first = tensors[0]._key.dtype
    for tensor in tensors[1:]:
        if tensor._key.dtype is not first:
            raise RuntimeError(
                f"{name}(): {_ALIKE.get(name, 'expected tensors of the same dtype, but found')} "
                f"{scalar_type(first)} and {scalar_type(tensor.dtype)}; convert one of them with .to()"
            )


@composite()
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices, ``(n, k)`` and ``(k, m)``; nothing broadcasts.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.mm(tp.tensor([[1, 2]]), tp.tensor([[3], [4]]))
    tensor([[11]])
    """
    _check_ndim("mm", input, "self", 2)
    _check_ndim("mm", mat2, "mat2", 2)
    return matmul(input, mat2)


@composite()
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the products of matrices ``(b, n, k)`` and ``(b, k, m)``; nothing broadcasts.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.bmm(tp.ones(2, 3, 4), tp.ones(2, 4, 5)).shape
    Size([2, 3, 5])
    """
    _check_batches("bmm", input, mat2, "batch1", "batch2")
    return matmul(input, mat2)


def _check_batches(name: str, batch1: Any, batch2: Any, first: str, second: str) -> None:
    _check_ndim(name, batch1, first, 3)
    _check_ndim(name, batch2, second, 3)
    expected = [batch1._shape[0], batch1._shape[2]]
    if list(batch2._shape[:2]) != expected:
        raise RuntimeError(
            f"{name}(): Expected size for first two dimensions of {second} tensor to be: "
            f"{expected} "
            f"but got: {list(batch2._shape[:2])}."
        )


@composite()
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Return the product of a matrix ``(n, k)`` and a vector ``(k,)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.mv(tp.tensor([[1, 2], [3, 4]]), tp.tensor([1, 1]))
    tensor([3, 7])
    """
    _check_ndim("mv", input, "input", 2)
    _check_ndim("mv", vec, "vec", 1)
    return matmul(input, vec)


@composite()
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Return the sum of the products of two vectors' elements.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.dot(tp.tensor([2, 3]), tp.tensor([2, 1]))
    tensor(7)
    """
    _check_dot("dot", input, tensor, "tensor")
    return matmul(input, tensor)


def _check_dot(name: str, input: Any, other: Any, argument: str) -> None:
    check_tensor(input, name)
    check_tensor(other, name, argument)
    if len(input._shape) != 1 or len(other._shape) != 1:
        raise RuntimeError(
            f"{name}(): 1D tensors expected, but got {len(input._shape)}D and "
            f"{len(other._shape)}D tensors"
        )
    _check_same_dtype(name, input, other)
    if input._shape != other._shape:
        raise RuntimeError(
            f"{name}(): inconsistent tensor size, expected tensor {list(input._shape)} and src "
            f"{list(other._shape)} to have the same number of elements, but got {input._shape[0]} and "
            f"{other._shape[0]} elements respectively"
        )


@composite()
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Return the sum of the products of two vectors' elements, the first conjugated.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.vdot(tp.tensor([1 + 2j]), tp.tensor([1 + 2j]))
    tensor(5.+0.j)
    """
    _check_dot("vdot", input, other, "other")
    return matmul(_conjugate(input), other)


def _conjugate(input: Any) -> Any:
    return conj_physical(input) if input._key.dtype.is_complex else input


@composite()
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Return the sums of products over the last dimension of both; a 0-d tensor just multiplies.

    Parameters
    ----------
    input : Tensor
        ``(*a, k)``.
    other : Tensor
        ``(*b, k)``.

    Returns
    -------
    Tensor
        ``(*a, *b)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.inner(tp.tensor([[1, 2], [3, 4]]), tp.tensor([1, 1]))
    tensor([3, 7])
    """
    check_tensor(input, "inner")
    check_tensor(other, "inner", "other")
    a, b = input._shape, other._shape
    if not a or not b:
        return mul(input, other)
    _check_same_dtype("inner", input, other)
    if a[-1] != b[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(a)} "
            f"and {list(b)}"
        )
    if len(b) == 1:
        return dot(input, other) if len(a) == 1 else matmul(input, other)
    if len(a) == 1:
        return matmul(other, input)
    k = a[-1]
    left = input if len(a) == 2 else input.reshape(_count(a[:-1]), k)
    right = other if len(b) == 2 else other.reshape(_count(b[:-1]), k)
    result = matmul(left, right.permute(1, 0))
    return result if len(a) == 2 == len(b) else result.reshape(a[:-1] + b[:-1])


def _count(sizes: tuple[int, ...]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


@composite(aliases=("ger",))
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Return the matrix of all products of elements of `input` ``(n,)`` and `vec2` ``(m,)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.outer(tp.tensor([1, 2]), tp.tensor([3, 4, 5]))
    tensor([[ 3,  4,  5],
            [ 6,  8, 10]])
    """
    for tensor, argument in ((input, "self"), (vec2, "vec2")):
        check_tensor(tensor, "outer", argument)
        if len(tensor._shape) != 1:
            raise RuntimeError(
                f"outer(): Expected 1-D argument {argument}, but got {len(tensor._shape)}-D"
            )
    return mul(input.reshape(input._shape[0], 1), vec2)


ger = outer


# --- a product added to something -------------------------------------------------------------


def _factors_first(first: Any, second: Any, *rest: Any) -> Any:
    """Rearrange (beta, input, [alpha,] a, b), or (input, beta, [alpha,] a, b) as methods have it."""
    input, beta = (first, second) if isinstance(first, TensorBase) else (second, first)
    *alpha, a, b = rest
    factors = {"beta": beta, **({"alpha": alpha[0]} if alpha else {})}
    return (input, a, b), {key: number(factors[key], "addmm", key) for key in factors}


@composite(inplace=True)
@with_former_order(_factors_first)
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return ``beta * input + alpha * (mat1 @ mat2)``; with `beta` 0, `input` is not looked at.

    Parameters
    ----------
    input : Tensor
        Broadcasts to ``(n, m)``.
    mat1, mat2 : Tensor
        ``(n, k)`` and ``(k, m)``, of the dtype of `input`.
    beta, alpha : number

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.addmm(tp.tensor([1, 2]), tp.tensor([[1, 0]]), tp.tensor([[3, 4], [5, 6]]))
    tensor([[4, 6]])
    """
    _check_ndim("addmm", mat1, "mat1", 2)
    _check_ndim("addmm", mat2, "mat2", 2)
    return _added_once("addmm", input, mat1, mat2, beta, alpha)


@composite(inplace=True)
@with_former_order(_factors_first)
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return ``beta * input + alpha * (mat @ vec)``.

    Parameters
    ----------
    input : Tensor
        Broadcasts to ``(n,)``.
    mat, vec : Tensor
        ``(n, k)`` and ``(k,)``.
    beta, alpha : number

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.addmv(tp.tensor([1, 1]), tp.tensor([[1, 2], [3, 4]]), tp.tensor([1, 1]))
    tensor([4, 8])
    """
    _check_ndim("addmv", mat, "mat", 2)
    _check_ndim("addmv", vec, "vec", 1)
    dtype = mat._key.dtype
    if dtype.is_half:
        beta, alpha = [rounded(fitting(factor, dtype), dtype) for factor in (beta, alpha)]
        if beta not in (0, 1):  # rounded before the product is added
            input, beta = mul(input, beta), 1
    return _added_once("addmv", input, mat, vec, beta, alpha)


@composite(inplace=True)
@with_former_order(_factors_first)
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return ``beta * input + alpha * outer(vec1, vec2)``, promoted to one dtype.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.addr(tp.zeros(2, 2), tp.tensor([1.0, 2.0]), tp.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    _check_ndim("addr", vec1, "vec1", 1)
    _check_ndim("addr", vec2, "vec2", 1)
    check_tensor(input, "addr")
    common = result_dtype((input, vec1, vec2))
    check_factor("addr", common, beta, "beta")
    check_factor("addr", common, alpha)
    if common.category == BOOL:
        product = mul(vec1.reshape(vec1._shape[0], 1), vec2)
        if not alpha:
            product = product & False
        if not beta:
            return product
        return _broadcast_to("addr", input, product._shape) | product
    vec1, vec2 = cast(vec1, common), cast(vec2, common)
    if common.is_half:  # each step is rounded
        vec1, alpha = mul(vec1, rounded(fitting(alpha, common), common)), 1
        beta = rounded(fitting(beta, common), common)
        # Its gradients are sums that are rounded once.
        product = matmul(vec1.reshape(vec1._shape[0], 1), vec2.reshape(1, vec2._shape[0]))
    else:
        if common.category != INTEGER and alpha != 1:  # as torch: their product may be too large
            vec1, alpha = mul(vec1, fitting(alpha, common)), 1
        product = outer(vec1, vec2)
    return _added("addr", cast(input, common), product, beta, alpha)


@composite(inplace=True)
@with_former_order(_factors_first)
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return ``beta * input + alpha * (batch1 @ batch2)``, matrix by matrix.

    Parameters
    ----------
    input : Tensor
        Broadcasts to ``(b, n, m)``.
    batch1, batch2 : Tensor
        ``(b, n, k)`` and ``(b, k, m)``.
    beta, alpha : number

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.baddbmm(tp.zeros(1), tp.ones(2, 3, 4), tp.ones(2, 4, 5)).shape
    Size([2, 3, 5])
    """
    _check_batches("baddbmm", batch1, batch2, "batch1", "batch2")
    return _added_once("baddbmm", input, batch1, batch2, beta, alpha)


@composite(inplace=True)
@with_former_order(_factors_first)
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return ``beta * input + alpha *`` the sum over the batch of ``batch1 @ batch2``.

    Parameters
    ----------
    input : Tensor
        Broadcasts to ``(n, m)``.
    batch1, batch2 : Tensor
        ``(b, n, k)`` and ``(b, k, m)``.
    beta, alpha : number

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.addbmm(tp.zeros(1, 1), tp.ones(2, 1, 4), tp.ones(2, 4, 1))
    tensor([[8.]])
    """
    _check_batches("addbmm", batch1, batch2, "batch1", "batch2")
    b, n, k = batch1._shape
    m = batch2._shape[2]
    # The sum over the batch is one long sum over b * k.
    left = batch1.permute(1, 0, 2).reshape(n, b * k)
    return _added_once("addbmm", input, left, batch2.reshape(b * k, m), beta, alpha)


def _broadcast_to(name: str, input: Any, shape: tuple[int, ...]) -> Any:
    if input._shape == shape:
        return input
    if len(input._shape) > len(shape) or broadcast_shapes(input._shape, shape) != shape:
        raise RuntimeError(
            f"{name}(): The expanded size of the tensor {list(shape)} must match the existing size "
            f"{list(input._shape)}"
        )
    return input.expand(shape)


def _added_once(name: str, input: Any, left: Any, right: Any, beta: Any, alpha: Any) -> Any:
    """Return ``beta * input + alpha * (left @ right)``; of half precision it is rounded once, at the end."""
    check_tensor(input, name)
    dtype = input._key.dtype
    if dtype.is_half and left._key.dtype is dtype is right._key.dtype:
        if beta == 1 == alpha and _is_bias(input, left, right) and has_op(_LINEAR.name):
            return _LINEAR.call(left, right.t(), input)  # kernels round it once, too, and take less
        factors = coefficient(beta, dtype), coefficient(alpha, dtype)
        return rounded_once(_added_once, dtype, name, input, left, right, *factors)
    return _added(name, input, matmul(left, right), beta, alpha)


def _is_bias(input: Any, left: Any, right: Any) -> bool:
    shape = right._shape
    return len(shape) == 2 and left._shape[1:] == shape[:1] and input._shape == shape[1:]


def _added(name: str, input: Any, product: Any, beta: Any, alpha: Any) -> Any:
    check_tensor(input, name)
    _check_same_dtype(name, input, product)
    shape = product._shape
    if input._shape != shape[len(shape) - len(input._shape) :]:
        # Only a check: add broadcasts.
        _broadcast_to(name, input, shape)
    factor = fitting if name in ("addmv", "addr") else coefficient  # as torch refuses or takes them
    dtype = product._key.dtype
    beta, alpha = factor(beta, dtype), factor(alpha, dtype)
    if beta == 0:
        return product if alpha == 1 else mul(product, alpha)
    if dtype.category == FLOATING and not dtype.is_half and (alpha != 1 or beta != 1):
        # One pass less; each step of halves is rounded.
        if alpha == 1:
            return add(product, input, alpha=beta)
        return add(input if beta == 1 else mul(input, beta), product, alpha=alpha)
    if alpha != 1:
        product = mul(product, alpha)
    return add(input if beta == 1 else mul(input, beta), product)


exact_out(matmul, mm, bmm, mv, dot, vdot, inner, addbmm, addmm, addmv, baddbmm)
