"""Solutions of equations, inverses and determinants."""

import numpy

cimport numpy as np
from libc.stdlib cimport free
from libc.string cimport memcpy

from .linalg_lapack cimport (
    call11, call6, call7, call8, call9, contiguous, copied, empty_like, last_size, matrices, matrices_of, order_of,
    per_matrix, room, routine, same_batch, transpose_into
)
from .linalg_small cimport SMALL, small_factor, small_solve, small_triangular

np.import_array()


cdef np.ndarray small_solved(A, np.ndarray result):
    """Overwrite right sides with solutions of small matrices, and return the first zero pivots."""
    cdef np.ndarray factors = copied(A), info = per_matrix(factors, np.NPY_INT32), pivots
    pivots = per_matrix(factors, np.NPY_INT32, last_size(factors))
    small_factor(factors, pivots, info)
    small_solve(factors, pivots, result)
    return info


cdef np.ndarray solved_by_adjoint(np.ndarray factors, np.ndarray pivots, np.ndarray sides):
    """Return what the adjoint of one matrix takes to given sides, which are overwritten."""
    cdef np.ndarray turned = contiguous(numpy.conj(factors.swapaxes(-1, -2)))
    cdef np.ndarray result
    small_triangular(turned, sides, False, False)
    small_triangular(turned, sides, True, True)
    result = numpy.empty_like(sides)
    result[..., order_of(pivots, last_size(factors)), :] = sides
    return result


cdef np.ndarray identities(np.ndarray A):
    """Return as many identities as there are matrices."""
    cdef np.ndarray result = np.PyArray_ZEROS(np.PyArray_NDIM(A), np.PyArray_DIMS(A), np.PyArray_TYPE(A), 0)
    cdef np.ndarray one = numpy.ones(1, A.dtype)
    cdef matrices batch = matrices_of(result)
    cdef int size = np.PyArray_ITEMSIZE(result), i
    cdef Py_ssize_t k
    for k in range(batch.count):
        for i in range(batch.rows):
            memcpy(batch.data + k * batch.bytes + i * (batch.rows + 1) * size, np.PyArray_DATA(one), size)
    return result


