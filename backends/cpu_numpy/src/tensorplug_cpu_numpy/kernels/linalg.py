"""Linear algebra through NumPy's stacked LAPACK routines, and SciPy's for what NumPy lacks.

SciPy's wrappers take one matrix at a time; :func:`_each` runs them over a batch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError as NumpyError

from tensorplug.plugin import KernelTable, LinAlgError, dtype_named, renew_thread_limit

Array = np.ndarray[Any, Any]

# Its overloads name dtypes, which are known here only at run time.
_linalg: Any = np.linalg


@functools.cache
def _scipy_linalg() -> Any:
    """Return SciPy's linear algebra, which takes longer to import than NumPy and brings a BLAS of its own."""
    import scipy.linalg

    renew_thread_limit("cpu")
    return scipy.linalg


def get_lapack_funcs(names: tuple[str, ...], arrays: tuple[Array, ...]) -> Any:
    """Return LAPACK's routines of these names for the arrays' dtype."""
    return _scipy_linalg().get_lapack_funcs(names, arrays)


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    for op, kernel in _KERNELS.items():
        table.add(op, kernel)
    table.add(
        "matrix_exp",
        _half_exponential,
        dtypes=[dtype_named("float16"), dtype_named("bfloat16")],
    )


def _each(*stacks: Array) -> Iterator[tuple[Any, ...]]:
    """Yield the places of a batch with the matrices (or vectors) there of each array."""
    batch = stacks[0].shape[:-2]
    for place in np.ndindex(*batch):
        yield place, *[stack[place] for stack in stacks]


def _converging(what: str, routine: Callable[[], Any], *inputs: Array) -> Any:
    """Return what a NumPy routine returns, or raise our error for its own."""
    try:
        return routine()
    except NumpyError:
        finite = all(bool(np.isfinite(item).all()) for item in inputs)
        reason = "has too many repeated values" if finite else "contained non-finite values"
        raise LinAlgError(
            f"{what}: The algorithm failed to converge because the input matrix {reason}."
        ) from None


# --- factorizations ---------------------------------------------------------------------------


def linalg_cholesky_ex(A: Array) -> tuple[Array, Array]:
    """Return L and info."""
    info = np.zeros(A.shape[:-2], np.int32)
    if A.ndim == 2 and A.size:
        factor, failed = _routine(A, "potrf", "potrf")(A, lower=1, clean=1)
        if not failed and factor[-1, -1] == factor[-1, -1]:  # a NaN anywhere would reach it
            return np.ascontiguousarray(factor), info
    elif np.isfinite(A).all():
        try:
            return _linalg.cholesky(A), info
        except NumpyError:
            pass  # which one it was, LAPACK says of each
    result = np.zeros(A.shape, A.dtype)
    potrf = _routine(A, "potrf", "potrf")
    for place, matrix in _each(A):
        result[place], info[place] = potrf(matrix, lower=1, clean=1)
        missing = np.isnan(np.diagonal(result[place]))
        if not info[place] and missing.any():  # not every LAPACK notices a NaN
            info[place] = missing.argmax() + 1
    return np.tril(result), info


def linalg_qr(A: Array, mode: str) -> tuple[Array, Array]:
    """Return Q and R."""
    if mode == "r":
        return np.empty((0,), A.dtype), _linalg.qr(A, "r")
    Q, R = _linalg.qr(A, mode)
    return Q, R


def geqrf(A: Array) -> tuple[Array, Array]:
    """Return LAPACK's compact form, which NumPy hands over transposed, and its factors."""
    compact, tau = _linalg.qr(A, "raw")
    return np.ascontiguousarray(np.swapaxes(compact, -1, -2)), tau


def linalg_householder_product(A: Array, tau: Array) -> Array:
    """Return the first columns of the product of reflectors."""
    result = np.empty(A.shape, A.dtype)
    if not result.size:  # of which LAPACK complains on the terminal
        return result
    routine = _routine(A, "orgqr", "ungqr")
    for place in np.ndindex(*A.shape[:-2]):
        result[place] = routine(A[place], tau[place])[0]
    return result


