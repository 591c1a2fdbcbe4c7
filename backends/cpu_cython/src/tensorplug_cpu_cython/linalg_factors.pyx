"""Triangular factors of matrices, and what is made of their pivots."""

import numpy

cimport numpy as np
from libc.stdlib cimport free
from libc.string cimport memcpy

from .linalg_lapack cimport (
    call5, call6, call8, clear_above, contiguous, copied, exchange_rows, is_nan, last_size, matrices, matrices_of,
    none_of, order_of, per_matrix, room, routine, same_batch, transpose_into, zeros_like
)
from .linalg_small cimport SMALL, small_cholesky, small_factor, small_triangular

np.import_array()


cdef void permute(
    char *to, const int *others, int *order, int rows, Py_ssize_t exchanges, const char *one, Py_ssize_t size
) noexcept nogil:
    """Write ones into zeros, a permutation matrix: column i has its 1 in the row that came to be row i."""
    cdef int i
    exchange_rows(order, rows, others, exchanges)
    for i in range(rows):
        memcpy(to + (<Py_ssize_t> order[i] * rows + i) * size, one, size)


cdef void take_apart(
    const char *row, char *lower, char *upper, Py_ssize_t i, Py_ssize_t least, Py_ssize_t columns, const char *one,
    Py_ssize_t size
) noexcept nogil:
    """Write row i of two factors that lie in one matrix into zeros, the lower one's diagonal of ones as well."""
    memcpy(lower, row, min(i, least) * size)
    if i < least:
        memcpy(lower + i * size, one, size)
        memcpy(upper + i * size, row + i * size, (columns - i) * size)


cdef tuple factors_of_few_rows(A):
    """Return LU factors, pivots and info of one matrix with few rows: the first columns tell the pivots."""
    cdef int rows = A.shape[0]
    cdef np.ndarray first = copied(A[:, :rows]), whole
    cdef np.ndarray info = per_matrix(first, np.NPY_INT32), pivots = per_matrix(first, np.NPY_INT32, rows)
    small_factor(first, pivots, info)
    whole = numpy.take(A, order_of(pivots, rows), 0)
    small_triangular(first, whole, False, True)
    whole[:, :rows] = first
    return whole, pivots, info