def kernels(below):
    """Return the kernels by op; `below` gives the kernel beneath that of an op, for what these leave to it."""
    det_below, slogdet_below, solve_below, inverse_below = (
        below("linalg_det"), below("linalg_slogdet"), below("linalg_solve_ex"), below("linalg_inv_ex"))
    lu_solve_below, triangular_below = below("linalg_lu_solve"), below("linalg_solve_triangular")
    factor_below = below("linalg_lu_factor_ex")

    def linalg_lu_solve(LU, pivots, B, left, adjoint):
        cdef np.ndarray factors, chosen, result
        cdef matrices batch, right
        cdef call9 getrs
        cdef Py_ssize_t k
        cdef int n, columns, size, info, i
        if not (left and B.size and same_batch(LU, 2, B, 2) and same_batch(LU, 2, pivots, 1)):
            return lu_solve_below(LU, pivots, B, left, adjoint)
        chosen = contiguous(pivots)
        cdef const int *rows = <const int *> np.PyArray_DATA(chosen)
        factors = LU.swapaxes(-1, -2)
        cdef bint turned = np.PyArray_IS_C_CONTIGUOUS(factors) and last_size(LU) > SMALL  # as LAPACK wants it
        if not turned:
            factors = contiguous(LU)
        result = copied(B)
        batch, right = matrices_of(factors), matrices_of(result)
        n, columns, size = batch.rows, right.columns, np.PyArray_ITEMSIZE(factors)
        if np.PyArray_TYPE(chosen) != np.NPY_INT32:
            return lu_solve_below(LU, pivots, B, left, adjoint)
        for k in range(np.PyArray_SIZE(chosen)):
            if not 1 <= rows[k] <= n:  # LAPACK would exchange other memory
                return lu_solve_below(LU, pivots, B, left, adjoint)
        if n <= SMALL and not adjoint:
            small_solve(factors, chosen, result)
            return result
        if n <= SMALL and batch.count == 1:
            return solved_by_adjoint(factors, chosen, result)
        getrs = <call9> routine("getrs", LU.dtype.char)
        cdef char *way = "C" if adjoint else "N"
        cdef char *sides = <char *> room(right.bytes + (0 if turned else batch.bytes))
        cdef char *matrix = sides + right.bytes
        with nogil:
            for k in range(batch.count):
                if turned:
                    matrix = batch.data + k * batch.bytes
                else:
                    transpose_into(batch.data + k * batch.bytes, matrix, n, n, size)
                transpose_into(right.data + k * right.bytes, sides, n, columns, size)
                getrs(way, &n, &columns, matrix, &n, <void *> (rows + k * n), sides, &n, &info)
                transpose_into(sides, right.data + k * right.bytes, columns, n, size)
        free(sides)
        return result

    def linalg_solve_lu(A, B):
        cdef np.ndarray own, factors, result, pivots, info
        cdef matrices batch, right
        cdef Py_ssize_t k
        cdef int n, columns, size, ignored
        if not (A.size and B.size and same_batch(A, 2, B, 2)):
            own, pivots, info = factor_below(A, True)
            return lu_solve_below(own, pivots, B, True, False), own, pivots, info
        own, result = contiguous(A), copied(B)
        factors = empty_like(own, last_size(own), last_size(own))  # as LAPACK wants them, and linalg_lu_solve takes them again
        batch, right = matrices_of(factors), matrices_of(result)
        n, columns, size = batch.rows, right.columns, np.PyArray_ITEMSIZE(own)
        info = per_matrix(own, np.NPY_INT32)
        pivots = per_matrix(own, np.NPY_INT32, n)
        cdef call6 getrf = <call6> routine("getrf", A.dtype.char)
        cdef call9 getrs = <call9> routine("getrs", A.dtype.char)
        cdef const char *given = <const char *> np.PyArray_DATA(own)
        cdef int *rows = <int *> np.PyArray_DATA(pivots)
        cdef int *failed = <int *> np.PyArray_DATA(info)
        cdef char *sides = <char *> room(right.bytes)
        cdef char *matrix
        with nogil:
            for k in range(batch.count):
                matrix = batch.data + k * batch.bytes
                transpose_into(given + k * batch.bytes, matrix, n, n, size)
                getrf(&n, &n, matrix, &n, rows + k * n, failed + k)
                transpose_into(right.data + k * right.bytes, sides, n, columns, size)
                getrs(<char *> "N", &n, &columns, matrix, &n, rows + k * n, sides, &n, &ignored)
                transpose_into(sides, right.data + k * right.bytes, columns, n, size)
        free(sides)
        return result, factors.swapaxes(-1, -2), pivots, info

    def solved(A, np.ndarray result, bint inverse):
        """Overwrite right sides with solutions, or `A` itself with the inverse; return whether one is singular."""
        cdef np.ndarray own = result if inverse else A.swapaxes(-1, -2)
        cdef bint turned = not inverse and np.PyArray_IS_C_CONTIGUOUS(own)  # as LAPACK wants it
        if not (inverse or turned):
            own = contiguous(A)
        cdef matrices batch = matrices_of(own), right = matrices_of(result)
        cdef str letter = A.dtype.char
        cdef call6 getrf = <call6> routine("getrf", letter)
        cdef call9 getrs = <call9> routine("getrs", letter)
        cdef call7 getri = <call7> routine("getri", letter)
        cdef int n = batch.rows, columns = right.columns, size = np.PyArray_ITEMSIZE(own), info = 0
        cdef int lwork = 32 * n
        cdef Py_ssize_t k
        cdef char *matrix = <char *> room(batch.bytes + n * 16 + (lwork * size if inverse else right.bytes))
        cdef int *pivots = <int *> (matrix + batch.bytes)
        cdef char *sides = matrix + batch.bytes + n * 16
        with nogil:
            for k in range(batch.count):
                if turned:
                    memcpy(matrix, batch.data + k * batch.bytes, batch.bytes)
                else:
                    transpose_into(batch.data + k * batch.bytes, matrix, n, n, size)
                getrf(&n, &n, matrix, &n, pivots, &info)
                if info:
                    break
                if inverse:
                    getri(&n, matrix, &n, pivots, sides, &lwork, &info)
                    transpose_into(matrix, batch.data + k * batch.bytes, n, n, size)
                else:
                    transpose_into(right.data + k * right.bytes, sides, n, columns, size)
                    getrs(<char *> "N", &n, &columns, matrix, &n, pivots, sides, &n, &info)
                    transpose_into(sides, right.data + k * right.bytes, columns, n, size)
        free(matrix)
        return info != 0

    def linalg_solve_ex(A, B):
        cdef np.ndarray result
        if not (B.size and same_batch(A, 2, B, 2)):
            return solve_below(A, B)
        result = copied(B)
        if last_size(A) <= SMALL:
            return result, small_solved(A, result)
        if solved(A, result, False):
            return solve_below(A, B)
        return result, per_matrix(result, np.NPY_INT32)

    def linalg_inv_ex(A):
        cdef np.ndarray result
        if not A.size:
            return inverse_below(A)
        if last_size(A) <= SMALL:
            result = identities(A)
            return result, small_solved(A, result)
        result = copied(A)
        if solved(A, result, True):
            return inverse_below(A)
        return result, per_matrix(result, np.NPY_INT32)

    def pivots_of(A):
        """Return what determinants are products of, in double precision, which holds the products."""
        cdef np.ndarray factors = copied(A), info = per_matrix(factors, np.NPY_INT32), chosen
        cdef matrices batch = matrices_of(factors)
        cdef call6 getrf
        cdef int n = batch.rows
        cdef Py_ssize_t k
        chosen = per_matrix(factors, np.NPY_INT32, n)
        cdef int *rows = <int *> np.PyArray_DATA(chosen)
        cdef int *failed = <int *> np.PyArray_DATA(info)
        if n <= SMALL:
            small_factor(factors, chosen, info)
        else:  # the transpose has the same
            getrf = <call6> routine("getrf", A.dtype.char)
            with nogil:
                for k in range(batch.count):
                    getrf(&n, &n, batch.data + k * batch.bytes, &n, rows + k * n, failed + k)
        found = numpy.diagonal(factors, axis1=-2, axis2=-1).astype("D" if A.dtype.kind == "c" else "d")
        swaps = chosen != numpy.arange(1, n + 1, dtype=numpy.int32)
        found[..., 0] *= 1 - 2 * (swaps.sum(-1) % 2)
        return found

    def few(A):
        """Return whether NumPy's call takes less than what comes after the factors here."""
        return not A.size or (A.ndim == 2 and last_size(A) < 32)

    def linalg_det(A):
        return det_below(A) if few(A) else pivots_of(A).prod(-1).astype(A.dtype)

    def linalg_slogdet(A):
        if few(A):
            return slogdet_below(A)
        found = pivots_of(A)
        with numpy.errstate(divide="ignore"):
            logarithm = numpy.log(numpy.abs(found)).sum(-1)
        return numpy.sign(found).prod(-1).astype(A.dtype), logarithm.astype(A.dtype.char.lower())

    def linalg_solve_triangular(A, B, upper, unitriangular):
        cdef np.ndarray factors, result
        cdef matrices batch, right
        cdef call11 trsm
        cdef call8 trsv
        cdef Py_ssize_t k
        cdef int n, columns, one_step = 1
        cdef bint turned
        cdef float one_single[2]
        cdef double one_double[2]
        if not (B.size and same_batch(A, 2, B, 2)):
            return triangular_below(A, B, upper, unitriangular)
        n = last_size(A)
        result = copied(B)
        if n <= SMALL:
            small_triangular(contiguous(A), result, upper, unitriangular)
            return result
        # BLAS sees the transpose of what lies in rows, and a transposed matrix as it is.
        factors = A.swapaxes(-1, -2)
        turned = np.PyArray_IS_C_CONTIGUOUS(factors)
        if not turned:
            factors = contiguous(A)
        batch, right = matrices_of(factors), matrices_of(result)
        columns = right.columns
        one_single[0], one_single[1] = 1, 0
        one_double[0], one_double[1] = 1, 0
        cdef void *one = <void *> one_single if A.dtype.char in "fF" else <void *> one_double
        cdef char *half = "U" if upper == turned else "L"
        cdef char *diagonal = "U" if unitriangular else "N"
        if columns == 1:
            trsv = <call8> routine("trsv", A.dtype.char)
            with nogil:
                for k in range(batch.count):
                    trsv(
                        half, <char *> "N" if turned else <char *> "T", diagonal, &n, batch.data + k * batch.bytes, &n,
                        right.data + k * right.bytes, &one_step,
                    )
            return result
        trsm = <call11> routine("trsm", A.dtype.char)
        with nogil:  # the transposes: X^T A^T = B^T
            for k in range(batch.count):
                trsm(
                    <char *> "R", half, <char *> "T" if turned else <char *> "N", diagonal, &columns, &n, one,
                    batch.data + k * batch.bytes, &n, right.data + k * right.bytes, &columns,
                )
        return result

    return {
        function.__name__: function
        for function in (
            linalg_lu_solve, linalg_solve_ex, linalg_solve_lu, linalg_inv_ex, linalg_det,
            linalg_slogdet, linalg_solve_triangular,
        )
    }
