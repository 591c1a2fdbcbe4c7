"""The primitives that no loop here computes: NumPy and SciPy do, on copies of the numbers.

Most come from the kernels that tensorplug keeps for any library like NumPy. Those that do not are
special functions, from SciPy, and factorizations, from LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy import linalg, special
from scipy.linalg.blas import get_blas_funcs
from scipy.linalg.lapack import get_lapack_funcs

from tensorplug.plugin import Kernel, KernelTable, LinAlgError, dtype_named, get_op
from tensorplug.plugin.array_kernels import ArrayNamespace, all_kernels

from .host import NATIVES, calculated

namespace = ArrayNamespace(np, "vault", NATIVES)
HALVES = (dtype_named("float16"),)


def calculator_kernels() -> Iterable[Kernel]:
    """Return a kernel for each op that NumPy can compute; views apart, which a copy can't be."""
    table = all_kernels(namespace)
    for op, function in SPECIAL.items():
        table.add(op, function)
        table.add(op, namespace.through_float32(function), dtypes=HALVES)
    for function in FACTORIZATIONS:
        table.add(function.__name__, function)
    calculating = KernelTable("vault")
    for kernel in table:
        if not get_op(kernel.op).view:
            function = calculated(kernel.function)
            calculating.add(kernel.op, function, dtypes=kernel.dtypes, accepts=kernel.accepts)
    return calculating


# --- special functions ------------------------------------------------------------------------

_BESSEL = {
    "airy_ai": lambda input: special.airy(input)[0],
    "airy_ai_prime": lambda input: special.airy(input)[1],
    **{
        name: getattr(special, name)
        for name in ("i0", "i0e", "i1", "i1e", "j0", "j1", "k0", "k0e", "k1", "k1e", "y0", "y1")
    },
}


def bessel(input: Any, function: str) -> Any:
    return np.asarray(_BESSEL[function](input), input.dtype)


def lgamma(input: Any) -> Any:
    # SciPy has -inf at minus infinity.
    return np.where(np.isinf(input), np.inf, special.gammaln(input)).astype(input.dtype)


SPECIAL: dict[str, Callable[..., Any]] = {
    "bessel": bessel,
    "digamma": special.digamma,
    "erf": special.erf,
    "erfc": special.erfc,
    "erfinv": special.erfinv,
    "igamma": special.gammainc,
    "igammac": special.gammaincc,
    "lgamma": lgamma,
    "special_erfcx": special.erfcx,
    "special_zeta": special.zeta,
}


# --- factorizations ---------------------------------------------------------------------------

INFO = np.int32


def each(function: Callable[..., Any], *stacks: Any) -> tuple[Any, ...]:
    """Return the results, stacked, of a function of matrices and vectors that returns a tuple."""
    batch = stacks[0].shape[:-2]
    places = list(np.ndindex(*batch))
    if not places:  # the results' shapes are those for any matrices
        matrices = [np.ones(stack.shape[len(batch) :], stack.dtype) for stack in stacks]
        return tuple(
            [np.empty((*batch, *np.shape(item)), item.dtype) for item in function(*matrices)]
        )
    results = [function(*[stack[place] for stack in stacks]) for place in places]
    columns = [np.stack(column) for column in zip(*results, strict=True)]
    return tuple([column.reshape((*batch, *column.shape[1:])) for column in columns])


def lapack(name: str, *arrays: Any) -> Any:
    """Return LAPACK's routine for the dtype of some arrays."""
    return get_lapack_funcs((name,), arrays)[0]


def converged(op: str, function: Callable[..., Any], *args: Any) -> Any:
    """Return what a function of numpy.linalg returns, or raise our error for its own."""
    try:
        results = function(*args)
    except np.linalg.LinAlgError:
        results = ()
    if not results or not all(np.isfinite(item).all() for item in results):
        raise LinAlgError(
            f"linalg.{op}: The algorithm failed to converge because the input matrix contained "
            "non-finite values or has too many repeated values."
        )
    return tuple(results)


def linalg_cholesky_ex(A: Any) -> Any:
    def factor(matrix: Any) -> Any:
        if not matrix.size:
            return matrix, INFO(0)
        result, info = lapack("potrf", matrix)(matrix, lower=1, clean=1)
        missing = np.isnan(np.diagonal(result))
        if not info and missing.any():
            info = missing.argmax() + 1
        return np.tril(result), INFO(info)

    return each(factor, A)


def linalg_qr(A: Any, mode: str) -> Any:
    if mode == "r":
        return np.empty((0,), A.dtype), np.linalg.qr(A, "r")
    return tuple(np.linalg.qr(A, mode))


