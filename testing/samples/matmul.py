"""Records of products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import ALL_DTYPES, DType, bool_, float32

from ..records import ErrorSample, OpRecord, Sample

NUMBERS = tuple(dtype for dtype in ALL_DTYPES if dtype is not bool_)

# A sum of products up to 81 cancels: its error is one of the terms. Half precision is computed in
# single,
# and rounded once more where the product is added to something.
SUMS = {"float32": 5e-4, "complex64": 5e-4, "float16": 1.0, "bfloat16": 8.0}


def _pairs(*shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> Callable[..., Iterator[Sample]]:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for left, right in shapes:
            yield Sample(make(*left), make(*right))

    return samples


def _added(
    *shapes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
) -> Callable[..., Iterator[Sample]]:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for shape, left, right in shapes:
            yield Sample(make(*shape), make(*left), make(*right))
        yield Sample(make(*shapes[0][0]), make(*shapes[0][1]), make(*shapes[0][2]), beta=2, alpha=3)
        yield Sample(make(*shapes[0][0]), make(*shapes[0][1]), make(*shapes[0][2]), beta=0)

    return samples


def _plus(product: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def reference(a: Any, b: Any, c: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        total = a.dtype.type(alpha) * product(b, c)
        return a.dtype.type(beta) * a + total if beta else total

    return reference


def _matmul_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), make(2, 3)), RuntimeError, "2x3 and 2x3")
    yield ErrorSample(Sample(make(), make(2)), RuntimeError, "at least 1D")
    yield ErrorSample(
        Sample(make(2, 2), make(2, 2, dtype=float32)), RuntimeError, "float64 != float32"
    )
    yield ErrorSample(Sample(make(2, 3, 4), make(3, 4, 5)), RuntimeError, "broadcast")
    yield ErrorSample(
        Sample(make(2, dtype=bool_), make(2, dtype=bool_)), NotImplementedError, "bool"
    )
    yield ErrorSample(Sample(make(2), 3.0), TypeError, "must be Tensor")


def _mm_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), make(3)), RuntimeError, "mat2 must be a matrix")


def _bmm_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3, 4), make(1, 4, 5)), RuntimeError, "first two dimensions")


def _dot_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2), make(3)), RuntimeError, "inconsistent tensor size")
    yield ErrorSample(Sample(make(2, 2), make(2, 2)), RuntimeError, "1D tensors expected")
    yield ErrorSample(Sample(make(2), make(2, dtype=float32)), RuntimeError, "same dtype")


def _addmm_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3, 3), make(2, 2), make(2, 2)), RuntimeError, "match|broadcast")
    yield ErrorSample(
        Sample(make(2, 2, dtype=float32), make(2, 2), make(2, 2)), RuntimeError, "same dtype"
    )


def _record(op: str, samples: Any, reference: Any, errors: Any = None, **options: Any) -> OpRecord:
    options.setdefault("dtypes", NUMBERS)
    return OpRecord(op, samples, reference, errors=errors, atol=SUMS, **options)


# --- contractions -----------------------------------------------------------------------------
def _einsum_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample("ij,jk->ik", make(2, 3), make(3, 2))
    yield Sample("ij,jk", make(2, 3), make(3, 2))
    yield Sample("ii->i", make(3, 3))
    yield Sample("ij->ji", make(2, 3))
    yield Sample("i,j->ij", make(2), make(3))
    yield Sample("bhqd,bhkd->bhqk", make(1, 2, 2, 3), make(1, 2, 2, 3))
    yield Sample("...ij,...jk->...ik", make(2, 1, 2, 3), make(2, 3, 2))
    yield Sample("ij,jk,kl->il", make(2, 3), make(3, 2), make(2, 2))
    yield Sample("ii,i->i", make(3, 3), make(3))
    yield Sample("ij,ij->", make(2, 3), make(2, 3))
    yield Sample("aij,bj->abi", make(2, 2, 3), make(2, 3))
    yield Sample(make(2, 3), [0, 1], make(3, 2), [1, 2], [2, 0])
    yield Sample("ij,jk->ik", make(0, 3), make(3, 2))
    yield Sample("ij,jk->ik", make(2, 0), make(0, 2))
    yield Sample(",->", make(), make())


def _einsum(*args: Any) -> Any:
    # Without an order of contraction NumPy sums at once, in the operands' dtype.
    return np.einsum(*args)


def _einsum_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample("ij,jk", make(2, 3)), RuntimeError, "fewer operands")
    yield ErrorSample(Sample("ij", make(2)), RuntimeError, "number of subscripts")
    yield ErrorSample(Sample("i->ii", make(2)), RuntimeError, "more than once")
    yield ErrorSample(Sample("i->j", make(2)), RuntimeError, "does not appear")
    yield ErrorSample(Sample("i1", make(2, 2)), RuntimeError, "a-zA-Z")
    yield ErrorSample(Sample("i.j", make(2, 2)), RuntimeError, "ellipsis")
    yield ErrorSample(Sample("ij,jk", make(2, 3), make(2, 3)), RuntimeError, "does not broadcast")
    yield ErrorSample(Sample("ii", make(2, 3)), RuntimeError, "repeated")
    yield ErrorSample(Sample("ij"), ValueError, "at least one operand")


def _tensordot_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 2, 3), make(2, 3, 2))
    yield Sample(make(2, 3), make(2), 0)
    yield Sample(make(2, 3), make(3, 2), ([1], [0]))
    yield Sample(make(2, 3, 2), make(2, 3), ([2, 1], [0, -1]))
    yield Sample(make(2, 0), make(0, 3), 1)
    yield Sample(make(), make(0), 0)


def _tensordot_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), make(2, 3), 1), RuntimeError, "need to match")
    yield ErrorSample(Sample(make(2, 3), make(2, 3), 3), RuntimeError, "dims <= 2")
    yield ErrorSample(Sample(make(2, 3), make(2, 3), ([0], [0, 1])), RuntimeError, "same length")


def _chain_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3), make(3, 2))
    yield Sample(make(2, 3, low=-3, high=3), make(3, 1, low=-3, high=3), make(1, 2))
    yield Sample(make(2, 0), make(0, 3))


def _chain(*matrices: Any) -> Any:
    product = matrices[0]
    for matrix in matrices[1:]:
        product = product @ matrix
    return product


def _chain_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), make(2, 3)), RuntimeError, "cannot be multiplied")
    yield ErrorSample(Sample(make(2, 3), make(3)), RuntimeError, "expected 2")


# A chain multiplies rounding errors as well.
_CHAINED = {**SUMS, "float16": 16.0, "bfloat16": 128.0, "float32": 5e-3, "complex64": 5e-3}


RECORDS = [
    _record(
        "matmul",
        _pairs(
            ((2, 3), (3, 4)),
            ((3,), (3,)),
            ((2, 3), (3,)),
            ((3,), (3, 2)),
            ((2, 2, 3), (3, 2)),
            ((2, 1, 2, 3), (2, 3, 2)),
            ((3,), (2, 3, 2)),
            ((2, 2, 3), (3,)),
            ((2, 3), (2, 3, 2)),
            ((0, 3), (3, 2)),
            ((2, 0), (0, 3)),
            ((2, 0, 3), (3, 2)),
            ((0,), (0,)),
        ),
        np.matmul,
        _matmul_errors,
    ),
    _record("mm", _pairs(((2, 3), (3, 4)), ((0, 3), (3, 4))), np.matmul, _mm_errors),
    _record("bmm", _pairs(((2, 2, 3), (2, 3, 2)), ((0, 2, 3), (0, 3, 4))), np.matmul, _bmm_errors),
    _record("mv", _pairs(((2, 3), (3,)), ((2, 0), (0,))), np.matmul),
    _record("dot", _pairs(((3,), (3,)), ((0,), (0,))), np.dot, _dot_errors),
    _record("vdot", _pairs(((3,), (3,)), ((0,), (0,))), np.vdot),
    _record(
        "inner",
        _pairs(
            ((3,), (3,)),
            ((2, 3), (3,)),
            ((3,), (2, 3)),
            ((2, 3), (2, 2, 3)),
            ((), (2, 3)),
            ((2, 0), (3, 0)),
            ((0, 3), (3,)),
        ),
        np.inner,
    ),
    _record("outer", _pairs(((2,), (3,)), ((0,), (3,))), np.outer, dtypes=ALL_DTYPES),
    _record(
        "addmm",
        _added(((2, 2), (2, 3), (3, 2)), ((2,), (2, 3), (3, 2)), ((1, 1), (2, 0), (0, 2))),
        _plus(np.matmul),
        _addmm_errors,
    ),
    _record(
        "addmv",
        _added(
            ((2,), (2, 3), (3,)), ((), (2, 3), (3,)), ((2,), (2, 0), (0,)), ((0,), (0, 3), (3,))
        ),
        _plus(np.matmul),
    ),
    _record(
        "addr",
        _added(((2, 3), (2,), (3,)), ((3,), (2,), (3,)), ((3,), (0,), (3,)), ((), (2,), (3,))),
        _plus(np.outer),
    ),
    _record(
        "baddbmm",
        _added(
            ((2, 2, 2), (2, 2, 3), (2, 3, 2)),
            ((2,), (2, 2, 3), (2, 3, 2)),
            ((2, 2), (0, 2, 3), (0, 3, 2)),
            ((), (2, 2, 0), (2, 0, 2)),
        ),
        _plus(np.matmul),
    ),
    _record(
        "addbmm",
        _added(
            ((2, 2), (2, 2, 3), (2, 3, 2)),
            ((2,), (2, 2, 3), (2, 3, 2)),
            ((2, 2), (0, 2, 3), (0, 3, 2)),
            ((), (2, 2, 0), (2, 0, 2)),
        ),
        _plus(lambda b, c: np.matmul(b, c).sum(0, dtype=b.dtype)),
    ),
    OpRecord("einsum", _einsum_samples, _einsum, NUMBERS, errors=_einsum_errors, atol=_CHAINED),
    _record(
        "tensordot",
        _tensordot_samples,
        lambda a, b, dims=2: np.tensordot(a, b, dims),
        _tensordot_errors,
    ),
    _record(
        "kron",
        _pairs(((2,), (3,)), ((2, 3), (2,)), ((), (2,)), ((0,), (2,))),
        np.kron,
        dtypes=ALL_DTYPES,
    ),
    OpRecord("chain_matmul", _chain_samples, _chain, NUMBERS, errors=_chain_errors, atol=_CHAINED),
]