def kernels(below):
    """Return the kernels by op; `below` gives the kernel beneath that of an op, for what these leave to it."""
    cholesky_below, lu_below, ldl_below = (
        below("linalg_cholesky_ex"), below("linalg_lu_factor_ex"), below("linalg_ldl_factor_ex"))
    order_below, unpack_below, errors_below = (
        below("pivots_to_permutation"), below("lu_unpack"), below("linalg_check_errors"))

    def linalg_cholesky_ex(A):
        cdef np.ndarray factor, info
        cdef matrices batch
        cdef call5 potrf
        cdef Py_ssize_t k
        cdef int n, size, d
        cdef str letter = A.dtype.char
        cdef bint single = letter in "fF"
        if not A.size:
            return cholesky_below(A)
        potrf = <call5> routine("potrf", letter)
        factor = copied(A)
        info = per_matrix(factor, np.NPY_INT32)
        batch = matrices_of(factor)
        n, size = batch.rows, np.PyArray_ITEMSIZE(factor)
        cdef int *failed = <int *> np.PyArray_DATA(info)
        if n <= SMALL:
            small_cholesky(factor, info)
        for k in range(batch.count):
            with nogil:  # our lower half is the upper one of the transpose, which has the same factor
                if n > SMALL:
                    potrf(<char *> "U", &n, batch.data + k * batch.bytes, &n, failed + k)
                    clear_above(batch.data + k * batch.bytes, n, size)
            if not failed[k]:
                for d in range(n):  # not every LAPACK notices a NaN
                    if is_nan(batch.data + k * batch.bytes + d * (n + 1) * size, single):
                        failed[k] = d + 1
                        break
        return factor, info

    def linalg_lu_factor_ex(A, pivot):
        cdef np.ndarray factors, pivots, info
        cdef matrices batch
        cdef call6 getrf
        cdef Py_ssize_t k
        cdef int m, n, least, size
        if not A.size or not pivot:
            return lu_below(A, pivot)
        if A.ndim == 2 and A.shape[0] <= SMALL and A.shape[1] > 8 * A.shape[0]:
            return factors_of_few_rows(A)
        getrf = <call6> routine("getrf", A.dtype.char)
        factors = copied(A)
        batch = matrices_of(factors)
        m, n, size = batch.rows, batch.columns, np.PyArray_ITEMSIZE(factors)
        least = min(m, n)
        info = per_matrix(factors, np.NPY_INT32)
        pivots = per_matrix(factors, np.NPY_INT32, least)
        cdef int *chosen = <int *> np.PyArray_DATA(pivots)
        if m <= SMALL and n <= SMALL:
            small_factor(factors, pivots, info)
            return factors, pivots, info
        cdef int *failed = <int *> np.PyArray_DATA(info)
        cdef char *matrix = <char *> room(batch.bytes)
        with nogil:
            for k in range(batch.count):
                transpose_into(batch.data + k * batch.bytes, matrix, m, n, size)
                getrf(&m, &n, matrix, &m, chosen + k * least, failed + k)
                transpose_into(matrix, batch.data + k * batch.bytes, n, m, size)
        free(matrix)
        return factors, pivots, info

    def linalg_ldl_factor_ex(A, hermitian):
        cdef np.ndarray factors, pivots, info
        cdef matrices batch
        cdef call8 sytrf
        cdef Py_ssize_t k
        cdef int n, size, lwork
        if not A.size:
            return ldl_below(A, hermitian)
        sytrf = <call8> routine("hetrf" if hermitian and A.dtype.kind == "c" else "sytrf", A.dtype.char)
        factors = copied(A)
        batch = matrices_of(factors)
        n, size = batch.rows, np.PyArray_ITEMSIZE(factors)
        lwork = 32 * n
        info = per_matrix(factors, np.NPY_INT32)
        pivots = per_matrix(factors, np.NPY_INT32, n)
        cdef int *chosen = <int *> np.PyArray_DATA(pivots)
        cdef int *failed = <int *> np.PyArray_DATA(info)
        cdef char *matrix = <char *> room(batch.bytes + lwork * size)
        with nogil:
            for k in range(batch.count):
                transpose_into(batch.data + k * batch.bytes, matrix, n, n, size)
                sytrf(
                    <char *> "L", &n, matrix, &n, chosen + k * n, matrix + batch.bytes, &lwork, failed + k,
                )
                transpose_into(matrix, batch.data + k * batch.bytes, n, n, size)
                clear_above(batch.data + k * batch.bytes, n, size)
        free(matrix)
        return factors, pivots, info

    def linalg_check_errors(info, name, what):
        cdef np.ndarray numbers = contiguous(info)
        cdef const int *each = <const int *> np.PyArray_DATA(numbers)
        cdef Py_ssize_t k
        if np.PyArray_TYPE(numbers) != np.NPY_INT32:
            return errors_below(info, name, what)
        for k in range(np.PyArray_SIZE(numbers)):
            if each[k]:
                return errors_below(info, name, what)
        return np.PyArray_NewCopy(numbers, np.NPY_CORDER)

    def lu_unpack(LU, pivots, bint data, bint exchanges):
        cdef np.ndarray packed, chosen, permutation, lower, upper, ones
        cdef matrices batch
        cdef Py_ssize_t k, least, size, count
        cdef int i
        packed, chosen = contiguous(LU), contiguous(pivots)
        batch = matrices_of(packed)
        least, size = min(batch.rows, batch.columns), np.PyArray_ITEMSIZE(packed)
        cdef const int *others = <const int *> np.PyArray_DATA(chosen)
        if not np.PyArray_SIZE(packed) or exchanges and not (
            np.PyArray_TYPE(chosen) == np.NPY_INT32 and same_batch(packed, 2, chosen, 1)
            and last_size(chosen) <= batch.rows
        ):
            return unpack_below(LU, pivots, data, exchanges)
        count = last_size(chosen)  # of exchanges, the size of the smaller side as a rule
        permutation = lower = upper = none_of(packed)
        ones = numpy.ones(1, packed.dtype)
        cdef const char *one = <const char *> np.PyArray_DATA(ones)
        if exchanges:
            for k in range(np.PyArray_SIZE(chosen)):
                if not 1 <= others[k] <= batch.rows:
                    return unpack_below(LU, pivots, data, exchanges)
            permutation = zeros_like(packed, batch.rows, batch.rows)
            order = <int *> room(batch.rows * sizeof(int))
            for k in range(batch.count):
                permute(
                    <char *> np.PyArray_DATA(permutation) + k * batch.rows * batch.rows * size, others + k * count,
                    order, batch.rows, count, one, size,
                )
            free(order)
        if data:
            lower, upper = zeros_like(packed, batch.rows, least), zeros_like(packed, least, batch.columns)
            for k in range(batch.count):
                for i in range(batch.rows):
                    take_apart(
                        batch.data + k * batch.bytes + i * batch.columns * size,
                        <char *> np.PyArray_DATA(lower) + (k * batch.rows + i) * least * size,
                        <char *> np.PyArray_DATA(upper) + (k * least + i) * batch.columns * size,
                        i, least, batch.columns, one, size,
                    )
        return permutation, lower, upper

    def pivots_to_permutation(pivots, Py_ssize_t m):
        cdef np.ndarray chosen = contiguous(pivots), order
        cdef const int *others = <const int *> np.PyArray_DATA(chosen)
        cdef int dims = np.PyArray_NDIM(chosen), d
        cdef Py_ssize_t length, count, k
        cdef np.npy_intp shape[64]
        if np.PyArray_TYPE(chosen) != np.NPY_INT32 or not np.PyArray_SIZE(chosen):
            return order_below(pivots, m)
        length = np.PyArray_DIM(chosen, dims - 1)
        count = np.PyArray_SIZE(chosen) // length
        for k in range(np.PyArray_SIZE(chosen)):
            if not 1 <= others[k] <= m:
                return order_below(pivots, m)
        for d in range(dims):
            shape[d] = np.PyArray_DIM(chosen, d)
        shape[dims - 1] = m
        order = np.PyArray_EMPTY(dims, shape, np.NPY_INT32, 0)
        cdef int *rows = <int *> np.PyArray_DATA(order)
        for k in range(count):
            exchange_rows(rows, <int> m, others, length)
            rows += m
            others += length
        return order

    return {
        function.__name__: function
        for function in (
            linalg_cholesky_ex, linalg_lu_factor_ex, linalg_ldl_factor_ex, linalg_check_errors,
            lu_unpack, pivots_to_permutation,
        )
    }