def geqrf(input: Any) -> Any:
    compact, tau = np.linalg.qr(input, "raw")
    return np.swapaxes(compact, -1, -2), tau


def linalg_lu_factor_ex(A: Any, pivot: bool) -> Any:
    if not pivot:
        raise RuntimeError("linalg.lu_factor: the vault has no LU without pivoting")

    def factor(matrix: Any) -> Any:
        if not matrix.size:
            return matrix, np.zeros(0, INFO), INFO(0)
        factors, pivots, info = lapack("getrf", matrix)(matrix)
        return factors, (pivots + 1).astype(INFO), INFO(info)

    return each(factor, A)


def linalg_ldl_factor_ex(A: Any, hermitian: bool) -> Any:
    name = "hetrf" if hermitian and A.dtype.kind == "c" else "sytrf"

    def factor(matrix: Any) -> Any:
        if not matrix.size:
            return matrix, np.zeros(0, INFO), INFO(0)
        factors, pivots, info = lapack(name, matrix)(matrix, lower=1)
        return np.tril(factors), pivots.astype(INFO), INFO(info)

    return each(factor, A)


def linalg_ldl_solve(LD: Any, pivots: Any, B: Any, hermitian: bool) -> Any:
    name = "hetrs" if hermitian and LD.dtype.kind == "c" else "sytrs"

    def solution(factors: Any, right: Any, exchanged: Any) -> Any:
        if not right.size:
            return (right,)
        return (lapack(name, factors)(factors, exchanged[:, 0], right, lower=1)[0],)

    return each(solution, LD, B, pivots[..., None])[0]


def linalg_solve_ex(A: Any, B: Any) -> Any:
    def solution(matrix: Any, right: Any) -> Any:
        if not right.size:
            return right, INFO(0)
        _, _, result, info = lapack("gesv", matrix, right)(matrix, right)
        return result, INFO(info)

    return each(solution, A, B)


def linalg_solve_triangular(A: Any, B: Any, upper: bool, unitriangular: bool) -> Any:
    def solution(matrix: Any, right: Any) -> Any:
        if not right.size:
            return (right,)
        (trsm,) = get_blas_funcs(("trsm",), (matrix, right))
        return (trsm(1.0, matrix, right, lower=not upper, diag=unitriangular),)

    return each(solution, A, B)[0]


def linalg_lstsq(A: Any, B: Any, rcond: float, driver: str) -> Any:
    m, n = A.shape[-2:]
    real = A.real.dtype

    def minimum(matrix: Any, right: Any) -> Any:
        values = np.zeros(min(m, n), real)
        if not matrix.size or not right.size:
            return np.zeros((n, right.shape[1]), A.dtype), np.int64(0), values
        way = "gelsd" if driver == "gels" else driver
        x, _, rank, found = linalg.lstsq(
            matrix, right, rcond, lapack_driver=way, check_finite=False
        )
        return x, np.int64(rank), values if found is None else found

    solution, ranks, values = each(minimum, A, B)
    error = B - A @ solution
    residuals = np.zeros(0, real)
    if m > n and (driver == "gels" or (driver != "gelsy" and (ranks == n).all())):
        residuals = (error.real**2 + error.imag**2).sum(-2).astype(real)
    return (
        solution,
        residuals,
        np.zeros(0, np.int64) if driver == "gels" else ranks,
        values if driver in ("gelsd", "gelss") else np.zeros(0, real),
    )


def linalg_eigh(A: Any, UPLO: str) -> Any:
    return converged("eigh", np.linalg.eigh, A, UPLO)


def linalg_eig(A: Any) -> Any:
    if not np.isfinite(A).all():
        raise RuntimeError("linalg.eig: input tensor should not contain infs or NaNs.")
    dtype = np.result_type(A.dtype, np.complex64)
    return tuple([item.astype(dtype) for item in converged("eig", np.linalg.eig, A)])


def linalg_svd(A: Any, full_matrices: bool) -> Any:
    return converged("svd", np.linalg.svd, A, full_matrices)


def matrix_exp(A: Any) -> Any:
    wide = A.astype(np.float32) if A.dtype.name == "float16" else A
    return linalg.expm(wide).astype(A.dtype) if A.size else A


FACTORIZATIONS = (
    linalg_cholesky_ex,
    linalg_eig,
    linalg_eigh,
    geqrf,
    linalg_ldl_factor_ex,
    linalg_ldl_solve,
    linalg_lstsq,
    linalg_lu_factor_ex,
    matrix_exp,
    linalg_qr,
    linalg_svd,
    linalg_solve_ex,
    linalg_solve_triangular,
)
