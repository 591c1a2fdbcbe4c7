"""Matrices for the records of linear algebra, and what those records share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import (
    DType,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int64,
)
from tensorplug.core.ops import eye
from tensorplug.testing.comparison import as_exact

from ...records import ErrorSample, Sample

MATRICES = (float32, float64, complex64, complex128)

# Well-conditioned systems still lose some digits, and more in gradients of single precision.
DIGITS = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-9, "complex128": 1e-9}


def dense(make: Any, *shape: int) -> Any:
    """Return matrices of numbers up to 1."""
    return make(*shape, low=-1, high=1)


def regular(make: Any, *batch: int, n: int = 3) -> Any:
    """Return well-conditioned square matrices."""
    return dense(make, *batch, n, n) + 2 * eye(n, dtype=make.dtype, device=make.device)


def definite(make: Any, *batch: int, n: int = 3) -> Any:
    """Return Hermitian positive-definite matrices."""
    A = dense(make, *batch, n, n)
    return A @ A.mH + eye(n, dtype=make.dtype, device=make.device)


def symmetric(make: Any, *batch: int, n: int = 3) -> Any:
    """Return Hermitian matrices whose eigenvalues lie apart."""
    A = dense(make, *batch, n, n)
    places = np.arange(n, dtype="float64").tolist()
    return (
        A
        + A.mH
        + 4
        * eye(n, dtype=make.dtype, device=make.device)
        * make(n, low=1, high=2).new_tensor(places, dtype=make.dtype)
    )


def of_squares(
    kind: Callable[..., Any], *options: dict[str, Any]
) -> Callable[..., Iterator[Sample]]:
    """Return samples of square matrices: one, batches, none, with each of the options."""

    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        yield Sample(kind(make))
        yield Sample(kind(make, 2))
        yield Sample(kind(make, n=1))
        yield Sample(kind(make, n=0))
        yield Sample(kind(make, 0))
        for option in options:
            yield Sample(kind(make, 2, n=2), **option)

    return samples


def of_rectangles(*options: dict[str, Any]) -> Callable[..., Iterator[Sample]]:
    """Return samples of matrices of any shape, with each of the options."""

    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for option in options or ({},):
            for shape in ((3, 3), (4, 2), (2, 3), (2, 3, 2), (0, 2), (2, 0)):
                yield Sample(dense(make, *shape), **option)

    return samples


def square_errors(make: Any) -> Iterator[ErrorSample]:
    """Yield what every op on square matrices refuses."""
    yield ErrorSample(Sample(make(2, 3)), RuntimeError, "2 by 3")
    yield from matrix_errors(make)


def matrix_errors(make: Any) -> Iterator[ErrorSample]:
    """Yield what every op on matrices refuses."""
    yield ErrorSample(Sample(make(3)), RuntimeError, "at least 2 dim|2 or more dim")
    yield ErrorSample(Sample(make(2, 2, dtype=int64)), RuntimeError, "floating point or complex")
    yield ErrorSample(Sample(make(2, 2, dtype=float16)), RuntimeError, "Low precision")
    yield ErrorSample(Sample([[1.0]]), TypeError, "must be Tensor")


def adjoint(A: Any) -> Any:
    """Return the conjugate transpose of NumPy matrices."""
    return np.swapaxes(A, -1, -2).conj()


def assert_near(actual: Any, expected: Any, like: Any, message: str) -> None:
    """Raise AssertionError unless two NumPy arrays agree to the digits of a tensor's dtype."""
    digits = DIGITS[like.dtype.to_complex().name] * 10
    assert actual.shape == expected.shape, f"{message}: {actual.shape} and {expected.shape}"
    assert np.allclose(actual, expected, rtol=digits, atol=digits), (
        f"{message}: {actual} {expected}"
    )


def exact(*tensors: Any) -> tuple[Any, ...]:
    """Return tensors as NumPy arrays of double precision."""
    return tuple([as_exact(tensor) for tensor in tensors])
