"""What the linear algebra ops share: checks of matrices, batches, and a few constructions."""

from __future__ import annotations

from typing import Any

from ...device.dtypes import FLOATING, DType, scalar_type
from ...dispatch import op_registry
from ...dispatch.layers import note_hidden
from ...errors import LinAlgError
from ...tensor.shapes import Shape, broadcast_shapes
from ..copying import in_place_of
from ..rules import check_tensor

_EYE = op_registry.handle("eye")
_WHERE = op_registry.handle("where")
_CAT = op_registry.handle("cat")
_ARANGE = op_registry.handle("arange")


#: What torch says of matrices without an inverse, and people search for.
SINGULAR = (
    "The diagonal element {} is zero, the inversion could not be completed because the input matrix is "
    "singular."
)


def check_matrix(
    name: str,
    A: Any,
    argument: str = "A",
    *,
    square: bool = False,
    half: bool = False,
    integers: bool = False,
    said: str = "The input tensor {} must have at least 2 dimensions",
) -> None:
    """Raise unless `A` is a batch of (square) matrices of a dtype that linear algebra takes.

    Raises
    ------
    TypeError
        If it is no tensor.
    RuntimeError
        If a dimension is missing, the matrices are not square, or, unless `integers` allows them
        all, the dtype is an integer or, unless `half` allows it, a half-precision one.
    """
    check_tensor(A, name, argument)
    shape = A._shape
    if len(shape) < 2:
        raise RuntimeError(
            f"{name}: {said.format(argument)}, got {argument} of shape {list(shape)}."
        )
    if square and shape[-1] != shape[-2]:
        raise RuntimeError(
            f"{name}: {argument} must be batches of square matrices, but they are {shape[-2]} by "
            f"{shape[-1]} matrices"
        )
    if not integers:
        check_floating(name, A, half=half)


def check_floating(name: str, A: Any, *, half: bool = False) -> None:
    """Raise NotImplementedError unless the dtype is a floating-point or complex one, half if allowed."""
    dtype = A._key.dtype
    if dtype.category < FLOATING:
        raise NotImplementedError(
            f"{name}: Expected a floating point or complex tensor as input. Got {dtype.name}; "
            "convert "
            "it with .to()"
        )
    if not half and dtype.itemsize == 2:
        raise NotImplementedError(
            f"{name}: Low precision dtypes not supported. Got {dtype.name}; convert it with "
            ".float()"
        )


def check_same_dtype(name: str, A: Any, B: Any, first: str = "A", second: str = "B") -> None:
    """Raise RuntimeError unless both have one dtype."""
    if A._key.dtype is not B._key.dtype:
        raise RuntimeError(
            f"{name}: Expected {first} and {second} to have the same dtype, but found {first} of type "
            f"{scalar_type(A.dtype)} and {second} of type {scalar_type(B.dtype)} instead"
        )


def check_factor_inputs(name: str, A: Any, B: Any, left: bool) -> None:
    """Raise RuntimeError unless the equation AX = B, or XA = B, has fitting sizes."""
    n = A._shape[-1]
    if (B._shape[-2] if left else B._shape[-1]) != n:
        a, b = A._shape, B._shape
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} "
            f"({a[-2]}x{a[-1]} and {b[-2]}x{b[-1]})"
        )


def broadcast_batches(A: Any, B: Any) -> tuple[Any, Any]:
    """Return both with equal batch dimensions."""
    a, b = A._shape, B._shape
    if a[:-2] == b[:-2]:
        return A, B
    batch = broadcast_shapes(a[:-2], b[:-2])
    return expand_batch(A, batch), expand_batch(B, batch)


def expand_batch(A: Any, batch: Shape) -> Any:
    """Return matrices broadcast to the batch dimensions `batch`."""
    shape = batch + A._shape[-2:]
    return A if A._shape == shape else A.expand(shape)


def transpose(A: Any) -> Any:
    """Return the matrices in the last two dimensions transposed."""
    n = len(A._shape)
    return A.permute(*range(n - 2), n - 1, n - 2)


def conjugate(A: Any) -> Any:
    """Return the complex conjugate, or `A` itself if it is real."""
    return A._conj() if A._key.dtype.is_complex else A


def adjoint(A: Any) -> Any:
    """Return the conjugate transpose of the matrices in the last two dimensions."""
    return conjugate(transpose(A))


def identity(n: int, like: Any) -> Any:
    """Return the identity matrix of size `n`, of the dtype and on the device of `like`."""
    return _EYE.call(n, dtype=like.dtype, device=like.device)


def identity_like(A: Any) -> Any:
    """Return the identity matrix for each square matrix of `A`."""
    made = identity(A._shape[-1], A)
    return made if len(A._shape) == 2 else made.expand(A._shape)


def constant_of(A: Any, value: Any) -> Any:
    """Return `value`, which is the same for all `A`: as a function of it, of derivative zero."""
    result = in_place_of(value, A)
    return result if result._view is None else result.clone()


def where(condition: Any, input: Any, other: Any) -> Any:
    """Call the op ``where``, which a module of its own declares."""
    return _WHERE.call(condition, input, other)


def concatenate(tensors: list[Any], dim: int) -> Any:
    """Call the op ``cat``."""
    return _CAT.call(tensors, dim)


def arange(n: int, like: Any, dtype: DType) -> Any:
    """Return 0 to n - 1 on the device of `like`."""
    return _ARANGE.call(n, dtype=dtype, device=like.device)


def column(x: Any) -> Any:
    """Return vectors as matrices of one column."""
    return x.reshape((*x._shape, 1))


def row(x: Any) -> Any:
    """Return vectors as matrices of one row."""
    return x.reshape((*x._shape[:-1], 1, x._shape[-1]))


@op_registry.composite(method=False)
def linalg_check_errors(info: Any, name: str, what: str) -> Any:
    """Raise LinAlgError if LAPACK's `info` is nonzero for a matrix; `what` has place for its value.

    Nothing is known of tensors without data. Returns `info`.
    """
    if info._key.is_meta:
        note_hidden("a check of LAPACK's info")
        return info
    values = info.reshape(-1).tolist()
    for number, value in enumerate(values):
        if value:
            where_ = f"(Batch element {number}): " if info._shape else ""
            raise LinAlgError(f"{name}: {where_}{what.format(value)}")
    return info
