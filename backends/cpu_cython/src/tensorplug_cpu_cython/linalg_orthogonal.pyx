"""Orthogonal factors of matrices, and products with them, by reflections."""

import numpy

cimport numpy as np
from libc.stdlib cimport free
from libc.string cimport memcpy

from .linalg_lapack cimport (
    call13, call8, call9, contiguous, copied, empty_like, last_size, matrices, matrices_of, per_matrix, room, routine,
    same_batch, transpose_into
)
from .linalg_tall cimport is_very_tall, very_tall_factors

np.import_array()


def kernels(below):
    """Return the kernels by op; `below` gives the kernel beneath that of an op, for what these leave to it."""
    geqrf_below, product_below = below("geqrf"), below("linalg_householder_product")
    ormqr_below, qr_below = below("ormqr"), below("linalg_qr")

    def geqrf(A):
        cdef np.ndarray compact, tau
        cdef matrices batch
        cdef call8 factor
        cdef Py_ssize_t k
        cdef int m, n, least, size, lwork, info
        if not A.size:
            return geqrf_below(A)
        factor = <call8> routine("geqrf", A.dtype.char)
        compact = copied(A)
        batch = matrices_of(compact)
        m, n, size = batch.rows, batch.columns, np.PyArray_ITEMSIZE(compact)
        least, lwork = min(m, n), 32 * n
        tau = per_matrix(compact, np.PyArray_TYPE(compact), least)
        cdef char *factors = <char *> np.PyArray_DATA(tau)
        cdef char *matrix = <char *> room(batch.bytes + lwork * size)
        with nogil:
            for k in range(batch.count):
                transpose_into(batch.data + k * batch.bytes, matrix, m, n, size)
                factor(
                    &m, &n, matrix, &m, factors + k * least * size, matrix + batch.bytes, &lwork, &info,
                )
                transpose_into(matrix, batch.data + k * batch.bytes, n, m, size)
        free(matrix)
        return compact, tau

    def linalg_householder_product(A, tau):
        cdef np.ndarray result, factors
        cdef matrices batch
        cdef call9 orgqr
        cdef Py_ssize_t k
        cdef int m, n, reflectors, size, lwork, info
        if not (A.size and tau.size and same_batch(A, 2, tau, 1)):
            return product_below(A, tau)
        orgqr = <call9> routine("orgqr", A.dtype.char)
        result, factors = copied(A), contiguous(tau)
        batch = matrices_of(result)
        m, n, size = batch.rows, batch.columns, np.PyArray_ITEMSIZE(result)
        reflectors, lwork = last_size(factors), 32 * n
        cdef char *numbers = <char *> np.PyArray_DATA(factors)
        cdef char *matrix = <char *> room(batch.bytes + lwork * size)
        with nogil:
            for k in range(batch.count):
                transpose_into(batch.data + k * batch.bytes, matrix, m, n, size)
                orgqr(
                    &m, &n, &reflectors, matrix, &m, numbers + k * reflectors * size, matrix + batch.bytes, &lwork,
                    &info,
                )
                transpose_into(matrix, batch.data + k * batch.bytes, n, m, size)
        free(matrix)
        return result

    def ormqr(input, tau, other, left, transpose):
        cdef np.ndarray compact, factors, result
        cdef matrices batch, right
        cdef call13 product
        cdef Py_ssize_t k
        cdef int m, n, rows, reflectors, size, lwork, info
        if not (tau.size and other.size and same_batch(input, 2, tau, 1) and same_batch(input, 2, other, 2)):
            return ormqr_below(input, tau, other, left, transpose)
        product = <call13> routine("ormqr", input.dtype.char)
        factors = contiguous(tau)
        reflectors = last_size(factors)
        compact = contiguous(input[..., :reflectors])
        # LAPACK sees the adjoint of a conjugate in rows, and (Q C)^H is C^H Q^H.
        cdef bint of_complex = input.dtype.kind == "c"
        result = numpy.conjugate(contiguous(other)) if of_complex else copied(other)
        batch, right = matrices_of(compact), matrices_of(result)
        rows, m, n, size = batch.rows, right.columns, right.rows, np.PyArray_ITEMSIZE(compact)
        lwork = 32 * max(m, n)
        cdef char *side = "R" if left else "L"
        cdef char *way = "N" if transpose else "C" if of_complex else "T"
        cdef char *numbers = <char *> np.PyArray_DATA(factors)
        cdef char *matrix = <char *> room(batch.bytes + <Py_ssize_t> lwork * size)
        with nogil:
            for k in range(batch.count):
                transpose_into(batch.data + k * batch.bytes, matrix, rows, reflectors, size)
                product(
                    side, way, &m, &n, &reflectors, matrix, &rows, numbers + k * reflectors * size,
                    right.data + k * right.bytes, &m, matrix + batch.bytes, &lwork, &info,
                )
        free(matrix)
        return numpy.conjugate(result, result) if of_complex else result

    def linalg_qr(A, mode):
        cdef np.ndarray own, Q, R
        cdef matrices batch
        cdef call8 factor
        cdef call9 orgqr
        cdef Py_ssize_t k, i
        cdef int m, n, least, columns, size, lwork, info, j
        if not A.size:
            return qr_below(A, mode)
        if mode == "reduced" and is_very_tall(A, 0) and (quick := very_tall_factors(A)) is not None:
            return quick
        factor, orgqr = <call8> routine("geqrf", A.dtype.char), <call9> routine("orgqr", A.dtype.char)
        own = contiguous(A)
        batch = matrices_of(own)
        m, n, size = batch.rows, batch.columns, np.PyArray_ITEMSIZE(own)
        least = min(m, n)
        columns = m if mode == "complete" else least
        lwork = 32 * max(n, columns)
        R = empty_like(own, columns, n)
        Q = empty_like(own, m, columns) if mode != "r" else numpy.empty((0,), A.dtype)
        cdef bint wanted = mode != "r"
        cdef char *q = <char *> np.PyArray_DATA(Q)
        cdef char *r = <char *> np.PyArray_DATA(R)
        cdef Py_ssize_t wide = max(n, columns)
        cdef char *matrix = <char *> room((m * wide + least + lwork + m * wide) * size)
        cdef char *rows = matrix + m * wide * size  # for R, which has at most m rows
        cdef char *tau = rows + m * wide * size
        cdef char *work = tau + least * size
        with nogil:
            for k in range(batch.count):
                transpose_into(batch.data + k * batch.bytes, matrix, m, n, size)
                factor(&m, &n, matrix, &m, tau, work, &lwork, &info)
                transpose_into(matrix, rows, n, m, size)
                for i in range(columns):
                    memcpy(r, rows + i * n * size, n * size)
                    for j in range(<int> min(i, n) * size):
                        r[j] = 0
                    r += n * size
                if wanted:
                    orgqr(&m, &columns, &least, matrix, &m, tau, work, &lwork, &info)
                    transpose_into(matrix, q, columns, m, size)
                    q += <Py_ssize_t> m * columns * size
        free(matrix)
        return Q, R

    return {
        function.__name__: function
        for function in (
            geqrf, linalg_householder_product, ormqr, linalg_qr,
        )
    }