def ormqr(input: Array, tau: Array, other: Array, left: bool, transpose: bool) -> Array:
    """Return the product of reflectors, or its adjoint, times matrices."""
    batch = np.broadcast_shapes(input.shape[:-2], tau.shape[:-1], other.shape[:-2])
    result = np.empty((*batch, *other.shape[-2:]), other.dtype)
    routine = _routine(input, "ormqr", "unmqr")
    side, trans = "L" if left else "R", "N" if not transpose else "CT"[input.dtype.kind == "f"]
    room = 32 * max(1, *other.shape[-2:])
    compact = np.broadcast_to(input, (*batch, *input.shape[-2:]))[..., : tau.shape[-1]]
    factors = np.broadcast_to(tau, (*batch, tau.shape[-1]))
    others = np.broadcast_to(other, result.shape)
    if not (tau.shape[-1] and result.size):  # no reflectors; LAPACK wants some
        return others.copy()
    for place in np.ndindex(*batch):
        result[place] = routine(side, trans, compact[place], factors[place], others[place], room)[0]
    return result


def linalg_lu_solve(LU: Array, pivots: Array, B: Array, left: bool, adjoint: bool) -> Array:
    """Return X with A X = B, or X A = B, or the same of A^H, from A's factors."""
    if not left:  # A^H X^H = B^H
        solution = linalg_lu_solve(LU, pivots, np.swapaxes(B, -1, -2).conj(), True, not adjoint)
        return np.ascontiguousarray(np.swapaxes(solution, -1, -2).conj())
    batch = np.broadcast_shapes(LU.shape[:-2], B.shape[:-2])
    result = np.empty((*batch, *B.shape[-2:]), B.dtype)
    if not result.size:
        return result
    for wrong, bound in (
        (pivots.min() < 1, "greater or equal to 1"),
        (pivots.max() > LU.shape[-1], "smaller or equal to LU.size(-2)"),
    ):
        if wrong:  # LAPACK would exchange other memory
            raise RuntimeError(f"linalg.lu_solve: the pivots should be {bound}")
    routine = _routine(LU, "getrs", "getrs")
    factors = np.broadcast_to(LU, (*batch, *LU.shape[-2:]))
    chosen = np.broadcast_to(pivots - 1, (*batch, pivots.shape[-1]))
    others = np.broadcast_to(B, result.shape)
    for place in np.ndindex(*batch):
        result[place] = routine(factors[place], chosen[place], others[place], trans=2 * adjoint)[0]
    return result


@functools.cache
def _found(kind: str, real: str, of_complex: str) -> Any:
    name = of_complex if kind in "FD" else real
    return get_lapack_funcs((name,), (np.empty(0, kind),))[0]


_LONG = 32  # rows, from which a matrix takes longer than a call of LAPACK from Python


def _routine(array: Array, real: str, of_complex: str) -> Any:
    """Return LAPACK's routine for an array's dtype, which has other names for complex ones."""
    return _found(array.dtype.char, real, of_complex)


def linalg_lu_factor_ex(A: Array, pivot: bool) -> tuple[Array, Array, Array]:
    """Return L and U in one matrix, the pivots from 1, and info."""
    if not pivot and A.size:
        raise RuntimeError(
            "linalg.lu_factor: LU without pivoting is not implemented on the CPU; leave pivot=True"
        )
    *batch, m, n = A.shape
    result = np.array(A, order="C", copy=True)
    pivots = np.zeros((*batch, min(m, n)), np.int32)
    info = np.zeros(batch, np.int32)
    if A.size:
        getrf = _routine(A, "getrf", "getrf")
        for place, matrix in _each(A):
            result[place], chosen, info[place] = getrf(matrix)
            pivots[place] = chosen + 1
    return result, pivots, info


def linalg_ldl_factor_ex(A: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """Return the Bunch-Kaufman factors in LAPACK's form."""
    result = np.zeros(A.shape, A.dtype)
    pivots = np.zeros(A.shape[:-1], np.int32)
    info = np.zeros(A.shape[:-2], np.int32)
    if A.size:
        name = _symmetric("trf", A, hermitian)
        factor = _routine(A, name, name)
        for place, matrix in _each(A):
            factors, chosen, info[place] = factor(matrix, lower=1)
            result[place] = np.tril(factors)
            pivots[place] = chosen
    return result, pivots, info


def _symmetric(routine: str, A: Array, hermitian: bool) -> str:
    return ("he" if hermitian and A.dtype.kind == "c" else "sy") + routine


# --- spectra ----------------------------------------------------------------------------------


def linalg_eigh(A: Array, UPLO: str) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of Hermitian matrices."""
    values, vectors = _converging("linalg.eigh", lambda: _linalg.eigh(A, UPLO), A)
    return values, vectors


def linalg_eigvalsh(A: Array, UPLO: str) -> Array:
    """Return eigenvalues of Hermitian matrices."""
    return _converging("linalg.eigvalsh", lambda: _linalg.eigvalsh(A, UPLO), A)


def linalg_eig(A: Array) -> tuple[Array, Array]:
    """Return complex eigenvalues and eigenvectors."""
    values, vectors = _general("linalg.eig", _linalg.eig, A)
    complex_ = np.result_type(A.dtype, np.complex64)
    return values.astype(complex_, copy=False), vectors.astype(complex_, copy=False)


def linalg_eigvals(A: Array) -> Array:
    """Return complex eigenvalues."""
    values = _general("linalg.eigvals", _linalg.eigvals, A)
    return values.astype(np.result_type(A.dtype, np.complex64), copy=False)


def _general(what: str, routine: Callable[[Array], Any], A: Array) -> Any:
    if not np.isfinite(A).all():
        raise RuntimeError(f"torch.{what}: input tensor should not contain infs or NaNs.")
    return _converging(what, lambda: routine(A), A)


def linalg_svd(A: Array, full_matrices: bool) -> tuple[Array, Array, Array]:
    """Return U, S and V^H."""
    U, S, Vh = _converging("linalg.svd", lambda: _linalg.svd(A, full_matrices), A)
    _check_found("linalg.svd", S)
    return U, S, Vh


def linalg_svdvals(A: Array) -> Any:
    """Return the singular values."""
    S = _converging("linalg.svdvals", lambda: _linalg.svd(A, compute_uv=False), A)
    _check_found("linalg.svdvals", S)
    return S


def _check_found(what: str, values: Array) -> None:
    """Raise for what some LAPACKs return where others fail."""
    if np.isnan(values).any():
        raise LinAlgError(
            f"{what}: The algorithm failed to converge because the input matrix contained "
            "non-finite values."
        )


# --- equations --------------------------------------------------------------------------------


def _of_long_singles(A: Array) -> bool:
    """Return whether LAPACK is called for each matrix: NumPy computes those of single precision in double."""
    return A.dtype.char in "fF" and A.shape[-1] >= _LONG


def linalg_solve_ex(A: Array, B: Array) -> tuple[Array, Array]:
    """Return X with A X = B, and info."""
    info = np.zeros(A.shape[:-2], np.int32)
    if not (B.size and _of_long_singles(A)):
        try:
            return _linalg.solve(A, B), info
        except NumpyError:
            pass  # which one was singular, LAPACK says of each
    result = np.empty(B.shape, B.dtype)
    getrf, getrs = _routine(A, "getrf", "getrf"), _routine(A, "getrs", "getrs")
    for place, matrix, right in _each(A, B):
        factors, pivots, info[place] = getrf(matrix)
        result[place], _ = getrs(factors, pivots, right)
    return result, info


def linalg_inv_ex(A: Array) -> tuple[Array, Array]:
    """Return the inverse and info."""
    try:
        if not _of_long_singles(A):
            return _linalg.inv(A), np.zeros(A.shape[:-2], np.int32)
    except NumpyError:
        pass
    return linalg_solve_ex(A, np.broadcast_to(np.eye(A.shape[-1], dtype=A.dtype), A.shape))


def linalg_solve_triangular(A: Array, B: Array, upper: bool, unitriangular: bool) -> Array:
    """Return X with A X = B; a zero on the diagonal gives infinities, as in BLAS."""
    result = np.empty(B.shape, B.dtype)
    if B.size:
        trsm = _trsm(A.dtype.char)
        for place, matrix, right in _each(A, B):
            result[place] = trsm(1.0, matrix, right, lower=not upper, diag=unitriangular)
    return result


@functools.cache
def _trsm(kind: str) -> Any:
    return _scipy_linalg().get_blas_funcs(("trsm",), (np.empty(0, kind),))[0]


def linalg_ldl_solve(LD: Array, pivots: Array, B: Array, hermitian: bool) -> Array:
    """Return X with A X = B from LDL factors."""
    result = np.empty(B.shape, B.dtype)
    if B.size:
        places = np.abs(pivots)  # LAPACK reads where they tell
        for is_wrong, bound in (
            (places.min() < 1, ">= 1"),
            (places.max() > B.shape[-2], "<= LD.size(-2)"),
        ):
            if is_wrong:
                raise RuntimeError(
                    f"linalg.ldl_solve: Pivots given to ldl_solve must all satisfy |pivot| {bound}; give "
                    "those that ldl_factor returned"
                )
        name = _symmetric("trs", LD, hermitian)
        solver = _routine(LD, name, name)
        for place, matrix, right in _each(LD, B):
            result[place], _ = solver(matrix, pivots[place], right, lower=1)
    return result


def linalg_lstsq(
    A: Array, B: Array, rcond: float, driver: str
) -> tuple[Array, Array, Array, Array]:
    """Return solution, residuals, rank and singular values, as far as the driver finds them."""
    *batch, m, n = A.shape
    k = min(m, n)
    real = np.zeros((), A.dtype).real.dtype
    solution = np.zeros((*batch, n, B.shape[-1]), A.dtype)
    ranks = np.zeros(batch, np.int64)
    values = np.zeros((*batch, k), real)
    if A.size and B.size:
        solve = _minimiser(A, B.shape[-1], rcond, driver)
        tall = np.zeros((max(m, n), B.shape[-1]), A.dtype)
        for place, matrix, right in _each(A, B):
            tall[:m], tall[m:] = right, 0
            x, ranks[place], values[place] = solve(matrix, tall)
            solution[place] = x[:n]
    residuals = np.zeros((0,), real)
    if m > n and (driver == "gels" or (driver != "gelsy" and bool((ranks == n).all()))):
        error = B - A @ solution
        residuals = (error.real**2 + error.imag**2).sum(-2).astype(real)
    empty = np.zeros((0,), real)
    return (
        solution,
        residuals,
        ranks if driver != "gels" else np.zeros((0,), np.int64),
        values if driver in ("gelsd", "gelss") else empty,
    )


def _minimiser(A: Array, k: int, rcond: float, driver: str) -> Callable[[Array, Array], Any]:
    """Return what solves one of the problems, with `k` right sides: solution, rank and singular values.

    The right sides stand in max(m, n) rows. How much memory a driver needs is asked once for all of them.
    """
    m, n = A.shape[-2:]
    routine = _routine(A, driver, driver)
    if driver == "gels":
        return lambda matrix, right: (routine(matrix, right)[1], min(m, n), 0)
    query = _routine(A, f"{driver}_lwork", f"{driver}_lwork")
    *needed, _ = query(m, n, k, rcond)
    sizes = [int(size.real * (1 + 1e-6)) + 1 for size in needed]  # told in single precision

    def gelsy(matrix: Array, right: Array) -> Any:
        pivots = np.zeros(n, np.int32)
        _, x, _, rank, _ = routine(matrix, right, pivots, rcond, *sizes)
        return x, rank, 0

    def by_singular_values(matrix: Array, right: Array) -> Any:
        if driver == "gelss":
            _, x, values, rank, _, info = routine(matrix, right, rcond, *sizes)
        else:
            x, values, rank, info = routine(matrix, right, *sizes, rcond)
        if info:
            raise LinAlgError("linalg.lstsq: the singular values did not converge")
        return x, rank, values

    return gelsy if driver == "gelsy" else by_singular_values


# --- functions --------------------------------------------------------------------------------


def _pivots(A: Array) -> Array:
    """Return what the determinants are products of, in double precision, which holds the products."""
    found = np.empty(A.shape[:-1], np.complex128 if A.dtype.kind == "c" else np.float64)
    getrf = _routine(A, "getrf", "getrf")
    for place, matrix in _each(A):
        factors, swaps, _ = getrf(matrix)
        found[place] = factors.diagonal()
        if np.count_nonzero(swaps != np.arange(len(swaps))) % 2:
            found[(*place, 0)] *= -1
    return found


def linalg_det(A: Array) -> Array:
    """Return determinants."""
    if A.size and _of_long_singles(A):
        return _pivots(A).prod(-1).astype(A.dtype)
    return _linalg.det(A)


def linalg_slogdet(A: Array) -> tuple[Array, Array]:
    """Return sign and logarithm of determinants."""
    if A.size and _of_long_singles(A):
        found = _pivots(A)
        with np.errstate(divide="ignore"):
            logarithm = np.log(np.abs(found)).sum(-1)
        return np.sign(found).prod(-1).astype(A.dtype), logarithm.astype(A.real.dtype)
    sign, logarithm = _linalg.slogdet(A)
    return sign, logarithm


def matrix_exp(A: Array) -> Array:
    """Return exponentials by scaling and squaring (Al-Mohy and Higham, 2009)."""
    if not A.size:
        return np.zeros(A.shape, A.dtype)
    return _scipy_linalg().expm(A).astype(A.dtype, copy=False)


def _half_exponential(A: Array) -> Array:
    return matrix_exp(A.astype(np.float32)).astype(A.dtype)


def pivots_to_permutation(pivots: Array, m: int) -> Array:
    """Return the order of rows after LAPACK's exchanges."""
    order = np.broadcast_to(np.arange(m, dtype=pivots.dtype), (*pivots.shape[:-1], m)).copy()
    for place in np.ndindex(*pivots.shape[:-1]):
        rows = order[place]
        for i, other in enumerate((pivots[place] - 1).tolist()):
            rows[i], rows[other] = rows[other], rows[i]
    return order


def linalg_check_errors(info: Array, name: str, what: str) -> Array:
    """Raise if LAPACK's `info` is not zero for a matrix, else return a copy."""
    if info.any():
        number = int(np.flatnonzero(info)[0])
        where = f"(Batch element {number}): " if info.ndim else ""
        raise LinAlgError(f"{name}: {where}{what.format(int(info.reshape(-1)[number]))}")
    return info.copy()


_KERNELS: dict[str, Callable[..., Any]] = {
    kernel.__name__: kernel
    for kernel in (
        linalg_check_errors,
        linalg_cholesky_ex,
        linalg_det,
        linalg_eig,
        linalg_eigvals,
        linalg_eigh,
        linalg_eigvalsh,
        geqrf,
        linalg_householder_product,
        ormqr,
        linalg_ldl_factor_ex,
        linalg_ldl_solve,
        linalg_lstsq,
        linalg_slogdet,
        linalg_lu_factor_ex,
        linalg_lu_solve,
        matrix_exp,
        linalg_inv_ex,
        pivots_to_permutation,
        linalg_qr,
        linalg_svd,
        linalg_svdvals,
        linalg_solve_ex,
        linalg_solve_triangular,
    )
}
